/** Capabilities that are ready to use: a store in memory, and a model server that speaks the
 * protocol of OpenAI. Nothing is reached before the first call. */

import { EngineError } from './errors.js'

export interface BatteryOptions {
  /** The server; `AGENT99_LLM_URL` or LM Studio's by default. */
  baseUrl?: string
  /** The model that chats; `AGENT99_LLM_MODEL`, or the first of the server's list. */
  model?: string
  /** The model that embeds; `AGENT99_EMBEDDING_MODEL`, or the first with `embed` in its name. */
  embeddingModel?: string
  apiKey?: string
}

const setting = (name: string): string | undefined =>
  typeof process === 'undefined' ? undefined : process.env?.[name]

/** A store in memory with vector collections. Each call makes another store. */
export function memoryStore() {
  const values = new Map<string, any>()
  const collections = new Map<string, any[]>()
  const collection = (name: string) => {
    const found = collections.get(name)
    if (found === undefined) throw new Error(`Collection '${name}' not found. Create it first.`)
    return found
  }
  return {
    async get(key: string) {
      return values.get(key)
    },
    async set(key: string, value: any) {
      values.set(key, value)
    },
    async createCollection(name: string, _schema?: any, _dimension?: number) {
      collections.set(name, [])
    },
    async vectorAdd(name: string, document: any) {
      if (!Array.isArray(document?.embedding)) {
        throw new Error("Document must have an 'embedding' property that is an array of numbers.")
      }
      collection(name).push(document)
    },
    async vectorSearch(name: string, vector: number[], k = 5) {
      const scored = collection(name).map((doc) => ({ doc, score: cosine(vector, doc.embedding) }))
      return scored
        .sort((a, b) => b.score - a.score)
        .slice(0, k)
        .map(({ doc }) => doc)
    },
  }
}

function cosine(a: number[], b: number[]): number {
  if (a.length !== b.length) throw new Error('Vectors must have the same length for cosine similarity.')
  let product = 0
  let left = 0
  let right = 0
  for (let at = 0; at < a.length; at++) {
    product += a[at]! * b[at]!
    left += a[at]! ** 2
    right += b[at]! ** 2
  }
  return left === 0 || right === 0 ? 0 : product / Math.sqrt(left * right)
}

/** A server of models as capabilities `llm`, `llmBattery` and `vector`. */
export function modelServer(options: BatteryOptions = {}) {
  const base = (options.baseUrl ?? setting('AGENT99_LLM_URL') ?? 'http://localhost:1234/v1').replace(/\/$/, '')
  const key = options.apiKey ?? setting('AGENT99_LLM_KEY')
  const post = async (path: string, body?: unknown): Promise<any> => {
    const headers: Record<string, string> = { 'content-type': 'application/json' }
    if (key) headers.authorization = `Bearer ${key}`
    const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
    let response: Response
    try {
      response = await fetch(base + path, init)
    } catch (cause) {
      throw new EngineError({
        code: 'ai.unreachable',
        message: `no model server at ${base}`,
        help: 'start LM Studio or another server of this protocol, or set AGENT99_LLM_URL',
        cause,
      })
    }
    if (!response.ok) throw new Error(`LLM Error: ${response.status} ${response.statusText}`)
    return response.json()
  }
  let listed: Promise<string[]> | undefined
  const pick = async (named: string | undefined, fits: (id: string) => boolean, what: string) => {
    if (named) return named
    listed ??= post('/models').then((list) => list.data.map((model: any) => String(model.id)))
    // A failed list is asked for again.
    const ids = await listed.catch((error) => {
      listed = undefined
      throw error
    })
    const id = ids.find(fits)
    if (id === undefined) throw new Error(`the server at ${base} has no ${what} model`)
    return id
  }
  const embeds = (id: string) => /embed/i.test(id)
  const chat = async (messages: unknown[], tools?: any[], format?: any) => {
    const model = await pick(options.model ?? setting('AGENT99_LLM_MODEL'), (id) => !embeds(id), 'chat')
    const request: Record<string, unknown> = { model, messages }
    if (tools && tools.length > 0) request.tools = tools
    if (format) request.response_format = format
    const answer = await post('/chat/completions', request)
    return answer.choices?.[0]?.message ?? { content: '' }
  }
  const embed = async (input: string): Promise<number[]> => {
    const named = options.embeddingModel ?? setting('AGENT99_EMBEDDING_MODEL')
    const answer = await post('/embeddings', { model: await pick(named, embeds, 'embedding'), input })
    return answer.data?.[0]?.embedding ?? []
  }
  return {
    llm: {
      predict: async (prompt: string, settings?: any) =>
        (await chat([{ role: 'user', content: prompt }], settings?.tools, settings?.responseFormat)).content,
      embed,
    },
    llmBattery: {
      predict: (system: string, user: any, tools?: any[], format?: any) =>
        chat([{ role: 'system', content: system }, ...messagesOf(user)], tools, format),
    },
    vector: { embed },
  }
}

function messagesOf(user: any): unknown[] {
  if (Array.isArray(user)) return user
  if (typeof user === 'string') return [{ role: 'user', content: user }]
  const images = (user?.images ?? []).map((url: string) => ({ type: 'image_url', image_url: { url } }))
  return [{ role: 'user', content: [{ type: 'text', text: user?.text ?? '' }, ...images] }]
}

/** Capabilities for development: a store of this process and the model server. */
export function getBatteries(options?: BatteryOptions) {
  return { store: memoryStore(), ...modelServer(options) }
}

export const getStandardCapabilities = getBatteries

export const batteries = getBatteries()
