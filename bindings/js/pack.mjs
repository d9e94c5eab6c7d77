// Lays the npm packages out and packs them: `node pack.mjs OUT VERSION NATIVE WASM`. The engine
// was built before, and so was `dist`.

import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const [out, version, native, wasm] = process.argv.slice(2)
const here = fileURLToPath(new URL('.', import.meta.url))
const source = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'))
const common = { version, license: source.license, engines: source.engines }

/** Packages of platforms, and what npm asks before it installs one. */
const PLATFORMS = {
  'linux-x64-gnu': { os: ['linux'], cpu: ['x64'], libc: ['glibc'] },
  'linux-x64-musl': { os: ['linux'], cpu: ['x64'], libc: ['musl'] },
  'linux-arm64-gnu': { os: ['linux'], cpu: ['arm64'], libc: ['glibc'] },
  'linux-arm64-musl': { os: ['linux'], cpu: ['arm64'], libc: ['musl'] },
  'darwin-arm64': { os: ['darwin'], cpu: ['arm64'] },
  'darwin-x64': { os: ['darwin'], cpu: ['x64'] },
  'win32-x64-msvc': { os: ['win32'], cpu: ['x64'] },
}

const libc = process.report?.getReport().header.glibcVersionRuntime ? 'gnu' : 'musl'
const built = `${process.platform}-${process.arch}${process.platform === 'linux' ? `-${libc}` : ''}`

function write(name, manifest, files) {
  const folder = join(out, name)
  mkdirSync(folder, { recursive: true })
  for (const [to, from] of Object.entries(files)) {
    if (from instanceof Buffer) writeFileSync(join(folder, to), from)
    else cpSync(from, join(folder, to), { recursive: true })
  }
  for (const licence of ['LICENSE-APACHE', 'LICENSE-MIT']) {
    copyFileSync(join(here, '../..', licence), join(folder, licence))
  }
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ name, ...common, ...manifest }, null, 2)}\n`)
  const [packed] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--pack-destination', out, folder], { encoding: 'utf8', cwd: folder })
  )
  console.log(`${packed.filename}: ${packed.size} bytes, ${packed.unpackedSize} unpacked`)
}

rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
const text = (content) => Buffer.from(content)
write(`@agent99/${built}`, { description: `The engine of agent99 for ${built}`, main: 'agent99.node', ...PLATFORMS[built] }, {
  'agent99.node': native,
})
write(
  '@agent99/wasm',
  {
    description: 'The engine of agent99 as WebAssembly',
    type: 'module',
    types: './index.d.ts',
    exports: { '.': { types: './index.d.ts', default: './index.js' }, './agent99.wasm': './agent99.wasm' },
  },
  {
    'agent99.wasm': wasm,
    'index.js': text("export default new URL('./agent99.wasm', import.meta.url)\n"),
    'index.d.ts': text('/** The address of the engine. */\ndeclare const address: URL\nexport default address\n'),
  }
)
const { scripts: _, devDependencies: __, private: ___, ...manifest } = source
write(
  'agent99',
  {
    ...manifest,
    version,
    dependencies: { '@agent99/wasm': version },
    optionalDependencies: Object.fromEntries(Object.keys(PLATFORMS).map((name) => [`@agent99/${name}`, version])),
  },
  { dist: join(here, 'dist'), 'README.md': join(here, 'README.md') }
)
