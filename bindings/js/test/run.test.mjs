import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AgentError, AgentVM, Agent, EngineError, ajs, coreAtoms, defineAtom, explain, isAgentError, s, transpile, version } from '../dist/node.mjs'

const identity = { op: 'seq', steps: [{ op: 'varsImport', keys: ['v'] }, { op: 'return', schema: { properties: { v: {} } } }] }
const sleep = (ms) => new Promise((done) => setTimeout(done, ms))
const one = (op, inputs = {}) => ({ op: 'seq', steps: [{ op, ...inputs, result: 'r' }, { op: 'return', schema: { properties: { r: {} } } }] })
let rejections = 0
process.on('unhandledRejection', () => rejections++)
test.after(() => assert.equal(rejections, 0, 'unhandled rejections'))

test('a builder makes a program that runs', async () => {
  const vm = new AgentVM()
  const program = vm.Agent.take(s.object({ list: s.any })).varsImport(['list'])
    .map('list', 'item', (b) => b.template({ tmpl: '<{{item}}>', vars: { item: 'item' } }).as('result'))
    .as('mapped')
    .filter('list', 'x', 'x > 1').as('filtered')
    .find('list', 'x', 'x == 2').as('found')
    .reduce('list', 'x', 'sum', 0, (b) => b.mathCalc({ expr: 'sum + x', vars: { sum: 'sum', x: 'x' } }).as('result'))
    .as('total')
    .try({ try: (b) => b.Error({ args: ['bad'] }), catch: (b) => b.varSet({ key: 'caught', value: true }) })
    .scope((b) => b.varSet({ key: 'inner', value: 1 }))
    .memoize((b) => b.varSet({ key: 'result', value: 7 }), 'k').as('memo')
    .if('total > 100', { total: 'total' }, (b) => b.varSet({ key: 'size', value: 'big' }), (b) => b.varSet({ key: 'size', value: 'small' }))
    .varSet({ key: 'n', value: 0 })
    .while('n < 3', { n: 'n' }, (b) => b.mathCalc({ expr: 'n + 1', vars: { n: 'n' } }).as('n'))
    .return(s.object({ mapped: s.any, filtered: s.any, found: s.any, total: s.any, caught: s.any, memo: s.any, size: s.any, n: s.any }))
  const { result, error } = await vm.run(program.toJSON(), { list: [1, 2, 3] })
  assert.equal(error, undefined)
  assert.deepEqual(result, { mapped: ['<1>', '<2>', '<3>'], filtered: [2, 3], found: 2, total: 6, caught: true, memo: 7, size: 'small', n: 3 })
})

test('every form of a program runs', async () => {
  const vm = new AgentVM()
  const source = 'function agent({ a }) { return { b: a + 1 } }'
  const program = vm.compile(source)
  for (const form of [source, program, program.toBytes(), ajs(source), ajs`function agent({ a }) { return { b: a + ${1} } }`, JSON.stringify(transpile(source).ast)]) {
    assert.deepEqual((await vm.run(form, { a: 1 })).result, { b: 2 })
  }
  assert.match(program.toSource(), /function/)
  assert.deepEqual(program.describe().ops.includes('return'), true)
  assert.deepEqual((await vm.run(vm.load(program.toBytes()), { a: 2 })).result, { b: 3 })
  program.free()
  program.free()
  await assert.rejects(vm.run(program, { a: 1 }), { code: 'binding.bad_handle' })
  const stored = await vm.run(one('storeProcedure', { ast: { $expr: 'literal', value: ajs(source) } }))
  assert.deepEqual((await vm.run(stored.result.r, { a: 5 })).result, { b: 6 })
})

