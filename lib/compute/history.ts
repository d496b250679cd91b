/** Reads the history of the containers of a pod (docs/contract.md#compute). */
import { z } from 'zod'
import { type Database, fixed } from '../db/index.ts'
import { Slice } from '../event-loop/slices.ts'
import { zonedTime } from '../http/request/fields.ts'
import { asArray } from '../http/response/pages.ts'
import { storedJson } from '../records/column-kinds.ts'
import { joinedColumns, joinedPage, type RawRow } from '../records/index.ts'
import { identity } from './container.ts'
import { answersOf, whole } from './fields.ts'
import { minute } from './minutes.ts'
import { type Cells, FOLDED_COLUMNS, MINUTE_COLUMNS, NULL_CELL, unpack } from './pack.ts'

export const MAX_HISTORY = 20_000
export const MAX_MINUTES = 10_080
/** Far more than any real pod has. */
const MAX_CONTAINERS = 1_000

const values = { ts: zonedTime, resolution_secs: whole, ...answersOf(minute) }

/** The values of a container over `resolution_secs`, usually a minute. */
export const HistoryRow = z
  .strictObject({ id: whole, ...answersOf(identity), node: z.string(), ...values })
  .meta({ id: 'ComputeHistoryRow' })

/**
 * A row as read. The identity is rendered once for each container, as the value of its first key. As JSON, names
 * contain no byte that joined columns cannot carry.
 */
const Stored = z.strictObject({ id: whole, container_uid: storedJson(z.string()), ...values })
const [FIRST, ...OTHERS] = [...Object.keys(identity), 'node']
const identityJson = `concat(to_json(c.${FIRST}), ${OTHERS.map((key) => `',"${key}":', to_json(c.${key})`).join(', ')})`

const VALUES = ['id', ...Object.keys(values)]
const valuesOf = (alias: string) => VALUES.map((key) => `${alias}.${key}`).join(', ')
const wireValues = VALUES.map((key) =>
  key === 'ts'
    ? `date_trunc('second', m.ts) as ts`
    : key === 'runq_hist'
      ? 'array_to_json(m.runq_hist) as runq_hist'
      : `m.${key}`,
).join(', ')

const COUNTED = fixed<[{ containers: number }]>(`
  select count(*)::integer as containers
  from (select from compute_container c where c.pod_uid = $1 limit ${MAX_CONTAINERS}) c`)

// Of rows, the first one is found by time and id alone, because sorting whole rows of a week would spill to disk.
// Minutes before the line that are not late were rolled up by a release before packs. Of packs, those hours are read
// whose later hours have too few rows.
const READ = `
  with asked as materialized (
    select a.pod_uid, a.minutes,
           greatest(now() at time zone 'utc' - make_interval(mins => a.minutes), retention_start(a.days)) as since,
           f.folded_until as line
    from (select $1::text as pod_uid, $2::integer as minutes, $3::integer as days) a
    join compute_fold f on f.is_only),
  c as materialized (
    select c.id as container_id, ${identityJson} as ${FIRST}
    from compute_container c
    where c.pod_uid = (select a.pod_uid from asked a)
    order by c.id
    limit ${MAX_CONTAINERS}),
  most as materialized (
    select least(a.minutes * (select count(*) from c), ${MAX_HISTORY}) as rows from asked a),
  oldest as materialized (
    select k.ts, k.id
    from asked a
    cross join c
    cross join lateral compute_history_keys(c.container_id, a.since, a.line) k
    order by k.ts desc, k.id desc
    offset (select m.rows - 1 from most m where m.rows > 0)
    limit 1),
  plain as materialized (
    select c.${FIRST}, m.ts as exact_ts, ${wireValues}
    from (
      select a.line, coalesce(o.ts, a.since) as ts, coalesce(o.id, 0) as id
      from asked a left join oldest o on true) a
    cross join c
    cross join lateral (
      select ${valuesOf('m')}
      from compute_minute m
      where m.container_id = c.container_id and m.ts >= a.ts and (m.ts >= a.line or m.is_late)
      union all
      select ${valuesOf('f')}
      from compute_folded f
      where f.container_id = c.container_id and f.ts >= a.ts) m
    where m.ts > a.ts or m.id >= a.id
    order by m.ts, m.id),
  packs as materialized (
    select p.container_id, p.resolution_secs, p.ts, p.is_folded, p.data,
           coalesce(sum(cardinality(p.seconds)) over (order by p.ts desc groups between unbounded preceding
                                                      and 1 preceding), 0) as later
    from asked a
    cross join c
    cross join lateral (
      select k.container_id, k.resolution_secs, k.ts, k.seconds, k.data, false as is_folded
      from compute_minute_pack k
      where k.container_id = c.container_id and k.ts >= date_trunc('hour', a.since)
      union all
      select k.container_id, k.resolution_secs, k.ts, k.seconds, k.data, true as is_folded
      from compute_folded_pack k
      where k.container_id = c.container_id and k.ts >= date_trunc('hour', a.since)) p)
  select (select string_agg(concat_ws(' ', p.container_id, p.resolution_secs, p.is_folded,
                                           encode(p.data, 'base64')), ';')
          from packs p cross join most m
          where p.later < m.rows) as packs,
         (select string_agg(concat_ws(e'\\x1f', c.container_id, c.${FIRST}), e'\\x1e') from c) as containers,
         (select a.since::text from asked a) as since, (select m.rows::text from most m) as most,
         string_agg(t.exact_ts::text, e'\\x1f') as times,
         ${joinedColumns(Stored, 't')}
  from plain t`

