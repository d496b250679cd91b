import type { Database } from '../db/index.ts'
import { schemaState } from '../db/schema-state.ts'
import type { Deps } from '../deps.ts'
import type { Context } from '../http/context.ts'
import { respond } from '../http/respond.ts'
import type { Metrics } from '../metrics.ts'

const MAX_WAIT_MS = 100

/** Reads every gauge and answers the text format; the database is given 100 ms to answer. */
export async function sendMetrics(c: Context): Promise<Response> {
  return respond(c, 200, await scrape(c.get('deps')), { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
}

/** When jobs last ran to their end, in whichever process: a scheduler's own are gone when their metrics are asked for. */
async function readJobRuns(db: Database, { jobLastSuccess, jobDuration }: Metrics): Promise<void> {
  try {
    const rows = await db.probe.within(
      MAX_WAIT_MS,
      (sql) => sql<{ job: string; finished_at: number; duration_ms: number }[]>`
  select job, extract(epoch from finished_at)::float8 as finished_at, duration_ms::float8 as duration_ms from job_run`,
    )
    for (const { job, finished_at, duration_ms } of rows) {
      jobLastSuccess.set({ job }, finished_at)
      jobDuration.set({ job }, duration_ms / 1000)
    }
  } catch {
    // The gauges keep what they had.
  }
}

export async function scrape({ db, metrics, budget, config, seen, audit, agentClocks }: Deps): Promise<string> {
  const state = await schemaState(db, MAX_WAIT_MS)
  if (state === 'ready') await readJobRuns(db, metrics)
  const { max, gates } = db.stats()
  metrics.dbReachable.set(state === 'unreachable' ? 0 : 1)
  metrics.dbSchemaReady.set(state === 'ready' ? 1 : 0)
  metrics.dbPoolMax.set(max)
  metrics.dbPoolIdle.set(Object.values(gates).reduce((free, gate) => free + gate.slots - gate.inFlight, 0))
  for (const [name, gate] of Object.entries(gates)) {
    metrics.dbGateWaiting.labels(name).set(gate.waiting)
    metrics.dbGateRefused.labels(name).set(gate.rejected + gate.timedOut)
  }
  metrics.readBudgetTotal.set(budget.totalKib)
  metrics.readBudgetAvailable.set(budget.availableKib)
  metrics.readShed.reset()
  metrics.readShed.inc(budget.shed)
  metrics.seenFlows.set(seen.size)
  metrics.agentClockSkew.set(agentClocks.largestSecs())
  metrics.auditEnabled.set(audit === null ? 0 : 1)
  metrics.auditPermits.set(audit?.availablePermits ?? config.auditInflightPermits)
  metrics.auditWaiting.set(audit?.waiting ?? 0)
  return metrics.registry.metrics()
}