test('a rejected program rejects the promise, a fault is found by check', async () => {
  const vm = new AgentVM()
  await assert.rejects(vm.run({ op: 'if', condition: 'a' }), (error) => error instanceof EngineError && /Root AST must be 'seq'/.test(error.message) && error.diagnostics.length > 0)
  await assert.rejects(vm.run('function ('), EngineError)
  await assert.rejects(vm.run(42), EngineError)
  await assert.rejects(vm.run(undefined), EngineError)
  assert.throws(() => vm.compile({ op: 'seq', steps: [{ op: 'if', condition: 'a >', then: [] }] }), { code: 'compile.bad_condition' })
  assert.equal(vm.check({ op: 'seq', steps: [{ op: 'nope' }] })[0].message, 'Unknown Atom: nope')
  assert.deepEqual(vm.check(identity), [])
  assert.throws(() => transpile('function ('), EngineError)
  await assert.rejects(vm.run(identity, {}, { feul: 3 }), { code: 'binding.bad_option' })
  await assert.rejects(vm.run(identity, {}, { fuel: 'much' }), { code: 'binding.bad_option' })
  await assert.rejects(vm.run(identity, {}, { quotas: { nope: 1 } }).then((r) => Promise.reject(r.error)), { code: 'options.unknown_op' })
  await assert.rejects(new AgentVM({ a: defineAtom('a', undefined, undefined, () => 1) }).run(vm.compile(identity)), { code: 'binding.other_machine' })
})

test('errors of programs are results', async () => {
  const vm = new AgentVM()
  const { result, error } = await vm.run(one('Error', { args: ['bad'] }))
  assert.ok(error instanceof AgentError && isAgentError(error))
  assert.equal(result, error)
  assert.equal(error.message, 'bad')
  assert.equal(error.op, 'Error')
  assert.deepEqual(JSON.parse(JSON.stringify(error)), { $error: true, message: 'bad', op: 'Error' })
  assert.equal(String(error), 'AgentError[Error]: bad')
  const spent = await vm.run('function f() { while (true) {} }', {}, { fuel: 10 })
  assert.equal(spent.error.message, 'Out of Fuel')
  assert.ok(explain(spent.error.code).meaning)
  assert.equal(explain('no.such'), undefined)
  assert.match(version(), /^\d+\.\d+\.\d+/)
})

test('values pass through a program unchanged', async () => {
  const vm = new AgentVM()
  const program = vm.compile(identity)
  for (const v of [null, true, -0, NaN, Infinity, 2 ** 40, 'text', 'a\ud800b', '\udc00\ud800', '\u{1f600}', [], {}, { a: { 2: 1, 1: 2, b: [undefined] } }, 'x'.repeat(100000), [[-1.5]], 'größe']) {
    const { result, error } = await vm.run(program, { v })
    assert.equal(error, undefined)
    assert.deepStrictEqual(result.v, v)
  }
  const own = JSON.parse('{"__proto__": {"a": 1}}')
  const back = (await vm.run(program, { v: own })).result.v
  assert.deepStrictEqual(back, own)
  assert.equal(Object.getPrototypeOf(back), Object.prototype)
  await assert.rejects(vm.run(program, { v: { f() {} } }), { code: 'boundary.rejected', path: 'args.v.f' })
  assert.equal((await vm.run(program, { v: 'x'.repeat(5e6) })).error.code, 'boundary.rejected')
  assert.equal((await vm.run(program, { v: 1, other: 'x'.repeat(5e6) })).result.v, 1)
  assert.equal((await vm.run(program, { v: 'x'.repeat(5e6) }, { membraneMaxBytes: 8e6 })).result.v.length, 5e6)
})

