/** `tjs-lang`: `==` does not convert, texts in literals are names, and a run may take twice as
 * long as its slowest atom. */

import { coreAtoms, type AtomMap } from '../atoms.js'
import type { RunOptions } from '../options.js'
import type { RunResult } from '../run.js'
import { treeOf, type Runnable } from '../vm.js'
import { AgentVM as Older } from './tosijs-agent.js'

export * from './tosijs-agent.js'
export const { callLocal, storeQueryWhere } = coreAtoms

/** Limit of the language's slowest atoms, those that call models, in milliseconds. */
const SLOWEST = 120_000

export class AgentVM<M extends AtomMap = {}> extends Older<M> {
  private slowest: number | undefined

  /** Time of a run in milliseconds, if none is given. */
  get defaultRunTimeout(): number {
    if (this.slowest === undefined) {
      const limits = [...this.functions.values()].map((atom) => atom.timeoutMs ?? 1000)
      this.slowest = 2 * Math.max(SLOWEST, ...limits)
    }
    return this.slowest
  }

  override run<T = any>(
    program: Runnable,
    args?: Record<string, any>,
    options?: RunOptions
  ): Promise<RunResult<T>> {
    const tree = treeOf(program) as any
    const marked = typeof tree === 'object' && tree?.op === 'seq' && !('a99' in tree)
    const timeoutMs = options?.timeoutMs ?? this.defaultRunTimeout
    return super.run(marked ? { a99: 3, ...tree } : program, args, {
      equality: 'exact',
      costModel: 'metered',
      ...options,
      timeoutMs,
    })
  }
}