const read = fixed(READ)
/** Where the columns of the rows begin. */
const ROWS_FROM = 5

/** Returns how many containers of a pod may have history. Times the minutes, this bounds the number of rows. */
export async function countContainers(db: Database, podUid: string): Promise<number> {
  const [row] = await db.read((sql) => COUNTED(sql, podUid))
  return row!.containers
}

/**
 * Returns the history of a pod as a JSON object: the last `minutes` within `retentionDays`, the oldest row first. If
 * there are more rows than `minutes` times the number of containers, or than `MAX_HISTORY`, the newest are returned.
 * 0 days set no limit.
 */
export async function readHistory(
  db: Database,
  podUid: string,
  minutes: number,
  retentionDays: number,
): Promise<Buffer> {
  const [row] = await db.read((sql) => read(sql, podUid, minutes, retentionDays).raw())
  const [packs, containers, since, most, times] = row!.slice(0, ROWS_FROM).map((column) => column?.toString() ?? '')
  const plain = row!.slice(ROWS_FROM)
  const identities = () => new Map(containers!.split('\x1e').map((one) => one.split('\x1f') as [string, string]))
  const rows =
    packs === '' ? plain : await merged(plain, times!, packs!, identities(), { since: since!, most: Number(most) })
  return Buffer.concat([Buffer.from('{"rows":'), asArray(joinedPage(Stored, rows)!), Buffer.from('}')])
}

/** A row: its cells are the values at one place of these columns. */
interface Place {
  readonly ts: string
  readonly id: number
  readonly columns: Cells
  readonly at: number
}

const WIDTH = Object.keys(Stored.shape).length
const SECONDS = 'YYYY-MM-DD HH:MM:SS'.length
const ID = 0

/**
 * Returns joined columns with the rows of packs among the others: the newest `most` since a time, in order. `packs` has
 * a container, a length, a kind and a pack each; `identities` the first column of the rows of a container, by
 * its number.
 */
async function merged(
  plain: RawRow,
  times: string,
  packs: string,
  identities: ReadonlyMap<string, string>,
  { since, most }: { readonly since: string; readonly most: number },
): Promise<RawRow> {
  const places: Place[] = []
  const add = (columns: Cells, exact: readonly string[]) => {
    for (const [at, ts] of exact.entries())
      if (ts >= since) places.push({ ts, id: Number(columns[ID]![at]), columns, at })
  }
  if (times !== '')
    add(
      plain.slice(2).map((column) => column!.toString().split('\x1f')),
      times.split('\x1f'),
    )
  const slice = new Slice()
  for (const one of packs.split(';')) {
    const [container, resolution, isFolded, data] = one.split(' ')
    const [ids, exact, ...values] = unpack(
      Buffer.from(data!, 'base64'),
      isFolded === 't' ? FOLDED_COLUMNS : MINUTE_COLUMNS,
    )
    const all = (value: string) => Array<string>(ids!.length).fill(value)
    const shown = exact!.map((ts) => ts.slice(0, SECONDS))
    add([ids!, all(identities.get(container!)!), shown, all(resolution!), ...values], exact!)
    if (slice.isOver) await slice.next()
  }
  places.sort((a, b) => (a.ts < b.ts ? -1 : a.ts > b.ts ? 1 : a.id - b.id))
  const chosen = places.slice(-most)
  const rows: (Buffer | null)[] = []
  let nulls = 0
  for (let c = 0; c < WIDTH; c++) {
    const cells = chosen.map(({ columns, at }) => columns[c]![at]!)
    for (const cell of cells) if (cell === NULL_CELL) nulls++
    rows.push(cells.length === 0 ? null : Buffer.from(cells.join('\x1f')))
    if (slice.isOver) await slice.next()
  }
  return [Buffer.from(String(chosen.length)), Buffer.from(String(nulls)), ...rows]
}
