import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { AgentVM, ajs, init } from '../dist/esm/browser.js'

const file = new URL('../../native/agent99.wasm', import.meta.url)

test('the build for browsers needs init, then runs', { skip: !existsSync(file) && 'no WebAssembly' }, async () => {
  const vm = new AgentVM()
  const program = { op: 'seq', steps: [{ op: 'return', schema: { properties: {} } }] }
  await assert.rejects(vm.run(program), { code: 'binding.not_initialized' })
  assert.throws(() => ajs('function f() {}'), { code: 'binding.not_initialized' })
  assert.deepEqual(vm.Agent.varSet({ key: 'a', value: 1 }).steps, [{ op: 'varSet', key: 'a', value: 1 }])
  await assert.rejects(init(new Uint8Array([1, 2, 3])))
  await Promise.all([init(readFileSync(file)), init(readFileSync(file))])
  await init()
  const source = ajs('function f({ a }) { return { b: a + 1 } }')
  assert.deepEqual((await vm.run(source, { a: 1 })).result, { b: 2 })
  const { error } = await vm.run('function f() { while (true) {} }', {}, { fuel: 1e9, timeoutMs: 30 })
  assert.equal(error.code, 'time.run_timeout')
})
