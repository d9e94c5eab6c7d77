import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { AgentVM, defineAtom } from '../dist/node.mjs'

const program = { op: 'seq', steps: [{ op: 'slow', v: 'args.v', result: 'r' }, { op: 'return', schema: { properties: { r: {} } } }] }

async function work() {
  const slow = defineAtom('slow', undefined, undefined, async ({ v }) => v + 1, { cost: ({ v }) => (v ? 1 : 2) })
  const vm = new AgentVM({ slow })
  let sum = 0
  for (let v = 0; v < 100; v++) sum += (await vm.run(program, { v })).result.r
  return sum
}

if (!isMainThread) {
  parentPort.postMessage(await work())
} else {
  test('workers have engines of their own', async () => {
    // Some end while they run.
    const all = Array.from({ length: 64 }, (_, at) => {
      const worker = new Worker(new URL(import.meta.url))
      if (at % 8 === 0) setTimeout(() => worker.terminate(), at * 3)
      return new Promise((resolve, reject) => {
        worker.on('message', resolve)
        worker.on('error', reject)
        worker.on('exit', () => resolve(undefined))
      })
    })
    const mine = await work()
    const sums = await Promise.all(all)
    assert.equal(mine, 5050)
    assert.ok(sums.every((sum) => sum === 5050 || sum === undefined))
    assert.ok(sums.filter((sum) => sum === 5050).length >= 56)
  })
}
