// Compiles sources and tests to .test-build/, so that the hundreds of processes of a test run need no loader: tsx would
// take more processor time than many of the tests. Unchanged files are not written, since another run may be using
// them.
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'

export const BUILD = resolve('.test-build')
const HERE = 'import.meta.url'

/** The compiled file of a source. */
export const builtFrom = (source) => join(BUILD, relative('.', source).replace(/\.ts$/, '.js'))
/** The source of a compiled file. */
export const sourceOf = (path) =>
  path.startsWith('.test-build/') ? path.slice('.test-build/'.length).replace(/\.js$/, '.ts') : path

/** Compiles everything without checking types. Returns whether it succeeded. */
export function build() {
  const tsc = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.test.json'], {
    stdio: 'inherit',
  })
  if (tsc.status !== 0) return false
  for (const entry of readdirSync(BUILD, { recursive: true }))
    if (entry.endsWith('.js')) place(join(BUILD, entry), entry)
  return true
}

/**
 * Makes `import.meta.url` of a compiled module the URL of its source, because tests find other files relative to that.
 */
function place(path, entry) {
  const code = readFileSync(path, 'utf8')
  if (!code.includes(HERE)) return
  const source = relative(dirname(path), resolve(entry.replace(/\.js$/, '.ts'))).replaceAll(sep, '/')
  writeFileSync(`${path}.new`, code.replaceAll(HERE, `new URL('${source}', import.meta['url']).href`))
  renameSync(`${path}.new`, path)
}