test('atoms get values and a context', async () => {
  const seen = {}
  const look = defineAtom('look', s.object({ value: s.any }), s.any, (input, ctx) => {
    Object.assign(seen, { input, args: ctx.args, context: ctx.context, capabilities: ctx.capabilities, aborted: ctx.signal.aborted, fuel: ctx.fuel.current })
    ctx.fuel.current -= 5
    ctx.warnings.push('careful')
    return { doubled: input.value * 2 }
  }, { cost: 2, docs: 'Looks', effects: 'read' })
  const vm = new AgentVM({ look })
  const capabilities = { mine: () => 1 }
  const context = { user: 'ann', onChunk: () => 'called', deep: { list: [1, { a: 1 }] }, when: new Date(0) }
  const args = { x: 21 }
  const { result, error, fuelUsed, warnings } = await vm.run(one('look', { value: 'args.x' }), args, { capabilities, context, fuel: 100 })
  assert.equal(error, undefined)
  assert.deepEqual(result, { r: { doubled: 42 } })
  assert.deepEqual(seen.input, { value: 21 })
  assert.equal(seen.args, args)
  assert.equal(seen.capabilities, capabilities)
  assert.equal(seen.aborted, false)
  assert.ok(seen.fuel < 98.1 && seen.fuel > 97, String(seen.fuel))
  assert.ok(fuelUsed > 7 && fuelUsed < 7.5, String(fuelUsed))
  assert.deepEqual(warnings, ['careful'])
  // The view reads all, changes nothing, and freezes nothing.
  assert.equal(seen.context.onChunk(), 'called')
  assert.equal(seen.context.onChunk, context.onChunk)
  assert.deepEqual(Object.keys(seen.context), Object.keys(context))
  assert.equal(seen.context.deep.list[1].a, 1)
  assert.equal(seen.context.when, context.when)
  assert.ok(Array.isArray(seen.context.deep.list))
  assert.equal(JSON.stringify(seen.context.deep), JSON.stringify(context.deep))
  assert.deepEqual([...seen.context.deep.list][0], 1)
  for (const change of [(c) => { c.user = 'bob' }, (c) => { delete c.user }, (c) => { c.deep.list.push(2) }, (c) => Object.defineProperty(c, 'x', { value: 1 }), (c) => Object.setPrototypeOf(c, null), (c) => Object.freeze(c)]) {
    assert.throws(() => change(seen.context), TypeError)
  }
  assert.ok(!Object.isFrozen(context) && Object.isExtensible(context.deep))
  context.user = 'eve'
  assert.equal(seen.context.user, 'eve')
})

test('atoms may fail in every way', async () => {
  const fails = {
    throws: () => { throw new Error('thrown') },
    rejects: async () => { throw new TypeError('rejected') },
    text: () => { throw 'a text' },
    nothing: () => Promise.reject(),
    odd: () => { throw new Proxy({}, { get() { throw 1 } }) },
    fn: () => () => 1,
    cycle: () => { const a = {}; a.a = a; return { a } },
    getter: () => ({ get x() { throw new Error('inside') } }),
    then: () => ({ get then() { throw new Error('no then') } }),
    thenThrows: () => ({ then() { throw new Error('in then') } }),
    reenters: () => ({ get x() { return new AgentVM().check(identity) } }),
  }
  const wanted = {
    throws: 'thrown', rejects: 'rejected', text: 'a text', nothing: 'undefined', odd: 'Unknown error',
    fn: 'Capability boundary rejected: result is a function, which programs cannot hold',
    cycle: 'Capability boundary rejected: value contains a cycle',
    getter: 'Capability boundary rejected: reading result.x failed: inside',
    then: 'no then', thenThrows: 'in then',
    reenters: 'Capability boundary rejected: reading result.x failed: the engine was called while it reads a value or asks for a price',
  }
  const atoms = Object.fromEntries(Object.entries(fails).map(([op, fn]) => [op, defineAtom(op, undefined, undefined, fn)]))
  const vm = new AgentVM(atoms)
  for (const op of Object.keys(fails)) {
    const { error } = await vm.run(one(op))
    assert.equal(error?.message, wanted[op], op)
    assert.equal(error.op, op)
    const caught = await vm.run({ op: 'seq', steps: [{ op: 'try', try: [{ op }], catch: [{ op: 'varSet', key: 'm', value: 'error' }] }, { op: 'return', schema: { properties: { m: {} } } }] })
    assert.equal(caught.result.m, wanted[op])
  }
})

