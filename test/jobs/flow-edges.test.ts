import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { beforeEach, test } from 'node:test'
import type postgres from 'postgres'
import { flowEdges } from '../../jobs/flow-edges.ts'
import { depth } from '../support/depth.ts'
import { othersEnded } from '../support/transactions.ts'
import { until } from '../support/until.ts'
import { abortedAfter, isWaiting, startScene } from './scene.ts'

const scene = await startScene(flowEdges)
const { ago, count, sql } = scene
const run: typeof scene.run = async (changes) => {
  await othersEnded(sql)
  return scene.run(changes)
}
const HOUR = 3_600
const DAY = 24 * HOUR

beforeEach(async () => {
  await sql`
    truncate traffic, pod, pod_address, pod_labels, service, service_backend, flow_edge, flow_edge_pod, flow_edge_pending, flow_pod,
             flow_address`
  await sql`
    update flow_edge_cursor
    set next_tx = pg_current_xact_id(), time_stamp = null, uuid = null, as_of = null, looked_tx = null, looked_at = null,
        complete_since = '-infinity'`
})

interface Fields {
  [column: string]: string | null
}

/** A flow of a minute ago between two workloads, all known. */
const row = (fields: Fields = {}) => ({
  ...{ uuid: randomUUID(), pod_name: 'web-1', pod_namespace: 'shop', pod_ip: '10.0.0.1', pod_port: '0' },
  ...{ ip_protocol: 'TCP', traffic_type: 'EGRESS', decision: 'ALLOW', time_stamp: ago(60) },
  ...{ traffic_in_out_ip: `10.1.0.${Math.floor(Math.random() * 256)}`, traffic_in_out_port: randomUUID() },
  ...{ peer_kind: 'pod', peer_namespace: 'shop', peer_name: 'db-0' },
  ...{ peer_workload_kind: 'StatefulSet', peer_workload_name: 'db' },
  ...{ pod_workload_kind: 'Deployment', pod_workload_name: 'web' },
  ...fields,
})
const OPEN = {
  peer_kind: null,
  peer_namespace: null,
  peer_name: null,
  peer_workload_kind: null,
  peer_workload_name: null,
}

async function store(fields: Fields = {}, on: postgres.Sql | postgres.TransactionSql = sql): Promise<string> {
  const one = row({ traffic_in_out_port: '5432', pod_port: String(Math.random()), ...fields })
  await on`insert into traffic ${on(one)}`
  return one.uuid
}

let stored = 0
/** Stores `n` flows of one edge in one transaction. */
const storeMany = (n: number, port: string, tx = 'pg_current_xact_id()') =>
  sql.unsafe(
    `insert into traffic (uuid, pod_name, pod_namespace, pod_ip, pod_port, ip_protocol, traffic_type, decision, time_stamp,
                          traffic_in_out_ip, traffic_in_out_port, peer_kind, peer_namespace, peer_name,
                          peer_workload_kind, peer_workload_name, pod_workload_kind, pod_workload_name, tx)
     select gen_random_uuid()::text, 'web-' || i % 7, 'shop', '10.0.0.1', i::text, 'TCP', 'EGRESS', 'ALLOW',
            $1::text::timestamp + i * interval '1 millisecond', $3, $2, 'pod', 'shop', 'db-0', 'StatefulSet', 'db',
            'Deployment', 'web', ${tx}
     from generate_series(1, ${n}) i`,
    [ago(60), port, `10.1.1.${stored++}`],
  )

/** The flows of each edge, by port, and those that are pending. */
async function counted(): Promise<Record<string, number>> {
  const rows = await sql<{ port: string; flows: number }[]>`
    select e.port, sum(e.flows)::int as flows from flow_edge e group by e.port order by e.port`
  return Object.fromEntries(rows.map(({ port, flows }) => [port, flows]))
}
async function pending(): Promise<number> {
  const [found] = await sql<{ n: number }[]>`select count(*)::int as n from flow_edge_pending`
  return found!.n
}
/** Whether all flows stored by then are counted. */
async function isAsOf(time: string): Promise<boolean> {
  const [found] = await sql<{ is_later: boolean }[]>`
    select coalesce(as_of >= ${time}::text::timestamp, false) as is_later from flow_edge_cursor`
  return found!.is_later
}
/** Passes until all flows stored by then are counted: transactions of other test files may hold a pass up. */
const becomesAsOf = (time: string) =>
  until('a pass counts everything', async () => {
    await run()
    return isAsOf(time)
  })
