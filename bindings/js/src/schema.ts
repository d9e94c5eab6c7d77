/** Schemas of inputs and results: the builder `s`, Standard Schema and zod objects, JSON Schema. */

import { EngineError } from './errors.js'

export type JSONSchema = { [key: string]: any }

/** A schema with the type that it describes; `s` makes them. */
export interface Base<T> {
  readonly schema: JSONSchema
  readonly _type: T
  readonly optional: Base<T | undefined>
  validate(value: unknown, opts?: ValidateOptions | ErrorHandler): boolean
  title(text: string): this
  describe(text: string): this
  default(value: T): this
  meta(members: Record<string, any>): this
}

export interface Bounded<T> extends Base<T> {
  min(least: number): this
  max(most: number): this
}

export interface Str extends Bounded<string> {
  pattern(regex: RegExp | string): this
  readonly email: this
  readonly uuid: this
  readonly ipv4: this
  readonly url: this
  readonly datetime: this
  readonly emoji: this
}

export interface Num extends Bounded<number> {
  step(multiple: number): this
  readonly int: this
}

/** An object of the interface Standard Schema, as zod, valibot and arktype make them. */
export interface StandardSchema<T> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => any
    readonly types?: { readonly input: any; readonly output: T } | undefined
  }
}

/** Whatever describes a type: a schema of `s` or tosijs-schema, Standard Schema, JSON Schema. */
export type SchemaOf<T> = { readonly schema: any; readonly _type: T } | StandardSchema<T> | JSONSchema

/** The type that a schema describes. */
export type Infer<S> = S extends { readonly _type: infer T }
  ? T
  : S extends StandardSchema<infer T>
    ? T
    : any

type Optional<P> = { [K in keyof P]-?: undefined extends Infer<P[K]> ? K : never }[keyof P]
type Members<P> = { [K in Exclude<keyof P, Optional<P>>]: Infer<P[K]> } & {
  [K in Optional<P>]?: Infer<P[K]>
} extends infer O
  ? { [K in keyof O]: O[K] }
  : never

/** The builder of schemas, with the names of tosijs-schema. */
export interface SchemaBuilder {
  readonly string: Str
  readonly number: Num
  readonly integer: Num
  readonly boolean: Base<boolean>
  readonly null: Base<null>
  readonly undefined: Base<undefined>
  readonly any: Base<any>
  readonly email: Str
  readonly uuid: Str
  readonly ipv4: Str
  readonly url: Str
  readonly datetime: Str
  readonly emoji: Str
  pattern(regex: RegExp | string): Str
  union<T extends readonly Base<any>[]>(schemas: T): Base<Infer<T[number]>>
  enum<const T extends string | number>(values: readonly T[]): Base<T>
  const<const T extends string | number | boolean | null>(value: T): Base<T>
  array<T>(items: Base<T>): Bounded<T[]>
  tuple<const T extends readonly Base<any>[]>(items: T): Base<{ -readonly [K in keyof T]: Infer<T[K]> }>
  object<P extends Record<string, Base<any>>>(members: P): Bounded<Members<P>>
  record<T>(values: Base<T>): Bounded<Record<string, T>>
}

const FORMATS: Record<string, JSONSchema> = {
  email: { format: 'email' },
  uuid: { format: 'uuid' },
  ipv4: { format: 'ipv4' },
  url: { format: 'uri' },
  datetime: { format: 'date-time' },
  emoji: { format: 'emoji', pattern: '^\\p{Extended_Pictographic}+$' },
}

const BOUNDS: Record<string, [string, string]> = {
  string: ['minLength', 'maxLength'],
  array: ['minItems', 'maxItems'],
  object: ['minProperties', 'maxProperties'],
}

const sourceOf = (regex: RegExp | string) => (typeof regex === 'string' ? regex : regex.source)

/** One class has the methods of all kinds; the types offer those that fit. */
class Node {
  declare readonly _type: any

  constructor(
    readonly schema: JSONSchema,
    private readonly isOptional = false
  ) {
    Object.defineProperty(this, 'isOptional', { enumerable: false })
  }