test('inputs and results are checked by their schemas', async () => {
  const typed = defineAtom('typed', s.object({ n: s.integer.min(1) }), s.string, ({ n }) => (n === 7 ? 7 : `n${n}`))
  const vm = new AgentVM({ typed })
  assert.equal((await vm.run(one('typed', { n: 'args.n' }), { n: 3 })).result.r, 'n3')
  assert.match((await vm.run(one('typed', { n: 'args.n' }), { n: 0 })).error.message, /^Input validation failed for 'typed'/)
  assert.match((await vm.run(one('typed', { n: 7 }))).error.message, /^Output validation failed for 'typed'/)
})

test('limits, aborts and late answers', async () => {
  const signals = []
  const hang = defineAtom('hang', undefined, undefined, (_, ctx) => { signals.push(ctx.signal); return new Promise(() => {}) }, { timeoutMs: 30 })
  const late = defineAtom('late', undefined, undefined, async (_, ctx) => { signals.push(ctx.signal); await sleep(60); throw new Error('late') }, { timeoutMs: 10 })
  const vm = new AgentVM({ hang, late })
  assert.match((await vm.run(one('hang'))).error.message, /timed out/)
  assert.match((await vm.run(one('late'))).error.message, /timed out/)
  assert.ok(signals.every((signal) => signal.aborted))
  const timed = await vm.run(one('hang'), {}, { timeoutMs: 10, timeoutOverrides: { hang: 0 } })
  assert.equal(timed.error.code, 'time.run_timeout')
  const aborter = new AbortController()
  setTimeout(() => aborter.abort(), 10)
  const started = performance.now()
  const aborted = await vm.run(one('hang'), {}, { signal: aborter.signal, timeoutOverrides: { hang: 0 } })
  assert.equal(aborted.error.code, 'run.aborted')
  assert.ok(performance.now() - started < 500)
  assert.equal(signals.at(-1).aborted, true)
  assert.equal((await vm.run(identity, {}, { signal: AbortSignal.abort() })).error.code, 'run.aborted')
  const own = new AbortController()
  const inside = defineAtom('inside', undefined, undefined, () => { own.abort(); return 1 })
  assert.equal((await new AgentVM({ inside }).run(one('inside'), {}, { signal: own.signal })).error.code, 'run.aborted')
  await sleep(80)
})

test('a run that computes yields to the event loop', async () => {
  const vm = new AgentVM()
  let ticks = 0
  const timer = setInterval(() => ticks++, 1)
  const busy = 'function f() { let n = 0; while (n < 3000000) { n = n + 1 } return { n } }'
  const { error, result } = await vm.run(busy, {}, { fuel: 1e7, timeoutMs: 60000 })
  clearInterval(timer)
  assert.equal(error, undefined)
  assert.equal(result.n, 3000000)
  assert.ok(ticks > 2, `${ticks} ticks`)
  const aborter = new AbortController()
  setTimeout(() => aborter.abort(), 20)
  const endless = await vm.run('function f() { while (true) {} }', {}, { fuel: 1e12, timeoutMs: 60000, signal: aborter.signal })
  assert.equal(endless.error.code, 'run.aborted')
})

