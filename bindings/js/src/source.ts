/** Programs as JavaScript. */

import type { SeqNode } from './builder.js'
import { plainEngine } from './atoms.js'
import { EngineError, type Diagnostic } from './errors.js'
import { ask, Op } from './host.js'
import { rejected } from './vm.js'

export interface TranspileResult {
  ast: SeqNode
  warnings: Diagnostic[]
}

/** The program of a source: one function in JavaScript. */
export function transpile(source: string): TranspileResult {
  if (typeof source !== 'string') {
    throw new EngineError({ code: 'binding.bad_argument', message: 'the source must be a text' })
  }
  const made = ask(Op.transpile, plainEngine(), source)
  if (made.diagnostics !== undefined) throw rejected(made.diagnostics)
  return { ast: made.program, warnings: made.warnings ?? [] }
}

/** The program of a source, also as a tag: ajs`function agent({ a }) { return { a } }`. */
export function ajs(strings: TemplateStringsArray, ...values: any[]): SeqNode
export function ajs(source: string): SeqNode
export function ajs(source: string | TemplateStringsArray, ...values: any[]): SeqNode {
  if (typeof source === 'string') return transpile(source).ast
  return transpile(source.reduce((text, part, at) => text + String(values[at - 1] ?? '') + part)).ast
}
