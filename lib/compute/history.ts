/** Reads the history of the containers of a pod (docs/contract.md#compute). */
import { z } from 'zod'
import { type Database, fixed } from '../db/index.ts'
import { zonedTime } from '../http/request/fields.ts'
import { asArray } from '../http/response/pages.ts'
import { storedJson } from '../records/column-kinds.ts'
import { joinedColumns, joinedPage } from '../records/index.ts'

export const MAX_HISTORY = 20_000
export const MAX_MINUTES = 10_080
/** Far more than any real pod has. */
const MAX_CONTAINERS = 1_000

const whole = z.int().min(0)
const decimal = z.number().min(0)

/** The values of a container over `resolution_secs`, usually a minute. */
export const HistoryRow = z
  .strictObject({
    id: whole,
    container_uid: z.string(),
    pod_uid: z.string(),
    namespace: z.string(),
    pod_name: z.string(),
    container: z.string(),
    node: z.string(),
    ts: zonedTime,
    resolution_secs: whole,
    cpu_usage_millis_avg: decimal,
    cpu_usage_millis_max: decimal,
    cpu_usage_millis_last: decimal,
    cpu_quota_usec: whole.nullable(),
    cpu_period_usec: whole,
    cpu_request_millis: whole.nullable(),
    cpu_limit_millis: whole.nullable(),
    cpu_nr_periods: whole,
    cpu_nr_throttled: whole,
    cpu_throttled_usec: whole,
    cpu_psi_some10_avg: decimal,
    cpu_psi_some10_max: decimal,
    cpu_psi_full10_avg: decimal,
    cpu_psi_full10_max: decimal,
    mem_current_avg: whole,
    mem_current_max: whole,
    mem_current_last: whole,
    mem_working_set_avg: whole,
    mem_working_set_max: whole,
    mem_working_set_last: whole,
    mem_limit: whole.nullable(),
    mem_request: whole.nullable(),
    mem_psi_some10_avg: decimal,
    mem_psi_some10_max: decimal,
    mem_psi_full10_avg: decimal,
    mem_psi_full10_max: decimal,
    mem_events_high: whole,
    mem_events_max: whole,
    mem_oom_kill: whole,
    mem_refault: whole,
    mem_pgmajfault: whole,
    runq_count: whole.nullable(),
    runq_p50_us: whole.nullable(),
    runq_p95_us: whole.nullable(),
    runq_p99_us: whole.nullable(),
    runq_max_us: whole.nullable(),
    runq_overflow: whole.nullable(),
    runq_hist: storedJson(z.array(whole)).nullable(),
  })
  .meta({ id: 'ComputeHistoryRow' })

const IDENTITY = ['container_uid', 'pod_uid', 'namespace', 'pod_name', 'container', 'node']
/**
 * The identity is rendered once for each container, as the value of its first key. As JSON, names contain no byte that
 * joined columns cannot carry.
 */
const [FIRST, ...OTHERS] = IDENTITY
const identity = `concat(to_json(c.${FIRST}), ${OTHERS.map((key) => `',"${key}":', to_json(c.${key})`).join(', ')})`
const Stored = HistoryRow.omit({ pod_uid: true, namespace: true, pod_name: true, container: true, node: true }).extend({
  container_uid: storedJson(z.string()),
})

const VALUES = Object.keys(HistoryRow.shape).filter((key) => !IDENTITY.includes(key))
const values = (alias: string) => VALUES.map((key) => `${alias}.${key}`).join(', ')
const shown = VALUES.map((key) =>
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
    select c.id as container_id, ${identity} as ${FIRST}
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
  select c.${FIRST}, ${shown}
  from (select a.line, coalesce(o.ts, a.since) as ts, coalesce(o.id, 0) as id from asked a left join oldest o on true) a
  cross join c
  cross join lateral (
    select ${values('m')}
    from compute_minute m
    where m.container_id = c.container_id and m.ts >= a.ts and (m.ts >= a.line or m.is_late)
    union all
    select ${values('f')}
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