test('capabilities are called, whichever way they answer', async () => {
  const vm = new AgentVM()
  const calls = []
  const store = new Map([['k', { a: 1 }]])
  const capabilities = {
    store: { get: (key) => store.get(key), set: async (key, value) => { store.set(key, value) } },
    fetch: async (url, init) => { calls.push([url, init.method, init.signal instanceof AbortSignal]); return { ok: url } },
    llm: { predict: async (prompt, options) => `${prompt}!${options?.t ?? ''}` },
    agent: { run: async (id, input) => (id === 'fails' ? { error: { message: 'sub failed' }, fuelUsed: 1 } : { result: { id, input }, fuelUsed: 2 }) },
    xml: { parse: () => { throw new Error('no xml') } },
  }
  const run = async (step) => { const done = await vm.run(one(step.op, step), {}, { capabilities }); return done.error?.message ?? done.result.r }
  assert.deepEqual(await run({ op: 'storeGet', key: 'k' }), { a: 1 })
  await run({ op: 'storeSet', key: 'k2', value: [1] })
  assert.deepEqual(store.get('k2'), [1])
  assert.deepEqual(await run({ op: 'httpFetch', url: 'http://x/', method: 'POST' }), { ok: 'http://x/' })
  assert.deepEqual(calls, [['http://x/', 'POST', true]])
  assert.equal(await run({ op: 'llmPredict', prompt: 'hi', options: { t: 1 } }), 'hi!1')
  assert.deepEqual(await run({ op: 'agentRun', agentId: 'sub', input: { a: 1 } }), { id: 'sub', input: { a: 1 } })
  assert.equal(await run({ op: 'agentRun', agentId: 'fails', input: {} }), 'sub failed')
  assert.equal(await run({ op: 'xmlParse', str: '<a/>' }), 'no xml')
  assert.match(await run({ op: 'storeQuery', query: {} }) + '', /^$|missing/)
  capabilities.vector = { embed: async () => [1, 2] }
  assert.deepEqual(await run({ op: 'storeVectorize', text: 't' }), [1, 2])
  const hostile = { get store() { throw new Error('no store') } }
  await assert.rejects(vm.run(identity, {}, { capabilities: hostile }), /no store/)
  assert.equal((await vm.run(identity, { v: 1 })).result.v, 1)
})

test('responses of fetch are read', async () => {
  const vm = new AgentVM()
  const bodies = {
    json: () => new Response('{"a":[1]}', { headers: { 'content-type': 'application/json' } }),
    text: () => new Response('plain'),
    missing: () => new Response('gone', { status: 404, statusText: 'Not Found' }),
    bad: () => new Response('{', { headers: { 'content-type': 'application/json' } }),
    large: () => new Response('x'.repeat(5e6)),
  }
  const fetch = async (url) => bodies[url]()
  const run = async (url, responseType) => { const done = await vm.run(one('httpFetch', { url, responseType }), {}, { capabilities: { fetch } }); return done.error?.message ?? done.result.r }
  assert.deepEqual(await run('json'), { a: [1] })
  assert.equal(await run('json', 'text'), '{"a":[1]}')
  assert.equal(await run('text'), 'plain')
  assert.equal(await run('missing'), 'HTTP 404 Not Found')
  assert.equal(await run('missing', 'text'), 'gone')
  assert.equal(await run('text', 'dataUrl'), 'data:text/plain;charset=UTF-8;base64,cGxhaW4=')
  assert.match(await run('bad'), /JSON/)
  assert.match(await run('large'), /more than 4194304 bytes/)
  assert.deepEqual((await run('json', 'response')).body, { a: [1] })
})

test('prices, quotas and traces', async () => {
  const free = defineAtom('free', undefined, undefined, () => 1, { cost: (input, ctx) => (ctx.context?.rich ? 50 : input.n ?? 1) })
  const vm = new AgentVM({ free })
  const used = async (step, options) => (await vm.run(one('free', step), {}, { costModel: 'flat', ...options })).fuelUsed
  const base = await used({ n: 0 })
  assert.equal(Math.round((await used({ n: 5 })) - base), 5)
  assert.equal(Math.round((await used({ n: 5 }, { context: { rich: true } })) - base), 50)
  assert.equal(Math.round((await used({}, { costOverrides: { free: 9 } })) - base), 9)
  assert.equal(Math.round((await used({}, { costOverrides: { free: () => 11 } })) - base), 11)
  assert.equal(Math.round((await used({}, { costOverrides: { free: () => { throw new Error('x') } } })) - base), 1)
  assert.equal(Math.round((await used({}, { costOverrides: { free: () => vm.check(identity).length } })) - base), 1)
  const quotaUsed = {}
  assert.equal((await vm.run(one('free'), {}, { quotas: { free: 2 }, quotaUsed })).error, undefined)
  assert.deepEqual(quotaUsed, { free: 1 })
  await vm.run(one('free'), {}, { quotas: { free: 2 }, quotaUsed })
  assert.equal((await vm.run(one('free'), {}, { quotas: { free: 2 }, quotaUsed })).error.code, 'quota.exceeded')
  const { trace } = await vm.run(one('free'), {}, { trace: true })
  assert.deepEqual(trace.map((event) => event.op), ['free', 'return', 'seq'])
  assert.equal(trace[0].result, 1)
  await assert.rejects(vm.run(identity, {}, { timeoutOverrides: { free: () => 1 } }), { code: 'binding.timeout_function' })
})

