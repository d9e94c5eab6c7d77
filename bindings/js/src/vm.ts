/** Machines: a set of atoms, and the programs that may use them. */

import {
  adopted,
  configOf,
  coreAtoms,
  isHostAtom,
  plainEngine,
  type Atom,
  type AtomMap,
  type HostAtom,
} from './atoms.js'
import { TypedBuilder, type BaseNode, type BuilderType, type Conditions, type SeqNode } from './builder.js'
import type { CoreAtoms } from './core.generated.js'
import { EngineError, type Diagnostic } from './errors.js'
import { ask, freeNow, freeWith, Op } from './host.js'
import { NO_OPTIONS, type RunOptions } from './options.js'
import { ActiveRun, firstEvent, runToEnd, type RunResult } from './run.js'
import { Steps } from './steps.js'

/** What can be run: a tree, a builder, a compiled program, an artifact, a source, a token. */
export type Runnable = BaseNode | { toJSON(): SeqNode } | Program | Uint8Array | string

export type ToolFilter = 'all' | 'flow' | readonly string[]
export type ToolForm = 'openai' | 'openai-strict' | 'anthropic' | 'gemini' | 'mcp'

export interface AgentVMOptions {
  /** Atoms of the language that programs may use; all by default. */
  only?: readonly string[]
  /** Atoms of the language that programs may not use. */
  without?: readonly string[]
}

export interface ProgramInfo {
  hash: string
  ops: string[]
  inputSchema?: any
  [member: string]: any
}

/** A compiled program. */
export class Program {
  private freed = false

  /** @internal */
  constructor(
    readonly vm: AgentVM<any>,
    /** @internal */
    readonly handle: number,
    readonly warnings: Diagnostic[]
  ) {
    freeWith(this, handle)
  }

  /** The program as a file, `.a99b`. */
  toBytes(options: { strip?: boolean } = {}): Uint8Array {
    return ask(Op.save, this.handle, options.strip ?? false)
  }

  /** What the program is and needs. */
  describe(): ProgramInfo {
    return ask(Op.describe, this.handle)
  }

  /** The program as JavaScript. */
  toSource(): string {
    return ask(Op.print, this.vm.handle, this.handle)
  }

  /** Frees the program before it is collected. */
  free(): void {
    if (this.freed) return
    this.freed = true
    freeNow(this, this.handle)
  }
}

const TOKEN = 'proc_'
/** Compiled sources that a machine keeps. */
const SOURCES = 100

export class AgentVM<M extends AtomMap = {}> {
  readonly atoms: CoreAtoms & M
  /** @internal */
  readonly functions = new Map<string, HostAtom>()
  /** @internal */
  readonly ordered: readonly (readonly [string, HostAtom])[]
  /** @internal */
  readonly pricedByHost: boolean
  private engine: number | undefined
  /** Atoms of the language under other names. */
  private readonly aliases: Record<string, string> = Object.create(null)
  private readonly sources = new Map<string, Program>()

  constructor(
    customAtoms: M = {} as M,
    private readonly config: AgentVMOptions = {},
    /** How the builders of this machine write conditions. */
    private readonly conditions: Conditions = 'nodes'
  ) {
    this.atoms = { ...coreAtoms, ...customAtoms }
    const custom: AtomMap = customAtoms
    for (const name of Object.keys(custom)) {
      const given = custom[name]!
      const atom = isHostAtom(given) ? given : adopted(name, given)
      if (atom !== undefined) {
        this.functions.set(name, atom)
        // Steps name an atom by its op, too, where no other atom has that name.
        if (atom.op !== name && !Object.hasOwn(custom, atom.op)) this.functions.set(atom.op, atom)
      } else if (typeof given?.op !== 'string' || !Object.hasOwn(coreAtoms, given.op)) {
        throw new EngineError({
          code: 'binding.bad_atom',
          message: `'${name}' is no atom`,
          help: 'make atoms with defineAtom(op, input, output, function)',
        })
      } else if (given.op !== name) {
        this.aliases[name] = given.op
      }
    }
    this.ordered = [...this.functions]
    this.pricedByHost = [...this.functions.values()].some((atom) => typeof atom.cost === 'function')
  }

  /** @internal */
  get handle(): number {
    if (this.engine === undefined) {
      const { only, without } = this.config
      const { aliases } = this
      const isPlain = this.functions.size === 0 && Object.keys(aliases).length === 0
      if (isPlain && only === undefined && without === undefined) {
        return (this.engine = plainEngine())
      }
      const atoms = this.ordered.map(([name, atom]) => configOf(name, atom))
      this.engine = ask(Op.engine, { aliases, atoms, only, without }) as number
      freeWith(this, this.engine)
    }
    return this.engine
  }

  get builder(): BuilderType<CoreAtoms & M> {
    return this.Agent
  }

