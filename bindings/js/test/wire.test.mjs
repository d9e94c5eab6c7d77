import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Wire } from '../dist/esm/wire.js'

/** A backend that answers with its first argument. */
function echo(words = 64) {
  const backend = {
    words: new Uint32Array(words),
    grows: 0,
    kept: undefined,
    grow(count) {
      this.grows++
      this.words = new Uint32Array(count)
    },
    call(op, n, text) {
      if (op === 255) {
        this.words[0] = this.kept.words.length
        this.words.set(this.kept.words, 1)
        return this.kept.text
      }
      const message = this.words.slice(0, n)
      if (n + 1 > this.words.length) {
        this.kept = { words: message, text }
        this.words[0] = 0xffffffff
        this.words[1] = n + 1
        return ''
      }
      this.words[0] = n
      this.words.set(message, 1)
      return text
    },
    setPricer() {},
  }
  return backend
}

const through = (value, limits, words) => new Wire(echo(words)).begin().value(value, 'args', limits).send(1)
const refused = (value, limits) => {
  try {
    through(value, limits)
  } catch (error) {
    assert.equal(error.name, 'EngineError')
    return error
  }
  assert.fail('the value was accepted')
}

test('values cross unchanged', () => {
  const values = [
    undefined, null, true, false, 0, -0, 1, -1, 2 ** 27 - 1, 2 ** 27, -(2 ** 27), -(2 ** 27) - 1, 0.5, NaN,
    Infinity, -Infinity, 2 ** 53, 5e-324, '', 'text', '\ud800 alone', 'a\udfff', '\u{1f600}', '\0', [], {},
    [undefined, null], { a: undefined }, [[[]]], { a: { b: [1, { c: 'd' }] } }, { '': 1 }, { 2: 'b', 1: 'a', z: 0 },
  ]
  for (const value of values) {
    const got = through(value)
    assert.deepStrictEqual(got, value)
    assert.ok(Object.is(got, value) || typeof value === 'object', String(value))
  }
  assert.deepEqual(Object.keys(through({ b: 1, a: 2, 1: 3 })), ['1', 'b', 'a'])
})

test('names of the same objects are sent once', () => {
  const rows = Array.from({ length: 500 }, (_, n) => ({ id: n, name: `n${n}`, deep: { id: n, list: [{ id: 1 }, { id: 2 }] } }))
  assert.deepStrictEqual(through(rows), rows)
  const mixed = [{ a: 1, b: { a: 1 } }, { a: 1 }, { a: 1, b: { a: 1 } }, { b: 2, a: 1 }, { a: [{ a: 1 }, { a: 2 }] }]
  assert.deepStrictEqual(through(mixed), mixed)
  const backend = echo(4096)
  let sent = ''
  const call = backend.call
  backend.call = function (op, n, text) {
    sent = text
    return call.call(this, op, n, text)
  }
  new Wire(backend).begin().value([{ longName: 1 }, { longName: 2 }], 'args').send(1)
  assert.equal(sent, 'longName')
})

test('random values cross unchanged, whatever the size of the buffer', () => {
  let seed = 7
  const random = (n) => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0
    return (seed >>> 8) % n
  }
  const make = (depth) => {
    switch (random(depth > 4 ? 6 : 9)) {
      case 0: return random(2 ** 24) - 2 ** 23
      case 1: return (random(2 ** 24) - 2 ** 23) / 7
      case 2: return 'x'.repeat(random(40)) + String.fromCharCode(random(65536))
      case 3: return random(2) === 0
      case 4: return null
      case 5: return undefined
      case 6: return Array.from({ length: random(6) }, () => make(depth + 1))
      default: {
        const object = {}
        for (let n = random(6); n > 0; n--) object['k' + random(5)] = make(depth + 1)
        return object
      }
    }
  }
  for (let round = 0; round < 500; round++) {
    const value = make(0)
    assert.deepStrictEqual(through(value, undefined, 8), value)
  }
})

