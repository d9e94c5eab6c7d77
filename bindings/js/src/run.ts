/** Runs: the loop that calls the host's functions and gives their answers to the engine. */

import type { AtomMap, HostAtom } from './atoms.js'
import { answerOf, callMethod, isResponse, readResponse, withoutMethods, type Capabilities } from './capabilities.js'
import { CallContext, type AtomContext, type Caller } from './context.js'
import { AgentError, EngineError, messageOf } from './errors.js'
import { answerBy, ask, host, Op, priceBy, type Answering, type Pricing } from './host.js'
import { withOptions, type RunEvent, type RunOptions } from './options.js'
import { ARGS, DATA, nesting, TRUSTED, type Limits, type Wire } from './wire.js'

/** A step as it was run. */
export interface TraceEvent {
  op: string
  input: any
  stateDiff: Record<string, any>
  result?: any
  error?: string
  fuelBefore: number
  fuelAfter: number
  [member: string]: any
}

export interface RunResult<T = any> {
  /** What the program returned, or the error that ended it. */
  result: T
  error?: AgentError
  fuelUsed: number
  trace?: TraceEvent[]
  /** Texts of `console.warn` and of the engine. */
  warnings?: string[]
  /** Lines of `console`. */
  logs?: any[]
  /** Tokens and money of models. */
  usage?: any
}

/** What runs programs: the part of a machine that runs need. */
export interface Machine {
  readonly handle: number
  readonly functions: Map<string, HostAtom>
  /** The same, in the order of the engine. */
  readonly ordered: readonly (readonly [string, HostAtom])[]
  readonly pricedByHost: boolean
  readonly atoms: AtomMap
}

export const DONE = 0
export const CALL = 1
export const REQUEST = 2
export const WAIT = 3
export const PAUSE = 4
export const HAPPENED = 5

type Event = any[]

/** The result of a run's last event. */
export function resultOf(event: Event, options: RunOptions | undefined): RunResult {
  const [, result, error, fuelUsed, warnings, trace, logs, usage, quotaUsed] = event
  const failed =
    error === undefined ? undefined : new AgentError(error.message, error.op ?? 'vm.run', undefined, error)
  if (quotaUsed !== undefined && options?.quotaUsed) Object.assign(options.quotaUsed, quotaUsed)
  return {
    result: failed ?? result,
    error: failed,
    fuelUsed,
    trace,
    warnings: warnings?.length > 0 ? warnings : undefined,
    logs: logs?.length > 0 ? logs : undefined,
    usage,
  }
}

const now = () => performance.now()

const nothing: Capabilities = {}

/** A task of its own: others run before. */
const soon: (task: () => void) => void = (() => {
  if (typeof setImmediate === 'function') return (task: () => void) => void setImmediate(task)
  if (typeof MessageChannel === 'function') {
    return (task: () => void) => {
      const { port1, port2 } = new MessageChannel()
      port1.onmessage = () => {
        port1.close()
        task()
      }
      port2.postMessage(0)
    }
  }
  return (task: () => void) => void setTimeout(task, 0)
})()

interface Settled {
  id: string | number
  ok: boolean
  value: unknown
  context: CallContext | undefined
}

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as any).then === 'function'

/** Prices that functions of the host decide. They see the context and the arguments. */
export class Prices implements Pricing {
  constructor(
    private readonly machine: Machine,
    private readonly options: RunOptions,
    readonly args: Record<string, any>
  ) {}

  get context(): Record<string, any> | undefined {
    return this.options.context
  }

  price(op: string, input: unknown): number {
    const cost = this.options.costOverrides?.[op] ?? this.machine.functions.get(op)?.cost
    return typeof cost === 'function' ? cost(input, this) : NaN
  }
}

function pricesOf(machine: Machine, options: RunOptions, args: Record<string, any>): Prices | undefined {
  const asked = machine.pricedByHost || options.costOverrides !== undefined
  return asked ? new Prices(machine, options, args) : undefined
}

/** The first event of a run of a program: its handle, or the program itself. */
export function firstEvent(
  machine: Machine,
  program: unknown,
  args: Record<string, any>,
  options: RunOptions,
  prices = pricesOf(machine, options, args),
  run?: ActiveRun
): Event {
  // The first use of a machine makes its engine.
  const { handle } = machine
  const wire = host()
  priceBy(prices)
  answerBy(run)
  const message = wire.begin().num(handle)
  if (typeof program === 'number') message.num(program)
  else message.value(program, 'the program', TRUSTED)
  message.value(args, 'args', ARGS)
  return withOptions(message, options).num(0).send(Op.start)
}

