/**
 * The turn to compute profiles. This job works between its statements, where the lock of a job does not hold, so the
 * process that computes says so in a row. A process that dies loses its turn after a while.
 */
import { randomUUID } from 'node:crypto'
import type { Database } from '../../lib/db/index.ts'
import { held } from '../locks.ts'

/** Longer than a few slow statements take. */
const TURN_SECS = 180
const RENEW_AFTER_MS = 30_000

export interface Turn {
  /** The start of the turn, by the clock of the database. */
  readonly startedAt: string
  /** Renews the turn where it is due. Resolves to false if another process has it by now. */
  keep(): Promise<boolean>
  end(): Promise<void>
}

/** Resolves to null if another process has the turn. */
export async function takeTurn(db: Database): Promise<Turn | null> {
  const holder = randomUUID()
  let renewedAt = performance.now()
  const startedAt = await renew(db, holder)
  if (startedAt === null) return null
  return {
    startedAt,
    async keep() {
      if (performance.now() - renewedAt < RENEW_AFTER_MS) return true
      renewedAt = performance.now()
      return (await renew(db, holder)) !== null
    },
    async end() {
      await db.job((sql) => sql`delete from workload_profile_turn where holder = ${holder}::text::uuid`)
    },
  }
}

/** Takes or renews the turn. Resolves to the time of the database; null if another process has the turn. */
async function renew(db: Database, holder: string): Promise<string | null> {
  const [taken] = await db.job(
    (sql) => sql<{ now: string | null }[]>`
  with ${held(sql, 'profile-snapshots')},
  taken as (
    insert into workload_profile_turn as t (holder, held_until)
    select ${holder}::text::uuid, now() at time zone 'utc' + make_interval(secs => ${TURN_SECS})
    from held h where h.is_held
    on conflict (is_only) do update set holder = excluded.holder, held_until = excluded.held_until
    where t.holder = excluded.holder or t.held_until < now() at time zone 'utc'
      -- from before the clock was set back
      or t.held_until > now() at time zone 'utc' + make_interval(secs => ${2 * TURN_SECS})
    returning 1)
  select case when exists (select from taken) then (now() at time zone 'utc')::text end as now`,
  )
  return taken!.now
}
