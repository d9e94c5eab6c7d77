// Runs whose atoms throw, reject, never settle, abort, start runs and keep their context: the
// resident memory must stay flat. `node --expose-gc memory.mjs [RUNS]`, a million by default.

import { AgentVM, defineAtom } from './dist/node.mjs'

const runs = Number(process.argv[2] ?? 1_000_000)
const one = (op) => ({ op: 'seq', steps: [{ op, v: 'args.v', result: 'r' }, { op: 'return', schema: { properties: { r: {} } } }] })
const kept = []
let unhandled = 0
process.on('unhandledRejection', () => unhandled++)

const atoms = {
  returns: (input) => input.v,
  resolves: async (input) => input.v,
  throws: () => {
    throw new Error('no')
  },
  rejects: async () => {
    throw new Error('no')
  },
  late: () => new Promise((_, reject) => setTimeout(reject, 5, new Error('late'))),
  never: () => new Promise(() => {}),
  refused: () => () => {},
  nested: async (input) => (await vm.run(programs.returns, { v: input.v })).result.r,
  keeps: (_, ctx) => {
    void ctx.signal
    kept[kept.length % 100] = ctx
    ctx.warnings.push('kept')
    return 1
  },
}
const made = Object.entries(atoms).map(([op, fn]) => [op, defineAtom(op, undefined, undefined, fn, { timeoutMs: 2 })])
const vm = new AgentVM(Object.fromEntries(made))
const programs = Object.fromEntries(Object.keys(atoms).map((op) => [op, vm.compile(one(op))]))
const names = Object.keys(atoms)
const value = { list: [1, 2, { a: 'text' }], text: 'some text that is long enough to be sliced' }

async function batch(count) {
  const all = []
  for (let n = 0; n < count; n++) {
    const aborter = n % 50 === 0 ? new AbortController() : undefined
    all.push(vm.run(programs[names[n % names.length]], { v: value }, { signal: aborter?.signal, trace: n % 7 === 0 }))
    aborter?.abort()
  }
  await Promise.all(all)
  // Timers of one length keep those of another from being run.
  await new Promise((done) => setImmediate(done))
}

const resident = () => {
  globalThis.gc?.()
  return process.memoryUsage().rss / 2 ** 20
}
const size = 1000
for (let n = 0; n < 50; n++) await batch(size)
const before = resident()
let highest = 0
for (let n = 0; n < runs; n += size) {
  await batch(size)
  if ((n / size) % 50 === 49) {
    highest = Math.max(highest, resident())
    if (process.env.VERBOSE) console.log(n + size, highest.toFixed(1), (process.memoryUsage().heapUsed / 2 ** 20).toFixed(1))
  }
}
await new Promise((done) => setTimeout(done, 50))
const after = resident()
console.log(`${runs} runs: ${before.toFixed(1)} MiB before, ${highest.toFixed(1)} at most, ${after.toFixed(1)} after; ${unhandled} unhandled rejections`)
process.exitCode = unhandled === 0 && after < before + 16 ? 0 : 1
