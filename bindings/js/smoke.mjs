// Runs the code of README.md in a project that has the packages: `node smoke.mjs PROJECT`. A
// comment after `console.log` is the line that it prints.

import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const [project] = process.argv.slice(2)
const readme = readFileSync(new URL('README.md', import.meta.url), 'utf8')
const blocks = [...readme.matchAll(/^```(js|cjs)\n([\s\S]*?)^```$/gm)]
if (blocks.length < 5) throw new Error('README.md has lost its code')
let failures = 0
for (const backend of ['native', 'wasm']) {
  for (const [at, [, kind, code]] of blocks.entries()) {
    const file = join(project, `readme-${at}.${kind === 'js' ? 'mjs' : 'cjs'}`)
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
      console.error(`README block ${at} (${backend}):\n${printed}wanted:\n${wanted.join('\n')}`)
    }
  }
}
console.log(`${blocks.length} blocks of README.md on 2 engines, ${failures} failures`)
process.exitCode = failures === 0 ? 0 : 1
