// Bundles tests and the programs that they start into .test-build/: hundreds of processes import the app, and Node
// loads a few large modules in two thirds of the time that it takes for hundreds of small ones. Unchanged files are not
// written, since another run may be using them.
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import esbuild from 'esbuild'

export const BUILD = resolve('.test-build')
const CHUNKS = join(BUILD, 'chunks')
/** Longer than a run that still loads chunks of an earlier build. */
const UNUSED_CHUNK_KEPT_MS = 3_600_000
/** Programs that tests start, and the thread that one of them starts. */
const PROGRAMS = [
  'jobs/run.ts',
  'lib/server.ts',
  'lib/supply-chain/worker.ts',
  'sql/migrate.ts',
  'test/faults/compute-folder.ts',
  'test/support/embedded-process.ts',
  'test/support/serve.ts',
  'wrangler-free-deploy/cli/main.ts',
  'wrangler-free-deploy/edge/server.ts',
]
/** Starts a file beside itself: the bundled one. All others find files of the repository, relative to their source. */
const STARTS_BUNDLE = resolve('lib/supply-chain/thread.ts')

/** The bundle of a test or a program. */
export const builtFrom = (source) => join(BUILD, relative('.', source).replace(/\.ts$/, '.js'))
/** The source of a bundle. */
export const sourceOf = (path) =>
  path.startsWith('.test-build/') ? path.slice('.test-build/'.length).replace(/\.js$/, '.ts') : path

/** Helpers with hooks of their own, which belong to the process that imports them. */
export const helpersWithHooks = (folder = join('test', 'support')) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => join(folder, name))
    .filter((path) => /^after\(/m.test(readFileSync(path, 'utf8')))

/** Bundles everything without checking types. Returns whether it succeeded. */
export async function build() {
  const tests = readdirSync('test', { recursive: true })
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => join('test', path))
  try {
    const { outputFiles } = await esbuild.build({
      entryPoints: [...PROGRAMS, ...helpersWithHooks(), ...tests],
      outdir: BUILD,
      outbase: '.',
      chunkNames: 'chunks/[hash]',
      write: false,
      bundle: true,
      splitting: true,
      packages: 'external',
      format: 'esm',
      platform: 'node',
      target: 'node20',
      sourcemap: true,
      plugins: [{ name: 'place', setup: (bundler) => bundler.onLoad({ filter: /\.ts$/ }, place) }],
    })
    for (const { path, contents } of outputFiles) write(path, contents)
    removeUnused(new Set(outputFiles.map(({ path }) => path)))
    return true
  } catch (error) {
    if (!error.errors) throw error
    return false // esbuild has printed why
  }
}

/** Makes `import.meta.url` the URL of the source. */
function place({ path }) {
  const url = pathToFileURL(path === STARTS_BUNDLE ? builtFrom(path) : path).href
  return { contents: readFileSync(path, 'utf8').replaceAll('import.meta.url', JSON.stringify(url)), loader: 'ts' }
}

/** The modification time of a file is the time of the last build that it belongs to. */
function write(path, contents) {
  const now = new Date()
  if (existsSync(path) && readFileSync(path).equals(contents)) return utimesSync(path, now, now)
  mkdirSync(dirname(path), { recursive: true })
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, contents)
  renameSync(draft, path)
}

function removeUnused(used) {
  for (const name of readdirSync(CHUNKS)) {
    const path = join(CHUNKS, name)
    if (!used.has(path) && Date.now() - statSync(path).mtimeMs > UNUSED_CHUNK_KEPT_MS) rmSync(path)
  }
}
