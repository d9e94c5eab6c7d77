/** The engine of this process: loaded once, shared by all machines. */

import { EngineError } from './errors.js'
import { TRUSTED, Wire, type Backend } from './wire.js'

/** Numbers of the operations. */
export const Op = {
  version: 0,
  engine: 1,
  free: 2,
  compile: 3,
  start: 4,
  next: 5,
  answer: 6,
  abort: 7,
  snapshot: 8,
  restore: 9,
  save: 10,
  load: 11,
  describe: 12,
  print: 13,
  transpile: 14,
  condition: 15,
  tools: 16,
  atoms: 17,
  prompt: 18,
  declarations: 19,
  explain: 20,
} as const

const ABI = 1

/** The run whose prices are asked while the engine computes. */
export interface Pricing {
  price(op: string, input: unknown): number
}

/** The run whose atoms are called while the engine computes. */
export interface Answering {
  /** Calls an atom's function; what it gives writes the answer, if there is one already. */
  direct(place: number, input: any, fuelLeft: number): ((message: Wire) => void) | undefined
}

let wire: Wire | undefined
let loader: () => Backend = () => {
  throw new EngineError({
    code: 'binding.not_initialized',
    message: 'the engine is not loaded',
    help: 'write `await init()` before the first call',
  })
}
let pricing: Pricing | undefined
let answering: Answering | undefined
let pricerIsSet = false

/** Sets what loads the engine at the first call. */
export function setLoader(load: () => Backend): void {
  loader = load
}

/** Whether the engine is loaded. */
export const isLoaded = (): boolean => wire !== undefined

/** The engine; the first call loads it. */
export function host(): Wire {
  if (wire === undefined) {
    const loaded = new Wire(loader())
    const { abi } = loaded.begin().send(Op.version)
    if (abi !== ABI) {
      throw new EngineError({
        code: 'binding.version',
        message: `the engine has interface ${abi}, this package needs ${ABI}`,
        help: 'install agent99 and its @agent99 packages in one version',
      })
    }
    wire = loaded
    loaded.backend.setCaller?.((place, text) =>
      loaded.during(text, (input, fuelLeft) => {
        // The function may run programs of its own.
        const [prices, run] = [pricing, answering]
        try {
          return run?.direct(place, input, fuelLeft)
        } finally {
          pricing = prices
          answering = run
        }
      })
    )
  }
  return wire
}

/** Says whose prices are asked from now on. */
export function priceBy(run: Pricing | undefined): void {
  pricing = run
  if (run === undefined || pricerIsSet) return
  const engine = host()
  pricerIsSet = true
  engine.backend.setPricer((op, text) => {
    try {
      return Number(pricing?.price(op, engine.answer(text)) ?? NaN)
    } catch {
      // The static price applies.
      return NaN
    }
  })
}

/** Says whose atoms are called from now on; without a run, calls are events. */
export function answerBy(run: Answering | undefined): void {
  answering = run
}

/** Performs an operation on trusted arguments. */
export function ask(op: number, ...args: unknown[]): any {
  const message = host().begin()
  for (const arg of args) {
    if (arg instanceof Uint8Array) message.bytes(arg)
    else message.value(arg, 'the argument', TRUSTED)
  }
  return message.send(op)
}

const freed = new FinalizationRegistry<number>((handle) => {
  // A machine or program that nobody holds. The engine cannot be busy: this runs as a task.
  try {
    ask(Op.free, handle)
  } catch {
    // The engine has freed it.
  }
})

/** Frees a handle when its object is collected. */
export function freeWith(object: object, handle: number): void {
  freed.register(object, handle, object)
}

/** Frees a handle now. */
export function freeNow(object: object, handle: number): void {
  freed.unregister(object)
  ask(Op.free, handle)
}

/** What an error code means, and what to do. */
export function explain(code: string): { code: string; meaning: string; help?: string } | undefined {
  return ask(Op.explain, code)
}

/** The version of the engine. */
export const version = (): string => ask(Op.version).version
