// Every code that the package throws is explained (core/src/bindings.rs).

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { explain } from '../dist/node.mjs'

test('every code of the package has an explanation', () => {
  const folder = new URL('../src/', import.meta.url)
  const files = readdirSync(folder).filter((name) => name.endsWith('.ts'))
  const texts = files.map((name) => readFileSync(new URL(name, folder), 'utf8'))
  const codes = new Set(texts.join('\n').match(/'(?:binding|boundary)\.[a-z_]+'/g))
  assert.ok(codes.size > 10)
  for (const quoted of codes) {
    const code = quoted.slice(1, -1)
    assert.equal(explain(code)?.code, code, code)
  }
})
