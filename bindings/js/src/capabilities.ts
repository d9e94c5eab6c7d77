/** What a host offers to programs: plain objects of functions. */

import { EngineError } from './errors.js'

type Async<T> = T | Promise<T>

export interface Capabilities {
  fetch?: (url: string, init?: any) => Async<any>
  store?: {
    get(key: string): Async<any>
    set(key: string, value: any): Async<any>
    query?(query: any): Async<any[]>
    queryPredicate?(query: any): Async<any[]>
    vectorSearch?(collection: string, vector: number[], k?: number, filter?: any): Async<any[]>
    createCollection?(name: string, schema?: any, dimension?: number): Async<any>
    vectorAdd?(collection: string, document: any): Async<any>
    [method: string]: any
  }
  llm?: {
    predict?(prompt: string, options?: any): Async<any>
    embed?(text: string): Async<number[]>
    [method: string]: any
  }
  llmBattery?: {
    predict(system: string, user: any, tools?: any[], responseFormat?: any): Async<any>
    [method: string]: any
  } | null
  vector?: { embed(text: string): Async<number[]>; [method: string]: any }
  agent?: { run(agentId: string, input: any): Async<any> }
  xml?: { parse(xml: string): Async<any> }
  code?: { transpile(source: string): Async<any> }
  dom?: any
  storage?: any
  shell?: {
    exec(request: any): Async<{ stdout: string; stderr: string; exitCode: number; elapsedMs?: number }>
    readFile?(path: string, limit: number): Async<string>
    writeFile?(path: string, content: string, mode: number): Async<void>
  }
  ai?: { generate(request: any): Async<{ text?: string; toolCalls?: any[]; usage?: any; stopReason?: string }> }
  [name: string]: any
}

type Call = (group: any, args: any[]) => unknown

const element = (dom: any, selector: string) => {
  const found = dom.querySelector(selector)
  if (!found) throw new Error(`DOM: Element not found '${selector}'`)
  return found
}

/** Methods of browsers behind the names that the engine asks for. */
const ADAPTED: Record<string, [needs: string, call: Call]> = {
  'dom.text': ['querySelector', (dom, [selector]) => element(dom, selector).textContent ?? ''],
  'dom.value': ['querySelector', (dom, [selector]) => element(dom, selector).value ?? ''],
  'dom.click': ['querySelector', (dom, [selector]) => void element(dom, selector).click()],
  'dom.input': [
    'querySelector',
    (dom, [selector, value]) => {
      const input = element(dom, selector)
      input.value = value
      for (const name of ['input', 'change']) input.dispatchEvent(new Event(name, { bubbles: true }))
    },
  ],
  'storage.get': ['getItem', (storage, [key]) => storage.getItem(key) ?? undefined],
  'storage.set': ['setItem', (storage, [key, value]) => void storage.setItem(key, value)],
}

const GROUPS: Record<string, string[]> = {
  store: [
    'get',
    'set',
    'query',
    'vectorSearch',
    'queryPredicate',
    'createCollection',
    'vectorAdd',
    'delete',
    'setUntil',
    'list',
    'compareAndSet',
    'vectorUpsert',
    'vectorDelete',
  ],
  llm: ['predict', 'embed'],
  llmBattery: ['predict'],
  vector: ['embed'],
  agent: ['run'],
  xml: ['parse'],
  code: ['transpile'],
  dom: ['text', 'value', 'click', 'input'],
  storage: ['get', 'set'],
  shell: ['exec', 'readFile', 'writeFile'],
  ai: ['generate'],
  agentTurn: [
    'state',
    'setState',
    'settings',
    'setSettings',
    'identity',
    'send',
    'update',
    'fail',
    'publish',
    'setTimer',
    'cancelTimer',
    'roster',
    'callMethod',
    'methodResult',
    'invite',
    'remove',
    'storage',
  ],
}
const NAMES = Object.keys(GROUPS)

interface Offer {
  /** The members when they were looked at: other members are another offer. */
  members: unknown[]
  methods: string[]
}
const offers = new WeakMap<object, Offer>()

/** The names of the methods that a host offers. */
export function offered(capabilities: Capabilities): string[] {
  const known = offers.get(capabilities)
  if (known !== undefined) {
    let same = known.members[NAMES.length] === capabilities.fetch
    for (let at = 0; same && at < NAMES.length; at++) {
      same = known.members[at] === capabilities[NAMES[at]!]
    }
    if (same) return known.methods
  }
  const methods: string[] = []
  const members: unknown[] = []
  for (const name of NAMES) {
    const group = capabilities[name]
    members.push(group)
    if (group === undefined || group === null) continue
    for (const method of GROUPS[name]!) {
      const full = `${name}.${method}`
      const needs = ADAPTED[full]?.[0]
      if (typeof group[method] === 'function' || (needs && typeof group[needs] === 'function')) {
        methods.push(full)
      }
    }
  }
  members.push(capabilities.fetch)
  if (capabilities.fetch !== undefined && capabilities.fetch !== null) methods.push('fetch')
  offers.set(capabilities, { members, methods })
  return methods
}

