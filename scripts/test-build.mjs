// Compiles sources and tests to .test-build/, so that the hundreds of processes of a test run need no loader: tsx would take
// more of the processors than many of the tests. Only what has changed is written, since another run may be using the rest.
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'

export const BUILD = resolve('.test-build')
const HERE = 'import.meta.url'

/** What a source is compiled to. */
export const builtFrom = (source) => join(BUILD, relative('.', source).replace(/\.ts$/, '.js'))
/** And back. */
export const sourceOf = (path) =>
  path.startsWith('.test-build/') ? path.slice('.test-build/'.length).replace(/\.js$/, '.ts') : path

/** Whether all of it could be compiled; types are not checked. */
export function build() {
  const tsc = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.test.json'], {
    stdio: 'inherit',
  })
  if (tsc.status !== 0) return false
  for (const entry of readdirSync(BUILD, { recursive: true }))
    if (entry.endsWith('.js')) place(join(BUILD, entry), entry)
  return true
}

/** Files are found beside the source: a compiled module says that it is where its source is. */
function place(path, entry) {
  const code = readFileSync(path, 'utf8')
  if (!code.includes(HERE)) return
  const source = relative(dirname(path), resolve(entry.replace(/\.js$/, '.ts'))).replaceAll(sep, '/')
  writeFileSync(`${path}.new`, code.replaceAll(HERE, `new URL('${source}', import.meta['url']).href`))
  renameSync(`${path}.new`, path)
}
