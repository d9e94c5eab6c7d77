/** `agent-99`: errors reject the promise, conditions are texts, prices are flat. */

import type { AtomMap } from '../atoms.js'
import type { RunOptions } from '../options.js'
import type { RunResult } from '../run.js'
import { AgentVM as Current, type Runnable } from '../vm.js'
import { coreAtoms } from '../atoms.js'
import { agentWith } from './older.js'

export * from './older.js'
export const { eq, neq, gt, lt, and, or, not, mathCalc: calc } = coreAtoms

export const A99 = agentWith('texts')
export const Agent = A99

export class AgentVM<M extends AtomMap = {}> extends Current<M> {
  constructor(customAtoms: M = {} as M) {
    super(customAtoms, {}, 'texts')
  }

  override async run<T = any>(
    program: Runnable,
    args?: Record<string, any>,
    options?: RunOptions
  ): Promise<RunResult<T>> {
    const done = await super.run<T>(program, args, { costModel: 'flat', ...options })
    if (done.error) throw new Error(done.error.message, { cause: done.error })
    return done
  }
}
