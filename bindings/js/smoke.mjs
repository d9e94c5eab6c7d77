// Runs the code of the package's pages in a project that has the packages: `node smoke.mjs PROJECT`. A
// comment after `console.log` is the line that it prints.

import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'

const project = resolve(process.argv[2])
const blocks = []
for (const page of ['README.md', 'migration.md', 'peers.md']) {
  const text = readFileSync(new URL(page, import.meta.url), 'utf8')
  const found = [...text.matchAll(/^```(js|cjs)\n([\s\S]*?)^```$/gm)]
  if (found.length === 0) throw new Error(`${page} has lost its code`)
  blocks.push(...found)
}
let failures = 0
for (const backend of ['native', 'wasm']) {
  for (const [at, [, kind, code]] of blocks.entries()) {
    const file = join(project, `page-${at}.${kind === 'js' ? 'mjs' : 'cjs'}`)
    writeFileSync(file, code)
    const wanted = [...code.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map(([, line]) => line)
    const printed = execFileSync(process.execPath, [file], {
      cwd: project,
      encoding: 'utf8',
      env: { ...process.env, AGENT99_BACKEND: backend },
    })
    const lines = printed.trimEnd().split('\n')
    if (wanted.length === 0 || lines.join('\n') !== wanted.join('\n')) {
      failures++
      console.error(`block ${at} (${backend}):\n${printed}wanted:\n${wanted.join('\n')}`)
    }
  }
}
// The types of the installed package, for each way in which TypeScript finds them.
const require = createRequire(import.meta.url)
const tsc = join(dirname(require.resolve('typescript/package.json')), 'bin/tsc')
const typed = `import { AgentVM, defineAtom, s } from 'agent99'
import { A99 } from 'agent99/compat/agent-99'
const vm = new AgentVM({ one: defineAtom('one', s.object({ n: s.number }), s.number, ({ n }) => n + 1) })
export const program = vm.Agent.one({ n: 1 }).as('r').toJSON()
// @ts-expect-error: no such atom
vm.Agent.two({})
export const other = A99.take().uuid().toJSON()
`
for (const [file, module, resolution] of [['a.mts', 'nodenext', 'nodenext'], ['b.cts', 'nodenext', 'nodenext'], ['c.ts', 'esnext', 'bundler']]) {
  writeFileSync(join(project, file), typed)
  const options = ['--strict', '--noEmit', '--target', 'es2022', '--module', module, '--moduleResolution', resolution]
  execFileSync(process.execPath, [tsc, ...options, file], { cwd: project, stdio: 'inherit' })
}
console.log(`${blocks.length} blocks of the pages on 2 engines, ${failures} failures`)
process.exitCode = failures === 0 ? 0 : 1
