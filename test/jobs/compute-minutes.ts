/** Minutes as a post of history stores them, and a model of the rows that they are folded into. */
import type postgres from 'postgres'
import { type Cells, cellsOfText, FOLDED_COLUMNS, NULL_CELL, packedText, unpack } from '../../lib/compute/pack.ts'

export const BUCKET_SECS = 300
const MAX_BIGINT = 2n ** 63n - 1n

const MEANS = ['cpu_usage_millis', 'cpu_psi_some10', 'cpu_psi_full10', 'mem_psi_some10', 'mem_psi_full10'] as const
const BYTES = ['mem_current', 'mem_working_set'] as const
const LASTS = ['cpu_usage_millis', ...BYTES] as const
const NEWEST = [
  'cpu_quota_usec',
  'cpu_period_usec',
  'cpu_request_millis',
  'cpu_limit_millis',
  'mem_limit',
  'mem_request',
] as const
const COUNTERS = [
  ...(['cpu_nr_periods', 'cpu_nr_throttled', 'cpu_throttled_usec', 'mem_events_high', 'mem_events_max'] as const),
  ...(['mem_oom_kill', 'mem_refault', 'mem_pgmajfault'] as const),
]
const RUNQ_SUMS = ['runq_count', 'runq_overflow'] as const
const RUNQ_MAXES = ['runq_p50_us', 'runq_p95_us', 'runq_p99_us', 'runq_max_us'] as const

// biome-ignore lint/suspicious/noExplicitAny: columns by name; whole numbers may be texts.
export type Values = Record<string, any>
export interface Minute {
  container: number
  /** Seconds since 1970. */
  at: number
  secs?: number
  values?: Values
}

/** A minute in which every value of the database is `n`, without a run queue. */
export function plain(n: number): Values {
  const all: Values = {}
  for (const name of [...MEANS, ...BYTES]) all[`${name}_avg`] = all[`${name}_max`] = n
  for (const name of LASTS) all[`${name}_last`] = n
  for (const name of [...NEWEST, ...COUNTERS]) all[name] = n
  for (const name of [...RUNQ_SUMS, ...RUNQ_MAXES, 'runq_hist']) all[name] = null
  return all
}

export const runq = (n: number, hist: (number | string)[] | null): Values => ({
  ...Object.fromEntries([...RUNQ_SUMS, ...RUNQ_MAXES].map((name) => [name, n])),
  runq_hist: hist,
})

const wire = (at: number) => new Date(at * 1000).toISOString().slice(0, -1)

/** Stores minutes in one transaction as a post does: known ones change nothing, packed or not. */
export async function post(
  sql: postgres.Sql,
  minutes: readonly Minute[],
  meanwhile?: () => Promise<unknown>,
): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`create temp table if not exists line (ts timestamp) on commit delete rows`
    await tx`insert into line select compute_closed_until()`
    if (meanwhile) await tx`lock table compute_minute in row exclusive mode`
    await meanwhile?.()
    await insert(tx as unknown as postgres.Sql, 'compute_minute', minutes)
  })
}

/** Stores rows of five minutes or more as a post does. */
export const postFolded = (sql: postgres.Sql, rows: readonly Minute[]) => insert(sql, 'compute_folded', rows)

async function insert(
  sql: postgres.Sql,
  table: 'compute_minute' | 'compute_folded',
  minutes: readonly Minute[],
): Promise<void> {
  const rows = minutes.map(({ container, at, secs, values }) => {
    const resolution_secs = secs ?? (table === 'compute_minute' ? 60 : BUCKET_SECS)
    return { ...plain(1), ...values, container_id: container, ts: wire(at), resolution_secs }
  })
  const names = [...Object.keys(plain(1)), 'container_id', 'ts', 'resolution_secs']
  const columns = names.join(', ')
  const late = table === 'compute_minute'
  await sql.unsafe(
    `insert into ${table} (${columns}${late ? ', is_late' : ''})
     select ${columns}${late ? ', ts < (select l.ts from line l)' : ''} from json_populate_recordset(null::${table}, $1::text::json) with ordinality r
     where not exists (
       select from compute_minute_pack k
       where k.container_id = r.container_id and k.ts = date_trunc('hour', r.ts) and k.resolution_secs = r.resolution_secs
         and extract(epoch from date_trunc('second', r.ts) - k.ts) = any (k.seconds))
       and not exists (
         select from compute_folded_pack k
         where k.container_id = r.container_id and k.ts = date_trunc('hour', r.ts)
           and extract(epoch from date_trunc('second', r.ts) - k.ts) + 3600 * r.resolution_secs = any (k.minute_keys))
     order by container_id, ts, ordinality on conflict do nothing`,
    [JSON.stringify(rows)],
  )
}