async function clock(): Promise<string> {
  const [found] = await sql<{ now: string }[]>`select (clock_timestamp() at time zone 'utc')::text as now`
  return found!.now
}
const resolve = (uuid: string, fields: Fields) =>
  sql`update traffic t set ${sql(fields)}, first_tx = coalesce(t.first_tx, t.tx), tx = pg_current_xact_id()
      where t.uuid = ${uuid}`

test('each flow counts once, over passes', async () => {
  await store()
  assert.equal(await count(), 1)
  const pass = await run()
  assert.deepEqual([pass.outcome, pass.rows], ['done', 1])
  assert.deepEqual([await count(), (await run()).rows], [0, 0])
  await store()
  await store({ decision: 'DROP', traffic_in_out_port: '80' })
  await run()
  assert.deepEqual(await counted(), { 5432: 2, 80: 1 })
  await sql`delete from traffic`
  await run()
  assert.deepEqual(await counted(), { 5432: 2, 80: 1 })
})

test('an edge has its first and newest flow, whatever the order in which they come, and its pods', async () => {
  for (const [secs, pod_name] of [
    [60, 'a'],
    [120, 'b'],
    [90, 'a'],
  ] as const) {
    await store({ time_stamp: ago(secs), pod_name })
    await run()
  }
  const [edge] = await sql`select first_seen_at, last_new_at, flows::int, pods::int from flow_edge`
  assert.deepEqual(
    { ...edge },
    { first_seen_at: new Date(`${ago(120)}Z`), last_new_at: new Date(`${ago(60)}Z`), flows: 3, pods: 2 },
  )
})

test('a flow that is committed after a later one counts, and edges are not as of a time before it', async () => {
  await run()
  await sql.begin(async (slow) => {
    await store({ traffic_in_out_port: '1' }, slow)
    const before = await clock()
    await store({ traffic_in_out_port: '2' })
    const after = await clock()
    await run()
    assert.equal(await isAsOf(after), false)
    assert.equal(await isAsOf(before), false)
    await run()
    assert.deepEqual(await counted(), {})
  })
  const done = await clock()
  await run()
  assert.deepEqual(await counted(), { 1: 1, 2: 1 })
  await becomesAsOf(done)
})

test('while transactions always run, edges are as of the look before', async (t) => {
  const open: { end: () => void; ended: Promise<unknown> }[] = []
  const begin = () =>
    new Promise<void>((begun) => {
      const ended = sql.begin(async (on) => {
        await on`select pg_current_xact_id()`
        await new Promise<void>((end) => {
          open.push({ end, ended })
          begun()
        })
      })
    })
  const endFirst = async () => {
    const first = open.shift()
    first?.end()
    await first?.ended
  }
  t.after(endFirst)
  await begin()
  await store()
  await run()
  const looked = await clock()
  await begin()
  await store()
  await endFirst()
  await run()
  assert.deepEqual(await counted(), { 5432: 1 })
  assert.equal(await isAsOf(looked), false, 'the first look was before that')
  await begin()
  await store()
  await endFirst()
  await run()
  assert.deepEqual(await counted(), { 5432: 2 })
  assert.equal(await isAsOf(looked), true)
})

test('a flow whose peer may still become known is pending, and counts once it is known', async () => {
  const uuid = await store(OPEN)
  const unowned = await store({ pod_workload_kind: null, pod_workload_name: null })
  await run()
  assert.deepEqual([await counted(), await pending()], [{}, 2])
  await resolve(uuid, { peer_kind: 'service', peer_namespace: 'shop', peer_name: 'db' })
  await resolve(unowned, { pod_workload_kind: 'Deployment', pod_workload_name: 'late' })
  assert.equal((await run()).rows, 2)
  assert.equal(await pending(), 0)
  const edges = await sql<{ peer: string; own: string; flows: number }[]>`
    select peer_kind as peer, pod_workload_name as own, flows::int from flow_edge order by 1`
  assert.deepEqual(
    edges.map((one) => ({ ...one })),
    [
      { peer: 'pod', own: 'late', flows: 1 },
      { peer: 'service', own: 'web', flows: 1 },
    ],
  )
  await run()
  assert.deepEqual(await counted(), { 5432: 2 })
})

