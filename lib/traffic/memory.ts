import { type Database, fixed } from '../db/index.ts'
import type { Log } from '../observability/log.ts'
import type { SeenFlows } from './seen.ts'

/** Without an answer for this long, remembered keys are no longer reliable. */
const FORGET_AFTER_MS = 10_000

/**
 * Identifies what remembered keys are valid for: a server since its start, as primary or not, a database in it, and the
 * number of statements that deleted flows there. Any role may read these values, and they are the same on every
 * connection of a pooler, unlike addresses. No other server started in the same microsecond, and a server changes its
 * timeline only at a start or promotion.
 */
const ASK = fixed<{ identity: string }[]>(`
  select concat_ws(' ', extract(epoch from pg_postmaster_start_time()), pg_is_in_recovery(),
                   (select oid from pg_database where datname = current_database()),
                   coalesce((select statements from traffic_deletion), 0)) as identity`)

/**
 * Checks every `everyMs` whether the database is still the one whose answers are remembered, behind whatever pooler,
 * and whether any process deleted flows. If not, or without an answer for 10 s, clears `seen`: otherwise the repeat of
 * a flow that is gone would be dropped. It uses the gate that stores flows, so that the same server answers. Nothing is
 * sent while nothing is remembered. Ends with `stop`.
 */
export function watchMemory(options: { db: Database; seen: SeenFlows; log: Log; everyMs: number }): { stop(): void } {
  const { db, seen, log, everyMs } = options
  const maxSilentRounds = Math.ceil(FORGET_AFTER_MS / everyMs)
  let known: string | null = null
  let isAsking = false
  // Counted in rounds instead of time: while the event loop is blocked, answers wait in the socket.
  let silentRounds = 0
  const ask = async () => {
    isAsking = true
    try {
      const [row] = await db.ingest((sql) => ASK(sql))
      if (row!.identity !== known) seen.clear()
      known = row!.identity
      silentRounds = 0
    } catch (error) {
      log.debug({ err: error }, 'could not check whether remembered flows are still stored')
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
