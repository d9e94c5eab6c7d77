/** The package in Node.js, Deno and Bun: the addon, else WebAssembly. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { compileWasm, nativeBackend, wasmBackend, type WasmSource } from './backend.js'
import { EngineError, messageOf } from './errors.js'
import { host, isLoaded, setLoader } from './host.js'
import type { Backend } from './wire.js'

export * from './index.js'

/** The packages of this platform, in the order in which they are tried. */
function packages(): string[] {
  const { platform, arch } = process
  if (platform === 'linux') return [`linux-${arch}-gnu`, `linux-${arch}-musl`]
  if (platform === 'win32') return [`win32-${arch}-msvc`]
  return [`${platform}-${arch}`]
}

/** Files of a clone, beside the package's folder. */
const development = (name: string) => join(__dirname, '..', '..', '..', 'native', name)

function native(): Backend {
  const failures: string[] = []
  for (const path of [...packages().map((name) => `@agent99/${name}`), development('agent99.node')]) {
    try {
      return nativeBackend(require(path))
    } catch (error) {
      failures.push(messageOf(error).split('\n')[0]!)
    }
  }
  throw new Error(failures.join('; '))
}

function wasm(): Backend {
  const failures: string[] = []
  for (const find of [() => require.resolve('@agent99/wasm/agent99.wasm'), () => development('agent99.wasm')]) {
    try {
      return wasmBackend(new WebAssembly.Module(readFileSync(find())))
    } catch (error) {
      failures.push(messageOf(error).split('\n')[0]!)
    }
  }
  throw new Error(failures.join('; '))
}

function load(): Backend {
  const forced = process.env.AGENT99_BACKEND
  if (forced !== undefined && forced !== '' && forced !== 'native' && forced !== 'wasm') {
    throw new EngineError({
      code: 'binding.bad_option',
      message: `AGENT99_BACKEND is ${JSON.stringify(forced)}`,
      help: 'set it to native or wasm, or unset it',
    })
  }
  const failures: string[] = []
  for (const [name, one] of [['native', native], ['wasm', wasm]] as const) {
    if (forced && forced !== name) continue
    try {
      return one()
    } catch (error) {
      failures.push(`${name}: ${messageOf(error)}`)
    }
  }
  throw new EngineError({
    code: 'binding.not_loaded',
    message: `the engine could not be loaded; ${failures.join('; ')}`,
    help: 'install @agent99/wasm, which runs everywhere',
  })
}

setLoader(load)

/** Loads the engine. Without it the first call loads it; browsers need it. */
export async function init(source?: WasmSource | Promise<WasmSource>): Promise<void> {
  if (isLoaded()) return
  if (source !== undefined) {
    const module = await compileWasm(source)
    setLoader(() => wasmBackend(module))
  }
  host()
}