  /** A builder of programs with the atoms of this machine. */
  get Agent(): BuilderType<CoreAtoms & M> {
    return new TypedBuilder(this.atoms, this.conditions) as any
  }

  /** @deprecated `Agent` is the same. */
  get A99(): BuilderType<CoreAtoms & M> {
    return this.Agent
  }

  /** The atom of a name. */
  resolve(op: string): Atom<any, any> | undefined {
    return Object.hasOwn(this.atoms, op) ? (this.atoms as AtomMap)[op] : undefined
  }

  /** The atoms as tools of models. */
  getTools(filter: ToolFilter = 'all', form: ToolForm = 'openai'): any[] {
    return ask(Op.tools, this.handle, filter, form)
  }

  /** A system prompt that teaches models to write programs. */
  prompt(form: 'short' | 'full' | 'source' = 'short'): string {
    return ask(Op.prompt, this.handle, form)
  }

  /** TypeScript declarations for programs in the source form. */
  declarations(): string {
    return ask(Op.declarations, this.handle)
  }

  /** Compiles a program, which then starts at once. A rejected program is an error. */
  compile(program: BaseNode | { toJSON(): SeqNode } | string): Program {
    const made = this.compiled(program)
    if (made.diagnostics !== undefined) throw rejected(made.diagnostics)
    return new Program(this, made.agent, made.warnings)
  }

  /** The faults of a program, and what looks like mistakes; none is an empty list. */
  check(program: BaseNode | { toJSON(): SeqNode } | string): Diagnostic[] {
    const made = this.compiled(program)
    if (made.diagnostics !== undefined) return made.diagnostics
    ask(Op.free, made.agent)
    return made.warnings
  }

  /** Loads a file that `toBytes` made. */
  load(bytes: Uint8Array): Program {
    const { agent, warnings } = ask(Op.load, this.handle, bytes)
    return new Program(this, agent, warnings)
  }

  /** Runs a program to its end. The promise is rejected if the program cannot run at all; an
   * error of the program is part of the result. */
  run<T = any>(
    program: Runnable,
    args?: Record<string, any>,
    options: RunOptions = NO_OPTIONS
  ): Promise<RunResult<T>> {
    try {
      if (typeof program === 'string' && program.startsWith(TOKEN)) {
        return this.run(STORED, { token: program, input: args ?? {} }, options)
      }
      return runToEnd(this, this.runnable(program), args ?? {}, options)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Starts a run whose events the host handles itself. */
  start(program: Runnable, args: Record<string, any> = {}, options: RunOptions = NO_OPTIONS): Steps {
    const event = firstEvent(this, this.runnable(program), args, options)
    return new Steps(new ActiveRun(this, args, options), event)
  }

  /** Goes on with a run from its snapshot. */
  restore(program: Program, bytes: Uint8Array, options: RunOptions = NO_OPTIONS): Steps {
    const run = new ActiveRun(this, {}, options)
    return new Steps(run, run.restored(program.handle, bytes))
  }

  private compiled(program: unknown): any {
    return ask(Op.compile, this.handle, treeOf(program), 'auto')
  }

  /** A handle, or a tree that the engine compiles. */
  private runnable(program: Runnable): unknown {
    if (program instanceof Program) {
      if (program.vm === (this as any) || program.vm.handle === this.handle) return program.handle
      throw new EngineError({
        code: 'binding.other_machine',
        message: 'the program was compiled by another machine',
        help: 'compile it with this machine, whose atoms may differ',
      })
    }
    if (typeof program === 'string') {
      let known = this.sources.get(program)
      if (known === undefined) {
        known = this.compile(program)
        if (this.sources.size >= SOURCES) this.sources.delete(this.sources.keys().next().value!)
        this.sources.set(program, known)
      }
      return known.handle
    }
    if (program instanceof Uint8Array) {
      const loaded = this.load(program)
      return loaded.handle
    }
    return treeOf(program)
  }
}

const STORED: BaseNode = {
  op: 'seq',
  steps: [
    { op: 'agentRun', agentId: 'args.token', input: 'args.input', result: 'value' },
    { op: 'return', value: { $expr: 'ident', name: 'value' } },
  ],
}

/** The tree of a program, also of its builder. */
export function treeOf(program: unknown): unknown {
  const isBuilder = typeof program === 'object' && program !== null && !('op' in program)
  return isBuilder && typeof (program as any).toJSON === 'function' ? (program as any).toJSON() : program
}

/** The error of a rejected program. */
export function rejected(diagnostics: Diagnostic[]): EngineError {
  const first = diagnostics.find((one) => one.severity === 'error') ?? diagnostics[0]
  const { code = 'binding.failed', message = 'the program was rejected', help, pointer } = first ?? {}
  return new EngineError({ code, message, help, pointer, diagnostics })
}
