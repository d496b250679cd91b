/** The range of a query of flows, and the part of it for which flows are kept (docs/contract.md#flow-queries). */
import { fixed, type Gate } from '../db/index.ts'
import { fromPostgres } from '../time/timestamp.ts'

/** A time, or a number of seconds before now. */
export type Moment = { readonly time: string } | { readonly secsAgo: number }

export interface Range {
  /** Texts of PostgreSQL, infinite where the query does not say. */
  readonly since: string
  readonly until: string
  /** For answers: the part of the range for which flows are kept. */
  readonly observedSince: string | null
  readonly observedUntil: string
}

/**
 * The oldest flow is found by an index. Flows of pods that are gone are deleted after the retention days. Where no flow
 * is stored nothing was observed: `greatest` passes over nulls.
 */
const RANGE = fixed<
  { since: string; until: string; observed_since: string | null; observed_until: string; is_reversed: boolean }[]
>(`
  select r.since::text, r.until::text,
         case when k.kept_since is not null then greatest(k.kept_since, r.since) end::text as observed_since,
         least(r.until, r.moment)::text as observed_until, r.since > r.until as is_reversed
  from (select n.moment,
               coalesce($1::text::timestamp, n.moment - make_interval(secs => $2::float8), '-infinity') as since,
               coalesce($3::text::timestamp, n.moment - make_interval(secs => $4::float8), 'infinity') as until
        from (select now() at time zone 'utc' as moment) n) r
  left join lateral (
    select greatest(t.time_stamp, r.moment - make_interval(days => nullif($5::int, 0))) as kept_since
    from traffic t order by t.time_stamp, t.uuid limit 1) k on true`)

/** Returns null if `since` is after `until`. */
export async function readRange(
  gate: Gate,
  since: Moment | null,
  until: Moment | null,
  retentionDays: number,
): Promise<Range | null> {
  const [row] = await gate((sql) => RANGE(sql, ...valuesOf(since), ...valuesOf(until), retentionDays))
  if (row!.is_reversed) return null
  const { observed_since: kept } = row!
  return {
    since: row!.since,
    until: row!.until,
    observedSince: kept === null ? null : fromPostgres(kept),
    observedUntil: fromPostgres(row!.observed_until),
  }
}

const valuesOf = (moment: Moment | null): [time: string | null, secsAgo: number | null] => [
  moment !== null && 'time' in moment ? moment.time : null,
  moment !== null && 'secsAgo' in moment ? moment.secsAgo : null,
]
