/** Values as messages of 32-bit words and one text: the form in which they cross to the engine. */

import { EngineError, messageOf } from './errors.js'

/** The engine as it was loaded. */
export interface Backend {
  /** The message; replaced where the memory below it moves. */
  words: Uint32Array
  /** Makes room for this many words; their content may be lost. */
  grow(words: number): void
  /** Performs an operation on the message of `n` words and returns the text of the answer. */
  call(op: number, n: number, text: string): string
  /** Sets the function that computes prices while the engine computes. */
  setPricer(price: ((op: string, text: string) => number) | null): void
  /** Sets what answers calls of atoms at once; without it they are events. */
  setCaller?(call: (place: number, text: string) => string): void
}

/** Bounds that are checked while a value is read. */
export interface Limits {
  /** Bytes that the value may have as JSON text; what has more than twice as many is not read. */
  bytes: number
  /** Levels of nesting. */
  depth: number
}

export const DATA: Limits = { bytes: 4 << 20, depth: 512 }
/** For arguments: the engine bounds those that a program reads. */
export const ARGS: Limits = { bytes: 256 << 20, depth: 2000 }
/** For programs and options, which the engine checks by its own limits. */
export const TRUSTED: Limits = { bytes: 256 << 20, depth: 8192 }

const UNDEFINED = 0
const NULL = 1
const FALSE = 2
const TRUE = 3
const INT = 4
const FLOAT = 5
const TEXT = 6
const ARRAY = 7
const OBJECT = 8
const BYTES = 9
const KEY = 10
const ERROR = 11

const TOO_SMALL = 0xffffffff
const TAKE = 255
const MAX_PAYLOAD = 0x0fffffff
/** Depth from which ancestors are found in a set, above it by looking at each. */
const LINEAR = 32
/** Depth from which values are decoded without recursion. */
const RECURSIVE = 200

const float = new Float64Array(1)
const halves = new Uint32Array(float.buffer)
const plain = Object.prototype
const tagOf = Object.prototype.toString
const getPrototypeOf = Object.getPrototypeOf
const keysOf = Object.keys
const isArray = Array.isArray

/** The forms of values that are no plain objects: primitives, lists or members; else refused. */
const KINDS: Record<string, (value: any) => unknown> = {
  Date: (date) => {
    const ms = Date.prototype.getTime.call(date)
    return Number.isNaN(ms) ? null : new Date(ms).toISOString()
  },
  Set: (set) => Array.from(Set.prototype.values.call(set)),
  Error: (error) => ({ name: String(error.name), message: messageOf(error) }),
  String: (text) => String.prototype.valueOf.call(text),
  Number: (number) => Number.prototype.valueOf.call(number),
  Boolean: (boolean) => Boolean.prototype.valueOf.call(boolean),
}

const INSTEAD: Record<string, string> = {
  Map: 'pass Object.fromEntries(map), or [...map]',
  Promise: 'await it before it is passed',
  bigint: 'pass a number or a text',
  function: 'offer it as a capability or as an atom; programs reach data only',
  symbol: 'pass a text',
  ArrayBuffer: 'pass a typed array',
  URL: 'pass its href',
}

/** How many functions of atoms are called within each other, each by a run of the one before. */
export const nesting = { now: 0 }

/** Calls within each other that the engine makes itself: its frames are on the stack. */
const MAX_DIRECT = 8

/** Writes arguments of an operation, performs it and reads its answer. One message is under way
 * at a time; what runs while values are read (getters, traps) cannot start another. */
export class Wire {
  private words: Uint32Array
  private pos = 0
  private text = ''
  private keyCount = 0
  private left = 0
  private maxDepth = 0
  private maxBytes = 0
  private busy = false
  private readonly ancestors: (object | undefined)[] = []
  private deep: Set<object> | undefined
  /** Steps to the value being read; those below `level` count. */
  private readonly path: (string | number)[] = []
  private level = 0
  /** Members of the last object at each depth, and the references to their names. */
  private readonly shapes: string[][] = []
  private readonly shapeRefs: number[][] = []
  private shapeDepth = 0
  // Of the answer.
  private off = 0
  private source = ''
  private readonly keys: string[] = []
  private keysRead = 0

  constructor(readonly backend: Backend) {
    this.words = backend.words
  }

  /** Begins a message. */
  begin(): this {
    if (this.busy) {
      throw new EngineError({
        code: 'binding.reentrant',
        message: 'the engine was called while it reads a value or asks for a price',
        help: 'getters, proxies and price functions cannot call the engine',
      })
    }
    this.busy = true
    this.words = this.backend.words
    this.pos = 0
    this.text = ''
    this.keyCount = 0
    this.shapeDepth = 0
    return this
  }

