import type { Sql } from '../../lib/db/index.ts'
import type { Batch, JobContext } from '../job.ts'
import { held } from '../locks.ts'

/** The latest samples and the heartbeats of nodes: their keys, and the age at which they are deleted. */
export const GAUGES = [
  { table: 'compute_latest', key: 'container_uid', maxAgeSecs: 600 },
  { table: 'compute_node', key: 'node', maxAgeSecs: 3_600 },
] as const
type Gauges = (typeof GAUGES)[number]

/** Rows that one statement reads. No index has their time, since it would slow down each post of a sample. */
const READ_AT_ONCE = 5_000

const isOld = (sql: Sql, { maxAgeSecs }: Gauges) => sql`
    g.updated_at < now() at time zone 'utc' - make_interval(secs => ${maxAgeSecs})`

/** Deletes one batch of old rows; each call continues where the last one ended. Locked rows are skipped. */
export function deleteGauges(gauges: Gauges, { config, db }: JobContext): () => Promise<Batch> {
  const batchRows = config.auditRetentionBatchSize
  let after = ''
  return async () => {
    const [batch] = await db.job((sql) => {
      const [table, key] = [sql(gauges.table), sql(gauges.key)]
      return sql<{ is_held: boolean; rows: number; last: string | null }[]>`
  with ${held(sql, 'compute-retention')},
  looked_at as materialized (
    select g.ctid as place, g.${key} as key, g.updated_at
    from ${table} g
    where g.${key} > (select ${after}::text collate "C" from held where is_held)
    order by g.${key}
    limit ${READ_AT_ONCE}),
  old as materialized (
    select g.place, g.key from looked_at g where ${isOld(sql, gauges)} order by g.key limit ${batchRows}),
  locked as materialized (
    select g.ctid as place
    from ${table} g
    where g.ctid = any (array(select o.place from old o)) and ${isOld(sql, gauges)}
    for update skip locked),
  deleted as (
    delete from ${table} g where g.ctid = any (array(select l.place from locked l)) returning 1)
  select h.is_held, (select count(*)::int from deleted) as rows,
         coalesce((select o.key from old o order by o.key offset ${batchRows - 1} limit 1),
                  (select g.key from looked_at g order by g.key offset ${READ_AT_ONCE - 1} limit 1)) as last
  from held h`
    })
    const { is_held, rows, last } = batch!
    after = last ?? after
    return { isHeld: is_held, rows, isLast: last === null }
  }
}

export async function countGauges(gauges: Gauges, { db }: JobContext): Promise<number> {
  const [row] = await db.job(
    (sql) =>
      sql<{ rows: number }[]>`select count(*)::int as rows from ${sql(gauges.table)} g where ${isOld(sql, gauges)}`,
  )
  return row!.rows
}
