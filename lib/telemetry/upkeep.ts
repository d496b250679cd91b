import { tableNames } from '../../sql/migrate/files.ts'
import type { Config } from '../config/index.ts'
import { queryWithTimeout } from '../db/database.ts'
import type { Database } from '../db/index.ts'
import type { Metrics } from '../metrics/index.ts'
import { staleAfterSecs } from '../nodes/index.ts'
import type { Log } from '../observability/log.ts'

const EVERY_MS = 60_000
/**
 * Limit of each query. Sizes are read from the file system, and wait while a migration locks a table.
 */
const MAX_MS = 5_000
const DAY_SECS = 86_400
/** A decision that ends within so many days should be looked at again. */
const ENDING_DAYS = 7

interface Upkeep {
  /** Reads everything, at most once a minute. Never rejects: gauges that cannot be read keep their values. */
  refresh(): Promise<void>
}

interface Options {
  readonly db: Pick<Database, 'job'>
  readonly config: Config
  readonly metrics: Metrics
  readonly log: Log
  /** Milliseconds, monotonic. */
  readonly now?: () => number
}

/** Metrics of the database and the nodes for operators. An ordinary role may read all of it. */
export function createUpkeep({ db, config, metrics, log, now = () => performance.now() }: Options): Upkeep {
  let begunAt = Number.NEGATIVE_INFINITY
  const tables = tablesOf(tableNames())
  const read = async () => {
    await readTables(db, metrics, tables)
    await readConnections(db, metrics)
    await readNodes(db, metrics, staleAfterSecs(config))
    for (const { lag } of await query<{ lag: number }>(db, EDGES_LAG)) metrics.edgesLag.set(lag)
    await readSupplyChain(db, metrics, config.imageRunningWindowSecs)
  }
  return {
    async refresh() {
      if (now() - begunAt < EVERY_MS) return
      begunAt = now()
      await read().catch((error) => log.debug({ err: error }, 'some gauges could not be read'))
    },
  }
}

type JobGate = Options['db']

const query = <Row>({ job }: JobGate, text: string) => queryWithTimeout<Row>(job.once, MAX_MS, text)

/**
 * The sizes of our tables; partitions count to their table. Only our own names, because others may have tables in the
 * same schema.
 */
const tablesOf = (names: readonly string[]) => `
  select root.relname as "table",
         sum(pg_total_relation_size(c.oid))::float8 as bytes,
         sum(pg_stat_get_live_tuples(c.oid))::float8 as rows,
         sum(pg_stat_get_dead_tuples(c.oid))::float8 as dead
  from pg_class c
  join pg_class root on root.oid = coalesce(pg_partition_root(c.oid), c.oid)
  join pg_namespace n on n.oid = root.relnamespace and n.nspname = current_schema()
  where c.relkind = 'r' and root.relname in (${names.map((name) => `'${name}'`).join(', ')})
  group by root.relname`

async function readTables(db: JobGate, metrics: Metrics, text: string): Promise<void> {
  const { dbTableBytes, dbTableRows, dbTableDeadRows } = metrics
  for (const { table, bytes, rows, dead } of await query<{ table: string; bytes: number; rows: number; dead: number }>(
    db,
    text,
  )) {
    dbTableBytes.set({ table }, bytes)
    dbTableRows.set({ table }, rows)
    dbTableDeadRows.set({ table }, dead)
  }
}

// pg_stat_activity hides the kind of sessions from ordinary roles; pg_stat_database has the counts.
const CONNECTIONS = `
  select (select sum(numbackends) from pg_stat_database)::float8 as used,
         (current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
           - coalesce(current_setting('reserved_connections', true)::int, 0))::float8 as most`

async function readConnections(db: JobGate, { dbServerConnections, dbServerConnectionsMax }: Metrics): Promise<void> {
  for (const { used, most } of await query<{ used: number; most: number }>(db, CONNECTIONS)) {
    dbServerConnections.set(used)
    dbServerConnectionsMax.set(most)
  }
}

/** A node is silent as in GET /node/status, for a day after its last sign; after that it was most likely removed. */
const nodes = (staleSecs: number) => `
  with sign as (
    select node_name as node, max(time_stamp) as posted_at, null::timestamp as beat_at from pod group by node_name
    union all
    select node, null, updated_at from compute_node),
  node as (
    select coalesce(max(posted_at) >= now() at time zone 'utc' - make_interval(secs => ${staleSecs}), false) as reports,
           greatest(max(posted_at), max(beat_at)) as last_at
    from sign
    group by node)
  select count(*) filter (where reports)::float8 as reporting,
         count(*) filter (where not reports
                          and last_at >= now() at time zone 'utc' - make_interval(secs => ${DAY_SECS}))
           ::float8 as silent
  from node`

const EDGES_LAG = `
  select extract(epoch from now() at time zone 'utc' - c.as_of)::float8 as lag
  from flow_edge_cursor c where c.as_of is not null`

async function readNodes(db: JobGate, metrics: Metrics, staleSecs: number): Promise<void> {
  for (const counts of await query<{ reporting: number; silent: number }>(db, nodes(staleSecs)))
    for (const state of ['reporting', 'silent'] as const) metrics.nodes.set({ state }, counts[state])
}

const supplyChain = (runningWindowSecs: number) => `
  select not_covered(${runningWindowSecs})::float8 as unscanned, not_read()::float8 as unread,
         count(*)::float8 as holding,
         (count(*) filter (where d.holds_until < (now() at time zone 'utc')::date + ${ENDING_DAYS}))::float8 as ending
  from vuln_decision d
  where d.ended_at is null and (d.holds_until is null or d.holds_until >= (now() at time zone 'utc')::date)`

interface SupplyChainCounts {
  readonly unscanned: number
  readonly unread: number
  readonly holding: number
  readonly ending: number
}

async function readSupplyChain(db: JobGate, metrics: Metrics, runningWindowSecs: number): Promise<void> {
  for (const counts of await query<SupplyChainCounts>(db, supplyChain(runningWindowSecs))) {
    metrics.imagesUnscanned.set(counts.unscanned)
    metrics.payloadsUnread.set(counts.unread)
    for (const state of ['holding', 'ending'] as const) metrics.decisions.set({ state }, counts[state])
  }
}