/** Runs a program to its end. */
export function runToEnd(
  machine: Machine,
  program: unknown,
  args: Record<string, any>,
  options: RunOptions
): Promise<RunResult> {
  if (options.signal?.aborted) {
    const fields = { code: 'run.aborted', message: '' }
    const error = new AgentError('Execution aborted by the caller', 'vm.run', undefined, fields)
    return Promise.resolve({ result: error, error, fuelUsed: 0, trace: options.trace ? [] : undefined })
  }
  if (nesting.now >= MAX_NESTED) {
    throw new EngineError({
      code: 'binding.nested',
      message: `more than ${MAX_NESTED} runs within each other, each begun by an atom of the one before`,
      help: 'await something before the inner run begins, or bound the recursion with `depth`',
    })
  }
  const prices = pricesOf(machine, options, args)
  const started = now()
  const run = machine.functions.size > 0 ? new ActiveRun(machine, args, options, started, prices) : undefined
  const event = firstEvent(machine, program, args, options, prices, run)
  if (event[0] === DONE) {
    run?.end()
    return Promise.resolve(resultOf(event, options))
  }
  return (run ?? new ActiveRun(machine, args, options, started, prices)).go(event)
}

/** A run from its first event to its last. */
export class ActiveRun implements Caller, Answering {
  readonly capabilities: Capabilities
  private readonly wire: Wire
  private readonly limits: Limits
  private run = -1
  /** The machine computes, or the host's functions are called. */
  private active = false
  private waiting = false
  private parked = 0
  private over = false
  private aborted = false
  private until: number | undefined
  private timer: ReturnType<typeof setTimeout> | undefined
  private timerAt = Infinity
  private settled: Settled[] = []
  /** The promise of the call whose event is next, with the call's context. */
  private promised: { value: PromiseLike<unknown>; context: CallContext } | undefined
  private readonly pending = new Map<string | number, CallContext | AbortController>()
  private controllers: Set<AbortController> | undefined
  private resolveRun!: (result: RunResult) => void
  private rejectRun!: (error: unknown) => void

  constructor(
    private readonly machine: Machine,
    readonly args: Record<string, any>,
    readonly options: RunOptions,
    private readonly started = now(),
    private readonly prices = pricesOf(machine, options, args)
  ) {
    this.capabilities = options.capabilities ?? nothing
    this.wire = host()
    this.limits =
      options.membraneMaxBytes === undefined && options.membraneMaxDepth === undefined
        ? DATA
        : { bytes: options.membraneMaxBytes ?? DATA.bytes, depth: options.membraneMaxDepth ?? DATA.depth }
  }

  // What contexts ask.

  get host(): Record<string, any> | undefined {
    return this.options.context
  }

  resolve(op: string): unknown {
    return this.machine.atoms[op]
  }

  controller(): AbortController {
    const made = new AbortController()
    if (this.over) made.abort()
    else (this.controllers ??= new Set()).add(made)
    return made
  }

  /** Runs a program for an atom's function, which pays for it. */
  async runFor(ctx: AtomContext, program: unknown, args: Record<string, any>): Promise<RunResult> {
    const { fuel } = ctx
    const depth = (this.options.depth ?? 0) + 1
    const options = { ...this.options, fuel: fuel.current, depth, trace: false, signal: ctx.signal }
    const done = await runToEnd(this.machine, program, args, options)
    fuel.current -= Math.min(done.fuelUsed, fuel.current)
    if (done.warnings) ctx.warnings.push(...done.warnings)
    return done
  }

  /** Runs one step of an atom's function as a program of its own. */
  async runStep(step: any, ctx: AtomContext): Promise<unknown> {
    if (step?.result !== undefined) void ctx.state
    const program = {
      op: 'seq',
      steps: [
        { ...step, result: 'value' },
        { op: 'return', schema: { type: 'object', properties: { value: {} } } },
      ],
    }
    const done = await this.runFor(ctx, program, ctx.args)
    if (done.error) throw new Error(done.error.message)
    return done.result?.value
  }

  // The loop.

  /** Goes on with a snapshot. */
  restored(agent: number, bytes: Uint8Array): Event {
    const { handle } = this.machine
    this.decidePrices()
    const message = this.wire.begin().num(handle).num(agent).bytes(bytes)
    return withOptions(message, this.options).send(Op.restore)
  }

  /** Goes on from an event to the end. */
  go(event: Event): Promise<RunResult> {
    return new Promise((resolve, reject) => {
      this.resolveRun = resolve
      this.rejectRun = reject
      const { signal } = this.options
      this.aborted = signal?.aborted === true
      signal?.addEventListener('abort', this.onAbort)
      this.drive(event)
    })
  }