test('a pending flow of which only a part became known stays pending, as it is now', async () => {
  const uuid = await store({ ...OPEN, pod_workload_kind: null, pod_workload_name: null })
  await run()
  await resolve(uuid, { pod_workload_kind: 'Deployment', pod_workload_name: 'web' })
  await run()
  const [row] = await sql`select pod_workload_name, pod_name from flow_edge_pending`
  assert.deepEqual({ ...row }, { pod_workload_name: 'web', pod_name: null })
})

test('a flow that was written again before it was first read counts once', async () => {
  const uuid = await store(OPEN)
  await resolve(uuid, { peer_kind: 'service', peer_namespace: 'shop', peer_name: 'db' })
  await run()
  await run()
  assert.deepEqual([await counted(), await pending()], [{ 5432: 1 }, 0])
})

test('a flow that a running transaction writes again counts once', async () => {
  const uuid = await store(OPEN)
  await sql.begin(async (slow) => {
    await slow`select pg_current_xact_id()`
    await resolve(uuid, { peer_kind: 'service', peer_namespace: 'shop', peer_name: 'db' })
    await run()
    assert.deepEqual([await counted(), await pending()], [{ 5432: 1 }, 0], 'it was inserted before the slow one began')
  })
  await run()
  assert.deepEqual([await counted(), await pending()], [{ 5432: 1 }, 0])
})

test('a pending flow counts when it is too late for its peer, also if it was deleted', async () => {
  const old = { ...OPEN, time_stamp: ago(60) }
  const uuid = await store(old)
  await store({ ...old, traffic_in_out_port: '80' })
  await run()
  await sql`delete from traffic where uuid = ${uuid}`
  await sql`update flow_edge_pending set time_stamp = ${ago(HOUR)}::text::timestamp`
  assert.equal(await count(), 2)
  assert.equal((await run()).rows, 2)
  assert.deepEqual([await counted(), await pending()], [{ 5432: 1, 80: 1 }, 0])
  const [{ pods }] = (await sql`select sum(pods)::int as pods from flow_edge`) as [{ pods: number }]
  assert.equal(pods, 2)
})

test('flows of two days with the same uuid are pending and counted once each', async () => {
  const uuid = await store(OPEN)
  await store({ ...OPEN, uuid, time_stamp: ago(60 + 24 * HOUR) })
  const twoDays = 48 * HOUR
  await run({ config: { ...scene.context().config, peerLateResolveWindowSecs: twoDays } })
  assert.deepEqual([await counted(), await pending()], [{}, 2])
  await run()
  assert.deepEqual([await counted(), await pending()], [{ 5432: 1 }, 1])
  await sql`update flow_edge_pending set time_stamp = ${ago(HOUR)}::text::timestamp`
  await run()
  assert.deepEqual([await counted(), await pending()], [{ 5432: 2 }, 0])
})

test('without late resolution no flow is pending', async () => {
  await store(OPEN)
  await run({ config: { ...scene.context().config, peerLateResolveWindowSecs: 0 } })
  assert.deepEqual([await counted(), await pending()], [{ 5432: 1 }, 0])
})

test('flows of unknown direction are in no edge', async () => {
  await store({ traffic_type: 'SIDEWAYS' })
  await store({ traffic_type: null })
  assert.equal(await count(), 0)
  assert.equal((await run()).rows, 0)
  assert.deepEqual(await counted(), {})
})

test('many flows are counted in several statements, and a pass that is stopped goes on in the next one', async () => {
  const parts = depth(3, 6)
  const flows = parts * 2_000
  await storeMany(flows, '1')
  for (let n = 0; n < parts; n++) await storeMany(2_000, '2')
  await storeMany(3, '3')
  const pass = await run(abortedAfter(depth(2, 3), scene.db))
  assert.equal(pass.outcome, 'aborted')
  const partly = await counted()
  assert.ok(Object.values(partly).reduce((a, b) => a + b, 0) < 2 * flows + 3, JSON.stringify(partly))
  await run()
  assert.deepEqual(await counted(), { 1: flows, 2: flows, 3: 3 })
  const [{ pods }] = (await sql`select pods::int from flow_edge where port = '1'`) as [{ pods: number }]
  assert.equal(pods, 7)
})