test('dates, sets, typed arrays and boxes have their forms', () => {
  assert.equal(through(new Date(0)), '1970-01-01T00:00:00.000Z')
  assert.equal(through(new Date(NaN)), null)
  assert.deepEqual(through(new Set([1, [2]])), [1, [2]])
  assert.deepEqual(through(new Uint8Array([1, 2])), [1, 2])
  assert.deepEqual(through(new Float32Array([0.5, NaN])), [0.5, NaN])
  assert.deepEqual(through(Buffer.from('ab')), [97, 98])
  assert.deepEqual(through([new String('a'), new Number(1), new Boolean(false)]), ['a', 1, false])
  assert.deepEqual(through(new TypeError('bad')), { name: 'TypeError', message: 'bad' })
  assert.deepEqual(through(Object.create(null, { a: { value: 1, enumerable: true } })), { a: 1 })
  class Point { x = 1; #y = 2; get z() { return 3 } static w = 4 }
  assert.deepEqual(through(new Point()), { x: 1 })
  // eslint-disable-next-line no-sparse-arrays
  assert.deepStrictEqual(through([1, , 3]), [1, undefined, 3])
})

test('what is no data is refused with its path', () => {
  const cases = [
    [{ a: [1, () => 1] }, 'args.a[1]', 'function'],
    [{ 'a b': Symbol('s') }, 'args["a b"]', 'symbol'],
    [[10n], 'args[0]', 'bigint'],
    [{ m: new Map([[1, 2]]) }, 'args.m', 'Map'],
    [{ p: Promise.resolve() }, 'args.p', 'Promise'],
    [{ r: /a/ }, 'args.r', 'RegExp'],
    [{ w: new WeakMap() }, 'args.w', 'WeakMap'],
    [{ b: new ArrayBuffer(1) }, 'args.b', 'ArrayBuffer'],
    [{ v: new DataView(new ArrayBuffer(1)) }, 'args.v', 'DataView'],
    [{ b: new BigInt64Array(1) }, 'args.b[0]', 'bigint'],
    [{ u: new URL('file:///') }, 'args.u', 'URL'],
    [{ before: { deep: [1, 2, { x: 1 }] }, f() {} }, 'args.f', 'function'],
  ]
  for (const [value, path, kind] of cases) {
    const error = refused(value)
    assert.equal(error.code, 'boundary.rejected')
    assert.equal(error.path, path)
    assert.match(error.message, new RegExp(`is a ${kind}, which`))
    assert.ok(error.help)
  }
})

test('cycles are refused, shared structures are copied', () => {
  const cycle = { list: [{}] }
  cycle.list[0].back = cycle
  assert.equal(refused(cycle).message, 'args.list[0].back contains itself')
  let deep = {}
  const end = deep
  for (let n = 0; n < 100; n++) deep = { deep }
  end.top = deep
  assert.match(refused(deep).message, /contains itself/)
  const set = new Set()
  set.add(set)
  assert.match(refused(set).message, /args\[0\] contains itself/)
  const shared = { a: 1 }
  const got = through([shared, { shared }, shared])
  assert.deepEqual(got, [{ a: 1 }, { shared: { a: 1 } }, { a: 1 }])
  assert.notEqual(got[0], got[2])
  // The same objects at other depths, in one message and in the next.
  const wire = new Wire(echo(1 << 16))
  let chain = []
  for (let n = 0; n < 60; n++) {
    chain = [chain]
    assert.deepEqual(wire.begin().value([chain, [chain, [[chain]]]], 'args').send(1)[1][0], chain)
  }
  let many = shared
  for (let n = 0; n < 100; n++) many = { many, also: 1 }
  assert.deepEqual(through([many, many])[1], many)
})

test('limits hold while a value is read', () => {
  const nest = (levels) => {
    let value = []
    for (let n = 1; n < levels; n++) value = [value]
    return value
  }
  assert.deepEqual(through(nest(512)), nest(512))
  assert.match(refused(nest(513)).message, /more than 512 levels/)
  const deep = through(nest(2000), { bytes: 1e6, depth: 2000 })
  let levels = 0
  for (let at = deep; at !== undefined; at = at[0]) levels++
  assert.equal(levels, 2000)
  assert.match(refused(nest(1e6), { bytes: 1e9, depth: 1e9 }).message, /nested too deeply/)
  let reads = 0
  const endless = new Proxy([], {
    get: (_, name) => (name === 'length' ? 2 ** 32 - 1 : reads++),
  })
  assert.match(refused(endless).message, /larger than its limit/)
  assert.equal(reads, 0)
  const grows = new Proxy({}, { ownKeys: () => ['a'], getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }), get: () => grows })
  assert.match(refused(grows).message, /contains itself/)
  const tree = () => new Proxy({}, { ownKeys: () => ['a', 'b'], getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }), get: () => (reads++, tree()) })
  reads = 0
  assert.match(refused(tree()).message, /more than 512 levels/)
  assert.ok(reads < 1000)
  assert.match(refused('x'.repeat((8 << 20) + 1)).message, /larger than its limit/)
  assert.equal(through('x'.repeat(8 << 20)).length, 8 << 20)
})

