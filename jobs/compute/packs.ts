/** Packs minutes by container and hour, and rolls packs up into rows of five minutes (docs/contract.md#compute). */
import {
  type Cells,
  cellsOfText,
  FOLDED_COLUMNS,
  MINUTE_COLUMNS,
  pack,
  packedText,
  unpack,
} from '../../lib/compute/pack.ts'
import type { Sql } from '../../lib/db/index.ts'
import { Slice } from '../../lib/event-loop/slices.ts'
import type { Batch, JobContext } from '../job.ts'
import { held } from '../locks.ts'
import { countEnd, historyFrom, shrinking } from './history.ts'
import { rollUp } from './roll-up.ts'

/** Containers of a batch; of each, one hour is packed, some 3 000 minutes. */
const CONTAINERS_AT_ONCE = 50
/** A batch ends with the hour that exceeds this: of minutes of one second, an hour has 3 600. */
const MINUTES_AT_ONCE = 10_000
const FOLDED_SECS = '300'
const HOUR_SECS = 3_600
const [ID, TS] = [0, 1]

/**
 * The limits of a pass. Minutes of hours before `until_ts` are counted and may be packed; the count is ahead of that
 * after the clock was set back. Hours before `rollup_end`, those older than `computeHistoryMinuteHours`, become rows of
 * five minutes. Minutes before `line` that are not late were rolled up by an earlier release.
 */
const limits = (
  sql: Sql,
  context: Pick<JobContext, 'config'>,
  until = sql`least(date_trunc('hour', f.counted_until), ${countEnd(sql)})`,
) => sql`
  limits as materialized (
    select ${until} as until_ts, f.folded_until as line, ${historyFrom(sql, context)} as kept_from,
           date_trunc('hour', now() at time zone 'utc'
                              - make_interval(hours => ${context.config.computeHistoryMinuteHours})) as rollup_end
    from compute_fold f
    where f.pack_after <= now() at time zone 'utc')`

interface Found {
  /** An `hour`, what there is of it, and one `batch` with the last container. */
  readonly kind: 'hour' | 'minutes' | 'rows' | 'minute pack' | 'folded pack' | 'batch'
  readonly container_id: string | null
  readonly hour: string
  readonly is_rolled_up: boolean
  readonly resolution_secs: string
  /** The text of rows, a pack in base64; of the batch whether the lock of the job is held. */
  readonly data: string | null
  readonly revision: string | null
  /** A JSON array. */
  readonly minute_keys: string | null
}

/** Of each of the next containers, the first hour with minutes to pack or with packs of minutes to roll up. */
const read = (sql: Sql, context: JobContext, after: string, containers: number) => sql<Found[]>`
  with ${held(sql, 'compute-fold')},
  ${limits(sql, context)},
  batch as materialized (
    select c.id
    from compute_container c
    where c.id > (select ${after}::text::bigint from held where is_held)
    order by c.id
    limit ${containers}),
  first_hour as materialized (
    select b.id as container_id, d.hour, d.hour < l.rollup_end as is_rolled_up, l.line
    from limits l
    cross join batch b
    cross join lateral (
      select least(
        (select date_trunc('hour', min(m.ts)) from compute_minute m
         where m.container_id = b.id and m.ts >= l.kept_from and m.ts < l.until_ts and (m.ts >= l.line or m.is_late)),
        (select min(k.ts) from compute_minute_pack k
         where k.container_id = b.id and k.ts >= l.kept_from and k.ts < l.rollup_end)) as hour) d
    where d.hour is not null),
  due as materialized (
    select h.*
    from (
      select h.*, n.minutes, sum(n.minutes) over (order by h.container_id) as so_far
      from first_hour h
      cross join lateral (
        select (select count(*) from compute_minute m
                where m.container_id = h.container_id and m.ts >= h.hour and m.ts < h.hour + interval '1 hour')
               + coalesce((select sum(cardinality(k.seconds)) from compute_minute_pack k
                           where k.container_id = h.container_id and k.ts = h.hour), 0) as minutes) n) h
    where h.so_far - h.minutes < ${MINUTES_AT_ONCE})
  select 'batch' as kind, (select max(b.id)::text from batch b) as container_id, '' as hour, false as is_rolled_up,
         '0' as resolution_secs, h.is_held::text as data, null as revision, null as minute_keys
  from held h
  union all
  select 'hour', d.container_id::text, d.hour::text, d.is_rolled_up, '0', null, null, null
  from due d
  union all
  select 'minutes', d.container_id::text, d.hour::text, d.is_rolled_up, m.resolution_secs::text, m.data, null, null
  from due d
  cross join lateral (
    select m.resolution_secs, ${sql.unsafe(packedText(MINUTE_COLUMNS, 'm'))} as data
    from (
      select m.* from compute_minute m
      where m.container_id = d.container_id and m.ts >= d.hour and m.ts < d.hour + interval '1 hour'
        and (m.ts >= d.line or m.is_late)
      order by m.resolution_secs, m.ts, m.id
      offset 0) m
    group by m.resolution_secs) m
  union all
  select 'minute pack', d.container_id::text, d.hour::text, d.is_rolled_up, k.resolution_secs::text,
         encode(k.data, 'base64'), k.revision::text, null
  from due d
  cross join lateral (
    select k.* from compute_minute_pack k where k.container_id = d.container_id and k.ts = d.hour offset 0) k
  union all
  select 'folded pack', d.container_id::text, d.hour::text, true, k.resolution_secs::text, encode(k.data, 'base64'),
         k.revision::text, array_to_json(k.minute_keys)::text
  from due d
  cross join lateral (
    select k.* from compute_folded_pack k where k.container_id = d.container_id and k.ts = d.hour offset 0) k
  union all
  select 'rows', d.container_id::text, d.hour::text, true, ${FOLDED_SECS}, f.data, null, null
  from due d
  cross join lateral (
    select ${sql.unsafe(packedText(FOLDED_COLUMNS, 'f'))} as data
    from (
      select f.* from compute_folded f
      where f.container_id = d.container_id and f.ts >= d.hour and f.ts < d.hour + interval '1 hour'
        and f.resolution_secs = ${FOLDED_SECS} and f.ts = date_bin('300 s', f.ts, '0001-01-01')
      order by f.ts
      offset 0) f
    having count(*) > 0) f
  where d.is_rolled_up`

