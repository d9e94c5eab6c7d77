/** `tosijs-agent`: prices are flat. */

import { coreAtoms, type AtomMap } from '../atoms.js'
import { EngineError } from '../errors.js'
import type { RunOptions } from '../options.js'
import type { RunResult } from '../run.js'
import { AgentVM as Current, type Runnable } from '../vm.js'
import { transpile } from '../source.js'
import { withFetch } from './fetch.js'
import { without } from './older.js'

export * from './older.js'
export const {
  Error: errorAtom,
  constSet,
  filter,
  reduce,
  find,
  omit,
  transpileCode,
  runCode,
  consoleLog,
  consoleWarn,
  consoleError,
  storeProcedure,
  releaseProcedure,
  clearExpiredProcedures,
} = coreAtoms

export const PROCEDURE_TOKEN_PREFIX = 'proc_'
export const DEFAULT_PROCEDURE_TTL = 3_600_000
export const DEFAULT_MAX_AST_SIZE = 102_400

/** Whether a value is a token of `storeProcedure`. */
export const isProcedureToken = (value: unknown): value is string =>
  typeof value === 'string' && value.startsWith(PROCEDURE_TOKEN_PREFIX)

const inEngine = 'stored programs are kept in the engine: vm.run(token) runs one'
export const resolveProcedureToken = without('resolveProcedureToken', inEngine)
export const procedureStore: Map<string, any> = new Proxy(new Map(), {
  get: () => without('procedureStore', inEngine),
})
export const createChildScope = without('createChildScope', 'pass values as inputs of the step')
export const evaluateExpr = without('evaluateExpr', 'inputs of atoms arrive as values')

/** Atoms whose calls are seen outside of the program, or depend on more than their inputs. */
export const EFFECTFUL_CORE_OPS: readonly string[] = [
  'httpFetch',
  'storeGet',
  'storeSet',
  'storeQuery',
  'storeQueryWhere',
  'storeVectorSearch',
  'llmPredict',
  'agentRun',
  'transpileCode',
  'runCode',
  'random',
  'uuid',
  'consoleLog',
  'consoleWarn',
  'consoleError',
  'storeProcedure',
  'releaseProcedure',
  'clearExpiredProcedures',
  'cache',
  'memoize',
  'xmlParse',
]

/** A function that runs a source. */
export function createAgent(
  source: string,
  vm: { run(ast: any, args: any, options?: any): Promise<any> },
  options?: RunOptions
) {
  const { ast } = transpile(source)
  const agent = async (args: Record<string, any>) => (await vm.run(ast, args, options)).result
  const { properties = {}, required = [] } = ast.inputSchema ?? {}
  return Object.assign(agent, { ast, signature: { parameters: properties, required } })
}

/** Agents of `createAgent` as tools of models. */
export function getToolDefinitions(agents: Record<string, { signature: { parameters: any } }>) {
  return Object.entries(agents).map(([name, { signature }]) => {
    const { parameters: properties, required = [] } = signature as any
    return { type: 'function' as const, function: { name, parameters: { type: 'object' as const, properties, required } } }
  })
}

export class AgentVM<M extends AtomMap = {}> extends Current<M> {
  override async run<T = any>(
    program: Runnable,
    args?: Record<string, any>,
    options: RunOptions = {}
  ): Promise<RunResult<T>> {
    const withDefaults = withFetch({ costModel: 'flat', ...options })
    try {
      return await super.run<T>(program, args, withDefaults)
    } catch (error) {
      if (typeof program !== 'string' || isProcedureToken(program)) throw error
      const { message, code } = error as EngineError
      throw new EngineError({ code, message: `AJS transpilation failed: ${message}`, cause: error })
    }
  }
}
