/** Options of runs, and their form in the engine. */

import type { Cost } from './atoms.js'
import { offered, type Capabilities } from './capabilities.js'
import { EngineError } from './errors.js'
import { TRUSTED, type Wire } from './wire.js'

export interface RunOptions {
  /** Budget of the run; 1000 by default. */
  fuel?: number
  capabilities?: Capabilities
  /** Keeps an event for each step. */
  trace?: boolean
  /** Limit of the whole run; 10 ms for each unit of fuel by default. */
  timeoutMs?: number
  /** Ends the run when it is aborted. */
  signal?: AbortSignal
  /** Prices of atoms in this run. */
  costOverrides?: Record<string, Cost>
  /** Limits of atoms in this run; 0 is none. */
  timeoutOverrides?: Record<string, number>
  /** The most calls of atoms. */
  quotas?: Record<string, number>
  /** Calls so far; several runs may share the object. */
  quotaUsed?: Record<string, number>
  /** Data of the request for atoms. Programs read the paths of `readableContext` only. */
  context?: Record<string, any>
  readableContext?: string[]
  /** Ceiling of the memory that the run holds. */
  maxHeapBytes?: number
  /** Most bytes of a value that enters or leaves the run, as JSON text. */
  membraneMaxBytes?: number
  /** Most levels of such a value. */
  membraneMaxDepth?: number
  /** `metered` (the default) or the flat prices of older generations. */
  costModel?: 'metered' | 'flat'
  /** Whether `==` converts (`loose`, the default). */
  equality?: 'loose' | 'exact'
  /** How many agents above this run called it. */
  depth?: number
  /** Gets what happens while the run is in progress, such as chunks that it sends. */
  onEvent?: (event: RunEvent) => void
}

/** What happens in a run: `chunk` with `value`, `log`, `text`, `call_started` and others. */
export interface RunEvent {
  event: string
  [member: string]: any
}

/** The options of a run without options. */
export const NO_OPTIONS: RunOptions = Object.freeze({})

const PASSED = [
  'fuel',
  'timeoutMs',
  'quotas',
  'quotaUsed',
  'readableContext',
  'maxHeapBytes',
  'membraneMaxBytes',
  'membraneMaxDepth',
  'trace',
  'costModel',
  'equality',
  'depth',
] as const
const READ = ['onEvent', 'signal', 'capabilities', 'costOverrides', 'timeoutOverrides', 'context']
const KNOWN = new Set<string>([...PASSED, ...READ])

/** Paths of the context that the engine itself reads. */
const ENGINE_CONTEXT = ['requestDepth']

/** The options in the form of the engine. */
export function engineOptions(options: RunOptions, capabilities: Capabilities | undefined) {
  const to: Record<string, unknown> = {}
  for (const name in options) {
    if (!KNOWN.has(name)) {
      throw new EngineError({
        code: 'binding.bad_option',
        message: `runs have no option \`${name}\``,
        help: `the options are ${[...KNOWN].join(', ')}`,
      })
    }
  }
  for (const name of PASSED) {
    if (options[name] !== undefined) to[name] = options[name]
  }
  const { costOverrides, timeoutOverrides, context } = options
  if (options.onEvent) to.events = true
  if (costOverrides) {
    const fixed: Record<string, number> = {}
    const functions: string[] = []
    for (const op of Object.keys(costOverrides)) {
      const cost = costOverrides[op]
      if (typeof cost === 'function') functions.push(op)
      else if (cost !== undefined) fixed[op] = cost
    }
    to.costOverrides = fixed
    if (functions.length > 0) to.costFns = functions
  }
  if (timeoutOverrides) {
    for (const op of Object.keys(timeoutOverrides)) {
      if (typeof timeoutOverrides[op] !== 'function') continue
      throw new EngineError({
        code: 'binding.timeout_function',
        message: `timeoutOverrides.${op} is a function; limits of atoms are numbers`,
        help: 'pass the limit in milliseconds, 0 for none',
      })
    }
    to.timeoutOverrides = timeoutOverrides
  }
  if (context) {
    // Programs see what they were granted, never the rest of the host's object.
    const roots = (options.readableContext ?? []).map((path) => path.split('.')[0]!)
    const part: Record<string, unknown> = {}
    for (const name of roots.concat(ENGINE_CONTEXT)) {
      if (Object.hasOwn(context, name)) part[name] = data(context[name])
    }
    to.context = part
  }
  if (capabilities) {
    const methods = offered(capabilities)
    if (methods.length > 0) to.capabilities = methods
  }
  return to
}

/** A part of the context without functions, which programs do not see. */
function data(value: any, depth = 0): any {
  if (typeof value === 'function' || typeof value === 'symbol') return undefined
  if (typeof value !== 'object' || value === null || depth > 100) return value
  if (Array.isArray(value)) return value.map((item) => data(item, depth + 1))
  const proto = Object.getPrototypeOf(value)
  if (proto !== Object.prototype && proto !== null) return value
  const names = Object.keys(value).filter((name) => typeof value[name] !== 'function')
  return Object.fromEntries(names.map((name) => [name, data(value[name], depth + 1)]))
}

/** Adds the options to a message. */
export function withOptions(message: Wire, options: RunOptions): Wire {
  if (options === NO_OPTIONS) return message.put(undefined)
  let to: unknown
  try {
    to = engineOptions(options, options.capabilities)
  } catch (error) {
    message.abandon()
    throw error
  }
  return message.value(to, 'options', TRUSTED)
}