/** The numbers of a row; whole numbers are exact. */
export type Row = Record<string, number | bigint | null | string>

const big = (value: unknown): bigint | null => (value === null || value === undefined ? null : BigInt(value as string))
const capped = (value: bigint) => (value > MAX_BIGINT ? MAX_BIGINT : value)
const sum = (values: (bigint | null)[]) =>
  values.every((value) => value === null)
    ? null
    : capped(values.reduce<bigint>((total, value) => total + (value ?? 0n), 0n))
const most = (values: (bigint | null)[]) =>
  values.reduce((top, value) => (top === null || (value !== null && value > top) ? value : top), null)
const mean = (values: number[]) => values.reduce((total, value) => total + value, 0) / values.length

/** The row that the minutes of one container within five minutes become (docs/contract.md#compute). */
function folded(minutes: readonly Minute[]): Row {
  const ordered = minutes.toSorted((a, b) => a.at - b.at).map(({ values }): Values => ({ ...plain(1), ...values }))
  const newest = ordered.at(-1)!
  const all = (name: string) => ordered.map((values) => values[name])
  const row: Row = { parts: BigInt(minutes.length) }
  for (const name of MEANS) row[`${name}_avg`] = mean(all(`${name}_avg`))
  for (const name of MEANS) row[`${name}_max`] = Math.max(...all(`${name}_max`))
  for (const name of BYTES) row[`${name}_avg`] = mean(all(`${name}_avg`))
  for (const name of BYTES) row[`${name}_max`] = most(all(`${name}_max`).map(big))
  row.cpu_usage_millis_last = newest.cpu_usage_millis_last
  for (const name of BYTES) row[`${name}_last`] = big(newest[`${name}_last`])
  for (const name of NEWEST) row[name] = big(newest[name])
  for (const name of [...COUNTERS, ...RUNQ_SUMS]) row[name] = sum(all(name).map(big))
  for (const name of RUNQ_MAXES) row[name] = most(all(name).map(big))
  const hists = all('runq_hist').filter((hist) => hist !== null)
  const size = Math.max(...hists.map((hist) => hist.length))
  row.runq_hist =
    hists.length === 0
      ? null
      : Array.from({ length: size }, (_, i) => sum(hists.map((hist) => big(hist[i] ?? 0)))).join(',')
  return row
}

const keyOf = (container: number, at: number) => `${container} ${wire(at - (at % BUCKET_SECS))}`

/** The expected rows for all minutes before a time, by container and time. */
export function foldedAtOnce(minutes: readonly Minute[], before: number): Map<string, Row> {
  const groups = new Map<string, Minute[]>()
  for (const minute of minutes.filter(({ at }) => at < before)) {
    const key = keyOf(minute.container, minute.at)
    groups.set(key, [...(groups.get(key) ?? []), minute])
  }
  return new Map([...groups].map(([key, group]) => [key, folded(group)]))
}

const rowsOf = (container_id: string, names: readonly string[], cells: Cells): Record<string, string | null>[] =>
  cells[0]!.map((_, at) => ({
    container_id,
    ...Object.fromEntries(names.map((name, c) => [name, cells[c]![at] === NULL_CELL ? null : cells[c]![at]!])),
  }))

/** The rows of five minutes, stored or packed, as texts by column. */
export async function foldedRows(sql: postgres.Sql): Promise<Record<string, string | null>[]> {
  const plain = await sql<{ container_id: string; data: string }[]>`
    select f.container_id::text, ${sql.unsafe(packedText(FOLDED_COLUMNS, 'f'))} as data
    from (select * from compute_folded order by container_id, ts) f group by f.container_id order by f.container_id`
  const packs = await sql<{ container_id: string; data: Buffer }[]>`
    select k.container_id::text, k.data from compute_folded_pack k order by k.container_id, k.ts`
  const unpacked = packs.map(({ container_id, data }) =>
    rowsOf(container_id, FOLDED_COLUMNS, unpack(data, FOLDED_COLUMNS)),
  )
  return [
    ...plain.map(({ container_id, data }) => rowsOf(container_id, FOLDED_COLUMNS, cellsOfText(data))),
    ...unpacked,
  ].flat()
}

const LAST_CONTAINER = 102

/** Empties the history. */
export async function emptyHistory(sql: postgres.Sql): Promise<void> {
  await sql`
    truncate compute_container, compute_minute, compute_folded, compute_contention, compute_usage, compute_uncounted,
             compute_minute_pack, compute_folded_pack, compute_contention_kept`
  await sql`
    update compute_fold set folded_until = '-infinity', closed_until = '-infinity', counted_until = '-infinity',
                            count_closed_until = '-infinity', pack_after = '-infinity'`
}