test('hostile objects give errors with a path', () => {
  const thrower = { a: { get b() { throw new Error('no') } } }
  assert.equal(refused(thrower).message, 'reading args.a.b failed: no')
  const odd = { get a() { throw new Proxy({}, { get() { throw 1 } }) } }
  assert.equal(refused(odd).message, 'reading args.a failed: Unknown error')
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  assert.match(refused({ proxy }).message, /^reading args\.proxy failed/)
  const traps = new Proxy({}, { getPrototypeOf() { throw new Error('trap') } })
  assert.match(refused([traps]).message, /^reading args\[0\] failed: trap/)
  const tag = { get [Symbol.toStringTag]() { return 'Set' } }
  assert.deepEqual(through(tag), {})
  class Liar { get [Symbol.toStringTag]() { return 'Set' } }
  assert.match(refused(new Liar()).message, /^reading args failed/)
  const detached = new Uint8Array(8)
  structuredClone(detached.buffer, { transfer: [detached.buffer] })
  assert.match(refused({ detached }).message, /^reading args\.detached failed/)
  assert.deepEqual(through(new Uint8Array(0)), [])
})

test('toJSON, setters and inherited members are not asked', () => {
  assert.deepEqual(through({ a: 1, toJSON: undefined }), { a: 1, toJSON: undefined })
  class Base { toJSON() { return 'json' } }
  assert.deepEqual(through(Object.assign(new Base(), { a: 1 })), { a: 1 })
  assert.deepEqual(through(Object.create({ inherited: 1 }, { own: { value: 2, enumerable: true } })), { own: 2 })
})

test('objects that change while they are read are read once', () => {
  const list = [1, 2, 3]
  Object.defineProperty(list, 0, { enumerable: true, get() { list.length = 1; return 0 } })
  assert.deepStrictEqual(through(list), [0, undefined, undefined])
  const object = { get a() { delete object.b; object.c = 3; return 1 }, b: 2 }
  assert.deepStrictEqual(through(object), { a: 1, b: undefined })
  let count = 0
  const counted = { get a() { return ++count } }
  assert.deepEqual(through([counted]), [{ a: 1 }])
})

test('no answer sets a prototype', () => {
  const value = JSON.parse('{"__proto__": {"polluted": 1}, "a": {"__proto__": null}, "constructor": 1}')
  const got = through(value)
  assert.equal(Object.getPrototypeOf(got), Object.prototype)
  assert.equal(got.polluted, undefined)
  assert.ok(Object.hasOwn(got, '__proto__'))
  assert.deepStrictEqual(got, value)
  let deep = value
  for (let n = 0; n < 300; n++) deep = { deep }
  assert.deepStrictEqual(through(deep), deep)
})

test('a getter cannot call the engine, which works afterwards', () => {
  const wire = new Wire(echo())
  const hostile = { get a() { return wire.begin().value(1, 'inner').send(1) } }
  assert.throws(() => wire.begin().value(hostile, 'args'), /reading args\.a failed: the engine was called/)
  assert.equal(wire.begin().value(2, 'args').send(1), 2)
})

test('an error of the engine is thrown', () => {
  const backend = echo()
  backend.call = function () {
    const text = 'codeprogram.badmessagewrong'
    this.words.set([6, 11, (2 << 4) | 8, (4 << 4) | 6, (11 << 4) | 6, (7 << 4) | 6, (5 << 4) | 6])
    return text
  }
  assert.throws(() => new Wire(backend).begin().send(1), { code: 'program.bad', message: 'wrong', name: 'EngineError' })
})

test('bytes cross', () => {
  for (const length of [0, 1, 3, 4, 5, 1000]) {
    const bytes = Uint8Array.from({ length }, (_, n) => n)
    assert.deepEqual(new Wire(echo(8)).begin().bytes(bytes).send(1), bytes)
  }
})
