import type postgres from 'postgres'
import type { Sql } from '../lib/db/index.ts'
import { inBatches, inRestedBatches, inSequence, type Job, type JobContext, type Pass } from './job.ts'
import { held } from './locks.ts'

const EVERY_SECS = 10
/** A pass of `late-resolve` may resolve a flow this long after its window. */
const MARGIN_SECS = 300
/** Flows that one statement counts. */
const FLOWS_AT_ONCE = 5_000
/** Edges that a pass looks at for retention. */
const LOOKED_AT = 1_000
/** Pods whose labels became known, or that are forgotten, in a pass. */
const PODS_AT_ONCE = 10_000
/** Ten million flows. */
const MAX_BATCHES = 2_000

/** How long the peer and the workload of a flow may become known. */
const openSecs = ({ config }: Pick<JobContext, 'config'>) =>
  config.peerLateResolveWindowSecs === 0 ? 0 : config.peerLateResolveWindowSecs + MARGIN_SECS

/** One statement that calls a function with null unless the lock is held. */
async function step({ db }: JobContext, call: (sql: Sql) => postgres.Fragment): Promise<Pass> {
  const [row] = await db.job(
    (sql) => sql<{ is_held: boolean; rows: number }[]>`
  with ${held(sql, 'flow-edges')}
  select h.is_held, coalesce(f.rows, 0)::int as rows
  from held h left join lateral ${call(sql)} f(rows) on true`,
  )
  return { outcome: row!.is_held ? 'done' : 'skipped', rows: row!.rows, batches: 1 }
}

/**
 * Counts new flows into edges, records which workload is behind a service, and forgets old edges
 * (docs/contract.md#flow-edges). One statement counts flows and moves the cursor behind them, so that each counts once,
 * whatever process fails at whatever moment. It has a snapshot of its own, taken after the lock: a function that is not
 * stable takes one.
 */
export const flowEdges: Job = {
  name: 'flow-edges',
  firstAfterSecs: 5,
  everySecs: () => EVERY_SECS,

  run(context) {
    const { config, db, log, signal } = context
    // After a burst of flows, which often has not ended, other statements come first.
    const count = () =>
      inRestedBatches(signal, MAX_BATCHES, async () => {
        const [step] = await db.job(
          (sql) => sql<{ is_held: boolean; flows: number | null; is_last: boolean | null }[]>`
  with ${held(sql, 'flow-edges')}
  select h.is_held, c.flows::int, c.is_last
  from held h
  left join lateral
    count_flow_edges(case when h.is_held then ${FLOWS_AT_ONCE}::int end, ${openSecs(context)}) c on true`,
        )
        const { is_held, flows, is_last } = step!
        return { isHeld: is_held, rows: flows ?? 0, isLast: is_last ?? false }
      })
    const renumber = async () => {
      const pass = await inBatches(signal, MAX_BATCHES, async () => {
        const { outcome, rows } = await step(
          context,
          (sql) => sql`renumber_restored_flows(case when h.is_held then ${FLOWS_AT_ONCE}::int end)`,
        )
        return { isHeld: outcome === 'done', rows, isLast: rows < FLOWS_AT_ONCE }
      })
      if (pass.rows > 0)
        log.warn({ flows: pass.rows }, 'the database was restored from another server: its flows were numbered anew')
      return pass
    }
    const recordBackends = () => step(context, (sql) => sql`record_service_backends(case when h.is_held then true end)`)
    const days = config.flowEdgeRetentionDays
    const expire = () =>
      step(context, (sql) => sql`expire_flow_edges(case when h.is_held then ${days}::int end, ${LOOKED_AT})`)
    const tendPods = () =>
      step(context, (sql) => sql`tend_flow_pods(case when h.is_held then ${PODS_AT_ONCE}::int end)`)
    return inSequence([renumber, count, recordBackends, ...(days === 0 ? [] : [expire]), tendPods])
  },

  async count(context) {
    const [row] = await context.db.job(
      (sql) => sql<{ rows: number }[]>`
  select (select count(*) from traffic t
          where t.tx >= c.next_tx and coalesce(t.first_tx, t.tx) >= c.next_tx
            and t.traffic_type in ('EGRESS', 'INGRESS')
         )::int
         + (select count(*) from traffic t
            where (t.time_stamp, t.uuid) > (c.time_stamp, c.uuid) and t.tx is null
              and t.traffic_type in ('EGRESS', 'INGRESS'))::int
         + (select count(*) from flow_edge_pending p
            where p.time_stamp < now() at time zone 'utc' - make_interval(secs => ${openSecs(context)}))::int as rows
  from flow_edge_cursor c`,
    )
    return row!.rows
  },
}
