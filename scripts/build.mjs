// Compiles the service, copies its SQL files, bundles the command line and builds the console. `dist` is a link to a
// folder of `.build/` named after a digest of the sources. Unchanged sources need no build. A running broker keeps its
// files, since Node resolves the link when it starts. The link is replaced only when a build is complete.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
} from 'node:fs'
import { join, resolve } from 'node:path'

const BUILDS = '.build'
const LINK = 'dist'
const PROJECT = 'tsconfig.build.json'
/** Files beside the sources that affect the build. */
const SETTINGS = ['package.json', 'package-lock.json', 'tsconfig.json', PROJECT, 'scripts/build.mjs']
const SQL_FOLDERS = ['sql/migrations', 'sql/functions']
/** Bundled into one file with all it needs, so that it can be copied anywhere. */
const CLI = 'wrangler-free-deploy/cli'
const CLI_BUNDLE = 'ctb.mjs'
/** The names by which kubectl finds its plugin and the completion of it: links to the bundle, which reads its name. */
const CLI_LINKS = ['kubectl-telemetry_broker', 'kubectl_complete-telemetry_broker']
/** Frequent names of its own and long ones of @stricli/core, none of them a field of an answer: shortened. */
const CLI_NAMES = new RegExp(
  `^(${[
    ...['brief', 'placeholder', 'fullDescription', 'customUsage', 'header', 'isWide', 'isTime', 'colourOf', 'shownOf'],
    ...['csvHeader', 'isSentence', 'minWidth', 'rowsOf', 'nameOf', 'nextOf', 'askedOf', 'judgeOf', 'endedEarly'],
    ...['caseStyle', 'ansiColorByStream', 'proposeCompletions', 'externalFlagName', 'includeHidden', 'notReachable'],
    ...['localization', 'allowArgumentEscapeSequence', 'distanceOptions'],
    ...['exceptionWhile\\w+', 'formatException', 'additionalFlags', 'includeAliases', 'scannerConfig'],
    ...['defaultForRouteMap', 'determineExitCode', 'argumentEscapeSequence', 'completionConfig', 'getAllEntries'],
    ...[
      'alwaysShowHelpAllFlag',
      'externalFlagNameOrPlaceholder',
      'includeHiddenRoutes',
      'useAliasInUsageLine',
      'withNegated',
    ],
    ...['currentVersionIsNotLatest', 'no\\w+RegisteredForInput', 'documentsBefore'],
  ].join('|')})$`,
)
/** The console: pages for browsers, which the broker and the edge proxy serve from `dist/console`. */
const CONSOLE = 'wrangler-free-deploy/console'
const CONSOLE_BUILD = 'console'
/** Older builds are removed; a broker that outlives this many builds loses its files. */
const KEPT_BUILDS = 10
const DIGEST_CHARS = 16

const { include } = JSON.parse(readFileSync(PROJECT, 'utf8'))
const sources = [
  ...include.filter((folder) => existsSync(folder)).flatMap((folder) => filesBelow(folder, '.ts')),
  ...SQL_FOLDERS.flatMap((folder) => filesBelow(folder, '.sql')),
].sort()
const cliSources = existsSync(CLI) ? filesBelow(CLI, '.ts') : []
const consoleSources = existsSync(CONSOLE) ? filesBelow(CONSOLE, '') : []
const build = join(BUILDS, digest())
if (!isWhole()) await make()
link()
removeOldBuilds()

function filesBelow(folder, ending) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return filesBelow(path, ending)
    return entry.name.endsWith(ending) ? [path] : []
  })
}

function digest() {
  const hash = createHash('sha256')
  for (const path of [...SETTINGS.filter((one) => existsSync(one)), ...sources, ...cliSources, ...consoleSources])
    hash.update(`${path}\0`).update(readFileSync(path)).update('\0')
  return hash.digest('hex').slice(0, DIGEST_CHARS)
}

/** Whether the build has a file for every source, the command line and the console. */
function isWhole() {
  const made = sources.map((path) => path.replace(/\.ts$/, '.js'))
  const cli = cliSources.length > 0 ? [CLI_BUNDLE, ...CLI_LINKS] : []
  const pages = consoleSources.length > 0 ? [join(CONSOLE_BUILD, 'index.html')] : []
  return [...made, ...cli, ...pages].every((path) => existsSync(join(build, path)))
}

async function make() {
  const draft = join(BUILDS, `new-${process.pid}`)
  rmSync(draft, { recursive: true, force: true })
  mkdirSync(draft, { recursive: true })
  // `npm run typecheck` checks the types, which would take most of the time of a build.
  const args = ['node_modules/typescript/bin/tsc', '-p', PROJECT, '--noCheck', '--outDir', draft]
  const tsc = spawnSync(process.execPath, args, { stdio: 'inherit' })
  if (tsc.status !== 0) {
    rmSync(draft, { recursive: true, force: true })
    process.exit(tsc.status ?? 1)
  }
  for (const folder of SQL_FOLDERS) cpSync(folder, join(draft, folder), { recursive: true })
  if (cliSources.length > 0) {
    await bundleCli(join(draft, CLI_BUNDLE))
    for (const name of CLI_LINKS) symlinkSync(CLI_BUNDLE, join(draft, name))
  }
  if (consoleSources.length > 0) await buildConsole(join(draft, CONSOLE_BUILD))
  if (!isWhole()) rmSync(build, { recursive: true, force: true })
  try {
    renameSync(draft, build)
  } catch (error) {
    // A concurrent build of the same sources finished first.
    if (!['EEXIST', 'ENOTEMPTY'].includes(error.code)) throw error
    rmSync(draft, { recursive: true, force: true })
  }
}

/** The first line of the entry point makes it a program. */
async function bundleCli(outfile) {
  const { build: bundle } = await import('esbuild')
  await bundle({
    entryPoints: [join(CLI, 'main.ts')],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    minify: true,
    mangleProps: CLI_NAMES,
    logLevel: 'warning',
  })
  chmodSync(outfile, 0o755)
}

async function buildConsole(folder) {
  const { build: bundle } = await import('vite')
  await bundle({
    configFile: join(CONSOLE, 'vite.config.ts'),
    logLevel: 'warn',
    build: { outDir: resolve(folder) },
  })
}

function link() {
  const now = new Date()
  utimesSync(build, now, now)
  const stat = lstatSync(LINK, { throwIfNoEntry: false })
  if (stat?.isSymbolicLink() && readlinkSync(LINK) === build) return
  // Older releases compiled into a real folder.
  if (stat?.isDirectory()) renameSync(LINK, join(BUILDS, `before-${process.pid}`))
  const draft = join(BUILDS, `link-${process.pid}`)
  rmSync(draft, { force: true })
  symlinkSync(build, draft)
  renameSync(draft, LINK)
}

/** A build in progress is among the newest, so it stays. */
function removeOldBuilds() {
  const ageOf = (name) => statSync(join(BUILDS, name), { throwIfNoEntry: false })?.mtimeMs ?? 0
  const byAge = readdirSync(BUILDS)
    .map((name) => ({ name, at: ageOf(name) }))
    .sort((one, other) => other.at - one.at)
  for (const { name } of byAge.slice(KEPT_BUILDS)) rmSync(join(BUILDS, name), { recursive: true, force: true })
}
