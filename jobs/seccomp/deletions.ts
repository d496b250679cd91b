import type { Sql } from '../../lib/db/index.ts'
import { type Batch, inRestedBatches, type JobContext, type Pass } from '../job.ts'
import { held } from '../locks.ts'

const MAX_BATCHES = 200
const NODES_AT_ONCE = 5_000
/** Each may have thousands of files. */
const SETS_AT_ONCE = 100
const SECONDS_PER_DAY = 86_400

const isBefore = (sql: Sql, time: ReturnType<Sql>, secs: number) => sql`
    ${time} < now() at time zone 'utc' - make_interval(secs => ${secs})`

const retentionSecs = ({ config }: Pick<JobContext, 'config'>) => config.seccompDenialsRetentionDays * SECONDS_PER_DAY

/**
 * Seconds after which a node that posted no profiles is deleted: at least while it counts as live and while denials are
 * kept; null if nodes stay live for ever.
 */
function profilesSecs(context: Pick<JobContext, 'config'>): number | null {
  const { seccompNodeStaleSecs } = context.config
  return seccompNodeStaleSecs === 0 ? null : Math.max(retentionSecs(context), seccompNodeStaleSecs)
}

/** Deletes denials beyond the retention days, the oldest first. Rows locked by a drain are skipped. */
export function deleteDenials(context: JobContext): Promise<Pass> {
  const { config, db, signal } = context
  const batchRows = config.seccompDenialsBatchSize
  const isExpired = (sql: Sql) => isBefore(sql, sql`d.last_seen`, retentionSecs(context))
  let after = { seen: '-infinity', id: '0' }
  return inRestedBatches(signal, MAX_BATCHES, async (): Promise<Batch> => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; rows: number; seen: string | null; id: string | null }[]>`
  with ${held(sql, 'seccomp-denial-retention')},
  expired as materialized (
    select d.place, d.last_seen, d.id
    from (select d.ctid as place, d.last_seen, d.id
          from seccomp_denial d
          where (select is_held from held) and (d.last_seen, d.id) > (${after.seen}::text::timestamp,
                                                                      ${after.id}::text::bigint)
          order by d.last_seen, d.id
          limit ${batchRows}) d
    where ${isExpired(sql)}),
  locked as materialized (
    select d.ctid as place
    from seccomp_denial d
    where d.ctid = any (array(select e.place from expired e)) and ${isExpired(sql)}
    for update skip locked),
  deleted as (
    delete from seccomp_denial d where d.ctid = any (array(select l.place from locked l)) returning 1)
  select h.is_held, (select count(*)::int from deleted) as rows, l.last_seen::text as seen, l.id::text as id
  from held h
  left join (select e.* from expired e order by e.last_seen, e.id offset ${batchRows - 1} limit 1) l on true`,
    )
    const { is_held, rows, seen, id } = batch!
    if (seen !== null && id !== null) after = { seen, id }
    return { isHeld: is_held, rows, isLast: id === null }
  })
}

/** Deletes rows of nodes that were not written for `secs`. Rows locked by another session are skipped. */
function deleteNodes(
  { db, signal }: JobContext,
  table: 'seccomp_denial_node' | 'seccomp_node',
  secs: number,
): Promise<Pass> {
  const isExpired = (sql: Sql) => isBefore(sql, sql`n.updated_at`, secs)
  let after = ''
  return inRestedBatches(signal, MAX_BATCHES, async (): Promise<Batch> => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; rows: number; last: string | null }[]>`
  with ${held(sql, 'seccomp-denial-retention')},
  looked_at as materialized (
    select n.ctid as place, n.node_name, n.updated_at
    from ${sql(table)} n
    where (select is_held from held) and n.node_name > ${after}::text collate "C"
    order by n.node_name
    limit ${NODES_AT_ONCE}),
  locked as materialized (
    select n.ctid as place
    from ${sql(table)} n
    where n.ctid = any (array(select n.place from looked_at n where ${isExpired(sql)})) and ${isExpired(sql)}
    for update skip locked),
  deleted as (
    delete from ${sql(table)} n where n.ctid = any (array(select l.place from locked l)) returning 1)
  select h.is_held, (select count(*)::int from deleted) as rows,
         (select n.node_name from looked_at n order by n.node_name offset ${NODES_AT_ONCE - 1} limit 1) as last
  from held h`,
    )
    const { is_held, rows, last } = batch!
    after = last ?? after
    return { isHeld: is_held, rows, isLast: last === null }
  })
}

/** Deletes nodes that sent no drain within the retention days. */
export const deleteDenialNodes = (context: JobContext): Promise<Pass> =>
  deleteNodes(context, 'seccomp_denial_node', retentionSecs(context))

/** Deletes nodes that posted no profiles within the retention. */
export async function deleteProfileNodes(context: JobContext): Promise<Pass> {
  const secs = profilesSecs(context)
  return secs === null ? { outcome: 'done', rows: 0, batches: 0 } : deleteNodes(context, 'seccomp_node', secs)
}

/** Deletes sets of profile files that no node has: reads all, in the order of their ids. */
export function deleteFileSets({ db, signal }: JobContext): Promise<Pass> {
  let after = ''
  return inRestedBatches(signal, MAX_BATCHES, async (): Promise<Batch> => {
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; rows: number; last: string | null }[]>`
  with ${held(sql, 'seccomp-denial-retention')},
  looked_at as materialized (
    select s.id
    from seccomp_file_set s
    where (select is_held from held) and s.id > decode(${after}::text, 'hex')
    order by s.id
    limit ${SETS_AT_ONCE}),
  unused as materialized (
    select s.id from looked_at s where (select 1 from seccomp_node n where n.file_set_id = s.id limit 1) is null)
  select h.is_held,
         case when exists (select from unused) then drop_file_sets(array(select u.id from unused u)) else 0 end as rows,
         (select encode(s.id, 'hex') from looked_at s order by s.id offset ${SETS_AT_ONCE - 1} limit 1) as last
  from held h`,
    )
    const { is_held, rows, last } = batch!
    after = last ?? after
    return { isHeld: is_held, rows, isLast: last === null }
  })
}

/** Returns how many rows of these tables a pass would delete. */
export async function countDeletions(context: Pick<JobContext, 'config' | 'db'>): Promise<number> {
  const secs = retentionSecs(context)
  const isProfileNodeExpired = (sql: Sql) => {
    const max = profilesSecs(context)
    return max === null ? sql`false` : isBefore(sql, sql`n.updated_at`, max)
  }
  const [row] = await context.db.job(
    (sql) => sql<{ rows: number }[]>`
  select (select count(*)::int from seccomp_denial d where ${isBefore(sql, sql`d.last_seen`, secs)})
       + (select count(*)::int from seccomp_denial_node n where ${isBefore(sql, sql`n.updated_at`, secs)})
       + (select count(*)::int from seccomp_node n where ${isProfileNodeExpired(sql)})
       + (select count(*)::int from seccomp_file_set s
          where not exists (select from seccomp_node n where n.file_set_id = s.id
                            and not (${isProfileNodeExpired(sql)}))) as rows`,
  )
  return row!.rows
}
