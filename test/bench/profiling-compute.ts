/** Compute: what its routes and jobs take with the containers of 300 nodes and a week of their history. */
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type postgres from 'postgres'
import { type Measured, openLoop, run } from './client.ts'
import {
  type Dataset,
  datasetOf,
  MINUTE_HOURS,
  podUid,
  seedCompute,
  seedMinutes,
  TABLES,
} from './profiling-compute-dataset.ts'
import { minutesOf, Posts, samplesOf } from './profiling-compute-posts.ts'
import { type Pass, pass, type SupplyChainBroker } from './supply-chain-broker.ts'

export const PARTS = ['reads', 'ingest', 'jobs'] as const
export type Part = (typeof PARTS)[number]

export interface ComputeBench {
  readonly sql: postgres.Sql
  readonly databaseUrl: string
  readonly scale: number
  readonly parts: readonly Part[]
  /** Of what goes as fast as it can. */
  readonly forMs: number
  /** Of what comes as agents send it. */
  readonly steadyMs: number
  withBroker(env: NodeJS.ProcessEnv, work: (broker: SupplyChainBroker) => Promise<void>): Promise<void>
  /** Sends reads one after another, and prints what they took. */
  ask(broker: SupplyChainBroker, what: string, hold: string, path: (i: number) => string, count: number): Promise<void>
  row(what: string, figure: string, hold: string, measured: Measured, loopMaxMs: number, peakMib: number): void
  print(line: string): void
}

const READS = 50
const CONNECTIONS = 16
const SAMPLE_SECS = 5
const MINUTE_SECS = 60
/** Three times what 300 nodes of 40 containers post: 2 400 samples a second and 200 minutes. */
const HEADROOM_ROWS = 7_800
/** Of so many posts one is of minutes. */
const MINUTES_PART = MINUTE_SECS / SAMPLE_SECS + 1
const WEEK_MINUTES = 10_080
/** A fold of an hour begins so long after those who post. */
const LEAD_MS = 1_000

const digits = (value: number) => Math.round(value).toLocaleString('en').replaceAll(',', ' ')
const mib = (bytes: number) => `${(bytes / 1_048_576).toFixed(1)} MiB`
const secs = (ms: number) => `${(ms / 1_000).toFixed(1)} s`

/** Seeds what is missing and measures the parts. */
export async function measureCompute(bench: ComputeBench): Promise<void> {
  const { sql, scale, parts, print } = bench
  const data = datasetOf(scale)
  const began = performance.now()
  await seedCompute(sql, data, async () => {
    // A pass counts five days.
    for (let outcome = 'capped'; outcome === 'capped'; ) {
      const told = await pass(bench.databaseUrl, 'compute-fold', {})
      outcome = told.outcome
      print(`  compute-fold of what was seeded: ${digits(told.rows)} rows, ${secs(told.durationMs)}, ${outcome}`)
    }
  })
  print(
    `  ${data.nodes} nodes, ${data.containers} containers, ready in ${secs(performance.now() - began)}; ${await sizes(sql)}`,
  )
  if (parts.includes('reads')) await reads(bench, data)
  if (parts.includes('ingest')) await ingest(bench, data)
  if (parts.includes('jobs')) await jobs(bench, data)
}

/** What the tables take with their indexes, altogether and a row; packs a minute, or a row of five minutes. */
async function sizes(sql: postgres.Sql): Promise<string> {
  const rows = await sql<{ name: string; bytes: number; rows: number }[]>`
    select t.name, sum(pg_total_relation_size(i.inhrelid))::float8 as bytes,
           case t.name
             when 'compute_minute_pack' then (select sum(cardinality(k.seconds)) from compute_minute_pack k)
             when 'compute_folded_pack' then (select sum(cardinality(k.seconds)) from compute_folded_pack k)
             else sum(greatest(c.reltuples, 0))
           end::float8 as rows
    from unnest(${`{${TABLES}}`}::text::text[]) with ordinality t(name, n)
    join pg_inherits i on i.inhparent = t.name::regclass
    join pg_class c on c.oid = i.inhrelid
    group by t.name, t.n
    order by t.n`
  return rows
    .map((one) => `${one.name} ${digits(one.rows)} rows of ${digits(one.bytes / Math.max(1, one.rows))} bytes`)
    .join(', ')
}

