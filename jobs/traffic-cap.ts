/** Part of the job `traffic-retention`: flows of a pod above the cap (docs/contract.md#retention). */
import type postgres from 'postgres'
import type { Sql } from '../lib/db/index.ts'
import { countedDeletion } from '../lib/traffic/deletions.ts'
import { type Batch, inRestedBatches, type JobContext, type Pass } from './job.ts'
import { held } from './locks.ts'

const MAX_PODS = 100
const MAX_BATCHES = 200
/** Index entries that one statement reads in search of pods above the cap; more if the cap is higher. */
const MIN_READ_AT_ONCE = 100_000

type Fragment = (sql: Sql) => postgres.PendingQuery<postgres.Row[]>

/** A pod above the cap, by name and namespace; null is a namespace of its own. */
interface Pod {
  name: string
  namespace: string | null
  rows: number
}

interface Found {
  isHeld: boolean
  pods: Pod[]
  /** The last name examined; null at the end. */
  upTo: string | null
}

/**
 * Deletes the oldest flows without a peer of pods above the cap, down to the cap, and warns of each such pod. Flows
 * with a peer are never deleted. A pass covers at most 100 pods, in the order of their names; the next pass continues
 * behind them.
 */
export async function trimPods(context: JobContext): Promise<Pass> {
  const { db, log, signal } = context
  const cap = context.config.trafficMaxRowsPerPod
  const lock: Fragment = (sql) => held(sql, 'traffic-retention')
  let upTo: string | null = await readCursor(context)
  const began = upTo
  let left = MAX_PODS
  let pods: Pod[] = []
  let current: { pod: Pod; deleted: number } | null = null
  const warn = ({ pod, deleted }: { pod: Pod; deleted: number }) =>
    log.warn(
      { pod: pod.name, namespace: pod.namespace, rows: pod.rows, cap, deleted },
      'a pod has more flows than the cap',
    )

  const pass = await inRestedBatches(signal, MAX_BATCHES, async (): Promise<Batch> => {
    const pod = current?.pod ?? pods.shift()
    if (pod === undefined) {
      const found = await findPods(context, lock, upTo ?? '', left)
      if (found.isHeld) {
        pods = found.pods
        left -= pods.length
        upTo = found.upTo
      }
      return { isHeld: found.isHeld, rows: 0, isLast: pods.length === 0 && upTo === null }
    }
    current ??= { pod, deleted: 0 }
    const batch = await trim(context, pod)
    current.deleted += batch.rows
    if (batch.isHeld && !batch.isLast) return batch
    if (batch.isHeld || current.deleted > 0) warn(current)
    current = null
    return { ...batch, isLast: pods.length === 0 && (upTo === null || left === 0) }
  }).finally(() => {
    if (current !== null) warn(current)
  })

  const isLeftOver = upTo !== null || pods.length > 0 || current !== null
  // Pods that were found but not reached are found again by the next round.
  if (pass.outcome !== 'skipped' && upTo !== began) await db.job((sql) => writeCursor(sql, upTo))
  return pass.outcome === 'done' && isLeftOver ? { ...pass, outcome: 'capped' } : pass
}

/** Returns how many flows above the cap a pass would delete, not counting those for which `isDeletedByAge` holds. */
export async function countAboveCap(context: JobContext, isDeletedByAge: Fragment): Promise<number> {
  const lock: Fragment = (sql) => sql`held as materialized (select true as is_held)`
  const cap = context.config.trafficMaxRowsPerPod
  let upTo = await readCursor(context)
  let left = MAX_PODS
  let rows = 0
  do {
    const found = await findPods(context, lock, upTo ?? '', left)
    for (const pod of found.pods) {
      const [row] = await context.db.job(
        (sql) => sql<{ rows: number }[]>`
  select least(greatest(count(*) - ${cap}::int, 0), count(*) filter (where t.peer_kind is null))::int as rows
  from traffic t
  where ${isOf(sql, pod)} and not ${isDeletedByAge(sql)}`,
      )
      rows += row!.rows
    }
    left -= found.pods.length
    upTo = found.upTo
  } while (upTo !== null && left > 0)
  return rows
}

