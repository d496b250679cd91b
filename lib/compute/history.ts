/** Reads the history of the containers of a pod (docs/contract.md#compute). */
import { z } from 'zod'
import { type Database, fixed } from '../db/index.ts'
import { zonedTime } from '../http/request/fields.ts'
import { asArray } from '../http/response/pages.ts'
import { storedJson } from '../records/column-kinds.ts'
import { joinedColumns, joinedPage } from '../records/index.ts'
import { identity } from './container.ts'
import { answersOf, whole } from './fields.ts'
import { minute } from './minutes.ts'

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

// The first row is found by time and id alone, because sorting whole rows of a week would spill to disk. Minutes before
// the line have been rolled up, except those that came late.
const ROWS = `
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
  oldest as materialized (
    select k.ts, k.id
    from asked a
    cross join c
    cross join lateral compute_history_keys(c.container_id, a.since, a.line) k
    order by k.ts desc, k.id desc
    offset (
      select least(a.minutes * (select count(*) from c), ${MAX_HISTORY}) - 1 from asked a where exists (select from c))
    limit 1)
  select c.${FIRST}, ${wireValues}
  from (select a.line, coalesce(o.ts, a.since) as ts, coalesce(o.id, 0) as id from asked a left join oldest o on true) a
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
  order by m.ts, m.id`

const joined = fixed(`select ${joinedColumns(Stored, 't')} from (${ROWS}) t`)

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
  const [row] = await db.read((sql) => joined(sql, podUid, minutes, retentionDays).raw())
  const rows = joinedPage(Stored, row!)!
  return Buffer.concat([Buffer.from('{"rows":'), asArray(rows), Buffer.from('}')])
}