  private with(members: JSONSchema): any {
    return new Node({ ...this.schema, ...members }, this.isOptional)
  }

  private bound(at: 0 | 1, limit: number): any {
    const type = [this.schema.type].flat()[0]
    return this.with({ [BOUNDS[type]?.[at] ?? ['minimum', 'maximum'][at]!]: limit })
  }

  get optional(): any {
    const { type } = this.schema
    const types = type === undefined ? {} : { type: [...new Set([type, 'null'].flat())] }
    return new Node({ ...this.schema, ...types }, true)
  }

  get int() {
    return this.with({ type: 'integer' })
  }

  validate(value: unknown, opts?: ValidateOptions | ErrorHandler) {
    return validate(value, this.schema, opts)
  }

  title = (title: string) => this.with({ title })
  describe = (description: string) => this.with({ description })
  default = (value: unknown) => this.with({ default: value })
  meta = (members: JSONSchema) => this.with(members)
  min = (least: number) => this.bound(0, least)
  max = (most: number) => this.bound(1, most)
  step = (multipleOf: number) => this.with({ multipleOf })
  pattern = (regex: RegExp | string) => this.with({ pattern: sourceOf(regex) })

  static isOptional(node: any): boolean {
    if (node instanceof Node) return node.isOptional
    // Of another copy of tosijs-schema: a type with null is optional.
    return [node?.schema?.type].flat().includes('null')
  }
}

for (const [name, members] of Object.entries(FORMATS)) {
  Object.defineProperty(Node.prototype, name, {
    get(this: any) {
      return this.with(members)
    },
  })
}

const schemaOf = (node: any): JSONSchema => node?.schema ?? node

const builders = {
  pattern: (regex: RegExp | string) => new Node({ type: 'string', pattern: sourceOf(regex) }),
  union: (nodes: any[]) => new Node({ anyOf: nodes.map(schemaOf) }, nodes.some(Node.isOptional)),
  enum: (values: any[]) => new Node({ type: typeof values[0], enum: [...values] }),
  const: (value: any) => new Node({ const: value }),
  array: (items: any) => new Node({ type: 'array', items: schemaOf(items) }),
  tuple: (nodes: any[]) =>
    new Node({ type: 'array', items: nodes.map(schemaOf), minItems: nodes.length, maxItems: nodes.length }),
  object: (nodes: Record<string, any>) => {
    const names = Object.keys(nodes)
    return new Node({
      type: 'object',
      properties: Object.fromEntries(names.map((name) => [name, schemaOf(nodes[name])])),
      required: names.filter((name) => !Node.isOptional(nodes[name])),
      additionalProperties: false,
    })
  },
  record: (values: any) => new Node({ type: 'object', additionalProperties: schemaOf(values) }),
}

/** Builds schemas: `s.object({ name: s.string, age: s.integer.min(0).optional })`. */
export const s: SchemaBuilder = Object.assign(builders, {
  any: new Node({}),
  null: new Node({ type: 'null' }),
  undefined: new Node({}, true),
  ...Object.fromEntries(
    ['string', 'number', 'integer', 'boolean'].map((type) => [type, new Node({ type })])
  ),
  ...Object.fromEntries(
    Object.entries(FORMATS).map(([name, members]) => [name, new Node({ type: 'string', ...members })])
  ),
}) as any

/** The JSON Schema of whatever describes a type; `undefined` if it has none. */
export function toJSONSchema(schema: unknown): JSONSchema | undefined {
  if (schema === undefined || schema === null || schema === true) return undefined
  if (typeof schema !== 'object' && typeof schema !== 'function') {
    throw new EngineError({
      code: 'binding.schema',
      message: `a schema must be an object, not ${JSON.stringify(schema)}`,
      help: 'write s.object({ … }), a zod schema or a JSON Schema',
    })
  }
  const any = schema as any
  if (isStandard(schema)) {
    const options = { target: 'draft-2020-12', io: 'input' }
    const made = any['~standard'].jsonSchema?.input?.(options) ?? any.toJSONSchema?.(options)
    if (made === undefined) return undefined
    const { $schema: _, '~standard': __, ...rest } = made
    return rest
  }
  if (typeof any.schema === 'object' && any.schema !== null) return any.schema
  return any
}