  /** Adds a number, as handles and times are. */
  num(value: number): this {
    if (this.pos + 4 > this.words.length) this.grow(4)
    this.number(value)
    return this
  }

  /** Adds a text, or what has no content: undefined, true, false. */
  put(value: string | boolean | undefined): this {
    if (this.pos + 4 > this.words.length) this.grow(4)
    if (typeof value === 'string') {
      this.words[this.pos++] = (value.length << 4) | TEXT
      this.text += value
    } else {
      this.words[this.pos++] = value === undefined ? UNDEFINED : value ? TRUE : FALSE
    }
    return this
  }

  /** Adds a value of a host. What it may not be is an error that names its path. */
  value(value: unknown, what: string, limits: Limits = DATA): this {
    this.maxBytes = limits.bytes
    // The engine decides near the limit: it counts exactly, and this counts too little or too much.
    this.left = 2 * limits.bytes
    this.maxDepth = limits.depth
    this.level = 0
    try {
      this.write(value, 0)
    } catch (thrown) {
      this.abandon()
      throw this.refused(thrown, what)
    }
    return this
  }

  /** Adds bytes, as artifacts and snapshots are. */
  bytes(bytes: Uint8Array): this {
    const words = 1 + Math.ceil(bytes.length / 4)
    if (this.pos + words > this.words.length) this.grow(words)
    this.words[this.pos] = (bytes.length << 4) | BYTES
    const start = this.words.byteOffset + (this.pos + 1) * 4
    new Uint8Array(this.words.buffer, start, bytes.length).set(bytes)
    this.pos += words
    return this
  }

  /** Drops the message. */
  abandon(): void {
    this.busy = false
    this.text = ''
    this.ancestors.length = 0
    this.deep = undefined
  }

  /** Performs the operation. */
  send(op: number): any {
    const { backend } = this
    const request = this.text
    this.text = ''
    try {
      return this.answer(backend.call(op, this.pos, request))
    } finally {
      this.busy = false
    }
  }

  /** Lets a function of the host answer while an operation is under way: with what the engine
   * says, and by a function that writes the answer. */
  during(text: string, call: (input: any, fuelLeft: number) => ((message: Wire) => void) | undefined): string {
    const input = this.answer(text)
    const fuelLeft = this.read(0) as number
    if (nesting.now >= MAX_DIRECT) {
      // Deeper ones are events, whose functions have no frames of the engine below them.
      this.words[0] = 0
      return ''
    }
    this.busy = false
    nesting.now++
    let write: ((message: Wire) => void) | undefined
    try {
      write = call(input, fuelLeft)
    } finally {
      nesting.now--
      this.busy = true
      this.words = this.backend.words
    }
    if (write === undefined) {
      this.words[0] = 0
      return ''
    }
    write(this)
    this.words[0] = this.pos - 1
    const written = this.text
    this.text = ''
    return written
  }

  /** Begins the answer of `during`, also again. */
  restart(): this {
    this.busy = true
    this.pos = 1
    this.text = ''
    this.keyCount = 0
    this.shapeDepth = 0
    return this
  }

  /** The value of a message that the engine wrote. */
  answer(text: string): any {
    const { backend } = this
    if (backend.words[0] === TOO_SMALL) {
      backend.grow(backend.words[1]!)
      text = backend.call(TAKE, 0, '')
    }
    this.words = backend.words
    this.source = text
    this.off = 0
    this.pos = 1
    this.keysRead = 0
    const failed = this.words[1] === ERROR
    if (failed) this.pos = 2
    const value = this.read(0)
    this.source = ''
    if (failed) throw new EngineError(value as any)
    return value
  }

  private grow(more: number): void {
    const written = this.words.slice(0, this.pos)
    this.backend.grow(Math.max(this.words.length * 2, this.pos + more + 64))
    this.words = this.backend.words
    this.words.set(written)
  }

  private number(value: number): void {
    const whole = value | 0
    if (whole === value && whole << 4 >> 4 === whole && (whole !== 0 || 1 / value > 0)) {
      this.words[this.pos++] = (whole << 4) | INT
    } else {
      float[0] = value
      const { words, pos } = this
      words[pos] = FLOAT
      words[pos + 1] = halves[0]!
      words[pos + 2] = halves[1]!
      this.pos = pos + 3
    }
  }

