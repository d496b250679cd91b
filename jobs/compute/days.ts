import type { Batch, JobContext } from '../job.ts'
import { held } from '../locks.ts'
import { type History, historyFrom, shrinking } from './history.ts'

/**
 * Rows that one statement moves into new partitions, unless that takes too long; posts of history wait a few seconds
 * meanwhile.
 */
const MOVED_AT_ONCE = 500_000

/**
 * Creates the missing daily partitions of a table. `rows` counts partitions and rows moved into them. A day whose rows
 * cannot be moved within a statement keeps no other step from running.
 */
export function makeDays(table: History, context: JobContext): () => Promise<Batch> {
  return shrinking(MOVED_AT_ONCE, async (movedAtOnce) => {
    const [batch] = await context.db.job(
      (sql) => sql<{ is_held: boolean; made: number; moved: number; waiting: number; is_held_up: boolean }[]>`
  with ${held(sql, 'compute-retention')}
  select h.is_held, coalesce(d.made, 0) as made, coalesce(d.moved, 0)::int as moved, coalesce(d.waiting, 0) as waiting,
         coalesce(d.is_held_up, false) as is_held_up
  from held h
  left join lateral compute_make_days(case when h.is_held then ${table} end, ${historyFrom(sql, context)},
                                      ${movedAtOnce}) d on true`,
    )
    const { is_held, made, moved, waiting, is_held_up } = batch!
    const isLast = made === 0 || waiting === 0
    if (is_held_up)
      context.log.warn({ table, waiting }, 'another session holds the table: the next pass creates its partitions')
    else if (isLast && waiting > 0)
      context.log.warn({ table, waiting }, 'days of the default partition have too many rows to be moved')
    return { isHeld: is_held, rows: made + moved, isLast }
  })
}

/** Drops the expired daily partitions of a table. `rows` counts partitions. */
export function dropDays(table: History, context: JobContext): () => Promise<Batch> {
  return async () => {
    const [batch] = await context.db.job(
      (sql) => sql<{ is_held: boolean; dropped: number; is_held_up: boolean }[]>`
  with ${held(sql, 'compute-retention')}
  select h.is_held, coalesce(d.dropped, 0) as dropped, coalesce(d.is_held_up, false) as is_held_up
  from held h
  left join lateral compute_drop_days(case when h.is_held then ${table} end, ${historyFrom(sql, context)}) d on true`,
    )
    const { is_held, dropped, is_held_up } = batch!
    if (is_held_up) context.log.warn({ table }, 'another session holds the table: the next pass drops its partitions')
    return { isHeld: is_held, rows: dropped, isLast: true }
  }
}

/** Deletes rows of the default partition that would be in expired partitions. */
export function trimOther(table: History, context: JobContext): () => Promise<Batch> {
  const batchRows = context.config.auditRetentionBatchSize
  return async () => {
    const [batch] = await context.db.job(
      (sql) => sql<{ is_held: boolean; rows: number }[]>`
  with ${held(sql, 'compute-retention')}
  select h.is_held, coalesce(t.rows, 0)::int as rows
  from held h
  left join lateral compute_trim_other(case when h.is_held then ${table} end, ${historyFrom(sql, context)},
                                       ${batchRows}) t(rows) on true`,
    )
    return { isHeld: batch!.is_held, rows: batch!.rows, isLast: batch!.rows < batchRows }
  }
}

/** Estimates the rows of expired partitions, and counts the rows of the default partition that would be deleted. */
export async function countDays(table: History, context: JobContext): Promise<number> {
  const [row] = await context.db.job((sql) => {
    const isRolledUp =
      table === 'compute_minute' ? sql`or (o.ts < (select ts::date from line) and not o.is_late)` : sql``
    return sql<{ rows: number }[]>`
  with line as (
    select case when ${table === 'compute_minute'} then f.folded_until else '-infinity' end as ts from compute_fold f)
  select coalesce(sum(greatest(c.reltuples, 0)), 0)::float8
         + (select count(*) from ${sql(`${table}_other`)} o
            where o.ts < ${historyFrom(sql, context)} ${isRolledUp}) as rows
  from compute_days(${table}) d
  join pg_class c on c.oid = d.partition
  where d.day < ${historyFrom(sql, context)} or d.day + 1 <= (select ts from line)`
  })
  return row!.rows
}