  private begin(): Wire {
    this.decidePrices()
    answerBy(this)
    return this.wire.begin()
  }

  /** What the engine computes next asks this run for prices; its calls are events. */
  decidePrices(): void {
    priceBy(this.prices)
    answerBy(undefined)
  }

  /** Calls the function of an atom while the engine waits for it. A promise answers later. */
  direct(place: number, input: any, fuelLeft: number): ((message: Wire) => void) | undefined {
    const [op, atom] = this.machine.ordered[place]!
    const context = new CallContext(this, op, fuelLeft)
    let value: unknown
    let ok = true
    try {
      value = atom.fn(input, context)
      if (isThenable(value)) {
        this.promised = { value, context }
        return undefined
      }
    } catch (error) {
      ok = false
      value = error
    }
    return (message) => {
      this.writeAnswer(() => message.restart(), { ok, value, context })
      // The function may have aborted the run, which then has no listener yet.
      message.put(this.aborted || this.options.signal?.aborted === true)
    }
  }

  private next(): Event {
    return this.begin().num(this.run).num(now() - this.started).send(Op.next)
  }

  private abort(): Event {
    return this.begin().num(this.run).num(now() - this.started).send(Op.abort)
  }

  private drive(event: Event): void {
    nesting.now++
    this.active = true
    this.waiting = false
    try {
      for (;;) {
        if (event[0] === DONE) return this.finish(event)
        this.run = event[1]
        const cancelled = cancelledOf(event)
        if (cancelled !== undefined) this.cancel(cancelled)
        if (this.aborted) {
          event = this.abort()
          continue
        }
        switch (event[0]) {
          case CALL:
          case REQUEST: {
            const next = event[0] === CALL ? this.call(event) : this.request(event)
            if (next === undefined) return this.park()
            event = next
            break
          }
          case WAIT:
            if (this.settled.length === 0) return this.wait(event[2])
            event = this.answer(this.settled.shift()!)
            break
          case HAPPENED:
            this.tell(event[2])
            event = this.next()
            break
          default:
            return soon(this.onSoon)
        }
      }
    } catch (error) {
      this.fail(error)
    } finally {
      nesting.now--
      this.active = false
    }
  }

  private readonly onSoon = () => {
    if (this.over) return
    this.waiting = false
    try {
      const settled = this.settled.shift()
      this.drive(settled === undefined ? this.next() : this.answer(settled))
    } catch (error) {
      this.fail(error)
    }
  }

  private tell(events: RunEvent[]): void {
    for (const event of events) {
      try {
        this.options.onEvent!(event)
      } catch {
        // A listener does not decide what the run does.
      }
    }
  }

  /** Lets promises that are ready settle before the engine is asked for more calls. */
  private park(): void {
    this.waiting = true
    this.until = undefined
    this.parked++
    // queueMicrotask of Node.js takes three times as long.
    READY.then(this.onParked)
  }

  private readonly onParked = () => {
    // Of several the last one counts.
    if (--this.parked > 0 || !this.waiting || this.over) return
    this.onSoon()
  }

  /** Starts a call; no event if a promise will answer. */
  private call(event: Event): Event | undefined {
    const [, , id, op, input, fuelLeft] = event
    const { promised } = this
    this.promised = undefined
    const context = promised?.context ?? new CallContext(this, op, fuelLeft)
    let value: unknown
    try {
      value = promised?.value ?? this.machine.functions.get(op)!.fn(input, context)
      if (isThenable(value)) {
        this.pending.set(id, context)
        this.await(id, value, context)
        return undefined
      }
    } catch (error) {
      return this.answer({ id, ok: false, value: error, context })
    }
    return this.answer({ id, ok: true, value, context })
  }

  private request(event: Event): Event | undefined {
    const [, , id, method, args] = event
    const signal = () => {
      const made = this.controller()
      this.pending.set(id, made)
      return made.signal
    }
    let value: unknown
    try {
      value = callMethod(this.capabilities, method, args, signal)
      const isFetch = method === 'fetch'
      let read = answerOf(method)
      if (isFetch) {
        const type = args[1]?.responseType
        read = (answer) =>
          isResponse(answer) ? readResponse(answer, type, this.limits.bytes) : withoutMethods(answer)
        if (isResponse(value)) value = Promise.resolve(value)
      }
      if (isThenable(value)) {
        this.await(id, read ? Promise.resolve(value).then(read) : value, undefined)
        return undefined
      }
      if (read) value = read(value)
    } catch (error) {
      return this.answer({ id, ok: false, value: error, context: undefined })
    }
    return this.answer({ id, ok: true, value, context: undefined })
  }

