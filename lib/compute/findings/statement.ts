/**
 * One statement reads all input of findings (docs/contract.md#compute).
 *
 * Only the minutes themselves show which containers are active, because most of the known containers may be gone. So
 * the minutes of the window are read once, by time: the cost does not depend on the history kept or on the containers
 * gone. Everything else is looked up row by row (`offset 0` keeps the planner from scanning a small table each time).
 * Waits are read only for containers that stall. All containers of a node are read only if the node and a container on
 * it are short of memory. The rules check both conditions again, so this statement may read too much, never too little.
 *
 * No list is cut silently: waits beyond the list are summed, and a node is read whole or not at all.
 */
import type postgres from 'postgres'
import type { Sql } from '../../db/statement.ts'
import { fixed } from '../../db/statement.ts'
import { answersOf } from '../fields.ts'
import { minute } from '../minutes.ts'
import { MAX_VICTIMS, WINDOW_MINUTES } from './contract.ts'
import { SHORT_SOME10 } from './memory.ts'
import type { Minute, Usage } from './rows.ts'
import type { Thresholds } from './thresholds.ts'

/** Minutes read for a container: the newest. */
const MAX_ROWS = 6
/** Containers of all nodes that are read whole: 18 000 rows. */
const MAX_NEIGHBORS = 3_000
/**
 * Pairs read for a victim. They are grouped by culprit; only the longest wait decides, so groups beyond `MAX_GROUPS`
 * become one sum.
 */
const MAX_PAIRS = 1_000
const MAX_GROUPS = 8
/**
 * Active containers, and their minutes in the window. The limits make the planner use a hash table, whatever it
 * estimates.
 */
const MAX_CONTAINERS = 60_000
const MAX_MINUTES = MAX_CONTAINERS * MAX_ROWS
/** Stored times are at most five minutes ahead. Without an upper bound, partitions of future days would be searched. */
const AHEAD = '1 hour'

/** The bounds are computed when execution starts, so that partitions outside the window are skipped. */
const inWindow = (ts: string) =>
  `${ts} >= now() at time zone 'utc' - interval '${WINDOW_MINUTES} minutes'
    and ${ts} < now() at time zone 'utc' + interval '${AHEAD}'`

const NAMES = ['container_uid', 'pod_uid', 'namespace', 'pod_name', 'container', 'node']
const names = (alias: string) => NAMES.map((name) => `${alias}.${name}`).join(', ')

/** The columns read for a neighbor. */
export const USAGE_COLUMNS: Readonly<Record<keyof Usage, string>> = {
  usageMillis: 'cpu_usage_millis_avg',
  requestMillis: 'cpu_request_millis',
  memoryBytes: 'mem_current_last',
  memoryRequestBytes: 'mem_request',
}
/** The columns read for a victim, behind the time. */
export const MINUTE_COLUMNS: Readonly<Record<Exclude<keyof Minute, 'ts'>, string>> = {
  ...USAGE_COLUMNS,
  limitMillis: 'cpu_limit_millis',
  periodUsec: 'cpu_period_usec',
  periods: 'cpu_nr_periods',
  throttledUsec: 'cpu_throttled_usec',
  cpuSomeAvg: 'cpu_psi_some10_avg',
  cpuSomeMax: 'cpu_psi_some10_max',
  cpuFullMax: 'cpu_psi_full10_max',
  memoryLimitBytes: 'mem_limit',
  memorySomeAvg: 'mem_psi_some10_avg',
  memorySomeMax: 'mem_psi_some10_max',
  memoryFullMax: 'mem_psi_full10_max',
  eventsHigh: 'mem_events_high',
  eventsMax: 'mem_events_max',
  oomKills: 'mem_oom_kill',
  refaults: 'mem_refault',
  runqCount: 'runq_count',
  runqP99Us: 'runq_p99_us',
  runqOverflow: 'runq_overflow',
}

const answers = answersOf(minute)
const isNullable = (column: string) => answers[column]!.safeParse(null).success

