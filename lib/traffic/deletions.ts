import type { Database, Sql } from '../db/index.ts'
import type { Log } from '../log.ts'
import type { SeenFlows } from './seen.ts'

/**
 * A part of every statement that deletes flows, behind one called `deleted`: the count grows in the same transaction, so that whoever
 * finds it grown finds the flows gone.
 */
export const countedDeletion = (sql: Sql) => sql`
  counted as (
    insert into traffic_deletion (statements) select 1 where exists (select from deleted)
    on conflict (is_only) do update set statements = traffic_deletion.statements + 1)`

/**
 * Asks every `everyMs` whether flows were deleted, by whichever process, and has them forgotten then: what is remembered as stored would
 * let a repeat of a deleted flow vanish. Nothing is asked while nothing is remembered. A database that does not answer is asked
 * again. Ends with `stop`.
 */
export function watchDeletions(options: { db: Database; seen: SeenFlows; log: Log; everyMs: number }): { stop(): void } {
  const { db, seen, log, everyMs } = options
  let known: string | null = null
  let isAsking = false
  const ask = async () => {
    if (isAsking || seen.size === 0) return
    isAsking = true
    try {
      const [row] = await db.probe((sql) => sql<{ statements: string }[]>`select statements from traffic_deletion`)
      const found = row?.statements ?? '0'
      if (found !== known) seen.clear()
      known = found
    } catch (error) {
      log.debug({ err: error }, 'whether flows were deleted is not known')
    }
    isAsking = false
  }
  const timer = setInterval(ask, everyMs).unref()
  return { stop: () => clearInterval(timer) }
}