test('flows from before transactions were recorded count once, also if they are written again meanwhile', async () => {
  const flows = depth(6_000, 12_000)
  await storeMany(flows, '1', 'null')
  const before = await store({ ...OPEN, traffic_in_out_port: '2' })
  const later = await store({ ...OPEN, traffic_in_out_port: '3' })
  await sql`update traffic set tx = null`
  await sql`update flow_edge_cursor set time_stamp = '-infinity', uuid = ''`
  await storeMany(10, '4')
  assert.equal(await count(), flows + 12)
  await resolve(before, { peer_kind: 'service', peer_namespace: 'shop', peer_name: 'db' })
  await run()
  assert.deepEqual([await counted(), await pending()], [{ 1: flows, 2: 1, 4: 10 }, 1])
  await resolve(later, { peer_kind: 'service', peer_namespace: 'shop', peer_name: 'db' })
  await run()
  assert.deepEqual([await counted(), await pending()], [{ 1: flows, 2: 1, 3: 1, 4: 10 }, 0])
})

test('of two processes one counts, and the other one does nothing', async (t) => {
  const other = scene.otherProcess(t)
  await storeMany(6_000, '1')
  let first: Promise<unknown> | undefined
  await sql.begin(async (blocking) => {
    await blocking`select from flow_edge_cursor for update`
    first = run()
    await until('the first one waits', () => isWaiting(sql))
    assert.equal((await run({ db: other })).outcome, 'skipped')
  })
  await first
  assert.deepEqual(await counted(), { 1: 6_000 })
  const both = await Promise.all([run(), run({ db: other })])
  assert.ok(both.some(({ outcome }) => outcome === 'done'))
  assert.deepEqual(await counted(), { 1: 6_000 })
})

test('random transactions, roll-backs, late peers and passes: the edges equal the flows', async () => {
  const random = (n: number) => Math.floor(Math.random() * n)
  const open: { on: postgres.TransactionSql; end: (isCommitted: boolean) => Promise<unknown> }[] = []
  const begin = () =>
    new Promise<void>((begun) => {
      const done = sql
        .begin(async (on) => {
          await new Promise<void>((committed, rolledBack) => {
            open.push({
              on,
              end: (isCommitted) => {
                if (isCommitted) committed()
                else rolledBack(new Error('rolled back'))
                return done
              },
            })
            begun()
          })
        })
        .catch(() => {})
    })
  const unresolved: string[] = []
  for (let step = 0; step < depth(80, 150); step++) {
    const kind = random(8)
    if (kind === 0 && open.length < 3) await begin()
    else if (kind === 1 && open.length > 0) await open.splice(random(open.length), 1)[0]!.end(random(3) > 0)
    else if (kind === 2) await run()
    else if (kind === 3 && unresolved.length > 0)
      await resolve(unresolved.splice(random(unresolved.length), 1)[0]!, {
        ...{ peer_kind: 'service', peer_namespace: 'shop', peer_name: `svc-${random(3)}` },
      })
    else if (open.length > 0 && random(2) === 0)
      await store({ traffic_in_out_port: `${random(5)}` }, open[random(open.length)]!.on)
    else {
      const uuid = await store({ ...(random(2) === 0 ? OPEN : {}), traffic_in_out_port: `${random(5)}` })
      const [stored] = await sql`select peer_kind from traffic where uuid = ${uuid}`
      if (stored!.peer_kind === null) unresolved.push(uuid)
    }
  }
  for (const one of open) await one.end(true)
  await run()
  await sql`update flow_edge_pending set time_stamp = ${ago(HOUR)}::text::timestamp`
  await run()
  const edges = await sql`
    select e.port, e.peer_kind, e.peer_name, e.flows::int from flow_edge e
    order by e.port, e.peer_kind nulls first, e.peer_name nulls first, e.traffic_in_out_ip`
  const flows = await sql`
    select e.port, e.peer_kind, e.peer_name, count(*)::int as flows
    from (select t as flow from traffic t) t cross join lateral edge_of_flow(t.flow) e
    group by e.port, e.peer_kind, e.peer_name, e.traffic_in_out_ip
    order by e.port, e.peer_kind nulls first, e.peer_name nulls first, e.traffic_in_out_ip`
  assert.deepEqual(
    edges.map((one) => ({ ...one })),
    flows.map((one) => ({ ...one })),
  )
})

