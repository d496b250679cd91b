// Runs the tests against one PostgreSQL server: `npm test [files or folders...]`; without any, all but the benchmarks
// and those of the console in a browser (`npm run test:console`). TEST_CONCURRENCY is how many files run at once.
// The server is an embedded one in a temporary folder, or the one at DATABASE_URL (15 to 18; the role may create
// databases). Temporary folders of the run are in memory where there is room (see `temporaryFolder`).
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { BUILD, build, builtFrom, helpersWithHooks } from './test-build.mjs'

const CONCURRENCY = Number(process.env.TEST_CONCURRENCY ?? 4)
const NOT_BY_DEFAULT = [join('test', 'bench'), join('test', 'console')]
/** Files of one folder that share a process. Starting Node and loading the app takes longer than most files' tests. */
const FILES_PER_PROCESS = 30
/** These start programs, measure their process or change it: each file has a process of its own. */
const ALONE = ['cli', 'console', 'edge', 'faults', 'install', 'limits', 'scripts']
  .map((name) => join('test', name))
  .concat(
    ['jobs/version-check', 'seccomp/profiles.get', 'http/body', 'traffic/memory'].map((name) =>
      join('test', `${name}.test.ts`),
    ),
  )
/** A file system in memory, on Linux. */
const MEMORY_FOLDER = '/dev/shm'
/** A run of all tests uses up to 1.2 GiB. */
const MIN_FREE_MEMORY_BYTES = 2 * 1024 ** 3

/** Node 20 takes no patterns, so this script searches the folders. */
function testFiles(path) {
  if (!statSync(path).isDirectory()) return [path]
  const entries = readdirSync(path, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
  return entries.flatMap((entry) => {
    const child = join(path, entry.name)
    if (entry.isDirectory()) return NOT_BY_DEFAULT.includes(child) ? [] : testFiles(child)
    return entry.name.endsWith('.test.ts') ? [child] : []
  })
}

/** A module whose suites are the files: the hooks of a file run for its tests only, those of helpers at the end. */
function together(files) {
  const url = (file) => `'${pathToFileURL(builtFrom(file))}'`
  const helpers = helpersWithHooks().map((file) => `import ${url(file)}\n`)
  const suites = files.map((file) => `describe('${file}', () => import(${url(file)}))\n`)
  return [`import { describe } from 'node:test'\n`, ...helpers, ...suites].join('')
}

/** The modules that the test runner starts: files of `ALONE`, and modules in `folder` that import up to 30 files. */
function modules(files, folder) {
  const alone = (file) => files.length === 1 || ALONE.some((path) => file === path || file.startsWith(`${path}/`))
  const others = files.filter((file) => !alone(file))
  const made = files.filter(alone).map(builtFrom)
  for (const directory of new Set(others.map(dirname))) {
    refuseHelpersWithHooks(directory)
    const inDirectory = others.filter((file) => dirname(file) === directory)
    for (let from = 0; from < inDirectory.length; from += FILES_PER_PROCESS) {
      const path = join(folder, `${directory.replaceAll('/', '-')}-${from}.mjs`)
      writeFileSync(path, together(inDirectory.slice(from, from + FILES_PER_PROCESS)))
      made.push(path)
    }
  }
  return made
}

/** The hooks of a helper outside test/support would run after the first file that imports it, before the others. */
function refuseHelpersWithHooks(directory) {
  const helpers = helpersWithHooks(directory)
  if (helpers.length > 0) throw new Error(`${helpers.join(', ')}: a helper with hooks belongs in test/support`)
}

/**
 * Where temporary folders are created: TMPDIR, else in memory. Each test file has a database of 900 files, and some
 * file systems take half a second of processor time to create them.
 */
function temporaryFolder() {
  if (process.env.TMPDIR || !existsSync(MEMORY_FOLDER)) return tmpdir()
  const { bavail, bsize } = statfsSync(MEMORY_FOLDER)
  return bavail * bsize >= MIN_FREE_MEMORY_BYTES ? MEMORY_FOLDER : tmpdir()
}

const paths = process.argv.slice(2)
const missing = paths.filter((path) => !existsSync(path))
const files = missing.length > 0 ? [] : (paths.length > 0 ? paths : ['test']).flatMap(testFiles)
if (files.length === 0) {
  process.stderr.write(`no such tests: ${missing.join(' ')}\n`)
  process.exit(1)
}
if (!(await build())) process.exit(1)

// As /tmp, for all accounts: the account that runs embedded servers uses it, too.
const folder = mkdtempSync(join(temporaryFolder(), 'broker-run-'))
chmodSync(folder, 0o1777)
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
const inFolder = { TMPDIR: folder }

/** The signal that asked this process to end; after it nothing new is started. */
let endedBy
let tests
// The server and the tests each lead a process group of their own: Ctrl-C must not stop the database while tests are
// ending, and processes that tests left behind are found by their group.
const server = spawn(process.execPath, ['--enable-source-maps', builtFrom('test/support/serve.ts')], {
  stdio: ['pipe', 'pipe', 'inherit'],
  env: { ...process.env, ...inFolder },
  detached: true,
})
const serverExit = once(server, 'exit')
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    endedBy ??= signal
    signalTests('SIGTERM')
    server.stdin.end()
  })
}

function signalTests(signal) {
  try {
    if (tests) process.kill(-tests.pid, signal)
  } catch {} // nobody left
}

const [line] = await Promise.race([once(createInterface({ input: server.stdout }), 'line'), serverExit.then(() => [])])
let code = 1
if (line !== undefined && !endedBy) {
  const { url, template } = JSON.parse(line)
  // Without DATABASE_URL and libpq's variables: a program under test that reads them would use the maintenance
  // database.
  const environment = Object.entries(process.env).filter(([name]) => !/^(DATABASE_|PG[A-Z])/.test(name))
  const env = {
    ...Object.fromEntries(environment),
    ...inFolder,
    NODE_ENV: 'test',
    BROKER_TEST_URL: url,
    BROKER_TEST_TEMPLATE: template,
    BROKER_TEST_BUILD: BUILD,
    BROKER_TEST_FOLDER: folder,
  }
  const reporter = [
    '--test-reporter',
    new URL('./failures.mjs', import.meta.url).href,
    '--test-reporter-destination',
    'stdout',
  ]
  const args = [
    '--enable-source-maps',
    '--test',
    ...reporter,
    `--test-concurrency=${CONCURRENCY}`,
    ...modules(files, folder),
  ]
  tests = spawn(process.execPath, args, { stdio: 'inherit', env, detached: true })
  const [exitCode] = await once(tests, 'exit')
  signalTests('SIGKILL')
  code = exitCode ?? 1
}
server.stdin.end()
const [serverCode] = await serverExit
if (serverCode !== 0) process.stderr.write('the test server did not end as it should\n')
process.exitCode = endedBy ? 128 + constants.signals[endedBy] : code || (serverCode ?? 1)
