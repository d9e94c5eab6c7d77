/** Programs as chains of calls. */

import { coreAtoms, type Atom, type AtomMap } from './atoms.js'
import type { CoreAtoms } from './core.generated.js'
import { EngineError } from './errors.js'
import { ask, Op } from './host.js'

/** A step of a program. */
export interface BaseNode {
  op: string
  [key: string]: any
}

/** A program. */
export interface SeqNode extends BaseNode {
  op: 'seq'
  steps: BaseNode[]
}

/** A reference to an argument of the run. */
export interface ArgRef {
  $kind: 'arg'
  path: string
}

/** A node that is evaluated when its step runs. */
export type ExprNode = { $expr: string; [key: string]: any }

type Ref = string | ArgRef | ExprNode

/** Inputs of a step: values, or where they are found when it runs. */
export type Operands<I> = unknown extends I ? any : { [K in keyof I]: I[K] | Ref }

type InputOf<A> = A extends Atom<infer I, any> ? I : never
type VarMapping = Record<string, any>
type Items = string | ArgRef | ExprNode | readonly unknown[]
type Body<M extends AtomMap> = (builder: BuilderType<M>) => unknown

/** The methods that take bodies, and those whose arguments are not an object of inputs. */
export interface ControlFlow<M extends AtomMap> {
  /** Begins a chain, as `Agent.take` does. The schema documents the arguments. */
  take(schema?: unknown): BuilderType<M>
  /** Names the result of the last step. */
  as(variable: string): BuilderType<M>
  /** Adds a step as it is. */
  step(node: BaseNode): BuilderType<M>
  /** Ends the program with the variables that a schema names. */
  return(schema: any): BuilderType<M>
  varsImport(keys: readonly string[] | Record<string, string>): BuilderType<M>
  varsExport(keys: readonly string[] | Record<string, string>): BuilderType<M>
  if(condition: string, vars: VarMapping, then: Body<M>, otherwise?: Body<M>): BuilderType<M>
  while(condition: string, vars: VarMapping, body: Body<M>): BuilderType<M>
  scope(steps: Body<M>): BuilderType<M>
  map(items: Items, as: string, steps: Body<M>): BuilderType<M>
  filter(items: Items, as: string, condition: string, vars?: VarMapping): BuilderType<M>
  find(items: Items, as: string, condition: string, vars?: VarMapping): BuilderType<M>
  reduce<T>(items: Items, as: string, accumulator: string, initial: T, steps: Body<M>): BuilderType<M>
  memoize(steps: Body<M>, key?: string): BuilderType<M>
  cache(steps: Body<M>, key?: string, ttlMs?: number): BuilderType<M>
  try(branches: { try: Body<M>; catch?: Body<M> }): BuilderType<M>
  /** The program. */
  toJSON(): SeqNode
  readonly steps: BaseNode[]
}

type AtomMethods<M extends AtomMap> = {
  [K in keyof M as Exclude<K, keyof ControlFlow<M>>]: {} extends InputOf<M[K]>
    ? (input?: Operands<InputOf<M[K]>>) => BuilderType<M>
    : (input: Operands<InputOf<M[K]>>) => BuilderType<M>
}

/** A chain with a method for each atom. */
export type BuilderType<M extends AtomMap> = ControlFlow<M> & AtomMethods<M>

/** How conditions are written: as nodes, or as texts with `vars`, as the first generation. */
export type Conditions = 'nodes' | 'texts'

const parsed = new Map<string, ExprNode>()

/** The node of a condition text. */
export function parseCondition(text: string): ExprNode {
  let node = parsed.get(text)
  if (node === undefined) {
    const answer = ask(Op.condition, String(text))
    if (answer.error !== undefined) {
      throw new EngineError({
        code: 'compile.bad_condition',
        message: `Unsupported condition syntax in: ${text}\n${answer.error}`,
      })
    }
    node = answer.expr as ExprNode
    if (parsed.size >= 1000) parsed.clear()
    parsed.set(text, node)
  }
  return structuredClone(node)
}

