/** Metrics of the database and the nodes for on-call. */
import assert from 'node:assert/strict'
import test, { beforeEach } from 'node:test'
import { routes } from '../handlers/router.ts'
import { createApp } from '../lib/app/app.ts'
import { buildDeps } from '../lib/app/build.ts'
import { createMetrics } from '../lib/metrics/index.ts'
import { createUpkeep } from '../lib/telemetry/upkeep.ts'
import { startApp, TOKENS } from './support/app.ts'
import { startAsRole } from './support/as-role.ts'
import { container, newDigest, replica } from './support/images.ts'
import { component, storeSbom } from './support/supply-chain.ts'
import { becomes, until } from './support/until.ts'

const app = await startApp({ PEER_STALE_ALIVE_SECS: '600' })
const { sql, db } = app
const { config, log } = app.deps

/** The values of a metric by labels as written. */
const valuesOf = (text: string, name: string) =>
  new Map(
    [...text.matchAll(new RegExp(`^${name}(?:\\{(.*)\\})? (\\S+)$`, 'gm'))].map(([, labels, value]) => [
      labels ?? '',
      Number(value),
    ]),
  )

/** Reads the metrics once and returns the text. */
async function reading(from: { db: typeof db; config?: typeof config } = { db }): Promise<string> {
  const metrics = createMetrics()
  await createUpkeep({ db: from.db, config: from.config ?? config, metrics, log }).refresh()
  return metrics.registry.metrics()
}

beforeEach(async () => {
  await sql`truncate pod, compute_node`
})

const tablesOf = (text: string) =>
  [...valuesOf(text, 'broker_db_table_bytes').keys()].map((labels) => /^table="(\w+)"$/.exec(labels)![1]!)

test('GET /metrics 200: the size of every table of ours with its indexes, and of no other table', async () => {
  await sql`create table of_somebody_else (n int)`
  await sql`create table in_the_way partition of compute_minute for values from ('2001-01-01') to ('2001-01-02')`
  const text = await reading()
  const present = await sql`
    select c.relname as name, sum(pg_total_relation_size(coalesce(t.relid, c.oid)))::float8 as bytes
    from pg_class c left join lateral pg_partition_tree(c.oid) t on true
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and c.relname not in ('of_somebody_else', 'schema_migration', 'schema_functions')
    group by c.relname`
  assert.ok(present.length > 30)
  assert.deepEqual(tablesOf(text).sort(), present.map(({ name }) => name).sort())
  const bytes = valuesOf(text, 'broker_db_table_bytes')
  for (const { name, bytes: expected } of present) assert.equal(bytes.get(`table="${name}"`), expected, name)
})

test('GET /metrics 200: rows and dead rows of a table, those of its partitions together', async () => {
  await sql`
    insert into pod (pod_name, pod_ip, pod_ips, time_stamp, node_name, is_dead)
    select 'p' || n, '10.0.0.1', '{}', now() at time zone 'utc', 'node-a', false from generate_series(1, 30) n`
  await sql`delete from pod where pod_name like 'p1%'`
  await sql`create table one_day partition of compute_contention for values from ('2001-01-01') to ('2001-01-02')`
  await sql`
    insert into compute_contention (victim_id, ts, culprit_kind, culprit_ref, count, wait_ns)
    select victim, day::timestamp, 'pod', 'shop/web/app', 1, 1
    from unnest(array[1, 2]) victim, unnest(array['2001-01-01', '2001-01-02']) day`
  await sql`delete from compute_contention where victim_id = 1`
  // The server counts them a moment later.
  await until('the server has counted the dead rows', async () => {
    await sql`select pg_stat_force_next_flush(), pg_stat_clear_snapshot()`
    const text = await reading()
    const counts = (table: string) =>
      ['rows', 'dead_rows'].map((what) => valuesOf(text, `broker_db_table_${what}`).get(`table="${table}"`)!)
    const [rows, dead] = counts('pod')
    const [rowsOfDays, deadOfDays] = counts('compute_contention')
    return rows === 19 && dead! >= 11 && rowsOfDays === 2 && deadOfDays === 2
  })
})

test('GET /metrics 200: the connections of the server, and the maximum for ordinary roles', async () => {
  const [settings] = await sql`
    select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
      - coalesce(current_setting('reserved_connections', true)::int, 0) as most`
  const text = await reading()
  assert.equal(valuesOf(text, 'broker_db_server_connections_max').get(''), settings!.most)
  const used = valuesOf(text, 'broker_db_server_connections').get('')!
  assert.ok(used >= 2 && used <= settings!.most, String(used))
})

let made = 0
const pod = (node: string, secsAgo: number) => sql`
  insert into pod (pod_name, pod_ip, pod_ips, time_stamp, node_name, is_dead)
  values (${`pod-${++made}`}, '10.0.0.1', '{}', now() at time zone 'utc' - make_interval(secs => ${secsAgo}), ${node}, ${secsAgo > 600})`
const heartbeat = (node: string, secsAgo: number) => sql`
  insert into compute_node
  select ${node}, now(), 5000, 0, true, true, false, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, null, null,
         now() at time zone 'utc' - make_interval(secs => ${secsAgo})`
const DAY = 86_400
const nodesOf = (text: string) =>
  Object.fromEntries([...valuesOf(text, 'broker_nodes')].map(([labels, count]) => [/"(.*)"/.exec(labels)![1], count]))

