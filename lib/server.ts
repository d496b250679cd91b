/**
 * The process: configuration, database, app, listen, jobs, drain. The one file of lib/ that knows handlers/ and jobs/.
 */
import { once } from 'node:events'
import { resolve } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import type { Logger } from 'pino'
import { routes } from '../handlers/router.ts'
import { chains } from '../jobs/index.ts'
import { startSchedule } from '../jobs/schedule.ts'
import { migrate } from '../sql/migrate/index.ts'
import { migrationSettings } from '../sql/migrate/settings.ts'
import { createAdmin } from './app/admin.ts'
import { createApp } from './app/app.ts'
import { buildDeps } from './app/build.ts'
import { withDatabase } from './app/with-database.ts'
import { type Config, loadConfig, redacted } from './config/index.ts'
import { watchTokenFiles } from './config/token-files.ts'
import { CONSOLE_PATH } from './console/answer.ts'
import { openConsole } from './console/files.ts'
import { type Connection, openDatabase } from './db/index.ts'
import { checkSettings } from './db/settings-check.ts'
import { createHosts, refuseOtherHosts } from './http/server/allowed-hosts.ts'
import { close, displayAddress, listen, listenOnEach } from './http/server/listen.ts'
import type { Cut } from './http/server/slow-readers.ts'
import { createTokens, type Tokens } from './http/tokens.ts'
import { MISREADS, misreadsEscapedKeys } from './process/escaped-keys.ts'
import { firstSight } from './process/first-sight.ts'
import { runServer } from './process/run-server.ts'
import type { StopSignals } from './process/stop-signals.ts'
import { watchDrift } from './profile/drift-series.ts'
import { watchAttributed, watchDenialWorkloads } from './seccomp/denials/index.ts'
import { watchMemory } from './traffic/index.ts'

// By default the heap may grow fourfold between collections on a large machine: 530 MiB at full load, twice what this
// setting needs. Two more settings are in the start script, because they cannot be set from here: `--v8-pool-size=1`
// (with four marking threads, requests on two cores wait 150 ms at every collection) and `MALLOC_ARENA_MAX=2` (glibc
// would keep some 50 MiB of freed bodies after a burst of the largest).
setFlagsFromString('--heap-growing-percent=50')

/** A repeat of a flow that was just deleted, or lost with its server, may be dropped as a duplicate for this long. */
const ASK_FOR_MEMORY_MS = 1_000

/** Kubernetes still sends requests to a pod for a moment after SIGTERM. */
const ENDPOINTS_PROPAGATION_MS = 3_000
const FINISH_REQUESTS_MS = 10_000
/** Time for scrapes on the admin port to finish. */
const FINISH_SCRAPES_MS = 1_000
/** Time to forward the queue to the evaluator. */
const DRAIN_AUDIT_MS = 2_000
/** Time for the running batch of a job to end. */
const STOP_JOBS_MS = 5_000
const END_DATABASE_MS = 2_000

/** Resolves after a stop signal, once running work has ended. */
async function serve(
  config: Config,
  tokens: Tokens,
  log: Logger,
  signals: StopSignals,
  connection: Connection,
): Promise<void> {
  if (misreadsEscapedKeys()) log.warn({ node: process.version }, MISREADS)
  if (config.migrateOnStart) await signals.race(migrate({ connection, log, ...migrationSettings(config) }))

  const db = openDatabase({
    connection,
    poolMax: config.dbPoolMaxSize,
    statementTimeoutMs: config.dbStatementTimeoutMs,
    prepare: config.dbPrepare,
    applicationName: 'cluster-telemetry-broker',
    log,
  })
  void checkSettings(db, { statementTimeoutMs: config.dbStatementTimeoutMs, log })
  const { aborted } = signals
  const deps = buildDeps({ config, db, log, tokens, draining: () => aborted.aborted })
  const onCut = (cut: Cut) => {
    deps.metrics.slowReadersCut.inc()
    log.info(cut, 'a slow reader was cut')
  }
  const tokenSource = tokens.enabled ? 'browser' : 'none'
  const consoleFiles = config.consoleEnabled ? openConsole({ tokenSource, log }) : null
  const apis = await signals.race(listenForApi(config, createApp(deps, routes, consoleFiles), onCut))
  const admin = await signals.race(listen(createAdmin(deps).fetch, config.adminListen, { variable: 'ADMIN_ADDR' }))
  const tokenWatch = watchTokenFiles({ files: config.tokenFiles, tokens, log })
  const watch = watchMemory({ db, seen: deps.seen, log, everyMs: ASK_FOR_MEMORY_MS })
  const { metrics } = deps
  const everyMs = config.seccompDenialMetricsIntervalSecs * 1_000
  const metricWatches = [
    watchDenialWorkloads({ db, metrics, log, everyMs }),
    watchAttributed({ denials: deps.denials, log, everyMs }),
    watchDrift({ db, metrics, series: deps.drift, log }),
  ]
  const schedule = startSchedule(config.jobs === 'in-process' ? chains : [], deps)
  const api = displayAddress(apis[0]!.address)
  if (process.stdout.isTTY) {
    const { isLoopbackOnly } = config
    const dataDir = config.database === null ? resolve(config.dataDir) : null
    const hasConsole = consoleFiles !== null
    process.stdout.write(firstSight({ api, isLoopbackOnly, hasTokens: tokens.enabled, hasConsole, dataDir }))
  } else {
    const pages = consoleFiles === null ? {} : { console: `${api}${CONSOLE_PATH}/` }
    log.info({ api, ...pages, admin: displayAddress(admin.address) }, 'listening')
  }

  await once(aborted, 'abort')
  const jobsStopped = schedule.stop(STOP_JOBS_MS)
  if (config.nodeEnv === 'production') await new Promise((resolve) => setTimeout(resolve, ENDPOINTS_PROPAGATION_MS))
  await Promise.all(apis.map(({ server }) => close(server, FINISH_REQUESTS_MS)))
  await close(admin.server, FINISH_SCRAPES_MS)
  await jobsStopped
  tokenWatch.stop()
  watch.stop()
  for (const one of metricWatches) one.stop()
  await deps.audit?.drain(DRAIN_AUDIT_MS)
  await db.end(END_DATABASE_MS)
}

/** Listens for the API: without tokens and LISTEN_ADDR on loopback only, and only by the names of this machine. */
async function listenForApi(
  { listen: addresses, isLoopbackOnly }: Config,
  { fetch }: ReturnType<typeof createApp>,
  onCut: (cut: Cut) => void,
) {
  const options = { onCut, variable: 'LISTEN_ADDR' }
  if (!isLoopbackOnly) return [await listen(fetch, addresses, options)]
  const before = refuseOtherHosts(createHosts([]), 'set LISTEN_ADDR to serve others')
  return listenOnEach(fetch, addresses, { ...options, before })
}

await runServer(loadConfig, redacted, async (config, log, signals) => {
  const tokens = createTokens(config)
  await withDatabase(config, log, signals, (connection) => serve(config, tokens, log, signals, connection))
})
