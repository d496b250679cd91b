import { type Database, fixed } from '../db/index.ts'
import type { Log } from '../observability/log.ts'
import type { SeenFlows } from './seen.ts'

/** Silence after which what is remembered can no longer be vouched for. */
const FORGET_AFTER_MS = 10_000

/**
 * What memory belongs to: a server since its start, as a primary or not, a database in it, and how many statements had deleted flows
 * there. All of it any role may ask, and none of it differs from one connection of a pooler to the next, as addresses may. No other
 * server started in the same microsecond, and none takes another time line without a start or a promotion.
 */
const ASK = fixed<{ place: string }[]>(`
  select concat_ws(' ', extract(epoch from pg_postmaster_start_time()), pg_is_in_recovery(),
                   (select oid from pg_database where datname = current_database()),
                   coalesce((select statements from traffic_deletion), 0)) as place`)

/**
 * Asks every `everyMs` whether the database is still the one whose answers are remembered, behind whatever pooler, and whether flows were
 * deleted, by whichever process; has all forgotten when it is not, when they were, and when there was no answer for 10 s: a repeat of
 * a flow that is gone would vanish. Asked where flows are stored, so that what answers is what confirms them. Nothing is asked while
 * nothing is remembered. Ends with `stop`.
 */
export function watchMemory(options: { db: Database; seen: SeenFlows; log: Log; everyMs: number }): { stop(): void } {
  const { db, seen, log, everyMs } = options
  const maxSilentRounds = Math.ceil(FORGET_AFTER_MS / everyMs)
  let known: string | null = null
  let isAsking = false
  // In rounds, not on the clock: while the event loop is blocked answers lie in the socket.
  let silentRounds = 0
  const ask = async () => {
    isAsking = true
    try {
      const [row] = await db.ingest((sql) => ASK(sql))
      if (row!.place !== known) seen.clear()
      known = row!.place
      silentRounds = 0
    } catch (error) {
      log.debug({ err: error }, 'whether what is remembered still holds is not known')
    }
    isAsking = false
  }
  const round = () => {
    if (seen.size === 0) {
      silentRounds = 0
      return
    }
    if (silentRounds++ === maxSilentRounds) {
      seen.clear()
      silentRounds = 0
    } else if (!isAsking) ask()
  }
  const timer = setInterval(round, everyMs).unref()
  return { stop: () => clearInterval(timer) }
}