const isOf = (sql: Sql, { name, namespace }: Pod) =>
  sql`t.pod_name = ${name} and t.pod_namespace is not distinct from ${namespace}::text`

async function readCursor({ db }: JobContext): Promise<string | null> {
  const [row] = await db.job((sql) => sql<{ pod_name: string | null }[]>`select pod_name from traffic_retention_cursor`)
  return row?.pod_name ?? null
}

const writeCursor = (sql: Sql, name: string | null) => sql`
  insert into traffic_retention_cursor (pod_name) values (${name})
  on conflict (is_only) do update set pod_name = excluded.pod_name`

/**
 * The next pods above the cap, at most `max`. Names are read in index order under a limit that no pod below the cap can
 * fill, so that a statement stays short and always reaches the next name.
 */
async function findPods({ config, db }: JobContext, lock: Fragment, after: string, max: number): Promise<Found> {
  const cap = config.trafficMaxRowsPerPod
  const maxRead = Math.max(MIN_READ_AT_ONCE, cap + 1)
  const [row] = await db.job(
    (sql) => sql<{ is_held: boolean; pods: Pod[]; last: string | null }[]>`
  with ${lock(sql)},
  looked_at as materialized (
    select t.pod_name from traffic t
    where t.pod_name > (select ${after}::text collate "C" from held where is_held)
    order by t.pod_name
    limit ${maxRead}),
  named as materialized (
    select l.pod_name, count(*) as rows,
           -- The last name of a full read may have more flows than were read.
           (select count(*) from looked_at) = ${maxRead}
             and l.pod_name = (select max(pod_name) from looked_at) as is_cut
    from looked_at l group by l.pod_name),
  found as materialized (
    select n.pod_name, p.pod_namespace, p.rows
    from (select n.pod_name from named n where n.rows > ${cap}) n
    cross join lateral (
      select t.pod_namespace, count(*)::int as rows from traffic t
      where t.pod_name = n.pod_name
      group by t.pod_namespace having count(*) > ${cap} offset 0) p
    order by n.pod_name, p.pod_namespace
    limit ${max})
  select h.is_held,
         (select coalesce(json_agg(json_build_object('name', f.pod_name, 'namespace', f.pod_namespace, 'rows', f.rows)
                                   order by f.pod_name, f.pod_namespace), '[]') from found f) as pods,
         case when (select count(*) from found) = ${max} then (select max(f.pod_name) from found f)
              when exists (select from named n where n.is_cut)
              then (select max(n.pod_name) from named n where not n.is_cut or n.rows > ${cap}) end as last
  from held h`,
  )
  return { isHeld: row!.is_held, pods: row!.pods, upTo: row!.last }
}

/**
 * Deletes one batch of a pod, the oldest first. The deleting statement itself counts the excess each time: another
 * process may have deleted some meanwhile.
 */
async function trim({ config, db }: JobContext, pod: Pod): Promise<Batch> {
  const { trafficMaxRowsPerPod: cap, trafficRetentionBatchSize: batchRows } = config
  const [batch] = await db.job(
    (sql) => sql<{ is_held: boolean; rows: number }[]>`
  with ${held(sql, 'traffic-retention')},
  above as materialized (
    select greatest(count(*) - ${cap}::int, 0) as rows
    from (select from traffic t where (select is_held from held) and ${isOf(sql, pod)} limit ${cap + batchRows}) t),
  deletable as materialized (
    select t.ctid as place from traffic t
    where (select is_held from held) and ${isOf(sql, pod)} and t.peer_kind is null
    order by t.time_stamp, t.uuid
    limit (select a.rows from above a)),
  locked as materialized (
    select t.ctid as place from traffic t
    where t.ctid = any (array(select d.place from deletable d)) and t.peer_kind is null
    for update skip locked),
  deleted as (
    delete from traffic t where t.ctid = any (array(select l.place from locked l)) returning 1),
  ${countedDeletion(sql)}
  select h.is_held, (select count(*)::int from deleted) as rows
  from held h`,
  )
  return { isHeld: batch!.is_held, rows: batch!.rows, isLast: batch!.rows < batchRows }
}