test('flows that were restored from another server count once, and those that are stored then, too', async () => {
  const flows = depth(6_000, 12_000)
  const others = depth(500, 6_000)
  await storeMany(flows, 'counted')
  const early = await store({ traffic_in_out_port: 'early' })
  const open = await store({ ...OPEN, traffic_in_out_port: 'open' })
  await run()
  await storeMany(others, 'not counted')
  // The number of one is by chance one that this server gives, too.
  const SOON = 20
  await sql.begin(async (restore) => {
    await restore`
      update traffic t
      set tx = case when t.uuid = ${early} then pg_current_xact_id()::text::bigint + ${SOON}::int
                    else t.tx::text::bigint + 1000000000 end::text::xid8`
    await restore`update flow_edge_cursor c set next_tx = (c.next_tx::text::bigint + 1000000000)::text::xid8`
    await restore`update schema_migration set name = name`
  })
  const restoredAt = await clock()
  for (let i = 0; i < SOON; i++) await sql`select pg_current_xact_id()`
  const resolved = await store({ ...OPEN, traffic_in_out_port: 'resolved then' })
  const dropped = await store({ traffic_in_out_port: 'dropped then' })
  await store({ traffic_in_out_port: 'stored then' })
  await resolve(resolved, { peer_kind: 'service', peer_namespace: 'shop', peer_name: 'db' })
  await sql`update traffic set drop_cause = 'no-policy' where uuid = ${dropped}`
  assert.equal(await isAsOf(restoredAt), false)
  const now = { 'dropped then': 1, 'resolved then': 1, 'stored then': 1 }
  const edges = { counted: flows, early: 1, 'not counted': others, ...now }
  for (let pass = 0; pass < 2; pass++) {
    await becomesAsOf(restoredAt)
    assert.deepEqual([await counted(), await pending()], [edges, 1])
  }
  await resolve(open, { peer_kind: 'service', peer_namespace: 'shop', peer_name: 'db' })
  await run()
  assert.deepEqual([await counted(), await pending()], [{ ...edges, open: 1 }, 0])
  const [{ n }] = (await sql`
    select count(*)::int as n from traffic where tx >= pg_snapshot_xmax(pg_current_snapshot())`) as [{ n: number }]
  assert.equal(n, 0)
})

test('old edges are deleted unless a living pod reported one, and pods that are gone are forgotten', async () => {
  const old = { time_stamp: ago(100 * DAY) }
  await scene.pod({ pod_name: 'alive' })
  await scene.pod({ pod_name: 'dead', is_dead: true })
  for (const [port, pods] of Object.entries({ 1: ['alive', 'dead', 'gone'], 2: ['dead', 'gone'], 3: ['gone'] }))
    for (const pod_name of pods) await store({ ...old, pod_name, traffic_in_out_port: port })
  await store({ pod_name: 'gone', traffic_in_out_port: '3' })
  await run({ config: { ...scene.context().config, flowEdgeRetentionDays: 0 } })
  assert.deepEqual(await counted(), { 1: 3, 2: 2, 3: 2 })
  await run()
  assert.deepEqual(await counted(), { 1: 3, 3: 2 })
  const edges = await sql`
    select e.port, e.pods::int, string_agg(p.pod_name, ',' order by p.pod_name) as names
    from flow_edge e join flow_edge_pod p on p.edge_id = e.id group by e.id order by 1`
  assert.deepEqual(
    edges.map((one) => ({ ...one })),
    [
      { port: '1', pods: 1, names: 'alive' },
      { port: '3', pods: 1, names: 'gone' },
    ],
  )
  const [{ rest }] = (await sql`
    select count(*)::int as rest from flow_edge_pod p
    where not exists (select from flow_edge e where e.id = p.edge_id)`) as [{ rest: number }]
  assert.equal(rest, 0)
  // The sweep found it silent, so it may live.
  await sql`update pod set is_dead = true, swept_at = now() at time zone 'utc' where pod_name = 'alive'`
  await run()
  assert.deepEqual(await counted(), { 1: 3, 3: 2 })
  await sql`update pod set swept_at = null`
  await run()
  assert.deepEqual(await counted(), { 3: 2 })
})