export class TypedBuilder<M extends AtomMap> {
  readonly steps: BaseNode[] = []

  constructor(atoms: M, conditions: Conditions = 'nodes') {
    const inner = (body: (builder: any) => unknown): BaseNode[] => {
      const builder = new TypedBuilder(atoms, conditions)
      body(builder)
      return builder.steps
    }
    const create = (op: string, input: any): BaseNode => {
      if (!Object.hasOwn(atoms, op)) throw new Error(`Atom '${op}' not found`)
      return atoms[op]!.create(input) as BaseNode
    }
    const add = (op: string, input: any): any => {
      this.steps.push(create(op, input))
      return proxy
    }
    const test = (condition: string, vars: VarMapping | undefined) =>
      conditions === 'texts' ? { condition, vars } : { condition: parseCondition(condition) }
    const methods: Record<string, (...args: any[]) => any> = {
      as: (variable: string) => {
        const last = this.steps.at(-1)
        if (last === undefined) throw new Error('No step to capture')
        last.result = variable
        return proxy
      },
      step: (node: BaseNode) => {
        this.steps.push(node)
        return proxy
      },
      return: (schema) => add('return', { schema: schema?.schema ?? schema }),
      toJSON: () => ({ op: 'seq', steps: [...this.steps] }),
      varsImport: (keys) => add('varsImport', { keys }),
      varsExport: (keys) => add('varsExport', { keys }),
      if: (condition, vars, then, otherwise) =>
        add('if', {
          ...test(condition, vars),
          then: inner(then),
          else: otherwise && inner(otherwise),
        }),
      while: (condition, vars, body) => add('while', { ...test(condition, vars), body: inner(body) }),
      scope: (steps) => add('scope', { steps: inner(steps) }),
      map: (items, as, steps) => add('map', { items, as, steps: inner(steps) }),
      filter: (items, as, condition, vars) => add('filter', { items, as, ...test(condition, vars) }),
      find: (items, as, condition, vars) => add('find', { items, as, ...test(condition, vars) }),
      reduce: (items, as, accumulator, initial, steps) =>
        add('reduce', { items, as, accumulator, initial, steps: inner(steps) }),
      memoize: (steps, key) => add('memoize', { key, steps: inner(steps) }),
      cache: (steps, key, ttlMs) => add('cache', { key, steps: inner(steps), ttlMs }),
      try: (branches) =>
        add('try', { try: inner(branches.try), catch: branches.catch && inner(branches.catch) }),
    }
    const proxy: any = new Proxy(this, {
      get: (target, name) => {
        if (typeof name !== 'string' || name === 'constructor') return Reflect.get(target, name)
        if (name === 'steps') return this.steps
        if (Object.hasOwn(methods, name)) return methods[name]
        if (Object.hasOwn(atoms, name)) return (input: any) => add(name, input)
        if (name === 'take') return () => proxy
        return undefined
      },
      has: (_, name) =>
        typeof name === 'string' &&
        (name === 'steps' || name === 'take' || Object.hasOwn(methods, name) || Object.hasOwn(atoms, name)),
    })
    return proxy
  }
}

/** A builder of programs for any machine. */
export const Agent = {
  /** A builder with the atoms of the language. The schema documents the arguments. */
  take(_schema?: unknown): BuilderType<CoreAtoms> {
    return new TypedBuilder(coreAtoms as any) as any
  },

  /** A builder with these atoms. */
  custom<M extends AtomMap>(atoms: M): BuilderType<M> {
    return new TypedBuilder(atoms) as any
  },

  /** A reference to an argument. */
  args(path: string): ArgRef {
    return { $kind: 'arg', path }
  },

  /** A reference to a variable. */
  val(path: string): string {
    return path
  },
}

/** @deprecated `Agent` is the same. */
export const A99 = Agent
