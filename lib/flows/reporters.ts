/**
 * Finds the pods that reported flows of a filter, by the edges and pods that the job `flow-edges` recorded. A rare
 * filter then reads the flows of a few pods instead of all (docs/contract.md#flow-queries).
 */
import type { Gate } from '../db/index.ts'
import { filterSql, isOfEdges, REPORTED_COMPARISONS } from './filter.ts'
import { namingOf } from './naming.ts'
import { type FlowQuery, type Place, unprepared } from './read.ts'

/** The flows of so many pods are read at most. */
export const MAX_PODS = 5_000
/** In a store of more edges they are not looked through, only looked up: the statement would take too long. */
const MAX_EDGES = 500_000
/** Edges are looked through until so many pods of edges are found: a filter that matches more is not rare. */
const MAX_PAIRS = 40_000
/** Flows that are not counted yet are looked through, up to so many. */
const MAX_UNCOUNTED = 20_000

export interface Reporters {
  /** Any flow of the filter since `since` is one of theirs. */
  readonly pods: readonly string[]
  /** The begin of the range, or later: the pods of older flows are not known. */
  readonly since: string
  /** Whether flows of the range may be older than `since`. */
  readonly hasOlder: boolean
  /** The snapshot of the statement and its time, as texts of PostgreSQL. */
  readonly snapshot: string
  readonly asOf: string
}

const NOTHING_NAMED = `
  named as (select p.* from flow_pod p where false),
  addresses as (select a.* from flow_address a where false)`
const FLOW = (alias: string) => `${alias}.time_stamp >= r.since and ${alias}.time_stamp < r.until`

/**
 * Reads which pods reported the flows of the rest of a list. Returns null if they are too many or not known: while the
 * flows of an older release are counted for the first time, after a restore, and if a flow of the range has no pod or
 * no direction.
 */
export async function readReporters(
  gate: Gate,
  { filter, order, since, until }: FlowQuery,
  after: Place | null,
  maxEdges = MAX_EDGES,
): Promise<Reporters | null> {
  const ofEdges = filter.filter(({ subject }) => isOfEdges(subject))
  const values: (string | number)[] = []
  const parameter = (value: string | number) => `$${values.push(value)}`
  const naming = namingOf(
    filter,
    parameter,
    (rows) => `
    select r.* from usable u cross join lateral (${rows}) r limit ${MAX_PODS + 1}`,
  )
  if (ofEdges.length === 0 && naming === undefined) return null
  const time = (value: string) => `${parameter(value)}::text::timestamp`
  const isNewest = order === 'newest'
  const from = isNewest || after === null ? time(since) : `greatest(${time(since)}, ${time(after.time)})`
  const to = isNewest && after !== null ? `least(${time(until)}, ${time(after.time)} + interval '1 us')` : time(until)
  const isNamed =
    naming === undefined ? 'true' : `((t.reporter in (select n.pod_name from named n)) is true or ${naming.isPeer})`
  const text = `
  with range as materialized (
    select k.since, k.until, c.next_tx,
           greatest(k.since, c.complete_since${naming === undefined ? '' : `, ${naming.since}`}) as known_since
    from (select ${from} as since, ${to} as until) k
    cross join flow_edge_cursor c
    -- a statistic, so that edges need not be counted; -1 where there is none yet
    cross join (select s.reltuples as edges from pg_class s where s.oid = 'flow_edge'::regclass) e
    where ${naming === undefined || naming.isBroad ? `e.edges <= ${parameter(maxEdges)}::int` : 'true'}
      and c.time_stamp is null
      and c.next_tx <= pg_snapshot_xmax(pg_current_snapshot())),
  usable as materialized (
    select r.*, o.has_older
    from range r
    cross join lateral (select exists (
      select from traffic t where ${FLOW('t')} and t.time_stamp < r.known_since) as has_older) o
    where r.known_since < r.until ${isNewest ? '' : 'and not o.has_older'}
      and not exists (
        select from traffic t
        where (t.pod_name is null or t.traffic_type is null or t.traffic_type not in ('EGRESS', 'INGRESS'))
          and ${FLOW('t')}
        -- looks the range up in the index
        offset 0)),
  uncounted as materialized (
    select f.pod_name
    from usable u
    cross join lateral (
      select t.pod_name from traffic t where t.tx >= u.next_tx order by t.tx limit ${MAX_UNCOUNTED + 1}) f),
  ${naming?.tables ?? NOTHING_NAMED},
  pairs as materialized (
    select p.pod_name, p.last_new_at >= u.known_since as is_recent
    from usable u
    cross join ${naming === undefined ? 'flow_edge t' : `(${naming.edges}) t`}
    cross join lateral (
      select p.pod_name, p.last_new_at from flow_edge_pod p where p.edge_id = t.id offset 0) p
    where t.last_new_at >= u.known_since and t.first_seen_at < u.until and ${naming?.isPeer ?? 'true'}
      and (${filterSql(ofEdges, parameter, REPORTED_COMPARISONS)}) is not false
    limit ${MAX_PAIRS + 1}),
  pending as materialized (
    select t.reporter as pod_name
    from usable u
    cross join flow_edge_pending t
    where t.time_stamp >= u.known_since and t.time_stamp < u.until
      and ${isNamed}
      and (${filterSql(ofEdges, parameter, REPORTED_COMPARISONS)}) is not false
    limit ${MAX_PAIRS + 1}),
  pods as materialized (
    select f.pod_name from uncounted f
    union select n.pod_name from named n
    union select p.pod_name from pairs p where p.is_recent
    union select p.pod_name from pending p)
  select u.known_since::text as since, u.has_older, pg_current_snapshot()::text as snapshot,
         (now() at time zone 'utc')::text as as_of,
         (select json_agg(p.pod_name) from (select p.pod_name from pods p limit ${MAX_PODS + 1}) p) as pods,
         (select count(*) from uncounted) > ${MAX_UNCOUNTED} or (select count(*) from pairs) > ${MAX_PAIRS}
           or (select count(*) from pending) > ${MAX_PAIRS} or (select count(*) from named) > ${MAX_PODS}
           or (select count(*) from addresses) > ${MAX_PODS} as is_cut
  from usable u`
  const [row] = await gate((sql) => unprepared(sql, text, values))
  if (row === undefined || row.is_cut) return null
  const pods: readonly string[] = row.pods ?? []
  if (pods.length > MAX_PODS) return null
  return { pods, since: row.since, hasOlder: row.has_older, snapshot: row.snapshot, asOf: row.as_of }
}