/** The minutes, rows and packs of a container and hour. */
interface Hour {
  readonly container_id: string
  readonly hour: string
  readonly is_rolled_up: boolean
  /** The length and revision of each pack that was read: a pack that was not read is never replaced. */
  readonly packs: string[]
  /** By their length. */
  readonly minutes: Map<string, Cells>
  readonly minutePacks: Map<string, Cells>
  foldedPack: Cells | null
  minuteKeys: ReadonlySet<number>
  /** Rows of five minutes that were posted, or rolled up by an earlier release. */
  rows: Cells | null
}

/** The hours that were found, without those of which a pack cannot be read: their minutes stay as they are. */
async function hoursOf(found: readonly Found[], onUnreadable: (hour: Found, error: unknown) => void): Promise<Hour[]> {
  const hours = new Map<string, Hour>()
  const hourOf = ({ container_id, hour }: Found) => hours.get(`${container_id} ${hour}`)!
  for (const one of found)
    if (one.kind === 'hour')
      hours.set(`${one.container_id} ${one.hour}`, {
        ...{ container_id: one.container_id!, hour: one.hour, is_rolled_up: one.is_rolled_up, packs: [] },
        ...{ minutes: new Map(), minutePacks: new Map(), foldedPack: null, minuteKeys: new Set(), rows: null },
      })
  const unreadable = new Set<Hour>()
  const slice = new Slice()
  for (const one of found) {
    if (one.kind === 'minutes') hourOf(one).minutes.set(one.resolution_secs, cellsOfText(one.data!))
    else if (one.kind === 'rows') hourOf(one).rows = cellsOfText(one.data!)
    else if (one.revision !== null)
      try {
        addPack(hourOf(one), one)
      } catch (error) {
        unreadable.add(hourOf(one))
        onUnreadable(one, error)
      }
    if (slice.isOver) await slice.next()
  }
  return [...hours.values()].filter((hour) => !unreadable.has(hour))
}

/** @throws the error of zlib if the pack cannot be read */
function addPack(hour: Hour, { kind, resolution_secs, data, revision, minute_keys }: Found): void {
  const columns = kind === 'minute pack' ? MINUTE_COLUMNS : FOLDED_COLUMNS
  const cells = unpack(Buffer.from(data!, 'base64'), columns)
  hour.packs.push(`${resolution_secs} ${revision}`)
  if (kind === 'minute pack') hour.minutePacks.set(resolution_secs, cells)
  else {
    hour.foldedPack = cells
    hour.minuteKeys = new Set(JSON.parse(minute_keys!))
  }
}

/** The second of its hour at which a row is, of a time as PostgreSQL prints it. */
const secondOf = (ts: string) => Number(ts.slice(14, 16)) * 60 + Number(ts.slice(17, 19))

/** The rows of a pack and those that it lacks, by time and id. */
function union(known: Cells | undefined, more: Cells | undefined): Cells {
  if (known === undefined || more === undefined) return (known ?? more)!
  const times = new Set(known[TS])
  const rows = [known, more].flatMap((cells) =>
    cells[TS]!.flatMap((ts, at) =>
      cells === known || !times.has(ts) ? [{ ts, id: Number(cells[ID]![at]), cells, at }] : [],
    ),
  )
  rows.sort((a, b) => (a.ts < b.ts ? -1 : a.ts > b.ts ? 1 : a.id - b.id))
  return known.map((_, column) => rows.map(({ cells, at }) => cells[column]![at]!))
}