  private write(value: unknown, depth: number): void {
    if (this.pos + 4 > this.words.length) this.grow(4)
    switch (typeof value) {
      case 'string':
        if ((this.left -= value.length) < 0) this.tooLarge()
        this.words[this.pos++] = (value.length << 4) | TEXT
        this.text += value
        return
      case 'number':
        this.number(value)
        return
      case 'boolean':
        this.words[this.pos++] = value ? TRUE : FALSE
        return
      case 'undefined':
        this.words[this.pos++] = UNDEFINED
        return
      case 'object':
        if (value === null) this.words[this.pos++] = NULL
        else this.object(value, depth)
        return
      default:
        throw new Refused(typeof value)
    }
  }

  private object(value: object, depth: number): void {
    if (depth >= this.maxDepth) throw new Refused('depth')
    const { ancestors } = this
    for (let at = (depth < LINEAR ? depth : LINEAR) - 1; at >= 0; at--) {
      if (ancestors[at] === value) throw new Refused('cycle')
    }
    if (depth >= LINEAR) {
      this.deep ??= new Set()
      if (this.deep.has(value)) throw new Refused('cycle')
      this.deep.add(value)
    }
    ancestors[depth] = value
    if (isArray(value)) {
      this.list(value, value.length, depth)
    } else {
      const proto = getPrototypeOf(value)
      if (proto === plain || proto === null) this.members(value as Record<string, unknown>, depth)
      else this.special(value, depth)
    }
    ancestors[depth] = undefined
    if (depth >= LINEAR) this.deep!.delete(value)
  }

  private list(items: ArrayLike<unknown>, count: number, depth: number): void {
    if ((this.left -= 2 * count) < 0 || count > MAX_PAYLOAD) this.tooLarge()
    this.words[this.pos++] = (count << 4) | ARRAY
    const { path } = this
    for (let at = 0; at < count; at++) {
      path[depth] = at
      this.level = depth + 1
      this.write(items[at], depth + 1)
    }
  }

  private members(value: Record<string, unknown>, depth: number): void {
    const names = keysOf(value)
    const count = names.length
    if ((this.left -= 4 * count) < 0 || count > MAX_PAYLOAD) this.tooLarge()
    this.words[this.pos++] = (count << 4) | OBJECT
    if (count === 0) return
    // An object with the names of the one before it refers to them.
    let refs: number[]
    let known = false
    if (depth < this.shapeDepth) {
      const before = this.shapes[depth]!
      known = before.length === count
      for (let at = 0; known && at < count; at++) known = before[at] === names[at]
      refs = this.shapeRefs[depth]!
    } else {
      for (let at = this.shapeDepth; at <= depth; at++) {
        this.shapes[at] = NONE
        this.shapeRefs[at] ??= []
      }
      this.shapeDepth = depth + 1
      refs = this.shapeRefs[depth]!
    }
    if (!known) this.shapes[depth] = names
    const { path } = this
    for (let at = 0; at < count; at++) {
      const name = names[at]!
      if (this.pos + 4 > this.words.length) this.grow(4)
      if ((this.left -= name.length) < 0) this.tooLarge()
      if (known) {
        this.words[this.pos++] = (refs[at]! << 4) | KEY
      } else {
        this.words[this.pos++] = (name.length << 4) | TEXT
        this.text += name
        refs[at] = this.keyCount++
      }
      path[depth] = name
      this.level = depth + 1
      this.write(value[name], depth + 1)
    }
  }

  private special(value: object, depth: number): void {
    if (ArrayBuffer.isView(value)) {
      const numbers = value as Uint8Array
      if (value instanceof DataView) throw new Refused('DataView')
      // A view of a detached buffer looks empty.
      if (numbers.length === 0) new Uint8Array(value.buffer)
      this.list(numbers, numbers.length, depth)
      return
    }
    const kind = tagOf.call(value).slice(8, -1)
    if (kind === 'Object') {
      this.members(value as Record<string, unknown>, depth)
      return
    }
    const form = Object.hasOwn(KINDS, kind) ? KINDS[kind]!(value) : undefined
    if (form === undefined) throw new Refused(kind)
    if (isArray(form)) this.list(form, form.length, depth)
    else if (typeof form === 'object' && form !== null) this.members(form as any, depth)
    else this.write(form, depth)
  }

  private tooLarge(): never {
    throw new Refused('size')
  }

