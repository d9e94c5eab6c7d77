// Programs that nest deeply are refused or run; the engine works afterwards.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AgentVM } from '../dist/node.mjs'

const shapes = {
  parentheses: (n) => `${'('.repeat(n)}1${')'.repeat(n)}`,
  lists: (n) => `${'['.repeat(n)}1${']'.repeat(n)}`,
  negations: (n) => `${'!'.repeat(n)}1`,
  sums: (n) => `a${' + a'.repeat(n)}`,
  conditionals: (n) => `${'a ? '.repeat(n)}1${' : 2'.repeat(n)}`,
  members: (n) => `a${'.a'.repeat(n)}`,
  calls: (n) => `a${'.concat(a'.repeat(n)}${')'.repeat(n)}`,
  templates: (n) => `${'`${'.repeat(n)}1${'}`'.repeat(n)}`,
  functions: (n) => `${'a.map(x => '.repeat(n)}1${')'.repeat(n)}`,
  objects: (n) => `${'{ a: '.repeat(n)}1${' }'.repeat(n)}`,
}

test('sources of every depth', async () => {
  const vm = new AgentVM()
  for (const [name, shape] of Object.entries(shapes)) {
    for (const depth of [16, 31, 50, 60, 63, 64, 65, 100, 199, 201, 5000, 50000]) {
      const [first] = vm.check(`function f({ a }) { return { r: ${shape(depth)} } }`)
      const isKnown = first === undefined || /^(source|compile|lint|json|verify)\./.test(first.code)
      assert.ok(isKnown, `${name} ${depth}: ${first?.code} ${first?.message}`)
    }
  }
  assert.deepEqual((await vm.run('function f() { return { r: 1 } }')).result, { r: 1 })
})

test('trees of every depth', async () => {
  const vm = new AgentVM()
  for (const depth of [100, 500, 520, 1999, 20000]) {
    const text = `${'{"op":"seq","steps":['.repeat(depth)}${']}'.repeat(depth)}`
    const codes = vm.check(text).map((one) => one.code)
    assert.ok(codes.every((code) => /^(compile|json|lint)\./.test(code)), `${depth}: ${codes}`)
  }
  assert.deepEqual((await vm.run('function f() { return { r: 1 } }')).result, { r: 1 })
})

test('values and expressions of every depth run, and print or are refused', async () => {
  const vm = new AgentVM()
  const nested = (open, inner, close, depth) => open.repeat(depth) + inner + close.repeat(depth)
  const one = '{"$expr":"literal","value":1}'
  for (const depth of [190, 500, 1000, 1023, 1900]) {
    const values = [
      nested('[', '', ']', depth),
      nested('{"$expr":"unary","op":"!","argument":', one, '}', depth),
      nested(`{"$expr":"binary","op":"+","left":${one},"right":`, one, '}', depth),
      JSON.stringify({ '=': nested('(1+', '1', ')', depth) }),
    ]
    for (const value of values) {
      const text = `{"a99":4,"op":"seq","steps":[{"op":"return","value":${value}}]}`
      if (vm.check(text).some((one) => one.severity === 'error')) continue
      const program = vm.compile(text)
      assert.ok((await vm.run(program)).fuelUsed > 0)
      try {
        assert.ok(program.toSource().length > depth)
      } catch (error) {
        assert.equal(error.code, 'source.unsayable', error.message)
      }
    }
  }
})