/**
 * Concatenates numbers into the text of a JSON array: with PostgreSQL's JSON functions the statement would take twice
 * as long.
 */
const asJson = (columns: Readonly<Record<string, string>>) =>
  `'[' || concat_ws(',',
  ${Object.values(columns)
    .map((name) => (isNullable(name) ? `coalesce(m.${name}::text, 'null')` : `m.${name}`))
    .join(', ')}) || ']'`
const asJsonWithTime = `'["' || m.ts || '",' || substr(${asJson(MINUTE_COLUMNS)}, 2)`

/**
 * The newest minutes of the container with the id `id`. `between 60 and 60` does not match the partial index by time,
 * so the planner uses the primary key, whatever the statistics say.
 */
const newestMinutes = (id: string) => `
  select * from compute_minute m
  where m.container_id = ${id} and ${inWindow('m.ts')} and m.resolution_secs between 60 and 60
  order by m.ts desc
  limit ${MAX_ROWS}`
const listOf = (json: string) => `'[' || string_agg(${json}, ',' order by m.ts) || ']'`

/** `$1` to `$4` are the thresholds of a CPU or memory stall; the parameters of the scope follow. */
const statementFor = (scope: string) => `
  with recent as materialized (
    select m.container_id as id, count(*) as minutes
    from (
      select container_id
      from compute_minute m
      where m.resolution_secs = 60 and ${inWindow('m.ts')}
      order by m.ts desc
      limit ${MAX_MINUTES}) m
    group by m.container_id
    limit ${MAX_CONTAINERS}
  ),
  limits as materialized (
    select $1::float8 as cpu_some, $2::float8 as p99_us, $3::float8 as memory_some, $4::float8 as refaults
  ),
  known as materialized (
    select c.id, ${names('c')}
    from compute_container c
    where (c.id in (select r.id from recent r)) is true ${scope}
    order by c.container_uid
    limit ${MAX_VICTIMS + 1}
  ),
  victim as materialized (
    select k.*, coalesce(n.mem_some10, 0) as node_some10, m.minutes, m.is_stalled, m.is_short
    from known k
    cross join limits t
    left join lateral (select n.mem_some10 from compute_node n where n.node = k.node offset 0) n on true
    cross join lateral (
      select ${listOf(asJsonWithTime)} as minutes,
             count(*) filter (
               where m.cpu_psi_some10_avg >= t.cpu_some or m.runq_p99_us >= t.p99_us or m.runq_overflow > 0) > 1
               as is_stalled,
             count(*) filter (
               where m.mem_psi_some10_avg >= t.memory_some or m.mem_refault >= t.refaults) > 1 as is_short
      from (${newestMinutes('k.id')}) m) m
  ),
  blamed as materialized (
    select v.*, b.*
    from victim v
    cross join lateral (
      select json_agg(json_build_array(g.culprit_kind, g.culprit_ref, g.culprit_container_uid, g.wait_ns))
               filter (where g.is_listed)::text as waits,
             (sum(g.wait_ns) filter (where not g.is_listed and not g.is_own))::float8 as rest_ns,
             coalesce(sum(g.pairs), 0) <= ${MAX_PAIRS} as is_whole,
             array_agg(g.culprit_container_uid) filter (where g.is_heaviest) as heaviest
      from (
        select g.*, rank() over w = 1 and not g.is_aside and g.culprit_kind = 'pod' as is_heaviest,
               not g.is_own and (g.is_aside or row_number() over o <= ${MAX_GROUPS}) as is_listed
        from (
          select p.culprit_kind, case p.culprit_kind when 'unknown' then '' else p.culprit_ref end as culprit_ref,
                 p.culprit_container_uid,
                 p.culprit_container_uid is not distinct from v.container_uid as is_own,
                 p.culprit_container_uid is not distinct from v.container_uid or p.culprit_kind = 'unknown' as is_aside,
                 sum(p.wait_ns) as wait_ns, count(*) as pairs
          from (
            select * from compute_contention p
            where v.is_stalled and p.victim_id = v.id and ${inWindow('p.ts')}
            order by p.ts desc
            limit ${MAX_PAIRS + 1}) p
          group by 1, 2, 3) g
        window w as (order by g.is_aside, g.wait_ns desc),
               o as (order by g.is_aside, g.wait_ns desc, g.culprit_kind, g.culprit_ref, g.culprit_container_uid)) g) b
  ),
  there as materialized (
    select c.*, row_number() over (order by c.node, c.container_uid) as place
    from (select distinct v.node from victim v where v.is_short and v.node_some10 >= ${SHORT_SOME10}) s
    cross join lateral (
      select c.id, ${names('c')}
      from compute_container c
      where c.node = s.node and (c.id in (select r.id from recent r)) is true
      offset 0) c
  )
  select 'victim' as role, ${names('v')}, v.minutes, v.node_some10, v.is_short, v.waits, v.rest_ns, v.is_whole
  from blamed v
  union all
  select 'culprit', ${names('c')}, m.minutes, null, null, null, null, null
  from (select distinct h.container_uid from blamed b cross join unnest(b.heaviest) h(container_uid)) h
  cross join lateral (
    select c.id, ${names('c')} from compute_container c where c.container_uid = h.container_uid offset 0) c
  cross join lateral (select ${listOf(asJson(USAGE_COLUMNS))} as minutes from (${newestMinutes('c.id')}) m) m
  where m.minutes is not null
  union all
  select 'neighbor', ${names('t')}, m.minutes, null, null, null, null, null
  from (select t.*, max(t.place) over (partition by t.node) <= ${MAX_NEIGHBORS} as is_read from there t) t
  cross join lateral (select ${listOf(asJson(USAGE_COLUMNS))} as minutes from (${newestMinutes('t.id')}) m) m
  where t.is_read
  union all
  select 'cut', ${NAMES.map(() => 'null').join(', ')}, null, null, null, null, null, null
  where (select count(*) >= ${MAX_CONTAINERS} or sum(r.minutes) >= ${MAX_MINUTES} from recent r)
  order by role, container_uid`