/** Whether a schema validates by itself, and may change what it validates. */
export function isStandard(schema: unknown): schema is StandardSchema<unknown> {
  return typeof (schema as any)?.['~standard']?.validate === 'function'
}

export type ErrorHandler = (path: string, message: string) => void

export interface ValidateOptions {
  onError?: ErrorHandler
  strict?: boolean
  fullScan?: boolean
}

const CHECKS: Record<string, (text: string) => boolean> = {
  email: (text) => /^\S+@\S+\.\S+$/.test(text),
  uuid: (text) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text),
  uri: (text) => URL.canParse(text),
  ipv4: (text) => /^((25[0-5]|2[0-4]\d|1?\d?\d)(\.(?!$)|$)){4}$/.test(text),
  'date-time': (text) => !Number.isNaN(Date.parse(text)),
}

/** Whether a value fits a schema. All of it is looked at. */
export function validate(
  value: unknown,
  schema: unknown,
  opts?: ValidateOptions | ErrorHandler
): boolean {
  const onError = typeof opts === 'function' ? opts : opts?.onError
  const found = fault(value, schemaOf(schema), [])
  if (found === undefined) return true
  onError?.(found[0].join('.') || 'root', found[1])
  return false
}

type Fault = [path: string[], message: string]

function fault(value: any, schema: JSONSchema, path: string[]): Fault | undefined {
  const no = (message: string): Fault => [path, message]
  if (schema.anyOf) {
    const fits = schema.anyOf.some((one: JSONSchema) => fault(value, one, path) === undefined)
    return fits ? undefined : no('Union mismatch')
  }
  const types: string[] = [schema.type ?? []].flat()
  if (value === null || value === undefined) {
    const fits = types.length === 0 ? !('const' in schema) || schema.const === value : types.includes('null')
    return fits ? undefined : no('Expected value')
  }
  if ('const' in schema && schema.const !== value) return no('Const mismatch')
  if (schema.enum && !schema.enum.includes(value)) return no('Enum mismatch')
  const kind = Array.isArray(value) ? 'array' : typeof value
  const fits = (type: string) => type === kind || (type === 'integer' && Number.isInteger(value))
  if (types.length > 0 && !types.some(fits)) return no(`Expected ${types[0]}`)
  const size =
    kind === 'number' ? value : kind === 'object' ? Object.keys(value).length : value.length
  const [least, most] = BOUNDS[kind] ?? ['minimum', 'maximum']
  if (size < schema[least]) return no(`Below ${least}`)
  if (size > schema[most]) return no(`Above ${most}`)
  if (kind === 'number' && schema.multipleOf !== undefined && value % schema.multipleOf !== 0) {
    return no('Value not step')
  }
  if (kind === 'string') {
    const flags = schema.format === 'emoji' ? 'u' : ''
    if (schema.pattern && !new RegExp(schema.pattern, flags).test(value)) return no('Pattern mismatch')
    if (CHECKS[schema.format]?.(value) === false) return no('Format invalid')
  }
  if (kind === 'array' && schema.items) {
    for (let at = 0; at < value.length; at++) {
      const items = Array.isArray(schema.items) ? schema.items[at] : schema.items
      const found = items && fault(value[at], items, [...path, String(at)])
      if (found) return found
    }
  }
  if (kind === 'object') {
    for (const name of schema.required ?? []) {
      if (!Object.hasOwn(value, name)) return no(`Missing ${name}`)
    }
    for (const name of Object.keys(value)) {
      const known = Object.hasOwn(schema.properties ?? {}, name)
      const member = known ? schema.properties[name] : schema.additionalProperties
      if (member === false) return no(`Unexpected ${name}`)
      const found = typeof member === 'object' && fault(value[name], member, [...path, name])
      if (found) return found
    }
  }
  return undefined
}