  private await(id: string | number, value: PromiseLike<unknown>, context: CallContext | undefined): void {
    const promise = value instanceof Promise ? value : Promise.resolve(value)
    promise.then(
      (value) => this.settle({ id, ok: true, value, context }),
      (value) => this.settle({ id, ok: false, value, context })
    )
  }

  private settle(settled: Settled): void {
    if (this.over) return
    this.pending.delete(settled.id)
    if (!this.waiting) {
      this.settled.push(settled)
      return
    }
    try {
      this.waiting = false
      this.drive(this.answer(settled))
    } catch (error) {
      this.fail(error)
    }
  }

  private answer(settled: Settled): Event {
    // The function that answers may have aborted the run.
    if (this.aborted) return this.abort()
    const message = this.writeAnswer(() => this.called(settled.id), settled)
    return message.num(now() - this.started).send(Op.answer)
  }

  /** Writes an answer and what is charged. A value that is refused is an error. */
  private writeAnswer(start: () => Wire, { ok, value, context }: Omit<Settled, 'id'>): Wire {
    const extra = context?.extra()
    let message: Wire | undefined
    if (ok) {
      try {
        message = start().put(true).value(value, 'result', this.limits)
      } catch (error) {
        value = error
      }
    }
    message ??= start().put(false).value(this.failureOf(value), 'error', TRUSTED)
    return extra === undefined ? message.put(undefined) : message.value(extra, 'extra', TRUSTED)
  }

  /** What the engine gets of a thrown value. */
  private failureOf(value: unknown): Record<string, unknown> {
    const failure: Record<string, unknown> = { message: messageOf(value) }
    if (value instanceof EngineError) {
      const { code, help } = value
      if (code === 'boundary.rejected') failure.message = `Capability boundary rejected: ${value.reason ?? value.message}`
      Object.assign(failure, { code, help })
    }
    return failure
  }

  private called(id: string | number): Wire {
    const message = this.begin().num(this.run)
    return typeof id === 'number' ? message.num(id) : message.put(id)
  }

  private cancel(ids: (string | number)[]): void {
    for (const id of ids) {
      const call = this.pending.get(id)
      this.pending.delete(id)
      if (call instanceof CallContext) call.cancel()
      else call?.abort()
    }
  }

  private wait(until: number | undefined): void {
    this.waiting = true
    this.until = until
    if (until !== undefined) this.arm(until)
  }

  /** Sets the timer. One that is due earlier stays, and looks again when it is due. */
  private arm(until: number): void {
    if (this.timer !== undefined) {
      if (this.timerAt <= until) return
      clearTimeout(this.timer)
    }
    this.timerAt = until
    const ms = Math.max(0, until - (now() - this.started))
    this.timer = setTimeout(this.onTimer, Math.min(Math.ceil(ms), MAX_TIMER))
  }

  private readonly onTimer = () => {
    this.timer = undefined
    this.timerAt = Infinity
    if (!this.waiting || this.over || this.until === undefined) return
    if (now() - this.started < this.until) return this.arm(this.until)
    try {
      this.waiting = false
      this.drive(this.next())
    } catch (error) {
      this.fail(error)
    }
  }

  private readonly onAbort = () => {
    if (this.over) return
    this.aborted = true
    if (this.active) return
    try {
      this.waiting = false
      this.drive(this.next())
    } catch (error) {
      this.fail(error)
    }
  }

  /** Nothing of the run goes on after its end. */
  end(): void {
    this.over = true
    this.waiting = false
    if (this.timer !== undefined) clearTimeout(this.timer)
    this.timer = undefined
    this.options.signal?.removeEventListener('abort', this.onAbort)
    this.settled = []
    this.pending.clear()
    if (this.controllers !== undefined) {
      for (const controller of this.controllers) controller.abort()
      this.controllers = undefined
    }
  }

  private finish(event: Event): void {
    this.end()
    this.resolveRun(resultOf(event, this.options))
  }

  private fail(error: unknown): void {
    if (this.over) return
    this.end()
    try {
      if (this.run >= 0) ask(Op.free, this.run)
    } catch {
      // It is gone.
    }
    this.rejectRun(error)
  }
}

/** Ids of calls whose answers are no longer wanted. */
export function cancelledOf(event: Event): (string | number)[] | undefined {
  switch (event[0]) {
    case CALL:
      return event[7]
    case REQUEST:
      return event[5]
    case WAIT:
      return event[3]
    default:
      return undefined
  }
}

const READY = Promise.resolve()

/** Runs within each other on one stack. */
const MAX_NESTED = 64

/** The longest time of a timer. */
const MAX_TIMER = 0x7fffffff
