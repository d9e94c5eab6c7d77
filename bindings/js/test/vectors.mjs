// The package as an engine of the project's vectors (`cargo xtask vectors --over node`): reads
// runs and conditions as lines of JSON, and asks for what the host's functions answer. The
// protocol is that of tests/src/vectors/process.rs.

import { createInterface } from 'node:readline'
import { AgentVM, defineAtom } from '../dist/node.mjs'
import { ask, Op } from '../dist/cjs/host.js'

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const send = (message) => process.stdout.write(JSON.stringify(message) + '\n')
const waiting = new Map()
let calls = 0

const SPECIAL = { NaN, Infinity, '-Infinity': -Infinity, '-0': -0 }

function decode(value) {
  if (Array.isArray(value)) return value.map(decode)
  if (typeof value !== 'object' || value === null) return value
  const names = Object.keys(value)
  if (names.length === 1) {
    if (names[0] === '$undefined') return undefined
    if (names[0] === '$number') return SPECIAL[value.$number]
  }
  const to = {}
  for (const name of names) {
    Object.defineProperty(to, name, { value: decode(value[name]), enumerable: true, writable: true, configurable: true })
  }
  return to
}

function encode(value) {
  switch (typeof value) {
    case 'undefined':
      return { $undefined: true }
    case 'number':
      if (Number.isFinite(value) && !Object.is(value, -0)) return value
      return { $number: Object.is(value, -0) ? '-0' : String(value) }
    case 'object': {
      if (value === null) return null
      if (Array.isArray(value)) return value.map(encode)
      const to = Object.create(null)
      for (const name of Object.keys(value)) to[name] = encode(value[name])
      return to
    }
    default:
      return value
  }
}

// Answers come while a run is under way.
function call(message) {
  const id = calls++
  send({ call: id, ...message })
  return new Promise((resolve) => waiting.set(id, resolve))
}

async function answered(message) {
  const { result, error, delayMs } = await call(message)
  if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs))
  if (error !== undefined) throw new Error(error)
  return decode(result)
}

/** An object of capabilities with the named methods. */
function capabilities(names) {
  const to = {}
  for (const name of names) {
    const method = (...args) => {
      // The signal of `fetch` is the package's own.
      if (name === 'fetch' && args[1]) args = [args[0], { ...args[1], signal: undefined }]
      return answered({ method: name, args: args.map(encode) })
    }
    const [root, member] = name.split('.')
    if (member === undefined) to[root] ??= method
    else (to[root] ??= {})[member] = method
  }
  return to
}

async function run(spec) {
  const atoms = {}
  for (const { op, cost, timeoutMs } of spec.atoms) {
    const exec = (input) => answered({ atom: op, input: encode(input) })
    atoms[op] = defineAtom(op, undefined, undefined, exec, { cost, timeoutMs, inputs: 'raw' })
  }
  const costs = {}
  for (const [op, price] of Object.entries(decode(spec.costs))) {
    costs[op] = Number.isFinite(price) && price >= 0 ? price : () => price
  }
  const controller = new AbortController()
  if (spec.aborted) controller.abort()
  if (spec.abortAfterMs !== null) setTimeout(() => controller.abort(), spec.abortAfterMs)
  const granted = capabilities(spec.capabilities)
  const options = {
    fuel: spec.fuel,
    timeoutMs: spec.timeoutMs === null ? undefined : Math.max(0, spec.timeoutMs),
    timeoutOverrides: spec.timeouts,
    costOverrides: costs,
    quotas: spec.quotas,
    equality: spec.exactEquality ? 'exact' : 'loose',
    costModel: spec.metered ? 'metered' : 'flat',
    context: decode(spec.context),
    readableContext: spec.readableContext,
    trace: spec.trace,
    signal: controller.signal,
    capabilities: granted,
  }
  if (granted.events) options.onEvent = (event) => void (event.event === 'chunk' && granted.events.chunk(event.value))
  let done
  try {
    done = await new AgentVM(atoms).run(spec.program, decode(spec.args), options)
  } catch (error) {
    return send({ rejected: error.message })
  }
  const { error, fuelUsed, trace } = done
  const plain = error && { message: error.message, op: error.op, code: error.code }
  send({
    done: {
      result: encode(error ? { $error: true, message: error.message, op: error.op } : done.result),
      error: plain,
      fuelUsed,
      trace: trace?.map((event) => ({ ...event, ...encode({ input: event.input, stateDiff: event.stateDiff, result: event.result }) })),
    },
  })
}

for await (const line of lines) {
  const message = JSON.parse(line)
  if (message.run !== undefined) void run(message.run)
  else if (message.condition !== undefined) send(ask(Op.condition, message.condition, 'v2'))
  else {
    waiting.get(message.answer)?.(message)
    waiting.delete(message.answer)
  }
}
