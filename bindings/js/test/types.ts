// Types of the package: compiled with --strict, never run.

import { A99, Agent, AgentError, AgentVM, ajs, batteries, coreAtoms, defineAtom, init, isAgentError, s, transpile, type Infer, type RunResult } from 'agent99'
import * as v0 from 'agent99/compat/agent-99'
import * as v2 from 'agent99/compat/tosijs-agent'
import * as v3 from 'agent99/compat/tjs-lang'
import { z } from 'zod'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const same = <T extends true>(): T => true as T

const user = s.object({ name: s.string.min(1), age: s.integer.optional, tags: s.array(s.string), kind: s.enum(['a', 'b']), pair: s.tuple([s.number, s.boolean]), any: s.record(s.number) })
same<Equal<Infer<typeof user>, { name: string; age?: number | undefined; tags: string[]; kind: 'a' | 'b'; pair: [number, boolean]; any: Record<string, number> }>>()
s.email.describe('mail').default('a@b')
// @ts-expect-error: a number has no pattern
s.number.pattern('a')

const greet = defineAtom('greet', s.object({ name: s.string, times: s.number.optional }), s.string, ({ name, times }, ctx) => {
  same<Equal<typeof name, string>>()
  same<Equal<typeof times, number | undefined>>()
  ctx.fuel.current -= 1
  ctx.warnings.push('w')
  ctx.signal.throwIfAborted()
  // @ts-expect-error: read-only
  ctx.args = {}
  return name.repeat(times ?? 1)
}, { cost: (input, ctx) => (ctx.context?.vip ? 0 : input.name.length), timeoutMs: 5, docs: 'Greets', effects: 'pure' })
// @ts-expect-error: the result is a text
defineAtom('bad', s.object({}), s.string, () => 5)
// @ts-expect-error: no such effect
defineAtom('bad', undefined, undefined, () => 5, { effects: 'none' })

const zod = defineAtom('zod', z.object({ id: z.number() }), z.string(), async ({ id }) => {
  same<Equal<typeof id, number>>()
  return `${id}`
})
const written = defineAtom<{ a: number }, number>('written', s.any, undefined, async ({ a }) => a)
const json = defineAtom('json', { type: 'object', properties: { a: {} } }, undefined, async ({ a }: { a: number }) => a)
const old = defineAtom('old', undefined, s.any, async (step: any, ctx) => ctx.capabilities.search(step.q), 'Docs')

const vm = new AgentVM({ greet, zod, written, json, old })
const chain = vm.Agent.varsImport(['a'])
  .greet({ name: 'args.name' })
  .as('g')
  .greet({ name: A99.args('name'), times: 2 })
  .zod({ id: 'g' })
  .written({ a: 1 })
  .json({ a: 1 })
  .old({ anything: true })
  .mathCalc({ expr: 'a + 1', vars: { a: 'a' } })
  .uuid()
  .map('list', 'item', (b) => b.greet({ name: 'item' }).as('result'))
  .if('a > 1', { a: 'a' }, (b) => b.zod({ id: 1 }), (b) => b.varSet({ key: 'x', value: { deep: 1 } }))
  .while('a < 3', {}, (b) => b.varSet({ key: 'a', value: 1 }))
  .try({ try: (b) => b.Error({ args: ['x'] }), catch: (b) => b.varSet({ key: 'm', value: 'error' }) })
  .reduce('list', 'x', 'sum', 0, (b) => b.varSet({ key: 'result', value: 1 }))
  .filter([1, 2], 'x', 'x > 1')
  .memoize((b) => b.varSet({ key: 'result', value: 1 }), 'key')
  .cache((b) => b.varSet({ key: 'result', value: 1 }), 'key', 1000)
  .scope((b) => b.varSet({ key: 'y', value: 1 }))
  .return(s.object({ g: s.string }))
const seq: 'seq' = chain.toJSON().op
// @ts-expect-error: no such atom
vm.Agent.nope({})
// @ts-expect-error: an input is missing
vm.Agent.greet({})
// @ts-expect-error: an input of this name does not exist
vm.Agent.greet({ name: 'a', nmae: 'b' })
// @ts-expect-error: a number is expected, or a reference
vm.Agent.zod({ id: true })
// @ts-expect-error: machines without the atom have no method for it
new AgentVM().Agent.greet({ name: 'a' })
Agent.custom({ greet }).greet({ name: 'a' })
// @ts-expect-error: only the given atoms
Agent.custom({ greet }).mathCalc({ expr: '1' })
Agent.take(s.object({})).template({ tmpl: '', vars: {} }).as('t')

async function use() {
  await init()
  const done: RunResult<{ g: string }> = await vm.run(chain, { name: 'a' }, {
    fuel: 10,
    capabilities: { ...batteries, fetch: async (url) => url, mine: () => 1, store: { get: () => 1, set: async () => {} } },
    trace: true,
    timeoutMs: 5,
    signal: AbortSignal.timeout(5),
    costOverrides: { greet: 1, zod: (input, ctx) => input.id },
    timeoutOverrides: { greet: 0 },
    quotas: { greet: 1 },
    quotaUsed: {},
    context: { user: 'a', onChunk: () => {} },
    readableContext: ['user'],
    membraneMaxBytes: 1,
    maxHeapBytes: 1,
    onEvent: (event) => console.log(event),
  })
  done.result.g.length
  if (isAgentError(done.result)) throw done.result
  const error: AgentError | undefined = done.error
  const { ast } = transpile('function f() {}')
  await vm.run(ast)
  await vm.run(ajs`function f() {}`)
  await vm.run('function f() {}')
  // @ts-expect-error: no such option
  await vm.run(ast, {}, { feul: 1 })
  const program = vm.compile(ast)
  await vm.run(vm.load(program.toBytes()))
  vm.check(ast)[0]?.pointer.length
  const steps = vm.start(program)
  if (steps.event.type === 'call') steps.answer(steps.event.id, 1)
  // @ts-expect-error: other events have no id
  steps.event.id
  steps.snapshot().byteLength
  vm.getTools(['greet'], 'mcp')
  coreAtoms.httpFetch.create({ url: 'x' }).op
  vm.resolve('greet')?.exec({}, {})
  return [error, seq]
}

async function older() {
  const one = new v0.AgentVM({ greet })
  await one.run(one.A99.greet({ name: 'a' }).toJSON(), {}, { fuel: 1 })
  await new v2.AgentVM().run(v2.ajs('function f() {}'))
  const three = new v3.AgentVM()
  three.defaultRunTimeout.toFixed()
  v0.A99.take().eq({ a: 1, b: 2 })
}
void use, older