async function reads(bench: ComputeBench, data: Dataset): Promise<void> {
  const { sql, print } = bench
  await bench.withBroker({}, async (broker) => {
    const ask = (what: string, hold: string, path: (i: number) => string, count = READS) =>
      bench.ask(broker, `compute: ${what}`, hold, path, count)
    const week = (n: number) => `/compute/history/${podUid(n % data.containers)}?minutes=${WEEK_MINUTES}`
    const far = (i: number) => (i * 7_919 + 11) % data.containers
    await seedMinutes(sql, data)
    await ask('findings of the cluster', 'p99 < 500 ms', () => '/compute/findings')
    await ask('findings of a namespace', '', (i) => `/compute/findings?namespace=ns-${i % data.namespaces}`)
    await ask('findings of a node', '', (i) => `/compute/findings?node=node-${i % data.nodes}`)
    // Each pod once, so that nobody has read it before.
    print(`  ${await forget(sql)}`)
    await ask('seven days of a pod, for the first time', 'p99 < 200 ms', (i) => week(far(i)))
    await ask('seven days of a pod, again', 'p99 < 200 ms', (i) => week(far(i)))
    await ask('an hour of a pod', '', (i) => `/compute/history/${podUid(far(i))}`)
    await ask(
      'latest of a namespace of 500',
      'p99 < 30 ms',
      (i) => `/compute/latest?namespace=ns-${i % data.namespaces}`,
      READS * 8,
    )
    await ask('nodes', '', () => '/compute/nodes')
    await ask('contention of a namespace', '', (i) => `/compute/contention?namespace=ns-${i % data.namespaces}`)
    await ask(
      'contention of a namespace, an hour',
      '',
      (i) => `/compute/contention?namespace=ns-${i % data.namespaces}&minutes=60`,
    )
    await ask(
      'contention of a node, six hours',
      '',
      (i) => `/compute/contention?node=node-${i % data.nodes}&minutes=360`,
    )
  })
}

/** Has the system forget the pages of the history, as far as it lets us; what the server itself holds is little beside it. */
async function forget(sql: postgres.Sql): Promise<string> {
  await sql.unsafe('checkpoint')
  const [{ folder }] =
    (await sql`select setting as folder from pg_settings where name = 'data_directory'`) as unknown as [
      { folder: string },
    ]
  const paths = await sql<{ path: string }[]>`
    select pg_relation_filepath(r.oid) as path
    from unnest(${`{${TABLES}}`}::text::text[]) t(name)
    join pg_inherits i on i.inhparent = t.name::regclass
    join pg_class c on c.oid = i.inhrelid
    cross join lateral (
      select r.oid
      from (values (c.oid), (nullif(c.reltoastrelid, 0))) v(oid)
      cross join lateral (select v.oid union all select x.indexrelid from pg_index x where x.indrelid = v.oid) r(oid)) r
    where r.oid is not null`
  let forgotten = 0
  for (const { path } of paths) {
    const whole = join(folder, path)
    const pieces = readdirSync(dirname(whole)).filter(
      (name) => name === basename(whole) || name.startsWith(`${basename(whole)}.`),
    )
    for (const piece of pieces) {
      const { status } = spawnSync('dd', [`if=${join(dirname(whole), piece)}`, 'iflag=nocache', 'count=0'], {
        stdio: 'ignore',
      })
      if (status === 0) forgotten++
    }
  }
  return forgotten === 0
    ? 'pages of files could not be forgotten: what follows is warm'
    : `${forgotten} files are read from disk again`
}

