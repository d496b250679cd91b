import type postgres from 'postgres'
import type { Sql } from '../../lib/db/index.ts'
import { type Batch, inRestedBatches, type JobContext, type Pass } from '../job.ts'
import { held } from '../locks.ts'

/** Ten million rows. */
const MAX_BATCHES = 2_000
/** Rows that one statement reads. */
const MAX_READ_AT_ONCE = 5_000

/**
 * Whether row `r` is older than `days` and not needed for the time since: a later row holds for all of it, or there is
 * no record of the pod, or only one that is `expired`; and no flow of the pod is stored of the time for which it holds.
 */
const isUnused = (sql: Sql, days: number, expired: postgres.Fragment = sql`false`) => sql`
    r.since < now() at time zone 'utc' - make_interval(days => ${days})
    and (exists (select from pod_labels o
                 where o.pod_namespace = r.pod_namespace and o.pod_name = r.pod_name and o.since > r.since
                   and o.since < now() at time zone 'utc' - make_interval(days => ${days}))
         or not exists (select from pod p
                        where p.pod_name = r.pod_name and p.pod_namespace = r.pod_namespace and not (${expired})))
    and not exists (select from traffic t
                    where t.pod_name = r.pod_name and t.time_stamp >= r.since
                      and t.time_stamp < coalesce((select min(o.since) from pod_labels o
                                                   where o.pod_namespace = r.pod_namespace
                                                     and o.pod_name = r.pod_name and o.since > r.since), 'infinity')
                    offset 0)`

/**
 * Deletes the labels of pods that are gone, and labels that others replaced, after `days` (docs/contract.md#retention).
 *
 * A pod may be posted again at this moment. Its post writes the row that it needs, even if the row says the same. So a
 * row is deleted only in the version that the statement found; one that is locked is skipped.
 */
export function deleteLabels({ db, signal }: JobContext, days: number): Promise<Pass> {
  let after = { namespace: '', pod: '', since: '-infinity' }
  return inRestedBatches(signal, MAX_BATCHES, async (): Promise<Batch> => {
    const [batch] = await db.job(
      (sql) => sql<
        { is_held: boolean; rows: number; namespace: string | null; pod: string | null; since: string | null }[]
      >`
  with ${held(sql, 'dead-pod-retention')},
  looked_at as materialized (
    select r.pod_namespace, r.pod_name, r.since, r.xmin as version
    from pod_labels r
    where (select is_held from held)
      and (r.pod_namespace, r.pod_name, r.since)
        > (${after.namespace}::text collate "C", ${after.pod}::text collate "C", ${after.since}::text::timestamp)
    order by r.pod_namespace, r.pod_name, r.since
    limit ${MAX_READ_AT_ONCE}),
  unused as materialized (
    select r.pod_namespace, r.pod_name, r.since, r.version from looked_at r where ${isUnused(sql, days)}),
  locked as materialized (
    select r.pod_namespace, r.pod_name, r.since
    from unused u
    cross join lateral (
      select r.* from pod_labels r
      where r.pod_namespace = u.pod_namespace and r.pod_name = u.pod_name and r.since = u.since and r.xmin = u.version
      for update skip locked) r),
  deleted as (
    delete from pod_labels r using locked l
    where r.pod_namespace = l.pod_namespace and r.pod_name = l.pod_name and r.since = l.since
    returning r.pod_namespace, r.pod_name),
  -- Flows may still name the pod as their peer.
  unlabelled as (
    update flow_pod p set is_labelled = false
    from (select distinct d.pod_namespace, d.pod_name from deleted d) d
    where p.pod_namespace = d.pod_namespace and p.pod_name = d.pod_name and p.is_labelled)
  select h.is_held, (select count(*)::int from deleted) as rows, l.pod_namespace as namespace, l.pod_name as pod,
         l.since::text
  from held h
  left join (select l.* from looked_at l order by l.pod_namespace, l.pod_name, l.since offset ${MAX_READ_AT_ONCE - 1}
             limit 1) l on true`,
    )
    const { is_held, rows, namespace, pod, since } = batch!
    if (namespace !== null) after = { namespace, pod: pod!, since: since! }
    return { isHeld: is_held, rows, isLast: namespace === null }
  })
}

/** Returns how many rows a pass would delete, after it deleted the pods `p` that are `expired`. */
export async function countLabels(
  { db }: Pick<JobContext, 'db'>,
  days: number,
  expired: (sql: Sql) => postgres.Fragment,
): Promise<number> {
  const [row] = await db.job(
    (sql) => sql<{ rows: number }[]>`
  select count(*)::int as rows from pod_labels r where ${isUnused(sql, days, expired(sql))}`,
  )
  return row!.rows
}