/** The pods that counted flows name, with the age of their first and last flow in days. */
async function podsOfFlows(): Promise<string[]> {
  const rows = await sql<{ text: string }[]>`
    select concat_ws(' ', pod_namespace || '/' || pod_name, workload_kind || '/' || workload_name,
                     round(extract(epoch from now() at time zone 'utc' - first_flow_at) / 86400) || '-'
                     || round(extract(epoch from now() at time zone 'utc' - last_flow_at) / 86400),
                     case when is_labelled then 'labelled' end) as text
    from flow_pod order by 1`
  return rows.map(({ text }) => text)
}
const labelled = (name: string, days: number) => sql`
  insert into pod_labels (pod_namespace, pod_name, since, labels, node_name)
  values ('shop', ${name}, ${ago(days * DAY)}::text::timestamp, '{}', 'node-1')`

test('the pods of flows are recorded with each of their workloads, their first and last flow, and whether they have labels', async () => {
  await labelled('web-1', 9)
  await labelled('db-0', 5)
  await store({ time_stamp: ago(8 * DAY) })
  await store({ peer_name: 'db-1', peer_workload_name: null, peer_workload_kind: null, pod_namespace: null })
  await run()
  await store({ time_stamp: ago(3 * DAY), pod_workload_name: 'web-2' })
  const late = await store(OPEN)
  await store({ pod_name: null, peer_kind: 'service' })
  await run()
  await resolve(late, { peer_kind: 'pod', peer_namespace: 'shop', peer_name: 'late', peer_workload_kind: 'Job' })
  await run()
  assert.deepEqual(await podsOfFlows(), [
    '/web-1 Deployment/web 0-0',
    'shop/db-0 StatefulSet/db 8-3',
    'shop/db-1 / 0-0',
    'shop/late Job/ 0-0',
    'shop/web-1 Deployment/web 8-0 labelled',
    'shop/web-1 Deployment/web-2 3-3 labelled',
  ])
})

test('labels that are posted after the first flow of a pod are noted, if they hold for it', async () => {
  await store()
  await run()
  await labelled('db-0', 1)
  await sql`
    insert into pod_labels (pod_namespace, pod_name, since, labels, node_name)
    values ('shop', 'web-1', ${ago(0)}::text::timestamp, '{}', 'node-1')`
  await run()
  assert.deepEqual(await podsOfFlows(), ['shop/db-0 StatefulSet/db 0-0 labelled', 'shop/web-1 Deployment/web 0-0'])
})

test('pods of flows are forgotten a day after edges may have forgotten them', async () => {
  for (const days of [10, 8])
    await store({
      ...{ time_stamp: ago(days * DAY), pod_name: `web-${days}`, pod_ip: `10.0.1.${days}`, peer_kind: 'service' },
      traffic_in_out_ip: `10.96.1.${days}`,
    })
  const addresses = async () => (await sql`select address from flow_address order by 1`).map(({ address }) => address)
  const keep = (flowEdgeRetentionDays: number) => ({ config: { ...scene.context().config, flowEdgeRetentionDays } })
  await run(keep(0))
  assert.deepEqual(await addresses(), ['10.0.1.10', '10.0.1.8', '10.96.1.10', '10.96.1.8'])
  await run(keep(8))
  assert.deepEqual(await podsOfFlows(), ['shop/web-8 Deployment/web 8-8'])
  assert.deepEqual(await addresses(), ['10.0.1.8', '10.96.1.8'])
  await run(keep(0))
  assert.equal((await podsOfFlows()).length, 1)
})

// ---- Behind a service -----------------------------------------------------------------------------------------------

const pod = (pod_name: string, workload_name: string | null, labels: object, more: Record<string, unknown> = {}) =>
  scene.pod({
    ...{ pod_name, workload_name, workload_kind: workload_name && 'Deployment', labels_hash: randomUUID() },
    pod_obj: { metadata: { labels } },
    ...more,
  })
const service = (svc_name: string, service_spec: unknown) =>
  sql`select upsert_services(${JSON.stringify([
    { svc_ip: `10.96.0.${svc_name.length}`, svc_name, svc_namespace: 'shop', service_spec, time_stamp: ago(0) },
  ])}::text::json)`
async function backends(): Promise<string[]> {
  const rows = await sql<{ text: string }[]>`
    select svc_name || ':' || port || '/' || protocol || ' > ' || workload_name || ':' || target_port as text
    from service_backend order by 1`
  return rows.map(({ text }) => text)
}
const WEB = { app: 'web' }
const LONG = randomBytes(9_000).toString('base64')
const ports = (...some: object[]) => ({ spec: { selector: WEB, ports: some } })

