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
  scrapesOf(deps).outgoing.add(c, text)
  return respond(c, 200, text, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
}

interface JobRun {
  job: string
  finished_at: number
  duration_ms: number
}

const underWay = new WeakMap<Database, Promise<readonly JobRun[]>>()

/** Reads when jobs last completed, in any process; concurrent scrapes share the answer. */
function queryJobRuns(db: Database): Promise<readonly JobRun[]> {
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
    for (const { job, finished_at, duration_ms } of await queryJobRuns(db)) {
      jobLastSuccess.set({ job }, finished_at)
      jobDuration.set({ job }, duration_ms / 1000)
    }
  } catch {
    // The gauges keep their values.
  }
}

/** The state that the scrapes of a process share. */
interface Scrapes {
  readonly upkeep: ReturnType<typeof createUpkeep>
  readonly outgoing: OutgoingTexts
  /** Returns the text with workload labels, and the one with sums only. */
  readonly named: (one: null) => Promise<Buffer>
  readonly summed: (one: null) => Promise<Buffer>
}

const scrapes = new WeakMap<Metrics, Scrapes>()

function scrapesOf(deps: Deps): Scrapes {
  const known = scrapes.get(deps.metrics)
  if (known !== undefined) return known
  const outgoing = new OutgoingTexts()
  const shared = (showsWorkloads: boolean) => {
    let last: Buffer | null = null
    const run = async (waiting: null[]) => {
      const bytes =
        last !== null && outgoing.size >= MAX_OUTGOING
          ? last
          : Buffer.from((await readAll(deps)) + workloadTexts(deps, showsWorkloads))
      last = bytes
      return waiting.map(() => bytes)
    }
    return createBatcher<null, Buffer>({ lanes: 1, maxItems: MAX_SHARED, run })
  }
  const made = { upkeep: createUpkeep(deps), outgoing, named: shared(true), summed: shared(false) }
  scrapes.set(deps.metrics, made)
  return made
}

/** The metrics by workload. */
const workloadTexts = ({ denials, drift }: Deps, showsWorkloads: boolean) =>
  drift.text(showsWorkloads) + denials.series.text(showsWorkloads)

/**
 * Returns the text format. Scrapes that arrive while it is rendered share the next text: with all series it is a
 * megabyte or more and takes a while. While too many texts are being sent, all scrapes get the last one, until one of
 * them was received or its reader disconnected. Workload labels appear on the ports that the configuration names.
 */
export function scrape(deps: Deps, port: 'api' | 'admin'): Promise<Buffer> {
  const { metricsWorkloadLabels } = deps.config
  const { named, summed } = scrapesOf(deps)
  return metricsWorkloadLabels === 'all' || metricsWorkloadLabels === port ? named(null) : summed(null)
}

async function readAll(deps: Deps): Promise<string> {
  const {
    db,
    metrics,
    budget,
    bodies,
    incomingBodies,
    unpacked,
    config,
    seen,
    audit,
    agentClocks,
    followers,
    payloads,
  } = deps
  const state = await schemaState(db, MAX_WAIT_MS)
  if (state === 'ready') {
    await readJobRuns(db, metrics)
    // The next scrape has the new values.
    void scrapesOf(deps).upkeep.refresh()
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
  metrics.followers.set(followers.size)
  metrics.followLag.set(followers.lagSecs)
  metrics.payloadsWaiting.set(payloads.waiting)
  return metrics.registry.metrics()
}
