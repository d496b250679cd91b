/** The range of a question about changes (docs/contract.md#changes). */
import { fixed, type Gate } from '../../db/index.ts'
import { HttpError } from '../../errors.ts'
import type { Moment } from '../../flows/range.ts'

const USUAL_DAYS = 7

/** Canonical naive UTC. */
export interface Range {
  readonly from: string
  readonly to: string
}

const READ = fixed<[Range & { is_reversed: boolean; is_too_old: boolean }]>(`
  select wire_time(r.since) as "from", wire_time(r.until) as "to", r.since >= r.until as is_reversed,
         coalesce(r.since < r.moment - make_interval(days => nullif($1::integer, 0)), false) as is_too_old
  from (
    select n.moment, u.until,
           coalesce($2::text::timestamp, n.moment - make_interval(secs => $3::float8),
                    u.until - interval '${USUAL_DAYS} days') as since
    from (select now() at time zone 'utc' as moment) n
    cross join lateral (
      select least(n.moment, coalesce($4::text::timestamp, n.moment - make_interval(secs => $5::float8))) as until) u) r`)

const valuesOf = (moment: Moment | null): [time: string | null, secsAgo: number | null] => [
  moment !== null && 'time' in moment ? moment.time : null,
  moment !== null && 'secsAgo' in moment ? moment.secsAgo : null,
]

interface Asked {
  /** The name of the parameter that begins the range. */
  readonly name: 'from' | 'since'
  readonly from: Moment | null
  /** Null for now; a time in the future is now. */
  readonly to: Moment | null
  /** 400 for a range that begins longer ago; 0 is no limit. */
  readonly maxDays: number
}

/** Reads the range by the clock of the database; by default the last seven days before `to`. */
export async function readRange(gate: Gate, { name, from, to, maxDays }: Asked): Promise<Range> {
  const [row] = await gate((sql) => READ(sql, maxDays, ...valuesOf(from), ...valuesOf(to)))
  const { is_reversed: isReversed, is_too_old: isTooOld, ...range } = row!
  const refuse = (rule: string) => new HttpError(400, `Query deserialize error: ${name}: ${rule}`)
  if (isReversed) throw refuse(name === 'from' ? 'expected a time before to' : 'expected a time before now')
  if (isTooOld) throw refuse(`expected a time of the last ${maxDays} days: nothing is kept for longer`)
  return range
}