test('raw inputs, steps of atoms, and what is not offered', async () => {
  const raw = defineAtom('raw', undefined, undefined, (input) => input, { inputs: 'raw' })
  const runs = defineAtom('runs', undefined, undefined, async ({ steps }, ctx) => {
    const before = ctx.fuel.current
    const value = await ctx.resolver('len').exec({ op: 'len', list: [1, 2, 3] }, ctx)
    const own = await ctx.resolver('raw').exec({ op: 'raw', a: 1 }, ctx)
    return { value, own, count: steps.length, charged: ctx.fuel.current < before, unknown: ctx.resolver('nope') === undefined }
  }, { inputs: 'raw' })
  const state = defineAtom('state', undefined, undefined, (_, ctx) => ctx.state.x)
  const raises = defineAtom('raises', undefined, undefined, (_, ctx) => { ctx.fuel.current += 1 })
  const vm = new AgentVM({ raw, runs, state, raises })
  assert.deepEqual((await vm.run(one('raw', { a: 'args.x', b: { $expr: 'ident', name: 'y' } }), { x: 1 })).result.r, { a: 'args.x', b: { $expr: 'ident', name: 'y' } })
  const { result, error } = await vm.run(one('runs', { steps: [{ op: 'varSet', key: 'a', value: 1 }] }))
  assert.equal(error, undefined)
  assert.deepEqual(result.r, { value: 3, own: { a: 1 }, count: 1, charged: true, unknown: true })
  assert.equal((await vm.run(one('state'))).error.code, 'binding.no_state')
  assert.match((await vm.run(one('raises'))).error.message, /fuel cannot rise/)
  for (const bad of [() => defineAtom('', undefined, undefined, () => 1), () => defineAtom('a', undefined, undefined), () => defineAtom('a', undefined, undefined, () => 1, { cost: -1 }), () => defineAtom('a', undefined, undefined, () => 1, { effects: 'none' }), () => new AgentVM({ a: {} })]) {
    assert.throws(bad, { code: 'binding.bad_atom' })
  }
  assert.throws(() => new AgentVM({ a: defineAtom('a', 5, undefined, () => 1) }).check(identity), { code: 'binding.schema' })
})

test('tools, atoms and prompts', () => {
  const mine = defineAtom('mine', s.object({ a: s.string }), s.any, () => 1, 'Does mine')
  const vm = new AgentVM({ mine })
  const tools = vm.getTools(['mine', 'storeGet'])
  assert.deepEqual(tools.map((tool) => tool.function.name).sort(), ['mine', 'storeGet'])
  assert.equal(tools.find((tool) => tool.function.name === 'mine').function.description, 'Does mine')
  assert.ok(vm.getTools('flow').length < vm.getTools().length)
  assert.equal(vm.resolve('mine'), mine)
  assert.equal(vm.resolve('len').op, 'len')
  assert.equal(vm.resolve('nope'), undefined)
  assert.equal(vm.resolve('toString'), undefined)
  assert.ok(coreAtoms.len.docs && coreAtoms.httpFetch.timeoutMs === 30000 && coreAtoms.len.inputSchema.schema.type === 'object')
  assert.match(vm.declarations(), /declare function mine/)
  assert.ok(vm.prompt().length > 100)
  assert.throws(() => new AgentVM({}, { without: ['nope'] }).check(identity), { code: 'binding.bad_option' })
  assert.equal(new AgentVM({}, { without: ['len'] }).check(one('len', { list: [] }))[0].message, 'Unknown Atom: len')
  assert.deepEqual(Agent.take().varSet({ key: 'a', value: 1 }).toJSON(), { op: 'seq', steps: [{ op: 'varSet', key: 'a', value: 1 }] })
  assert.throws(() => Agent.take().as('x'), /No step to capture/)
  assert.equal(Agent.custom({ mine }).mine({ a: 'b' }).steps[0].op, 'mine')
  assert.equal(Agent.custom({ mine }).len, undefined)
  assert.throws(() => Agent.take().if('a ?? (', {}, () => {}), /Unsupported condition syntax/)
})

