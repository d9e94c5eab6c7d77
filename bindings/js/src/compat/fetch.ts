/** The fetch of older generations, which the context of a run grants by names of domains. */

import type { RunOptions } from '../options.js'

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

/** The options with that fetch, if the context lists domains and no other fetch is granted. */
export function withFetch(options: RunOptions): RunOptions {
  const { context, capabilities = {} } = options
  const domains = context?.allowedFetchDomains
  if (!Array.isArray(domains) || capabilities.fetch) return options
  const fetch = fetchOf(domains, context!.requestDepth ?? 0)
  return { ...options, capabilities: { ...capabilities, fetch } }
}
