/** The package in browsers and workers: WebAssembly, loaded by `init`. */

import { compileWasm, wasmBackend, type WasmSource } from './backend.js'
import { host, isLoaded, setLoader } from './host.js'

export * from './index.js'

let loading: Promise<void> | undefined

/** Loads the engine: from its package, or from a module, bytes, a response or an address. */
export function init(source?: WasmSource | Promise<WasmSource>): Promise<void> {
  if (isLoaded()) return Promise.resolve()
  loading ??= load(source).catch((error) => {
    // A later call may succeed.
    loading = undefined
    throw error
  })
  return loading
}

async function load(source: WasmSource | Promise<WasmSource> | undefined): Promise<void> {
  const from = source ?? ((await import('@agent99/wasm')) as { default: URL }).default
  const module = await compileWasm(from)
  setLoader(() => wasmBackend(module))
  host()
}