/** The rows at the places that are `wanted`. */
const filtered = (cells: Cells, wanted: (at: number) => boolean): Cells =>
  cells.map((column) => column.filter((_, at) => wanted(at)))

/** The pack of an hour that is rolled up. */
function rolledUp({ minutes, minutePacks, foldedPack, minuteKeys, rows }: Hour) {
  const keys = new Set(minuteKeys)
  const added = [...new Set([...minutePacks.keys(), ...minutes.keys()])].map((resolution) => {
    const cells = union(minutePacks.get(resolution), minutes.get(resolution))
    const keyed = cells[TS]!.map((ts) => Number(resolution) * HOUR_SECS + secondOf(ts))
    for (const key of keyed) keys.add(key)
    return filtered(cells, (at) => !minuteKeys.has(keyed[at]!))
  })
  return {
    cells: rollUp(
      added,
      [foldedPack, rows].filter((one) => one !== null),
    ),
    minute_keys: [...keys],
  }
}

/** The document of `compute_write_packs`. */
async function packsOf(hours: readonly Hour[]): Promise<object> {
  const minutes: object[] = []
  const folded: object[] = []
  const slice = new Slice()
  for (const one of hours) {
    const { container_id, hour } = one
    const packed = (cells: Cells, columns: readonly string[]) => ({
      ...{ container_id, hour, seconds: cells[TS]!.map(secondOf) },
      data: pack(cells, columns).toString('base64'),
    })
    if (one.is_rolled_up) {
      const { cells, minute_keys } = rolledUp(one)
      folded.push({ ...packed(cells, FOLDED_COLUMNS), minute_keys })
    } else
      for (const [resolution_secs, posted] of one.minutes)
        minutes.push({
          ...packed(union(one.minutePacks.get(resolution_secs), posted), MINUTE_COLUMNS),
          resolution_secs,
        })
    if (slice.isOver) await slice.next()
  }
  return {
    ...{ minutes, folded },
    hours: hours.map(({ container_id, hour, is_rolled_up, packs, minutes, rows }) => ({
      ...{ container_id, hour, is_rolled_up, packs: packs.sort().join(',') },
      minutes: [...minutes.values()].reduce((sum, cells) => sum + cells[TS]!.length, 0),
      folded_times: rows?.[TS] ?? [],
    })),
  }
}

/** Packs and rolls up the hours of a few containers; each call continues where the last one ended. */
export function packHours(context: JobContext): () => Promise<Batch> {
  const { db, log } = context
  let after = '0'
  const warned = new Set<string>()
  /** The first hour of a container is read again with each batch. */
  const onUnreadable = ({ container_id, hour }: Found, error: unknown) => {
    if (warned.has(container_id!)) return
    warned.add(container_id!)
    log.error(
      { job: 'compute-fold', container: container_id, hour, err: error },
      'a pack of history cannot be read: this hour of the container, and later ones, are not packed',
    )
  }
  return shrinking(CONTAINERS_AT_ONCE, async (containers) => {
    const found = await db.job((sql) => read(sql, context, after, containers))
    const { container_id: last, data: isHeld } = found.find(({ kind }) => kind === 'batch')!
    const hours = await hoursOf(found, onUnreadable)
    if (hours.length === 0) {
      after = last ?? after
      return { isHeld: isHeld === 'true', rows: 0, isLast: last === null }
    }
    // The same containers may have more hours.
    const doc = JSON.stringify(await packsOf(hours))
    const [batch] = await db.job(
      (sql) => sql<{ is_held: boolean; rows: number | null }[]>`
  with ${held(sql, 'compute-fold')}
  select h.is_held, compute_write_packs(case when h.is_held then ${doc}::text::json end)::int as rows from held h`,
    )
    return { isHeld: batch!.is_held, rows: batch!.rows ?? 0, isLast: false }
  })
}

/** Returns how many minutes a pass would pack or roll up. */
export async function countMinutesToPack(context: JobContext): Promise<number> {
  const [row] = await context.db.job(
    (sql) => sql<{ rows: number }[]>`
  with ${limits(sql, context, countEnd(sql))}
  select coalesce((select count(*) from limits l join compute_minute m
                     on m.ts >= l.kept_from and m.ts < l.until_ts and (m.ts >= l.line or m.is_late)), 0)::int
         + coalesce((select sum(cardinality(k.seconds)) from limits l join compute_minute_pack k
                       on k.ts >= l.kept_from and k.ts < l.rollup_end), 0)::int as rows`,
  )
  return row!.rows
}