/** Calls a method of the host. */
export function callMethod(
  capabilities: Capabilities,
  method: string,
  args: any[],
  signal: () => AbortSignal
): unknown {
  if (method === 'fetch') {
    const init = Object.assign({}, args[1], { signal: signal() })
    return capabilities.fetch!(args[0], init)
  }
  const dot = method.indexOf('.')
  const group = capabilities[method.slice(0, dot)]
  const own = group?.[method.slice(dot + 1)]
  if (typeof own === 'function') return own.apply(group, args)
  const adapted = ADAPTED[method]
  if (adapted && group) return adapted[1](group, args)
  throw new EngineError({ code: 'capability.missing', message: `Capability '${method}' missing` })
}

/** Methods whose answer nobody waits for; stores often return themselves. */
const WITHOUT_ANSWER = new Set([
  'store.set',
  'store.setUntil',
  'store.createCollection',
  'store.vectorAdd',
  'store.vectorUpsert',
  'storage.set',
  'dom.click',
  'dom.input',
])

/** Turns what a method returned into its answer; none if the value is the answer. */
export function answerOf(method: string): ((value: unknown) => unknown) | undefined {
  return WITHOUT_ANSWER.has(method) ? withoutInstances : undefined
}

function withoutInstances(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return typeof value === 'function' ? undefined : value
  }
  const proto = Object.getPrototypeOf(value)
  return proto === Object.prototype || proto === null ? value : undefined
}

/** Whether a capability answered with the response of a fetch, whose body is still to be read. */
export function isResponse(value: unknown): value is Response {
  if (typeof value !== 'object' || value === null) return false
  if (typeof Response === 'function' && value instanceof Response) return true
  const { headers, text, status } = value as any
  return typeof text === 'function' && typeof headers?.get === 'function' && typeof status === 'number'
}

/** What a program gets of an object that only resembles a response: its data. */
export function withoutMethods(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null || typeof (answer as any).json !== 'function') return answer
  return Object.fromEntries(Object.entries(answer).filter(([, value]) => typeof value !== 'function'))
}

/** The value that a program gets for a response, by the `responseType` of its request. */
export async function readResponse(
  response: Response,
  type: string | undefined,
  maxBytes: number
): Promise<unknown> {
  const { status, statusText } = response
  if (status >= 400 && !type) throw new Error(`HTTP ${status} ${statusText}`.trim())
  const contentType = response.headers.get('content-type') ?? ''
  const bytes = await bodyOf(response, maxBytes)
  if (type === 'dataUrl') {
    let binary = ''
    for (const byte of bytes) binary += String.fromCharCode(byte)
    return `data:${contentType || 'application/octet-stream'};base64,${btoa(binary)}`
  }
  const text = new TextDecoder().decode(bytes)
  const isJSON = contentType.includes('application/json')
  if (type === 'response') {
    const headers: Record<string, string> = {}
    response.headers.forEach((value, name) => {
      headers[name] = name === 'set-cookie' && headers[name] ? `${headers[name]}\n${value}` : value
    })
    let body: unknown = text
    if (isJSON && text !== '') {
      try {
        body = JSON.parse(text)
      } catch {
        // The program gets the text.
      }
    }
    return { status, statusText, url: response.url, headers, body }
  }
  if (text === '' && (status < 300 || status === 304)) return ''
  return type === 'json' || (isJSON && type !== 'text') ? JSON.parse(text) : text
}

/** The body, as far as it may be large. */
async function bodyOf(response: Response, maxBytes: number): Promise<Uint8Array> {
  const tooLarge = () => new Error(`the response has more than ${maxBytes} bytes`)
  const reader = response.body?.getReader?.()
  if (reader === undefined) {
    const text = await response.text()
    if (text.length > maxBytes) throw tooLarge()
    return new TextEncoder().encode(text)
  }
  const parts: Uint8Array[] = []
  let size = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    size += value.length
    if (size > maxBytes) {
      reader.cancel().catch(() => {})
      throw tooLarge()
    }
    parts.push(value)
  }
  const body = new Uint8Array(size)
  let at = 0
  for (const part of parts) {
    body.set(part, at)
    at += part.length
  }
  return body
}
