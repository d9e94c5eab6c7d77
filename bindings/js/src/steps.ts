/** Runs whose events the host handles itself. */

import { EngineError, messageOf } from './errors.js'
import { ask, Op } from './host.js'
import { ActiveRun, CALL, cancelledOf, DONE, HAPPENED, REQUEST, resultOf, WAIT, type RunResult } from './run.js'

/** What a run needs, or that it is over. */
export type StepEvent =
  | { type: 'done'; result: RunResult }
  | { type: 'call'; id: string; op: string; input: any; fuelLeft: number; pointer?: string }
  | { type: 'capability'; id: number; method: string; args: any[] }
  | { type: 'wait'; untilMs?: number }
  | { type: 'events'; events: any[] }
  | { type: 'pause' }

/** A run as its events. After `call` and `capability` answer, or go on with `next` and answer
 * later; after `wait` answer, or call `next` when the time has come. */
export class Steps {
  private last: any[]
  private readonly started = performance.now()

  /** @internal */
  constructor(
    private readonly run: ActiveRun,
    event: any[]
  ) {
    this.last = event
  }

  get event(): StepEvent {
    const { last } = this
    switch (last[0]) {
      case DONE:
        return { type: 'done', result: resultOf(last, this.run.options) }
      case CALL:
        return { type: 'call', id: last[2], op: last[3], input: last[4], fuelLeft: last[5], pointer: last[6] }
      case REQUEST:
        return { type: 'capability', id: last[2], method: last[3], args: last[4] }
      case WAIT:
        return { type: 'wait', untilMs: last[2] }
      case HAPPENED:
        return { type: 'events', events: last[2] }
      default:
        return { type: 'pause' }
    }
  }

  /** Ids of calls whose answers are no longer wanted. */
  get cancelled(): (string | number)[] {
    return cancelledOf(this.last) ?? []
  }

  get isDone(): boolean {
    return this.last[0] === DONE
  }

  next(): StepEvent {
    return this.go(Op.next)
  }

  answer(id: string | number, value: unknown): StepEvent {
    return this.go(Op.answer, id, true, value, undefined)
  }

  fail(id: string | number, error: unknown): StepEvent {
    return this.go(Op.answer, id, false, { message: messageOf(error) }, undefined)
  }

  abort(): StepEvent {
    return this.go(Op.abort)
  }

  /** The run as bytes, for `vm.restore`. */
  snapshot(): Uint8Array {
    return ask(Op.snapshot, this.handle())
  }

  /** Goes on as `vm.run` does: the machine's atoms and capabilities answer. */
  finish(): Promise<RunResult> {
    if (this.isDone) return Promise.resolve(resultOf(this.last, this.run.options))
    const { last } = this
    this.last = [DONE]
    return this.run.go(last)
  }

  /** Drops the run. */
  free(): void {
    if (this.isDone) return
    ask(Op.free, this.handle())
    this.last = [DONE]
  }

  private handle(): number {
    if (this.isDone) {
      throw new EngineError({ code: 'binding.run_over', message: 'the run is over' })
    }
    return this.last[1]
  }

  private go(op: number, ...args: unknown[]): StepEvent {
    this.run.decidePrices()
    this.last = ask(op, this.handle(), ...args, performance.now() - this.started)
    return this.event
  }
}
