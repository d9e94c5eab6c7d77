/** The engine as an addon of Node.js or as WebAssembly. */

import { EngineError, messageOf } from './errors.js'
import type { Backend } from './wire.js'

/** What the addon exports. */
export interface Addon {
  attach(buffer: ArrayBuffer): void
  call(op: number, n: number, text: string): string
  setPricer(price: ((op: string, text: string) => number) | null): void
  setCaller(call: (place: number, text: string) => string): void
}

const FIRST_WORDS = 1 << 14

/** The engine as an addon. */
export function nativeBackend(addon: Addon): Backend {
  const backend: Backend = {
    words: new Uint32Array(0),
    grow(words) {
      const buffer = new ArrayBuffer(words * 4)
      addon.attach(buffer)
      backend.words = new Uint32Array(buffer)
    },
    call: addon.call,
    setPricer: addon.setPricer,
    setCaller: addon.setCaller,
  }
  backend.grow(FIRST_WORDS)
  return backend
}

interface Exports {
  memory: WebAssembly.Memory
  a99_words(n: number): number
  a99_text(units: number): number
  a99_text_out(): number
  a99_call(op: number, n: number, units: number): number
  a99_pricer(on: number): void
  a99_caller(on: number): void
}

/** Units of a text from which whole copies are quicker than units. */
const LONG = 64
/** The copies of Node.js keep lone surrogates; a decoder replaces them. */
const { Buffer } = globalThis as { Buffer?: any }
const utf16 = new TextDecoder('utf-16le', { ignoreBOM: true })

/** The engine as WebAssembly. */
export function wasmBackend(module: WebAssembly.Module): Backend {
  let price: ((op: string, text: string) => number) | null = null
  let answer: ((place: number, text: string) => string) | undefined
  let exports: Exports
  const read = (at: number, units: number): string => {
    if (units === 0) return ''
    if (units >= LONG && Buffer) return Buffer.from(exports.memory.buffer, at, 2 * units).toString('utf16le')
    const view = new Uint16Array(exports.memory.buffer, at, units)
    if (units >= LONG) {
      const text = utf16.decode(view)
      // The decoder writes U+FFFD for a lone surrogate, which is a unit, too.
      if (!text.includes('\ufffd')) return text
    }
    let text = ''
    for (let from = 0; from < units; from += 8192) {
      text += String.fromCharCode.apply(null, view.subarray(from, from + 8192) as unknown as number[])
    }
    return text
  }
  const env = {
    now: () => Date.now(),
    random: (at: number, length: number) => {
      for (let from = 0; from < length; from += 65536) {
        const part = Math.min(65536, length - from)
        crypto.getRandomValues(new Uint8Array(exports.memory.buffer, at + from, part))
      }
    },
    call: (place: number, text: number, textUnits: number) => {
      refresh()
      const written = answer!(place, read(text, textUnits))
      writeText(written)
      return written.length
    },
    price: (op: number, opUnits: number, text: number, textUnits: number) =>
      price === null ? NaN : price(read(op, opUnits), read(text, textUnits)),
  }
  exports = new WebAssembly.Instance(module, { env }).exports as unknown as Exports
  let at = 0
  let count = 0
  let textAt = 0
  let textRoom = 0
  let stopped: string | undefined
  /** A module that trapped is in no known state: nothing uses it any more. */
  const perform = (op: number, n: number, units: number): number => {
    if (stopped === undefined) {
      try {
        return exports.a99_call(op, n, units)
      } catch (error) {
        stopped = messageOf(error)
      }
    }
    throw new EngineError({
      code: 'binding.panic',
      message: `the engine stopped: ${stopped}`,
      help: 'start another worker or process, and report the program: this is a bug',
    })
  }
  // Memory that grows is another buffer.
  const refresh = () => {
    if (backend.words.buffer !== exports.memory.buffer) {
      backend.words = new Uint32Array(exports.memory.buffer, at, count)
    }
  }
  const writeText = (text: string): void => {
    const units = text.length
    if (units > textRoom) {
      textRoom = Math.max(units, 2 * textRoom, 4096)
      textAt = exports.a99_text(textRoom)
      refresh()
    }
    if (units >= LONG && Buffer) {
      Buffer.from(exports.memory.buffer, textAt, 2 * units).write(text, 'utf16le')
    } else {
      const view = new Uint16Array(exports.memory.buffer, textAt, units)
      for (let unit = 0; unit < units; unit++) view[unit] = text.charCodeAt(unit)
    }
  }
  const backend: Backend = {
    words: new Uint32Array(0),
    grow(words) {
      at = exports.a99_words(words)
      count = words
      backend.words = new Uint32Array(exports.memory.buffer, at, count)
    },
    call(op, n, text) {
      writeText(text)
      const out = perform(op, n, text.length)
      refresh()
      return read(exports.a99_text_out(), out)
    },
    setPricer(f) {
      price = f && ((op, text) => (refresh(), f(op, text)))
      exports.a99_pricer(f ? 1 : 0)
    },
    setCaller(call) {
      answer = call
      exports.a99_caller(1)
    },
  }
  backend.grow(FIRST_WORDS)
  return backend
}

/** Whatever may hold the module. */
export type WasmSource = WebAssembly.Module | BufferSource | Response | URL | string

/** The module of a source. */
export async function compileWasm(source: WasmSource | Promise<WasmSource>): Promise<WebAssembly.Module> {
  let given = await source
  if (given instanceof WebAssembly.Module) return given
  if (typeof given === 'string' || given instanceof URL) given = await fetch(given)
  if (typeof Response === 'function' && given instanceof Response) {
    if (!given.ok) {
      const message = `the engine could not be loaded from ${given.url}: HTTP ${given.status}`
      throw new EngineError({ code: 'binding.not_loaded', message })
    }
    given = await given.arrayBuffer()
  }
  return WebAssembly.compile(given as BufferSource)
}