export interface ReadRow extends postgres.Row {
  /** `cut` is a single row, present if the window has more minutes than are read. */
  readonly role: 'victim' | 'culprit' | 'neighbor' | 'cut'
  readonly container_uid: string
  readonly pod_uid: string
  readonly namespace: string
  readonly pod_name: string
  readonly container: string
  readonly node: string
  /** A JSON array of arrays: the time and `MINUTE_COLUMNS` for a victim, `USAGE_COLUMNS` for others. */
  readonly minutes: string
  /** This field and those below are null unless the row is a victim. */
  readonly node_some10: number | null
  readonly is_short: boolean | null
  /** A JSON array of arrays of kind, ref, uid and wait; null if there was no wait or no stall. */
  readonly waits: string | null
  readonly rest_ns: number | null
  readonly is_whole: boolean | null
}

/** The containers to evaluate; null matches all. */
export interface Scope {
  readonly namespace: string | null
  readonly node: string | null
}

const scoped = {
  cluster: fixed<ReadRow[]>(statementFor('')),
  namespace: fixed<ReadRow[]>(statementFor('and c.namespace = $5')),
  node: fixed<ReadRow[]>(statementFor('and c.node = $5')),
  both: fixed<ReadRow[]>(statementFor('and c.namespace = $5 and c.node = $6')),
}

const US_PER_MS = 1_000

/** Reads the rows of a scope, victims by uid. Each of the four statements has an index that gives this order. */
export function readScope(
  sql: Sql,
  { namespace, node }: Scope,
  thresholds: Thresholds,
): postgres.PendingQuery<ReadRow[]> {
  const { stallSome, runqP99Ms, memStallSome, refaultPerMin } = thresholds
  const limits = [stallSome, runqP99Ms * US_PER_MS, memStallSome, refaultPerMin] as const
  if (namespace !== null)
    return node === null ? scoped.namespace(sql, ...limits, namespace) : scoped.both(sql, ...limits, namespace, node)
  return node === null ? scoped.cluster(sql, ...limits) : scoped.node(sql, ...limits, node)
}
