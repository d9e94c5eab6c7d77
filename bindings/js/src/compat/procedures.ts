/** Stored programs of older generations: kept in this process, and called by a token. */

import { defineAtom } from '../atoms.js'
import type { AtomContext } from '../context.js'
import { s } from '../schema.js'

export const PROCEDURE_TOKEN_PREFIX = 'proc_'
export const DEFAULT_PROCEDURE_TTL = 3_600_000
export const DEFAULT_MAX_AST_SIZE = 102_400

export interface StoredProcedure {
  ast: any
  createdAt: number
  expiresAt: number
}

export const procedureStore = new Map<string, StoredProcedure>()

/** Whether a value is a token of `storeProcedure`. */
export const isProcedureToken = (value: unknown): value is string =>
  typeof value === 'string' && value.startsWith(PROCEDURE_TOKEN_PREFIX)

/** The program of a token. */
export function resolveProcedureToken(token: string): any {
  const entry = procedureStore.get(token)
  if (entry === undefined) throw new Error(`Procedure not found: ${token}`)
  if (Date.now() > entry.expiresAt) {
    procedureStore.delete(token)
    throw new Error(`Procedure expired: ${token}`)
  }
  return entry.ast
}

const storeProcedure = defineAtom(
  'storeProcedure',
  undefined,
  s.string,
  ({ ast, ttl = DEFAULT_PROCEDURE_TTL, maxSize = DEFAULT_MAX_AST_SIZE }: any) => {
    if (!ast || typeof ast !== 'object' || !ast.op) {
      throw new Error('Invalid AST: must be an object with an "op" property')
    }
    const { length } = JSON.stringify(ast)
    if (length > maxSize) {
      throw new Error(
        `AST too large: ${length} bytes exceeds limit of ${maxSize} bytes. ` +
          'Consider reducing AST size or using a shorter TTL.'
      )
    }
    const token = PROCEDURE_TOKEN_PREFIX + crypto.randomUUID()
    const createdAt = Date.now()
    procedureStore.set(token, { ast, createdAt, expiresAt: createdAt + ttl })
    return token
  },
  { docs: 'Store an AST and return a token for later execution', cost: 1 }
)

const releaseProcedure = defineAtom(
  'releaseProcedure',
  undefined,
  s.boolean,
  ({ token }: any) => procedureStore.delete(token),
  { docs: 'Release a stored procedure by token', cost: 0.1 }
)

const clearExpiredProcedures = defineAtom(
  'clearExpiredProcedures',
  undefined,
  s.number,
  () => {
    const before = procedureStore.size
    for (const [token, { expiresAt }] of procedureStore) {
      if (Date.now() > expiresAt) procedureStore.delete(token)
    }
    return before - procedureStore.size
  },
  { docs: 'Clear all expired procedures and return count', cost: 0.5 }
)

const agentRun = defineAtom(
  'agentRun',
  undefined,
  undefined,
  async ({ agentId, input }: any, ctx: AtomContext) => {
    const isTree = typeof agentId === 'object' && agentId !== null && 'op' in agentId
    const run = ctx.capabilities.agent?.run
    if (!isTree && !isProcedureToken(agentId)) {
      if (!run) throw new Error("Capability 'agent.run' missing")
      const done = await run.call(ctx.capabilities.agent, agentId, input)
      const isResult = typeof done === 'object' && done !== null && typeof done.fuelUsed === 'number'
      if (isResult && done.error) throw new Error(done.error.message || 'Sub-agent failed')
      return isResult ? done.result : done
    }
    const program = isTree ? agentId : resolveProcedureToken(agentId)
    const done = await (ctx as any).caller.runFor(ctx, program, input)
    if (done.error) throw new Error(done.error.message || 'Sub-agent failed')
    return done.result
  },
  { docs: 'Run Sub-Agent (accepts procedure token, AST, or agent ID)', cost: 1, timeoutMs: 0 }
)

/** The atoms that know this store. */
export const procedureAtoms = { storeProcedure, releaseProcedure, clearExpiredProcedures, agentRun }
