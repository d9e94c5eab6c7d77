/** What the entries for older generations share. */

import { coreAtoms, type AtomMap } from '../atoms.js'
import { TypedBuilder, type BuilderType, type Conditions } from '../builder.js'
import type { CoreAtoms } from '../core.generated.js'
import { EngineError } from '../errors.js'

export * from '../index.js'
export const {
  seq,
  if: iff,
  while: whileLoop,
  return: ret,
  try: tryCatch,
  varSet,
  varGet,
  varsImport,
  varsLet,
  varsExport,
  scope,
  map,
  push,
  len,
  split,
  join,
  template,
  regexMatch,
  pick,
  merge,
  keys,
  httpFetch: fetch,
  storeGet,
  storeSet,
  storeQuery,
  storeVectorSearch: vectorSearch,
  llmPredict,
  agentRun,
  jsonParse,
  jsonStringify,
  xmlParse,
  memoize,
  cache,
  random,
  uuid,
  hash,
} = coreAtoms

/** The entry object of builders with this form of conditions. */
export function agentWith(conditions: Conditions) {
  return {
    take(_schema?: unknown): BuilderType<CoreAtoms> {
      return new TypedBuilder(coreAtoms, conditions) as any
    },
    custom<M extends AtomMap>(atoms: M): BuilderType<M> {
      return new TypedBuilder(atoms, conditions) as any
    },
    args: (path: string) => ({ $kind: 'arg' as const, path }),
    val: (path: string) => path,
  }
}

/** A name of an older generation whose function needs what only its interpreter had. */
export function without(name: string, help: string): (...args: any[]) => never {
  return () => {
    const message = `${name} belongs to the interpreter of an older generation`
    throw new EngineError({ code: 'binding.not_offered', message, help })
  }
}
