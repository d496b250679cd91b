import type { Sql } from '../../lib/db/index.ts'
import { type Batch, inRestedBatches, type JobContext, type Pass } from '../job.ts'
import { held } from '../locks.ts'

/** Five million denials per pass. */
const MAX_BATCHES = 1_000

const isUnattributed = (sql: Sql) => sql`(d.workload_kind is null or d.workload_name is null)`

/**
 * Attributes denials whose pod was unknown, by the rule of ingest (docs/contract.md#denials). Reads all of them in
 * index order. Rows locked by a post are skipped: the post attributes them itself.
 */
export function attribute({ config, db, signal }: JobContext): Promise<Pass> {
  const batchRows = config.seccompDenialsBatchSize
  let after = { namespace: '', id: '0' }
  return inRestedBatches(signal, MAX_BATCHES, async (): Promise<Batch> => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; rows: number; namespace: string | null; id: string | null }[]>`
  with ${held(sql, 'seccomp-denial-retention')},
  looked_at as materialized (
    select d.id, d.pod_name, d.pod_namespace
    from seccomp_denial d
    where (select is_held from held) and ${isUnattributed(sql)}
      and (d.pod_namespace, d.id) > (${after.namespace}::text collate "C", ${after.id}::text::bigint)
    order by d.pod_namespace, d.id
    limit ${batchRows}),
  known as materialized (
    select l.id from looked_at l cross join lateral denial_workload(l.pod_name, l.pod_namespace) w),
  locked as materialized (
    select d.id, d.pod_name, d.pod_namespace
    from seccomp_denial d
    where d.id = any (array(select k.id from known k)) and ${isUnattributed(sql)}
    for update skip locked),
  attributed as (
    update seccomp_denial d set workload_kind = w.kind, workload_name = w.name
    from locked l cross join lateral denial_workload(l.pod_name, l.pod_namespace) w
    where d.id = l.id
    returning 1)
  select h.is_held, (select count(*)::int from attributed) as rows, l.pod_namespace as namespace, l.id::text as id
  from held h
  left join (select l.* from looked_at l order by l.pod_namespace, l.id offset ${batchRows - 1} limit 1) l on true`,
    )
    const { is_held, rows, namespace, id } = batch!
    if (namespace !== null && id !== null) after = { namespace, id }
    return { isHeld: is_held, rows, isLast: id === null }
  })
}

/** Returns how many denials a pass would attribute. */
export async function countAttributable({ db }: Pick<JobContext, 'db'>): Promise<number> {
  const [row] = await db.job(
    (sql) => sql<{ rows: number }[]>`
  select count(*)::int as rows
  from seccomp_denial d cross join lateral denial_workload(d.pod_name, d.pod_namespace) w
  where ${isUnattributed(sql)}`,
  )
  return row!.rows
}
