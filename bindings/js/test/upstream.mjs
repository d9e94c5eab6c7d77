// Runs the own tests of an older package against this one:
// `node test/upstream.mjs agent-99|tosijs-agent|tjs-lang CHECKOUT [FILE...]`. CHECKOUT is a copy of
// its sources, whose modules are replaced by the entry of that name; its tests stay as they are.
// `bun` and `tosijs-schema` (and `acorn`, `acorn-walk`) are found in node_modules above CHECKOUT.

import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const [entry, folder, ...files] = process.argv.slice(2)
const MODULES = {
  'agent-99': ['index', 'vm', 'runtime', 'builder', 'atoms/index', 'atoms/batteries', 'batteries/index'],
  'tosijs-agent': ['index', 'vm', 'runtime', 'builder', 'atoms/index', 'atoms/batteries', 'transpiler/index', 'vm/index', 'vm/vm', 'vm/runtime', 'vm/atoms/index', 'vm/atoms/batteries'],
}
MODULES['tjs-lang'] = MODULES['tosijs-agent']
if (MODULES[entry] === undefined || !existsSync(join(folder ?? '', 'src'))) {
  console.error('expected agent-99, tosijs-agent or tjs-lang, and a folder with src')
  process.exit(2)
}
const checkout = resolve(folder)
for (const name of MODULES[entry]) {
  const file = join(checkout, 'src', `${name}.ts`)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `export * from 'agent99/compat/${entry}'\n`)
}
mkdirSync(join(checkout, 'node_modules'), { recursive: true })
const link = join(checkout, 'node_modules/agent99')
rmSync(link, { force: true })
symlinkSync(fileURLToPath(new URL('..', import.meta.url)), link)
const tests = files.length > 0 ? files : ['src/use-cases', 'src/vm', 'src/runtime.test.ts', 'src/builder.test.ts', 'src/integration.test.ts']
const done = spawnSync('npx', ['--no-install', 'bun', 'test', ...tests.filter((test) => existsSync(join(checkout, test)))], { cwd: checkout, encoding: 'utf8', maxBuffer: 1 << 28 })
const text = done.stdout + done.stderr
// bun repeats the failures at the end.
const failed = [...new Set([...text.matchAll(/^\(fail\) (.*?)(?: \[[\d.]+m?s\])?$/gm)].map(([, name]) => name))]
for (const name of failed.sort()) console.log(name)
const missing = [...text.matchAll(/Export named '(.*?)' not found/g)].map(([, name]) => name)
console.log(`${[...text.matchAll(/^\(pass\)/gm)].length} passed, ${failed.length} failed, names that are missing: ${missing.join(', ') || 'none'}`)
