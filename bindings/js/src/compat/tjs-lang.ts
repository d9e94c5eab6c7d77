/** `tjs-lang`: `==` does not convert, texts in literals are names, and a run may take twice as
 * long as its slowest atom. */

import { coreAtoms, type AtomMap } from '../atoms.js'
import type { RunOptions } from '../options.js'
import type { RunResult } from '../run.js'
import { treeOf, type Runnable } from '../vm.js'
import { AgentVM as Older } from './tosijs-agent.js'

export * from './tosijs-agent.js'
export const { callLocal, storeQueryWhere } = coreAtoms

/** Whether a host is on the list: by its name, or below `*.name`. */
function isAllowed(host: string, domains: unknown[]): boolean {
  return domains.some((domain) => {
    const name = String(domain).toLowerCase()
    if (!name.startsWith('*.')) return host === name
    return host === name.slice(2) || host.endsWith(name.slice(1))
  })
}

/** Fetches from the domains that the context lists. Redirects could leave them, so they fail. */
function fetchOf(domains: unknown[], depth: number) {
  return async (url: string, init: any): Promise<Response> => {
    if (!URL.canParse(url) || !isAllowed(new URL(url).hostname.toLowerCase(), domains)) {
      throw new Error(`Fetch blocked: domain not in allowlist. Allowed: ${domains.join(', ')}`)
    }
    const { method, body, signal } = init
    const headers = { ...init.headers, 'X-Agent-Depth': String(depth + 1) }
    const text = body === undefined || body === null || typeof body === 'string' ? body : JSON.stringify(body)
    return globalThis.fetch(url, { method, headers, body: text, signal, redirect: 'error' })
  }
}

/** Limit of the language's slowest atoms, those that call models, in milliseconds. */
const SLOWEST = 120_000

export class AgentVM<M extends AtomMap = {}> extends Older<M> {
  private slowest: number | undefined

  /** Time of a run in milliseconds, if none is given. */
  get defaultRunTimeout(): number {
    if (this.slowest === undefined) {
      const limits = [...this.functions.values()].map((atom) => atom.timeoutMs ?? 1000)
      this.slowest = 2 * Math.max(SLOWEST, ...limits)
    }
    return this.slowest
  }

  override run<T = any>(
    program: Runnable,
    args?: Record<string, any>,
    options?: RunOptions
  ): Promise<RunResult<T>> {
    const tree = treeOf(program) as any
    const marked = typeof tree === 'object' && tree?.op === 'seq' && !('a99' in tree)
    const timeoutMs = options?.timeoutMs ?? this.defaultRunTimeout
    const context = options?.context
    const capabilities = options?.capabilities ?? {}
    const domains = context?.allowedFetchDomains
    return super.run(marked ? { a99: 3, ...tree } : program, args, {
      equality: 'exact',
      costModel: 'metered',
      ...options,
      ...(Array.isArray(domains) && !capabilities.fetch
        ? { capabilities: { ...capabilities, fetch: fetchOf(domains, context!.requestDepth ?? 0) } }
        : {}),
      timeoutMs,
    })
  }
}
