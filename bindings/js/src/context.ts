/** What the function of an atom may see of the run that calls it. */

import { EngineError } from './errors.js'
import type { Capabilities } from './capabilities.js'

/** The budget of a run. An atom reads it, and charges by lowering it. */
export interface Fuel {
  current: number
}

/** The second argument of an atom's function. */
export interface AtomContext {
  readonly fuel: Fuel
  /** The arguments of the run. */
  readonly args: Record<string, any>
  /** A read-only view of the host's `context`. */
  readonly context: Record<string, any> | undefined
  readonly capabilities: Capabilities
  /** Aborted when the answer is no longer wanted, at the latest when the run is over. */
  readonly signal: AbortSignal
  /** Texts that are added to the warnings of the run. */
  readonly warnings: string[]
  /** Variables of the program; not offered yet. */
  readonly state: Record<string, any>
  /** The atoms of the machine, for atoms that run steps. */
  resolver(op: string): { op: string; exec(step: any, ctx: AtomContext): Promise<any> } | undefined
}

/** The run that an atom belongs to. */
export interface Caller {
  readonly args: Record<string, any>
  readonly host: Record<string, any> | undefined
  readonly capabilities: Capabilities
  resolve(op: string): any
  /** A controller that the end of the run aborts. */
  controller(): AbortController
}

class Budget implements Fuel {
  constructor(private left: number) {}

  get current(): number {
    return this.left
  }

  set current(value: number) {
    if (!(value <= this.left)) {
      throw new EngineError({
        code: 'binding.fuel_raised',
        message: `fuel cannot rise from ${this.left} to ${value}`,
        help: 'lower ctx.fuel.current to charge; the host gives more fuel with `fuel` of vm.run',
      })
    }
    this.left = value
  }
}

/** What asks for the variables of a program is refused. */
export function noState(op: string): never {
  throw new EngineError({
    code: 'binding.no_state',
    message: `atom '${op}' asks for ctx.state, which this engine does not offer`,
    help: 'pass variables as inputs of the step, and return what its `result` binds',
  })
}

/** The context of one call. Its parts are made when they are asked for. */
export class CallContext implements AtomContext {
  private budget: Budget | undefined
  private texts: string[] | undefined
  private aborter: AbortController | undefined

  constructor(
    private readonly caller: Caller,
    private readonly op: string,
    private readonly fuelLeft: number
  ) {}

  get fuel(): Fuel {
    return (this.budget ??= new Budget(this.fuelLeft))
  }

  get args(): Record<string, any> {
    return this.caller.args
  }

  get context(): Record<string, any> | undefined {
    return view(this.caller.host)
  }

  get capabilities(): Capabilities {
    return this.caller.capabilities
  }

  get signal(): AbortSignal {
    return (this.aborter ??= this.caller.controller()).signal
  }

  get warnings(): string[] {
    return (this.texts ??= [])
  }

  get state(): never {
    return noState(this.op)
  }

  get resolver(): (op: string) => any {
    return (op) => this.caller.resolve(op)
  }

  /** What is charged and warned beside the answer. */
  extra(): { charge?: number; warnings?: string[] } | undefined {
    if (this.budget === undefined && this.texts === undefined) return undefined
    const charge = this.budget === undefined ? 0 : this.fuelLeft - this.budget.current
    // An atom may take more than there is: that ends the run.
    return { charge: Number.isFinite(charge) ? charge : Number.MAX_VALUE, warnings: this.texts?.map(String) }
  }

  /** The answer is no longer wanted. */
  cancel(): void {
    this.aborter?.abort()
  }
}

const views = new WeakMap<object, object>()
const readOnly = (): never => {
  throw new TypeError('ctx.context is read-only')
}

/** A view through which plain objects and lists are read, never changed. Functions and instances
 * of classes are the host's own. */
function view<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  const proto = Object.getPrototypeOf(value)
  const isList = Array.isArray(value)
  if (!isList && proto !== Object.prototype && proto !== null) return value
  let made: object | undefined = views.get(value)
  if (made === undefined) {
    // The shadow has no members of the host, so that no invariant of proxies concerns them.
    made = new Proxy(isList ? [] : Object.create(proto), {
      get: (_, name) => view(Reflect.get(value, name)),
      has: (_, name) => Reflect.has(value, name),
      ownKeys: () => Reflect.ownKeys(value),
      getOwnPropertyDescriptor(shadow, name) {
        const found = Reflect.getOwnPropertyDescriptor(value, name)
        if (found === undefined) return undefined
        const ours = Reflect.getOwnPropertyDescriptor(shadow, name)
        const read = view(Reflect.get(value, name))
        if (ours !== undefined) return { ...ours, value: read }
        return { value: read, enumerable: found.enumerable!, configurable: true, writable: false }
      },
      set: readOnly,
      defineProperty: readOnly,
      deleteProperty: readOnly,
      setPrototypeOf: readOnly,
      preventExtensions: readOnly,
    })
    views.set(value, made!)
  }
  return made as T
}
