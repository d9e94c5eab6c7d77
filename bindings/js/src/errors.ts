/** Errors of programs, and errors of this package. */

/** A fault of a program, with the place where it stands. */
export interface Diagnostic {
  code: string
  severity: 'error' | 'warning'
  message: string
  /** JSON pointer into the program. */
  pointer: string
  help?: string
  offending?: string
  line?: number
  column?: number
  endLine?: number
  endColumn?: number
}

/** Members of an error that the engine reports. */
export interface ErrorFields {
  code?: string
  hostCode?: string
  message: string
  op?: string
  help?: string
  pointer?: string
  diagnostics?: Diagnostic[]
}

/** The error that ended a run. Programs and hosts recognise it by `$error`. */
export class AgentError {
  readonly $error = true as const
  readonly message: string
  readonly op: string
  /** A stable code, such as `fuel.exhausted`; `explain(code)` describes it. */
  declare readonly code?: string
  /** The place of the step in the program, as a JSON pointer. */
  declare readonly pointer?: string
  /** What to change. */
  declare readonly help?: string
  /** What a host function threw. It never reaches a program. */
  declare readonly cause?: unknown

  constructor(message: string, op: string, cause?: unknown, fields?: ErrorFields) {
    this.message = message
    this.op = op
    // A code that the host gave says more.
    const code = fields?.hostCode ?? fields?.code
    if (code !== undefined) this.code = code
    if (fields?.pointer !== undefined) this.pointer = fields.pointer
    if (fields?.help !== undefined) this.help = fields.help
    if (cause !== undefined) hide(this, 'cause', cause)
  }

  toString(): string {
    return `AgentError[${this.op}]: ${this.message}`
  }

  toJSON(): { $error: true; message: string; op: string } {
    return { $error: true, message: this.message, op: this.op }
  }
}

/** Whether a value is the error of a run. */
export function isAgentError(value: unknown): value is AgentError {
  return (
    value instanceof AgentError ||
    (typeof value === 'object' && value !== null && (value as AgentError).$error === true)
  )
}

/** An error of this package or the engine: a rejected program, a wrong option, a value that may
 * not enter a run. */
export class EngineError extends Error {
  /** A stable code; `explain(code)` describes it. */
  readonly code: string
  declare readonly help?: string
  declare readonly pointer?: string
  /** The path to the value that was refused. */
  declare readonly path?: string
  /** Why a value may not enter a run, as programs read it. */
  declare readonly reason?: string
  /** The faults of a program that was rejected. */
  declare readonly diagnostics?: Diagnostic[]

  constructor(fields: ErrorFields & { path?: string; reason?: string; cause?: unknown }) {
    super(fields.message, 'cause' in fields ? { cause: fields.cause } : undefined)
    this.code = fields.code ?? 'binding.failed'
    if (fields.help !== undefined) this.help = fields.help
    if (fields.pointer !== undefined) this.pointer = fields.pointer
    if (fields.path !== undefined) this.path = fields.path
    if (fields.reason !== undefined) hide(this, 'reason', fields.reason)
    if (fields.diagnostics !== undefined) this.diagnostics = fields.diagnostics
  }
}
Object.defineProperty(EngineError.prototype, 'name', { value: 'EngineError', writable: true, configurable: true })

/** The message of whatever was thrown. Reading it may fail, too. */
export function messageOf(thrown: unknown): string {
  try {
    if (typeof thrown === 'object' && thrown !== null) {
      const { message } = thrown as { message?: unknown }
      if (typeof message === 'string' && message !== '') return message
    }
    return String(thrown)
  } catch {
    return 'Unknown error'
  }
}

/** Adds a member that copies and JSON leave out. */
export function hide(object: object, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, enumerable: false, writable: true, configurable: true })
}