test('GET /metrics 200: the number of reporting nodes, and of nodes that fell silent within a day', async () => {
  assert.deepEqual(nodesOf(await reading()), { reporting: 0, silent: 0 })
  await pod('busy', 0)
  await pod('busy', 5_000)
  await pod('quiet', 590)
  await pod('silent', 610)
  await pod('also-silent', DAY - 60)
  await pod('gone', DAY + 60)
  await heartbeat('busy', 0)
  // Sends heartbeats, but posts no pod.
  await heartbeat('only-beats', 10)
  await heartbeat('beat-long-ago', DAY + 60)
  await heartbeat('gone', 30)
  assert.deepEqual(nodesOf(await reading()), { reporting: 2, silent: 4 })
  const { nodes } = (await app.get('/node/status')).json
  assert.equal(nodes.filter(({ stale }: { stale: boolean }) => !stale).length, 2, 'the route names the same ones')
})

test('GET /metrics 200: no node is silent when staleness is off', async () => {
  await pod('busy', 0)
  await pod('quiet', 5_000)
  await pod('gone', DAY + 60)
  assert.deepEqual(nodesOf(await reading({ db, config: { ...config, peerStaleAliveSecs: 0 } })), {
    reporting: 2,
    silent: 0,
  })
})

test('GET /metrics 200: running images that nobody scanned, payloads that no search finds, decisions', async () => {
  const counts = async () => {
    const text = await reading()
    const one = (name: string) => valuesOf(text, name).get('')
    const [images, payloads] = ['supplychain_running_images_unscanned', 'search_payloads_unread'].map((name) =>
      one(`broker_${name}`),
    )
    return { images, payloads, decisions: Object.fromEntries(valuesOf(text, 'broker_supplychain_decisions')) }
  }
  const nothing = { images: 0, payloads: 0, decisions: { 'state="holding"': 0, 'state="ending"': 0 } }
  assert.deepEqual(await counts(), nothing)
  const [scanned, unscanned] = [newDigest(), newDigest()]
  const containers = [container('app', scanned), container('sidecar', unscanned)]
  await app.post('/pod/spec', replica('metrics', containers, { pod_name: 'metrics-0' }))
  await storeSbom(app, scanned, 'registry', [component('a')])
  // A search looks at 500 payloads that the job has not read.
  await sql`
    insert into image_report
    select (jsonb_populate_record(r, jsonb_build_object('digest', 'sha256:' || lpad(n::text, 64, '0')))).*
    from image_report r cross join generate_series(1, 502) n
    where r.digest = ${scanned}`
  await sql`
    insert into vuln_decision (vuln_id, name, scope_rank, pod_namespace, decision, holds_until, decided_by, reason,
                               decided_at, ended_at)
    select 'CVE-1', 'CVE-1', 2, d.place, 'accepted', (now() at time zone 'utc')::date + d.days, 'sec', 'known', now(),
           case when d.place = 'ended' then now() end
    from (values ('endless', null), ('past', -1), ('today', 0), ('in a week', 6), ('later', 7), ('ended', 3)) d(place, days)`
  assert.deepEqual(await counts(), {
    ...{ images: 1, payloads: 3, decisions: { 'state="holding"': 4, 'state="ending"': 2 } },
  })
})

test('GET /metrics 200: an ordinary role can read all of these metrics', async () => {
  const role = await startAsRole(app)
  const text = await reading({ db: role.db })
  assert.equal(tablesOf(text).length, tablesOf(await reading()).length)
  assert.ok(valuesOf(text, 'broker_db_server_connections').get('')! > 0)
  assert.deepEqual(nodesOf(text), { reporting: 0, silent: 0 })
})

test('GET /metrics 200: scrapes start at most one reading a minute', async () => {
  let clock = 1_000
  let asked = 0
  const once = async () => {
    asked++
    return [[], []]
  }
  const upkeep = createUpkeep({
    db: { job: { once } } as never,
    config,
    metrics: createMetrics(),
    log,
    now: () => clock,
  })
  await upkeep.refresh()
  const each = asked
  assert.ok(each > 0)
  clock += 59_999
  await upkeep.refresh()
  assert.equal(asked, each)
  clock += 1
  await Promise.all([upkeep.refresh(), upkeep.refresh()])
  assert.equal(asked, 2 * each)
})

test('GET /metrics 200: a scrape does not wait for the reading that it starts', { timeout: 300_000 }, async () => {
  let asked = 0
  const once = () => {
    asked++
    return new Promise(() => {})
  }
  const own = createApp(buildDeps({ config, db: { ...db, job: { once } as never }, log }), routes)
  // The reading starts when the database has answered a scrape in time.
  await until('a scrape has started a reading', async () => {
    assert.equal((await own.request('/metrics')).status, 200)
    return asked > 0
  })
})

test('GET /metrics 200: a metric that cannot be read keeps its value', async () => {
  const metrics = createMetrics()
  metrics.nodes.set({ state: 'silent' }, 7)
  const job = { once: () => Promise.reject(new Error('no database')) }
  await createUpkeep({ db: { job } as never, config, metrics, log }).refresh()
  assert.deepEqual(nodesOf(await metrics.registry.metrics()), { silent: 7 })
})

test('GET /metrics 200: a scrape shows the sizes a moment later', async () => {
  await becomes(async () => tablesOf((await app.get('/metrics')).text).includes('pod'), true)
})

test('GET /metrics 200: refused tokens are counted by route and status', async () => {
  const guarded = await startApp(TOKENS)
  await guarded.get('/pod/name/x', { token: 'nobody' })
  await guarded.get('/pod/name/y')
  await guarded.post('/pod/mark_dead', { pod_name: 'x' }, { token: TOKENS.BROKER_TOKEN_READ })
  const counts = valuesOf((await guarded.get('/metrics')).text, 'broker_http_request_duration_seconds_count')
  assert.equal(counts.get('method="GET",route="/pod/name/:name",status="401"'), 2)
  assert.equal(counts.get('method="POST",route="/pod/mark_dead",status="403"'), 1)
})