/** Makes the containers of these numbers: only the history of known containers is packed. */
export const makeContainers = (sql: postgres.Sql, first = 0, last = LAST_CONTAINER) => sql`
    insert into compute_container overriding system value
    select n, 'uid-' || n, 'pod-' || n, 'ns', 'pod', 'app', 'node' from generate_series(${first}::int, ${last}::int) n`

/** The stored rows, in the form of `foldedAtOnce`. */
export async function stored(sql: postgres.Sql): Promise<Map<string, Row>> {
  const names = Object.keys(folded([{ container: 0, at: 0 }]))
  return new Map(
    (await foldedRows(sql)).map((row) => {
      const numbers = names.map((name) => {
        const value = row[name]!
        if (name === 'runq_hist') return [name, value && JSON.parse(value).join(',')]
        const isFraction = name.endsWith('_avg') || MEANS.some((mean) => name.startsWith(mean))
        return [name, value === null ? null : isFraction ? Number(value) : BigInt(value)]
      })
      return [`${row.container_id} ${row.ts!.replace(' ', 'T').padEnd(23, '.000')}`, Object.fromEntries(numbers)]
    }),
  )
}

const isBytes = (name: string) => BYTES.some((one) => name.startsWith(one))

/**
 * The most that a mean of whole bytes may be off: each merge of a late minute rounds by at most half a byte, and weighs
 * the error before by the minutes that it had.
 */
function roundedBytes(parts: number): number {
  let error = 0.5
  for (let known = 1; known < parts; known++) error = (error * known) / (known + 1) + 0.5
  return error + 0.01
}

/** The first difference between two sets of rows, or null. Means may differ by a millionth, or by rounded bytes. */
export function difference(found: Map<string, Row>, wanted: Map<string, Row>): string | null {
  for (const key of new Set([...found.keys(), ...wanted.keys()])) {
    const [one, other] = [found.get(key), wanted.get(key)]
    if (one === undefined || other === undefined) return `${key}: ${one === undefined ? 'missing' : 'nobody wants it'}`
    for (const [name, value] of Object.entries(other)) {
      const [a, b] = [one[name], value]
      const isNear =
        name.endsWith('_avg') &&
        Math.abs(Number(a) - Number(b)) <=
          Math.max(1e-6 * Math.abs(Number(b)), isBytes(name) ? roundedBytes(Number(other.parts)) : 1e-9)
      if (a !== b && !isNear) return `${key} ${name}: ${a}, not ${b}`
    }
  }
  return null
}

/** The number of minutes that a reader sees: those read as minutes, and those that five-minute rows contain. */
export async function minutesRead(sql: postgres.Sql): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select ((select count(*) from compute_minute m cross join compute_fold l where m.is_late or m.ts >= l.folded_until)
            + (select coalesce(sum(cardinality(k.seconds)), 0) from compute_minute_pack k))::int as n`
  return (await foldedRows(sql)).reduce((sum, { parts }) => sum + Number(parts), row!.n)
}

/** The minutes that are stored in any form, as texts of container and second. */
export async function storedMinutes(sql: postgres.Sql): Promise<Set<string>> {
  const rows = await sql<{ key: string }[]>`
    select concat_ws(' ', m.container_id, extract(epoch from m.ts)::bigint) as key from compute_minute m
    union all
    select concat_ws(' ', k.container_id, extract(epoch from k.ts)::bigint + s.second)
    from compute_minute_pack k cross join unnest(k.seconds) s(second)
    union all
    select concat_ws(' ', k.container_id, extract(epoch from k.ts)::bigint + s.key % 3600)
    from compute_folded_pack k cross join unnest(k.minute_keys) s(key)`
  return new Set(rows.map(({ key }) => key))
}

/** The numbers of rows in each form. */
export async function forms(sql: postgres.Sql): Promise<{ rows: number; packed: number; folded: number }> {
  const [row] = await sql<{ rows: number; packed: number }[]>`
    select (select count(*) from compute_minute)::int as rows,
           (select coalesce(sum(cardinality(k.seconds)), 0) from compute_minute_pack k)::int as packed`
  return { ...row!, folded: (await foldedRows(sql)).length }
}

/** Stores `count` minutes of a hundred containers, two for each second, ordered by time. */
export async function manyMinutes(sql: postgres.Sql, from: number, count: number): Promise<void> {
  await post(sql, [{ container: 0, at: from }])
  const names = Object.keys(plain(1)).join(', ')
  await sql.unsafe(
    `insert into compute_minute (container_id, ts, resolution_secs, ${names})
     select n % 100 + 1, m.ts + n / 2 * interval '1 s', 60, ${names} from compute_minute m cross join generate_series(1, ${count}) n where m.container_id = 0`,
  )
}
