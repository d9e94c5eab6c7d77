// Writes src/core.generated.ts: names and types of the language's atoms, as the engine has them.
// `--check` says whether the file is current.

import { readFileSync, writeFileSync } from 'node:fs'
import { ask, Op } from './dist/cjs/host.js'
import './dist/cjs/node.js'

const file = new URL('src/core.generated.ts', import.meta.url)

function type(schema) {
  if (schema === undefined || schema === true || Object.keys(schema).length === 0) return 'any'
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (schema.anyOf ?? schema.oneOf) return union((schema.anyOf ?? schema.oneOf).map(type))
  if (Array.isArray(schema.type)) return union(schema.type.map((one) => type({ ...schema, type: one })))
  switch (schema.type) {
    case 'string':
      return 'string'
    case 'number':
    case 'integer':
      return 'number'
    case 'boolean':
      return 'boolean'
    case 'null':
      return 'null'
    case 'array':
      return schema.items && !Array.isArray(schema.items) ? `(${type(schema.items)})[]`.replace(/^\((\w+)\)/, '$1') : 'any[]'
    case 'object':
      return members(schema)
    default:
      return 'any'
  }
}

const union = (types) => (types.includes('any') ? 'any' : [...new Set(types)].join(' | '))

function members(schema) {
  const properties = Object.entries(schema.properties ?? {})
  if (properties.length === 0) return 'Record<string, any>'
  const required = new Set(schema.required ?? [])
  const list = properties.map(([name, member]) => {
    const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)
    return `${key}${required.has(name) ? '' : '?'}: ${type(member)}`
  })
  return `{ ${list.join('; ')} }`
}

const engine = ask(Op.engine, {})
const atoms = ask(Op.atoms, engine).sort((a, b) => (a.op < b.op ? -1 : 1))
const rows = atoms.map(({ op, docs, inputSchema, outputSchema }) => {
  const text = docs.trim().split('\n')[0].replaceAll('*/', '*\\/')
  const inputs = inputSchema ? members(inputSchema) : 'Record<string, any>'
  return `  /** ${text} */\n  ${op}: Atom<${inputs}, ${type(outputSchema)}>\n`
})
const text = `// Written by gen.mjs from the engine's atoms.

import type { Atom } from './atoms.js'

/** The atoms of the language with the types of their inputs and results. */
export type CoreAtoms = {
${rows.join('')}}

/** Names of the atoms of the language. */
export const CORE: readonly string[] = ${JSON.stringify(atoms.map(({ op }) => op), null, 2).replaceAll('"', "'")}
`
if (!process.argv.includes('--check')) writeFileSync(file, text)
else if (readFileSync(file, 'utf8') !== text) {
  console.error('src/core.generated.ts is not current: run node gen.mjs')
  process.exitCode = 1
}