  /** What was thrown while a value was read, as an error with its path. */
  private refused(thrown: unknown, what: string): EngineError {
    let path = what
    for (const step of this.path.slice(0, this.level)) {
      if (typeof step === 'number') path += `[${step}]`
      else path += /^[A-Za-z_$][\w$]*$/.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`
    }
    if (path.length > 500) path = `${path.slice(0, 240)} … ${path.slice(-240)}`
    const code = 'boundary.rejected'
    if (!(thrown instanceof Refused)) {
      if (thrown instanceof RangeError && thrown.message.includes('call stack')) {
        return new EngineError({ code, path, message: `${what} is nested too deeply` })
      }
      const message = `reading ${path} failed: ${messageOf(thrown)}`
      return new EngineError({ code, path, message, cause: thrown })
    }
    const { kind } = thrown
    switch (kind) {
      case 'cycle': {
        const reason = 'value contains a cycle'
        return new EngineError({ code, path, reason, message: `${path} contains itself` })
      }
      case 'depth': {
        const reason = `value exceeds depth limit ${this.maxDepth}`
        return new EngineError({ code, path, reason, message: `${what} has more than ${this.maxDepth} levels` })
      }
      case 'size': {
        const reason = `value exceeds the ${this.maxBytes}-byte limit`
        return new EngineError({ code, path, reason, message: `${what} is larger than its limit of ${this.maxBytes} bytes` })
      }
      default: {
        const message = `${path} is a ${kind}, which programs cannot hold`
        return new EngineError({ code, path, message, help: INSTEAD[kind] ?? 'pass plain data' })
      }
    }
  }

  private read(depth: number): unknown {
    const { words } = this
    const word = words[this.pos++]!
    const payload = word >>> 4
    switch (word & 15) {
      case UNDEFINED:
        return undefined
      case NULL:
        return null
      case FALSE:
        return false
      case TRUE:
        return true
      case INT:
        return (word | 0) >> 4
      case FLOAT:
        halves[0] = words[this.pos]!
        halves[1] = words[this.pos + 1]!
        this.pos += 2
        return float[0]
      case TEXT:
        return this.source.substring(this.off, (this.off += payload))
      case ARRAY: {
        if (depth > RECURSIVE) return this.readDeep(word)
        const list = new Array(payload)
        for (let at = 0; at < payload; at++) list[at] = this.read(depth + 1)
        return list
      }
      case OBJECT: {
        if (depth > RECURSIVE) return this.readDeep(word)
        const object: Record<string, unknown> = {}
        for (let at = 0; at < payload; at++) {
          const key = this.readKey()
          if (key === '__proto__') own(object, key, this.read(depth + 1))
          else object[key] = this.read(depth + 1)
        }
        return object
      }
      case BYTES: {
        const start = words.byteOffset + this.pos * 4
        this.pos += Math.ceil(payload / 4)
        return new Uint8Array(words.buffer, start, payload).slice()
      }
      default:
        throw new EngineError({ code: 'binding.protocol', message: `unknown tag ${word & 15}` })
    }
  }

  private readKey(): string {
    const word = this.words[this.pos++]!
    if ((word & 15) === KEY) return this.keys[word >>> 4]!
    const key = this.source.substring(this.off, (this.off += word >>> 4))
    this.keys[this.keysRead++] = key
    return key
  }

  /** Reads a list or object whose first word is given, with a stack on the heap. */
  private readDeep(word: number): unknown {
    const open = (word: number): Open => {
      const isList = (word & 15) === ARRAY
      return { to: isList ? [] : {}, isList, left: word >>> 4, key: '' }
    }
    const root = open(word)
    const stack = [root]
    for (;;) {
      const top = stack[stack.length - 1]!
      if (top.left === 0) {
        stack.pop()
        if (stack.length === 0) return root.to
        continue
      }
      top.left--
      if (!top.isList) top.key = this.readKey()
      const next = this.words[this.pos]!
      const tag = next & 15
      let value: unknown
      if (tag === ARRAY || tag === OBJECT) {
        this.pos++
        const inner = open(next)
        stack.push(inner)
        value = inner.to
      } else {
        value = this.read(0)
      }
      if (top.isList) (top.to as unknown[]).push(value)
      else own(top.to as object, top.key, value)
    }
  }
}

const NONE: string[] = []

interface Open {
  to: unknown[] | object
  isList: boolean
  left: number
  key: string
}

/** Why a value may not cross. */
class Refused {
  constructor(readonly kind: string) {}
}

/** Sets an own member, whatever its name. */
function own(object: object, key: string, value: unknown): void {
  Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true })
}