test('events of a run are told while it goes on', async () => {
  const vm = new AgentVM()
  const seen = []
  const onEvent = (event) => {
    seen.push(event)
    throw new Error('a listener decides nothing')
  }
  const program = { op: 'seq', steps: [{ op: 'streamChunk', data: 'one' }, { op: 'streamChunk', data: { n: 2 } }] }
  assert.equal((await vm.run(program, {}, { onEvent })).error, undefined)
  assert.deepEqual(seen.filter((event) => event.event === 'chunk').map((event) => event.value), ['one', { n: 2 }])
})

test('a run as steps, and from a snapshot', async () => {
  const ask = defineAtom('ask', undefined, undefined, () => 'asked')
  const vm = new AgentVM({ ask })
  const program = vm.compile(one('ask', { q: 1 }))
  const steps = vm.start(program)
  assert.deepEqual({ ...steps.event, fuelLeft: 0 }, { type: 'call', id: steps.event.id, op: 'ask', input: { q: 1 }, fuelLeft: 0, pointer: '/steps/0' })
  assert.equal(steps.next().type, 'wait')
  const bytes = steps.snapshot()
  assert.deepEqual(steps.answer('1.0', 5), steps.event)
  const again = vm.restore(program, bytes)
  assert.deepEqual((await again.finish()).result, { r: 'asked' })
  const third = vm.restore(program, bytes)
  assert.equal(third.abort().result.error.code, 'run.aborted')
  assert.throws(() => third.next(), { code: 'binding.run_over' })
  const fourth = vm.start(program)
  assert.equal(fourth.fail(fourth.event.id, new Error('refused')).result.error.message, 'refused')
  vm.start(program).free()
})

test('zod and Standard Schema describe atoms', async () => {
  const { z } = await import('zod')
  const greet = defineAtom('greet', z.object({ name: z.string().min(2), times: z.number().default(2) }), z.string(), ({ name, times }) => name.repeat(times))
  const vm = new AgentVM({ greet })
  assert.equal((await vm.run(one('greet', { name: 'ab' }))).result.r, 'abab')
  assert.match((await vm.run(one('greet', { name: 'a' }))).error.message, /^Input validation failed for 'greet'/)
  assert.equal(vm.getTools(['greet'])[0].function.parameters.properties.name.minLength, 2)
  const standard = { '~standard': { version: 1, vendor: 'mine', validate: (value) => (value.ok ? { value } : { issues: [{ message: 'not ok', path: ['ok'] }] }) } }
  const judge = defineAtom('judge', standard, undefined, () => 'fine')
  const other = new AgentVM({ judge })
  assert.equal((await other.run(one('judge', { ok: true }))).result.r, 'fine')
  assert.equal((await other.run(one('judge', { ok: false }))).error.message, "Input validation failed for 'judge': /ok not ok")
})

