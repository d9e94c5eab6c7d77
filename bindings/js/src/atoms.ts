/** Atoms: the operations of programs. The language's run in the engine, a host's are functions. */

import { CORE, type CoreAtoms } from './core.generated.js'
import { noState, type AtomContext } from './context.js'
import { EngineError, hide } from './errors.js'
import { ask, Op } from './host.js'
import { isStandard, toJSONSchema, type SchemaOf } from './schema.js'

/** What a call of an atom may do beyond its result. `io` is `unsafe`. */
export type AtomEffects = 'pure' | 'mutates' | 'read' | 'idempotent' | 'unsafe' | 'io'

export type Cost<I = any> = number | ((input: I, ctx: { context?: any; args?: any }) => number)

export interface AtomOptions<I = any> {
  /** What models and editors read. */
  docs?: string
  /** Limit of an answer; 0 is none, 1000 the default. */
  timeoutMs?: number
  /** Fuel of a call: a number, or a function of the step's inputs. */
  cost?: Cost<I>
  effects?: AtomEffects
  /** `resolved` (the default): the function gets values. `raw`: it gets the step as written. */
  inputs?: 'resolved' | 'raw'
}

export interface AtomDef {
  readonly op: string
  readonly inputSchema: any
  readonly outputSchema?: any
  readonly docs?: string
  readonly timeoutMs?: number
  readonly cost?: Cost
  readonly effects?: AtomEffects
  exec(step: any, ctx: any): Promise<any>
}

/** An atom with the types of its inputs and of its result. */
export interface Atom<I, O> extends AtomDef {
  create(input: I): I & { op: string }
  /** For types only. */
  readonly _output?: O
}

export type AtomMap = Record<string, Atom<any, any>>

/** An atom that a host defines. */
export interface HostAtom<I = any, O = any> extends Atom<I, O> {
  readonly fn: (input: I, ctx: AtomContext) => O | Promise<O>
  readonly inputs: 'resolved' | 'raw'
}

const EFFECTS = ['pure', 'mutates', 'read', 'idempotent', 'unsafe', 'io']

/** Defines an atom that a function of the host runs. */
export function defineAtom<I extends Record<string, any> = any, O = any>(
  op: string,
  inputSchema: SchemaOf<I> | undefined,
  outputSchema: SchemaOf<O> | undefined,
  fn: (input: I, ctx: AtomContext) => O | Promise<O>,
  options: AtomOptions<I> | string = {}
): Atom<I, O> {
  const {
    docs = '',
    timeoutMs = 1000,
    cost = 1,
    effects = 'unsafe',
    inputs = 'resolved',
  } = typeof options === 'string' ? ({ docs: options } as AtomOptions<I>) : options
  const wrong = (what: string, help?: string) =>
    new EngineError({ code: 'binding.bad_atom', message: `atom '${String(op)}': ${what}`, help })
  if (typeof op !== 'string' || op === '') throw wrong('its name must be a text')
  if (typeof fn !== 'function') throw wrong('the fourth argument must be a function')
  if (!EFFECTS.includes(effects)) throw wrong(`unknown effects '${effects}'`, `write ${EFFECTS.join(', ')}`)
  if (inputs !== 'resolved' && inputs !== 'raw') throw wrong('`inputs` must be resolved or raw')
  if (typeof cost !== 'function' && !(cost >= 0 && Number.isFinite(cost))) {
    throw wrong('`cost` must be a finite number of at least 0, or a function')
  }
  if (!(timeoutMs >= 0 && Number.isFinite(timeoutMs))) throw wrong('`timeoutMs` must be at least 0')
  const atom = {
    op,
    inputSchema,
    outputSchema,
    docs,
    timeoutMs,
    cost,
    effects,
    exec: async (step: any, ctx: AtomContext) => {
      if (step?.result !== undefined) void ctx.state
      return run(inputsOf(step), ctx)
    },
    create: (input: I) => ({ op, ...input }),
  }
  const run = isStandard(inputSchema) && inputs === 'resolved' ? parsed(op, inputSchema, fn) : fn
  // Spreading an atom, as maps of atoms do not, would lose these; copies are atoms of no host.
  hide(atom, 'fn', run)
  hide(atom, 'inputs', inputs)
  return atom as any
}

/** The function behind a schema that may change its inputs, as zod's defaults do. */
function parsed(op: string, schema: any, fn: (input: any, ctx: AtomContext) => any) {
  const settle = (checked: any, ctx: AtomContext) => {
    const [issue] = checked.issues ?? []
    if (issue === undefined) return fn(checked.value, ctx)
    const path = (issue.path ?? []).map((step: any) => `/${String(step?.key ?? step)}`).join('')
    throw new Error(`Input validation failed for '${op}': ${path || '/'} ${issue.message}`)
  }
  return (input: any, ctx: AtomContext) => {
    const checked = schema['~standard'].validate(input)
    return checked instanceof Promise
      ? checked.then((done: any) => settle(done, ctx))
      : settle(checked, ctx)
  }
}