test('the workload behind a service, and the ports that its pods listen on', async () => {
  await pod('web-1', 'web', { ...WEB, tier: 'front' }, { named_ports: { http: 8080 } })
  await pod('db-1', 'db', { app: 'db' })
  await pod('dead', 'other', WEB, { is_dead: true })
  await pod('elsewhere', 'other', WEB, { pod_namespace: 'tools' })
  await service(
    'web',
    ports({ port: 80, targetPort: 'http' }, { port: 53, protocol: 'UDP' }, { port: 9, targetPort: 'no' }),
  )
  await run()
  assert.deepEqual(await backends(), ['web:53/UDP > web:53', 'web:80/TCP > web:8080'])
  await service('web', ports({ port: 81, targetPort: 8081 }))
  assert.equal((await run()).rows, 3)
  assert.deepEqual(await backends(), ['web:81/TCP > web:8081'])
  assert.equal((await run()).rows, 0)
})

test('a named target port is that of the newest pod, whatever its other labels', async () => {
  const started = (secs: number, http: number) => ({ started_at: ago(secs), named_ports: { http } })
  await pod('web-2', 'web', WEB, started(200, 8002))
  await pod('web-1', 'web', { ...WEB, revision: '2' }, started(100, 8001))
  await pod('web-3', 'web', WEB, started(300, 8003))
  await service('web', ports({ port: 80, targetPort: 'http' }))
  await run()
  assert.deepEqual(await backends(), ['web:80/TCP > web:8001'])
  await pod('web-4', 'web', WEB, started(50, 8004))
  await run()
  assert.deepEqual(await backends(), ['web:80/TCP > web:8004'])
})

test('a named target port is that of the protocol of the service; earlier releases stored names without one', async () => {
  await pod('web-1', 'web', WEB, { named_ports: { 'log/TCP': 1514, 'log/UDP': 5514, 'http/UDP': 1, old: 7 } })
  const targets = ['TCP', 'UDP'].map((protocol) => ({ port: 514, protocol, targetPort: 'log' }))
  await service('web', ports(...targets, { port: 80, targetPort: 'http' }, { port: 70, targetPort: 'old' }))
  await run()
  assert.deepEqual(await backends(), ['web:514/TCP > web:1514', 'web:514/UDP > web:5514', 'web:70/TCP > web:7'])
})

test('a service that selects pods of several workloads, or of one that is not known, is none', async () => {
  await pod('web-1', 'web', WEB)
  await service('web', ports({ port: 80 }))
  await run()
  assert.deepEqual(await backends(), ['web:80/TCP > web:80'])
  await pod('canary-1', 'canary', WEB)
  await run()
  assert.deepEqual(await backends(), [])
  await sql`update pod set is_dead = true where pod_name = 'canary-1'`
  await pod('bare', null, WEB)
  await run()
  assert.deepEqual(await backends(), [])
})

test('a service that selects no living pod keeps what was recorded', async () => {
  await pod('web-1', 'web', WEB)
  await service('web', ports({ port: 80 }))
  await run()
  await sql`update pod set is_dead = true`
  await run()
  assert.deepEqual(await backends(), ['web:80/TCP > web:80'])
})

test('specifications that select nothing, or are none', async () => {
  await pod('web-1', 'web', WEB)
  for (const [i, spec] of [
    ...[null, {}, [], 'text', { spec: null }, { spec: { selector: WEB, ports: null } }],
    ...[{ spec: { selector: {}, ports: [{ port: 80 }] } }, { spec: { selector: null, ports: [{ port: 80 }] } }],
    ...[
      { spec: { selector: ['app'], ports: [{ port: 80 }] } },
      { spec: { selector: { app: 1 }, ports: [{ port: 80 }] } },
    ],
    ...[ports(null as never), ports(5 as never), ports({ port: null }), ports({ targetPort: 80 })],
    // Longer than an index takes, also when compressed.
    ...[
      ports({ port: LONG, targetPort: 80 }),
      ports({ port: 80, protocol: LONG }),
      ports({ port: 'x', targetPort: 80 }),
    ],
    { spec: { selector: { ...WEB, tier: 'none' }, ports: [{ port: 80 }] } },
  ].entries())
    await service(`s${'x'.repeat(i)}`, spec)
  await run()
  assert.deepEqual(await backends(), [])
})
