import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import * as v0 from 'agent99/compat/agent-99'
import * as v2 from 'agent99/compat/tosijs-agent'
import * as v3 from 'agent99/compat/tjs-lang'
import * as current from 'agent99'

const one = (op, inputs = {}) => ({ op: 'seq', steps: [{ op, ...inputs, result: 'r' }, { op: 'return', schema: { properties: { r: {} } } }] })

test('agent-99: errors reject, conditions are texts', async () => {
  const vm = new v0.AgentVM()
  const program = v0.A99.take().varsImport(['n']).if('n > 1', { n: 'n' }, (b) => b.varSet({ key: 'a', value: 'more' })).return(v0.s.object({ a: v0.s.any }))
  assert.deepEqual(program.steps[1], { op: 'if', condition: 'n > 1', vars: { n: 'n' }, then: [{ op: 'varSet', key: 'a', value: 'more' }], else: undefined })
  const { result, fuelUsed } = await vm.run(program.toJSON(), { n: 2 })
  assert.deepEqual(result, { a: 'more' })
  assert.ok(Math.abs(fuelUsed - 0.7) < 1e-9, String(fuelUsed))
  await assert.rejects(vm.run(one('Error', { args: ['bad'] })), (error) => error instanceof Error && error.message === 'bad' && error.cause instanceof v0.AgentError)
  assert.equal(v0.AgentError, current.AgentError)
  assert.equal(v0.eq.op, 'eq')
})

test('atoms that bind their result themselves', async () => {
  const old = { op: 'old', inputSchema: v0.s.any, create: (input) => ({ op: 'old', ...input }), exec: async (step, ctx) => { ctx.state[step.result] = `${step.text}!` } }
  const reads = { ...old, op: 'reads', exec: async (step, ctx) => { ctx.state[step.result] = ctx.state.other } }
  const vm = new v2.AgentVM({ old, reads })
  assert.equal((await vm.run(one('old', { text: 'args.t' }), { t: 'hi' })).result.r, 'hi!')
  assert.equal((await vm.run(one('reads'))).error.code, 'binding.no_state')
})

test('tosijs-agent: programs are stored and called by a token', async () => {
  const vm = new v2.AgentVM(v2.coreAtoms)
  const ast = v2.ajs('function add({ a, b }) { return { sum: a + b } }')
  const stored = await vm.run(v2.ajs('function f({ ast }) { let token = storeProcedure({ ast })\n return { token } }'), { ast })
  const { token } = stored.result
  assert.ok(v2.isProcedureToken(token))
  assert.throws(() => v2.procedureStore.has(token), { code: 'binding.not_offered' })
  assert.deepEqual((await vm.run(token, { a: 1, b: 2 })).result, { sum: 3 })
  const called = await vm.run(one('agentRun', { agentId: 'args.token', input: { a: 3, b: 4 } }), { token })
  assert.deepEqual(called.result.r, { sum: 7 })
  // The first level of `input` has names of variables.
  const factorial = v2.ajs('function f({ n, self }) { if (n <= 1) { return { value: 1 } }\n let inner = agentRun({ agentId: self, input: { n: n - 1, self } })\n return { value: n * inner.value } }')
  const kept = (await vm.run(one('storeProcedure', { ast: 'args.ast' }), { ast: factorial })).result.r
  assert.deepEqual((await vm.run(kept, { n: 5, self: kept })).result, { value: 120 })
  assert.equal((await vm.run(one('releaseProcedure', { token }))).result.r, true)
  assert.match((await vm.run(token)).error.message, /Procedure not found/)
  assert.match((await vm.run(one('agentRun', { agentId: token, input: {} }))).error.message, /Procedure not found/)
  await assert.rejects(vm.run('function ('), /^EngineError: AJS transpilation failed/)
})

test('tjs-lang: equality is exact, domains of the context may be fetched', async () => {
  const vm = new v3.AgentVM()
  const source = v3.ajs('function f({ a }) { let same = a == 1\n return { same } }')
  assert.equal((await vm.run(source, { a: '1' })).result.same, false)
  assert.equal((await new v2.AgentVM().run(source, { a: '1' })).result.same, true)
  const seen = []
  const server = createServer((request, response) => {
    seen.push([request.method, request.headers['x-agent-depth']])
    if (request.url === '/away') response.writeHead(302, { location: 'http://example.com/' }).end()
    else response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}')
  })
  await new Promise((done) => server.listen(0, '127.0.0.1', done))
  const url = `http://127.0.0.1:${server.address().port}`
  const run = (url, context) => vm.run(one('httpFetch', { url }), {}, { context })
  assert.deepEqual((await run(url, { allowedFetchDomains: ['127.0.0.1'], requestDepth: 2 })).result.r, { ok: true })
  assert.deepEqual(seen, [['GET', '3']])
  assert.match((await run(url, { allowedFetchDomains: ['example.com'] })).error.message, /domain not in allowlist/)
  assert.ok((await run(`${url}/away`, { allowedFetchDomains: ['127.0.0.1'] })).error)
  assert.match((await run(url, {})).error.message, /'fetch' missing/)
  server.close()
  assert.equal(vm.defaultRunTimeout, 240_000)
  const slow = v3.defineAtom('slow', undefined, undefined, () => 1, { timeoutMs: 300_000 })
  assert.equal(new v3.AgentVM({ slow }).defaultRunTimeout, 600_000)
})
