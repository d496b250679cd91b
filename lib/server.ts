/** The process: configuration, database, app, listen, jobs, drain. The one file of lib/ that knows handlers/ and jobs/. */
import { once } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import type { Logger } from 'pino'
import { routes } from '../handlers/router.ts'
import { chains } from '../jobs/index.ts'
import { startSchedule } from '../jobs/schedule.ts'
import { migrate } from '../sql/migrate/index.ts'
import { migrationSettings } from '../sql/migrate/settings.ts'
import { createAdmin } from './admin.ts'
import { buildDeps } from './build.ts'
import { type Config, loadConfig, redacted } from './config.ts'
import { type Connection, openDatabase } from './db/index.ts'
import { checkSettings } from './db/settings-check.ts'
import { MISREADS, misreadsEscapedKeys } from './escaped-keys.ts'
import { createApp } from './http/app.ts'
import type { Cut } from './http/connections.ts'
import { close, listen, shown } from './http/listen.ts'
import { createTokens } from './http/tokens.ts'
import { runServer } from './run-server.ts'
import { watchAttributed, watchDenialWorkloads } from './seccomp/denials/index.ts'
import type { StopSignals } from './stop-signals.ts'
import { watchMemory } from './traffic/index.ts'
import { withDatabase } from './with-database.ts'

// The default lets the heap grow fourfold between collections on a large machine: 530 MiB at full load where this needs half. The start
// script has `--v8-pool-size=1` beside it, which cannot be set from here: with the usual four threads that mark the heap, requests
// on two cores wait for 150 ms at every collection. So it is with what the script tells malloc: otherwise glibc comes to keep bodies and lists
// that were let go of among what is in use, some 50 MiB after a storm of the largest.
setFlagsFromString('--heap-growing-percent=50')

/** For so long a repeat of a flow that was just deleted, or lost with its server, may still be taken for a duplicate. */
const ASK_FOR_MEMORY_MS = 1_000

/** Kubernetes goes on sending to a pod for a moment after it was told to stop. */
const ENDPOINTS_PROPAGATION_MS = 3_000
const FINISH_REQUESTS_MS = 10_000
/** A scrape is all that may be under way there. */
const FINISH_SCRAPES_MS = 1_000
/** What is queued for the evaluator then. */
const DRAIN_AUDIT_MS = 2_000
/** What a batch is given to end. */
const STOP_JOBS_MS = 5_000
const END_DATABASE_MS = 2_000

/** Resolves when the signal to stop has come and what was under way is over. */
async function serve(config: Config, log: Logger, signals: StopSignals, connection: Connection): Promise<void> {
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
  const deps = buildDeps({ config, db, log, draining: () => aborted.aborted })
  const onCut = (cut: Cut) => {
    deps.metrics.slowReadersCut.inc()
    log.info(cut, 'a slow reader was cut')
  }
  const api = await signals.race(listen(createApp(deps, routes).fetch, config.listen, { onCut }))
  const admin = await signals.race(listen(createAdmin(deps).fetch, config.adminListen))
  log.info({ api: shown(api.address), admin: shown(admin.address) }, 'listening')
  const watch = watchMemory({ db, seen: deps.seen, log, everyMs: ASK_FOR_MEMORY_MS })
  const { metrics } = deps
  const everyMs = config.seccompDenialMetricsIntervalSecs * 1_000
  const denialWatches = [watchDenialWorkloads({ db, metrics, log, everyMs }), watchAttributed({ denials: deps.denials, log, everyMs })]
  const schedule = startSchedule(config.jobs === 'in-process' ? chains : [], deps)

  await once(aborted, 'abort')
  const jobsStopped = schedule.stop(STOP_JOBS_MS)
  if (config.nodeEnv === 'production') await new Promise((resolve) => setTimeout(resolve, ENDPOINTS_PROPAGATION_MS))
  await close(api.server, FINISH_REQUESTS_MS)
  await close(admin.server, FINISH_SCRAPES_MS)
  await jobsStopped
  watch.stop()
  for (const one of denialWatches) one.stop()
  await deps.audit?.drain(DRAIN_AUDIT_MS)
  await db.end(END_DATABASE_MS)
}

await runServer(loadConfig, redacted, async (config, log, signals) => {
  createTokens(config)
  await withDatabase(config, log, signals, (connection) => serve(config, log, signals, connection))
})