function inputsOf(step: any): any {
  const { op: _op, result: _result, resultConst: _const, ...inputs } = step ?? {}
  return inputs
}

/** The name under which an atom of an older generation finds its result. */
const RESULT = 'result'

/** An atom that was made without `defineAtom`: its `exec` binds the result itself. */
export function adopted(name: string, atom: AtomDef): HostAtom | undefined {
  if (typeof atom?.op !== 'string' || typeof atom.exec !== 'function' || atom instanceof CoreAtom) {
    return undefined
  }
  const fn = async (input: any, ctx: AtomContext) => {
    let result: unknown
    const refuse = () => noState(name)
    const state = new Proxy({}, {
      get: (_, key) => (key === RESULT ? result : refuse()),
      has: refuse,
      ownKeys: refuse,
      deleteProperty: refuse,
      defineProperty: refuse,
      set: (_, key, value) => (key === RESULT ? ((result = value), true) : refuse()),
    })
    Object.defineProperty(ctx, 'state', { value: state })
    await atom.exec({ ...input, op: atom.op, result: RESULT }, ctx)
    return result
  }
  const { inputSchema: _, ...rest } = atom
  return { create: (input: any) => ({ op: name, ...input }), ...rest, inputSchema: undefined, fn, inputs: 'resolved' }
}

/** Whether an atom has a function of the host. */
export function isHostAtom(atom: unknown): atom is HostAtom {
  return typeof (atom as HostAtom | undefined)?.fn === 'function'
}

/** An atom as the engine's configuration describes it. */
export function configOf(name: string, atom: HostAtom): Record<string, unknown> {
  return {
    op: name,
    docs: atom.docs || undefined,
    input: atom.inputs === 'raw' ? undefined : toJSONSchema(atom.inputSchema),
    output: toJSONSchema(atom.outputSchema),
    effect: atom.effects === 'io' ? 'unsafe' : atom.effects,
    cost: typeof atom.cost === 'number' ? atom.cost : 1,
    costFn: typeof atom.cost === 'function',
    timeoutMs: atom.timeoutMs,
    inputs: atom.inputs,
    // Those that always give a promise are called at their event.
    direct: !(atom.fn instanceof AsyncFunction),
  }
}

const AsyncFunction = (async () => {}).constructor

interface Described {
  op: string
  docs: string
  inputSchema?: any
  outputSchema?: any
  effect: string
  cost: number
  timeoutMs: number
}

let described: Map<string, Described> | undefined
let plain: number | undefined

/** The engine of no host: it has the atoms of the language only. */
export function plainEngine(): number {
  return (plain ??= ask(Op.engine, {}))
}

function describe(op: string): Described {
  if (described === undefined) {
    const rows: Described[] = ask(Op.atoms, plainEngine())
    described = new Map(rows.map((row) => [row.op, row]))
  }
  return described.get(op)!
}

class CoreAtom implements AtomDef {
  constructor(readonly op: string) {
    // An own property, since atoms are destructured.
    this.create = (input: any) => ({ op, ...input })
  }

  readonly create: (input: any) => any

  get inputSchema() {
    return wrapped(describe(this.op).inputSchema)
  }
  get outputSchema() {
    return wrapped(describe(this.op).outputSchema)
  }
  get docs() {
    return describe(this.op).docs
  }
  get timeoutMs() {
    return describe(this.op).timeoutMs
  }
  get cost() {
    return describe(this.op).cost
  }
  get effects() {
    return describe(this.op).effect as AtomEffects
  }

  /** Runs a step of an atom's function in the engine. */
  async exec(step: any, ctx: AtomContext): Promise<any> {
    const run = (ctx as any).caller?.runStep
    if (run === undefined) {
      throw new EngineError({
        code: 'binding.no_run',
        message: `'${this.op}' can only run inside an atom of a run`,
        help: 'pass the ctx that the function of the atom got',
      })
    }
    return run.call((ctx as any).caller, step, ctx)
  }
}

const wrapped = (schema: any) => (schema === undefined ? undefined : { schema })

const make = (ops: readonly string[]) =>
  Object.fromEntries(ops.map((op) => [op, new CoreAtom(op)])) as any

const all: CoreAtoms = make(CORE)

/** The atoms of the language. */
export const coreAtoms: CoreAtoms = all

const BATTERIES = [
  'storeVectorize',
  'storeCreateCollection',
  'storeVectorAdd',
  'storeSearch',
  'llmPredictBattery',
  'llmVision',
] as const

/** Atoms for embeddings, vector stores and chat models. Every machine has them. */
export const batteryAtoms: Pick<CoreAtoms, (typeof BATTERIES)[number]> = Object.fromEntries(
  BATTERIES.map((op) => [op, all[op]])
) as any
export const { storeVectorize, storeCreateCollection, storeVectorAdd, storeSearch, llmPredictBattery, llmVision } =
  batteryAtoms

/** The value of an operand. An atom's function gets values already, so this returns them: atoms
 * that were written for agent-99 call it. */
export function resolveValue<T = any>(value: T, _ctx?: AtomContext): T {
  return value
}