test('runs inside runs, and many at once', async () => {
  const nested = defineAtom('nested', undefined, undefined, async ({ depth }, ctx) => {
    if (depth === 0) return 'bottom'
    const done = await vm.run(one('nested', { depth: depth - 1 }), {}, { fuel: ctx.fuel.current })
    ctx.fuel.current -= Math.min(done.fuelUsed, ctx.fuel.current)
    return done.result.r
  })
  const vm = new AgentVM({ nested })
  assert.equal((await vm.run(one('nested', { depth: 5 }))).result.r, 'bottom')
  const all = await Promise.all(Array.from({ length: 500 }, (_, v) => vm.run(v % 2 ? identity : one('nested', { depth: 1 }), { v })))
  all.forEach((done, v) => assert.deepEqual(done.result, v % 2 ? { v } : { r: 'bottom' }))
})

test('atoms of the language have other names where a machine gives them', async () => {
  const vm = new AgentVM({ ask: coreAtoms.llmPredict, loop: coreAtoms.while, llmVision: coreAtoms.llmPredict })
  const capabilities = { llm: { predict: (prompt) => `${prompt}!` } }
  for (const op of ['ask', 'llmVision']) {
    const { result } = await vm.run(one(op, { prompt: 'hi' }), {}, { capabilities })
    assert.deepEqual(result, { r: 'hi!' })
  }
  const add = { op: 'mathCalc', expr: 'n + 1', vars: { n: 'n' }, result: 'n' }
  const { result } = await vm.run({
    op: 'seq',
    steps: [
      { op: 'varSet', key: 'n', value: 0 },
      { op: 'loop', condition: 'n < 3', body: [add] },
      { op: 'return', schema: { type: 'object', properties: { n: {} } } },
    ],
  })
  assert.deepEqual(result, { n: 3 })
  assert.throws(() => new AgentVM({ ask: { op: 'asks' } }), { code: 'binding.bad_atom' })
})

test('functions that answer at once may run programs, charge, fail and give promises', async () => {
  const vm = new AgentVM({
    inner: defineAtom('inner', undefined, undefined, ({ n }) => {
      // A run within the call: its events are its own.
      const run = vm.start(one('twice', { n }))
      return vm2.check(identity).length + (run.event.type === 'call' ? 1 : 0)
    }),
    twice: defineAtom('twice', undefined, undefined, ({ n }, ctx) => {
      ctx.fuel.current -= 3
      ctx.warnings.push(`twice ${n}`)
      return n * 2
    }),
    maybe: defineAtom('maybe', undefined, undefined, ({ n }) => (n % 2 ? Promise.resolve(n) : n)),
    refused: defineAtom('refused', undefined, undefined, () => ({ a: [() => 1] })),
  })
  const vm2 = new AgentVM()
  const loop = (op) => `function f() { let sum = 0; for (let n = 0; n < 10; n++) { sum = sum + ${op}({ n }) } return { sum } }`
  const twice = await vm.run(loop('twice'))
  assert.deepEqual(twice.result, { sum: 90 })
  assert.ok(twice.fuelUsed > 40, twice.fuelUsed)
  assert.equal(twice.warnings.length, 10)
  assert.deepEqual((await vm.run(loop('maybe'))).result, { sum: 45 })
  const inner = await vm.run(loop('inner'))
  assert.equal(inner.error, undefined)
  assert.equal((await vm.run(one('refused'))).error.code, 'boundary.rejected')
  const nested = new AgentVM({
    deep: defineAtom('deep', undefined, undefined, ({ n }) => (n === 0 ? 0 : nested.run(one('deep', { n: n - 1 })).then(({ result }) => result.r + 1))),
  })
  assert.deepEqual((await nested.run(one('deep', { n: 50 }))).result, { r: 50 })
  const endless = new AgentVM({ deep: defineAtom('deep', undefined, undefined, () => endless.run(one('deep')).then((done) => done.error ?? 0)) })
  assert.equal((await endless.run(one('deep'))).error, undefined)
  assert.deepEqual((await nested.run(one('deep', { n: 5 }))).result, { r: 5 })
})
