// Builds dist: modules for browsers, CommonJS for Node.js, and the entry of Node's modules.

import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const here = new URL('.', import.meta.url)
const require = createRequire(import.meta.url)
const tsc = join(dirname(require.resolve('typescript/package.json')), 'bin/tsc')

rmSync(new URL('dist', here), { recursive: true, force: true })
for (const project of ['tsconfig.json', 'tsconfig.cjs.json']) {
  execFileSync(process.execPath, [tsc, '-p', project], { cwd: here, stdio: 'inherit' })
}
writeFileSync(new URL('dist/cjs/package.json', here), '{ "type": "commonjs" }\n')
// One copy of the classes and of the engine, whichever way the package is loaded.
writeFileSync(new URL('dist/node.mjs', here), `export * from './cjs/node.js'\n`)
mkdirSync(new URL('dist/compat', here))
for (const name of ['agent-99', 'tosijs-agent', 'tjs-lang']) {
  const file = (ending) => new URL(`dist/compat/${name}.${ending}`, here)
  writeFileSync(file('mjs'), `import '../cjs/node.js'\nexport * from '../cjs/compat/${name}.js'\n`)
  writeFileSync(file('cjs'), `require('../cjs/node.js')\nmodule.exports = require('../cjs/compat/${name}.js')\n`)
}
