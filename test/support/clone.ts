/** A separate checkout to build in: the present sources, with the installed packages of this one. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const SOURCES = [
  ...['handlers', 'jobs', 'lib', 'sql', 'scripts'],
  ...['edge', 'cli', 'console'].map((name) => `wrangler-free-deploy/${name}`),
]
const SETTINGS = ['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json']

/** The folder, removed at the end of the test file. */
export function cloneCheckout(): string {
  const clone = realpathSync(mkdtempSync(join(tmpdir(), 'broker-clone-')))
  after(() => rmSync(clone, { recursive: true, force: true }))
  for (const name of [...SOURCES, ...SETTINGS]) cpSync(join(ROOT, name), join(clone, name), { recursive: true })
  mkdirSync(join(clone, 'node_modules'))
  for (const name of readdirSync(join(ROOT, 'node_modules')))
    symlinkSync(join(ROOT, 'node_modules', name), join(clone, 'node_modules', name))
  return clone
}