async function ingest(bench: ComputeBench, data: Dataset): Promise<void> {
  const { sql, forMs, steadyMs, print } = bench
  const [samples, minutes] = [new Posts(samplesOf, data), new Posts(minutesOf, data)]
  await bench.withBroker({}, async (broker) => {
    const { port } = broker
    const before = await latest(sql)
    const steady = (posts: Posts, everySecs: number) =>
      openLoop({
        ports: [port],
        connections: CONNECTIONS,
        forMs: steadyMs,
        ratePerSecond: data.nodes / everySecs,
        request: (i) => posts.next(i),
      })
    await broker.loop()
    broker.peakMib()
    const [sampled, minuted] = await Promise.all([steady(samples, SAMPLE_SECS), steady(minutes, MINUTE_SECS)])
    const loop = (await broker.loop()).maxMs
    const peak = broker.peakMib()
    const rate = (one: Measured, ms = one.seconds * 1_000) =>
      `${digits((one.calls * samples.rows * 1_000) / ms)} rows/s`
    bench.row(
      `compute: samples each ${SAMPLE_SECS} s, of ${data.nodes} agents`,
      rate(sampled, steadyMs),
      'none fails',
      sampled,
      loop,
      peak,
    )
    bench.row(
      `compute: minutes each ${MINUTE_SECS} s beside them`,
      rate(minuted, steadyMs),
      'none fails',
      minuted,
      loop,
      peak,
    )
    const after = await latest(sql)
    const updates = after.updates - before.updates
    print(
      `  compute_latest: ${mib(before.bytes)} before, ${mib(after.bytes)} after ${digits(updates)} updates, ${percent(after.hot - before.hot, updates)} of them in place`,
    )

    await broker.loop()
    broker.peakMib()
    const most = await run({
      port,
      connections: CONNECTIONS,
      forMs,
      request: (i) => (i % MINUTES_PART === 0 ? minutes : samples).next(i),
    })
    const held = `> ${digits(HEADROOM_ROWS)} rows/s`
    bench.row(
      'compute: samples and minutes, as many as go',
      rate(most),
      held,
      most,
      (await broker.loop()).maxMs,
      broker.peakMib(),
    )
    const end = await latest(sql)
    print(
      `  compute_latest: ${mib(end.bytes)} then, ${percent(end.hot - after.hot, end.updates - after.updates)} in place`,
    )
  })
}

const percent = (part: number, whole: number) => (whole === 0 ? 'none' : `${((100 * part) / whole).toFixed(1)} %`)

async function latest(sql: postgres.Sql): Promise<{ bytes: number; updates: number; hot: number }> {
  // What a session did is told after a second, at the latest when it is idle.
  await sql`select pg_sleep(1.5)`
  const [row] = await sql<{ bytes: number; updates: number; hot: number }[]>`
    select pg_total_relation_size('compute_latest')::float8 as bytes, n_tup_upd::float8 as updates, n_tup_hot_upd::float8 as hot
    from pg_stat_user_tables where relname = 'compute_latest'`
  return row!
}

async function jobs(bench: ComputeBench, data: Dataset): Promise<void> {
  const { sql, print, databaseUrl } = bench
  const told = ({ rows, batches, durationMs, outcome }: Pass) =>
    `${digits(rows)} rows in ${batches} batches, ${secs(durationMs)}, ${outcome}`
  const minutes = new Posts(minutesOf, data)
  await seedMinutes(sql, data)
  await bench.withBroker({}, async (broker) => {
    await broker.loop()
    broker.peakMib()
    let isOver = false
    const folding = new Promise((resolve) => setTimeout(resolve, LEAD_MS)).then(() =>
      pass(databaseUrl, 'compute-fold', { COMPUTE_HISTORY_MINUTE_HOURS: String(MINUTE_HOURS - 1) }).finally(() => {
        isOver = true
      }),
    )
    const posted = run({
      port: broker.port,
      connections: 1,
      forMs: 600_000,
      request: (i) => (isOver ? null : minutes.next(i)),
    })
    const [folded, measured] = await Promise.all([folding, posted])
    print(`  compute-fold that rolls up an hour: ${told(folded)}`)
    const rate = `${digits((measured.calls * minutes.rows) / measured.seconds)} rows/s`
    bench.row(
      'compute: minutes while it folds, 1 client',
      rate,
      '',
      measured,
      (await broker.loop()).maxMs,
      broker.peakMib(),
    )
  })
  const [oldest] = await sql<{ days: number }[]>`
    select max((now() at time zone 'utc')::date - to_date(right(c.relname, 8), 'YYYYMMDD')) as days
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'compute_folded_pack'::regclass and c.relname ~ '_[0-9]{8}$'`
  const bytes = async () => {
    const [row] = await sql<{ bytes: number }[]>`select pg_database_size(current_database())::float8 as bytes`
    return row!.bytes
  }
  const before = await bytes()
  const dropped = await pass(databaseUrl, 'compute-retention', {
    COMPUTE_HISTORY_RETENTION_DAYS: String(Math.max(1, oldest!.days - 1)),
  })
  print(`  compute-retention, a day that goes: ${told(dropped)}, ${mib(before - (await bytes()))} less`)
  const idle = await pass(databaseUrl, 'compute-retention', {
    COMPUTE_HISTORY_RETENTION_DAYS: String(Math.max(1, oldest!.days - 1)),
  })
  print(`  compute-retention with nothing to do: ${told(idle)}`)
}
