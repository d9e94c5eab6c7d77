// Gives the results of the programs of standard input in JavaScript: each line is the
// JSON text of a source whose default export is the agent, or of [source, args].
import { createInterface } from 'node:readline'

// The atoms that random programs call, with the answers of `tests/tests/it/source_random.rs`.
const pages = { 'https://a.example/': { n: 3 }, 'https://b.example/': { n: 40 } }
let store
globalThis.storeSet = async ({ key, value }) => { store.set(key, value) }
globalThis.storeGet = async ({ key }) => store.get(key)
// What the host lets programs read of its context, as the tests have it.
const context = { user: { id: 7, name: 'Ada', scores: [3, 1, 2] }, limits: { a: 5, b: 6 } }
const at = (value, path) => path.split('.').reduce((inner, key) => inner?.[key], value)
globalThis.context = (path) => structuredClone(at(context, path))
globalThis.template = ({ tmpl, vars }) =>
  tmpl.replace(/\{\{([\w.]+)\}\}/g, (_, path) => at(vars, path) ?? '')
globalThis.httpFetch = async ({ url }) => structuredClone(pages[url])

for await (const line of createInterface({ input: process.stdin })) {
  const [source, args] = [JSON.parse(line), {}].flat()
  let answer
  store = new Map()
  try {
    const module = await import('data:text/javascript,' + encodeURIComponent(source))
    answer = { result: await module.default(args) }
  } catch (error) {
    answer = { error: error.message }
  }
  console.log(JSON.stringify(answer))
}
