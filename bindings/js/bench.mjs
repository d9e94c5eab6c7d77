// What a run costs: `node bench.mjs [PEER]`. Medians of rounds in one process. PEER is a module that
// exports the `AgentVM` of another package, which runs the same program in the same process.

import { pathToFileURL } from 'node:url'
import { AgentVM, defineAtom, s } from './dist/node.mjs'

const rounds = 9

/** The median time of a call, in microseconds. */
async function measure(times, call) {
  const samples = []
  for (let round = 0; round < rounds + 3; round++) {
    const start = performance.now()
    await call(times)
    if (round >= 3) samples.push(((performance.now() - start) / times) * 1000)
  }
  return samples.sort((a, b) => a - b)[rounds >> 1]
}

const each = (run) => async (times) => {
  for (let n = 0; n < times; n++) await run()
}

function report(what, us, bound) {
  const verdict = bound === undefined ? '' : us <= bound ? `  (at most ${bound})` : `  ABOVE ${bound}`
  console.log(`${what.padEnd(52)} ${us.toFixed(2).padStart(8)} us${verdict}`)
}

const number = (op, fn) => defineAtom(op, s.object({ value: s.number }), s.number, fn, { cost: 0.001 })
const sync = number('syncAtom', ({ value }) => value + 1)
const ready = number('readyAtom', async ({ value }) => value + 1)
const fuelled = number('fuelAtom', ({ value }, ctx) => value + (ctx.fuel.current > 0 ? 1 : 0))
const vm = new AgentVM({ syncAtom: sync, readyAtom: ready, fuelAtom: fuelled })

const ten = { op: 'seq', steps: [{ op: 'varsImport', keys: ['a', 'b'] }] }
for (let n = 0; n < 8; n++) {
  ten.steps.push({
    op: 'varSet',
    key: `v${n}`,
    value: { $expr: 'binary', op: '+', left: { $expr: 'ident', name: 'a' }, right: { $expr: 'literal', value: n } },
  })
}
ten.steps.push({ op: 'return', schema: { type: 'object', properties: { a: {}, v7: {} } } })
const program = vm.compile(ten)
const args = { a: 1, b: 'two' }
const check = await vm.run(program, args)
if (check.error || check.result.v7 !== 8) throw new Error(JSON.stringify(check))

report('ten steps, compiled', await measure(20000, each(() => vm.run(program, args))), 6)
if (process.argv[2]) {
  const { AgentVM: Peer } = await import(pathToFileURL(process.argv[2]).href)
  const peer = new Peer()
  const same = await peer.run(ten, args)
  if (same.result.v7 !== 8) throw new Error(JSON.stringify(same))
  report('ten steps, the other package', await measure(5000, each(() => peer.run(ten, args))))
}
const options = { fuel: 100, context: { user: 1 }, capabilities: { store: { get() {}, set() {} } } }
report('ten steps, compiled, with options', await measure(20000, each(() => vm.run(program, args, options))))
report('ten steps, as a tree', await measure(5000, each(() => vm.run(ten, args))))

const loop = (op) => `
  function agent({ times }) {
    let value = 0
    while (value < times) { value = ${op}({ value }) }
    return { value }
  }`
const calls = 5000
const time = async (op) => {
  const compiled = vm.compile(loop(op))
  const us = await measure(calls, async (times) => {
    const done = await vm.run(compiled, { times }, { fuel: 1e6, timeoutMs: 60000 })
    if (done.result.value !== times) throw new Error(JSON.stringify(done))
  })
  return us
}
const bare = vm.compile(`
  function agent({ times }) {
    let value = 0
    while (value < times) { value = value + 1 }
    return { value }
  }`)
const base = await measure(calls, (times) => vm.run(bare, { times }, { fuel: 1e6 }))
report('an atom: sync', (await time('syncAtom')) - base, 0.8)
report('an atom: sync, reads fuel', (await time('fuelAtom')) - base)
report('an atom: async, ready', (await time('readyAtom')) - base, 1.2)

// A value through the engine and back, beside the same through JSON.
const values = {
  'small object': { a: 1, b: 'two', c: [1, 2, 3] },
  '1000 rows': Array.from({ length: 1000 }, (_, n) => ({ id: n, name: `name ${n}`, price: n * 1.5, tags: ['a', 'b'], ok: true })),
  '10000 numbers': Array.from({ length: 10000 }, (_, n) => n * 0.37),
  'a long text': 'lorem ipsum '.repeat(5000),
  'text beyond ASCII': 'größer als 東京 '.repeat(3000),
}
const identity = vm.compile({
  op: 'seq',
  steps: [
    { op: 'varsImport', keys: ['v'] },
    { op: 'return', schema: { type: 'object', properties: { v: {} } } },
  ],
})
for (const [name, v] of Object.entries(values)) {
  const times = name === 'small object' ? 20000 : 100
  const json = await measure(times, each(() => JSON.parse(JSON.stringify(v))))
  const through = await measure(times, each(() => vm.run(identity, { v })))
  // The engine's part of a run without the value.
  const empty = await measure(20000, each(() => vm.run(identity, { v: 1 })))
  const ours = through - empty
  console.log(`${`conversion: ${name}`.padEnd(52)} ${ours.toFixed(2).padStart(8)} us, JSON ${json.toFixed(2)} us, ratio ${(ours / json).toFixed(2)}${ours <= 2 * json ? '' : '  ABOVE 2'}`)
}
