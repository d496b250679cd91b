import { schemaState } from '../../sql/migrate/schema-state.ts'
import { queryWithTimeout } from '../db/database.ts'
import { createBatcher, type Database } from '../db/index.ts'
import { respond } from '../http/response/respond.ts'
import type { Context, Deps } from '../http/route.ts'
import type { Metrics } from '../metrics/index.ts'
import { OutgoingTexts } from './outgoing-texts.ts'
import { createUpkeep } from './upkeep.ts'

const MAX_WAIT_MS = 100
/** Scrapes that share one answer. */
const MAX_SHARED = 1_000
/**
 * Most distinct texts being sent at once. Any client that reaches the port may scrape, and with all series of denials
 * each text has megabytes, which a slow reader keeps in memory.
 */
export const MAX_OUTGOING = 8

/** Reads every gauge and answers the text format; the database is given 100 ms to answer. */
export async function sendMetrics(c: Context): Promise<Response> {
  const deps = c.get('deps')
  const text = await scrape(deps, 'api')
  outgoingOf(deps.metrics).add(c, text)
  return respond(c, 200, text, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
}

interface JobRun {
  job: string
  finished_at: number
  duration_ms: number
}

const underWay = new WeakMap<Database, Promise<readonly JobRun[]>>()

/** Reads when jobs last completed, in any process; concurrent scrapes share the answer. */
function askJobRuns(db: Database): Promise<readonly JobRun[]> {
  const present = underWay.get(db)
  if (present !== undefined) return present
  const answer = queryWithTimeout<JobRun>(db.probe.within, MAX_WAIT_MS, JOB_RUNS).finally(() => underWay.delete(db))
  underWay.set(db, answer)
  return answer
}

const JOB_RUNS = `
  select job, extract(epoch from finished_at)::float8 as finished_at, duration_ms::float8 as duration_ms from job_run`

/** The gauges of `JOBS=external` end with their process, so they are read from the database. */
async function readJobRuns(db: Database, { jobLastSuccess, jobDuration }: Metrics): Promise<void> {
  try {
    for (const { job, finished_at, duration_ms } of await askJobRuns(db)) {
      jobLastSuccess.set({ job }, finished_at)
      jobDuration.set({ job }, duration_ms / 1000)
    }
  } catch {
    // The gauges keep their values.
  }
}

const upkeeps = new WeakMap<Metrics, ReturnType<typeof createUpkeep>>()

/** Refreshes the gauges of the database; scrapes do not wait for it, and the next one has the new values. */
function refreshUpkeep(deps: Deps): void {
  const upkeep = upkeeps.get(deps.metrics) ?? createUpkeep(deps)
  upkeeps.set(deps.metrics, upkeep)
  void upkeep.refresh()
}

type Scrape = (one: null) => Promise<Buffer>
/** The text with workload labels, and the one with sums only. */
const scrapes = { named: new WeakMap<Metrics, Scrape>(), summed: new WeakMap<Metrics, Scrape>() }
const outgoing = new WeakMap<Metrics, OutgoingTexts>()

function outgoingOf(metrics: Metrics): OutgoingTexts {
  const texts = outgoing.get(metrics) ?? new OutgoingTexts()
  outgoing.set(metrics, texts)
  return texts
}

/**
 * Returns the text format. Scrapes that arrive while it is rendered share the next text: with all series it is a
 * megabyte or more and takes a while. While too many texts are being sent, all scrapes get the last one, until one of
 * them was received or its reader disconnected. Workload labels appear on the ports that the configuration names.
 */
export function scrape(deps: Deps, port: 'api' | 'admin'): Promise<Buffer> {
  const { metricsWorkloadLabels } = deps.config
  const showsWorkloads = metricsWorkloadLabels === 'all' || metricsWorkloadLabels === port
  const known = showsWorkloads ? scrapes.named : scrapes.summed
  let shared = known.get(deps.metrics)
  if (shared === undefined) {
    const texts = outgoingOf(deps.metrics)
    let last: Buffer | null = null
    const run = async (asked: null[]) => {
      const bytes =
        last !== null && texts.size >= MAX_OUTGOING
          ? last
          : Buffer.from((await readAll(deps)) + deps.denials.series.text(showsWorkloads))
      last = bytes
      return asked.map(() => bytes)
    }
    shared = createBatcher<null, Buffer>({ lanes: 1, maxItems: MAX_SHARED, run })
    known.set(deps.metrics, shared)
  }
  return shared(null)
}

async function readAll(deps: Deps): Promise<string> {
  const { db, metrics, budget, bodies, incomingBodies, unpacked, config, seen, audit, agentClocks, payloads } = deps
  const state = await schemaState(db, MAX_WAIT_MS)
  if (state === 'ready') {
    await readJobRuns(db, metrics)
    refreshUpkeep(deps)
  }
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
  metrics.bodiesShed.reset()
  metrics.bodiesShed.inc(bodies.shed + unpacked.shed + incomingBodies.cuts)
  metrics.seenFlows.set(seen.size)
  metrics.agentClockSkew.set(agentClocks.largestSecs())
  metrics.auditEnabled.set(audit === null ? 0 : 1)
  metrics.auditPermits.set(audit?.availablePermits ?? config.auditInflightPermits)
  metrics.auditWaiting.set(audit?.waiting ?? 0)
  metrics.payloadsWaiting.set(payloads.waiting)
  return metrics.registry.metrics()
}
