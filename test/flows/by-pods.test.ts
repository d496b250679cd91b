import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { flowEdges } from '../../jobs/flow-edges.ts'
import type { Condition } from '../../lib/flows/filter.ts'
import type { FlowQuery } from '../../lib/flows/read.ts'
import { MAX_PODS, readReporters } from '../../lib/flows/reporters.ts'
import { startApp } from '../support/app.ts'
import { othersEnded } from '../support/transactions.ts'
import { assertSameByPods, type Sizes } from '../traffic/by-pods.ts'

const app = await startApp({ POD_TRAFFIC_RETENTION_DAYS: '0' })
const { sql } = app

const EVER = { since: '-infinity', until: 'infinity' }
const DB = { subject: 'port', side: 'either', wanted: [{ first: 5432, last: 5432 }], excluded: [] } as const
const newest: FlowQuery = { filter: [DB], order: 'newest', ...EVER }
const oldest: FlowQuery = { ...newest, order: 'oldest' }
const reportersOf = (query: FlowQuery) => readReporters(app.db.read, query, null)
const podsOf = async (query: FlowQuery) => (await reportersOf(query))?.pods.toSorted()

/** Stores flows that are minutes apart, the newest an hour ago; the last ones of each pod go to port 5432. */
async function store(
  pod: string | null,
  flows: number,
  ofDb: number,
  { peer = 'service', kind = 'service', ago = '1 hour', address = '' } = {},
) {
  await sql`
    insert into traffic (uuid, pod_name, pod_namespace, pod_ip, pod_port, ip_protocol, traffic_type, traffic_in_out_ip,
                         traffic_in_out_port, decision, time_stamp, peer_kind, peer_namespace, peer_name,
                         pod_workload_kind, pod_workload_name)
    select gen_random_uuid(), ${pod}::text, 'shop', 'address of ' || coalesce(${pod}::text, 'none'), n, 'TCP',
           'EGRESS', coalesce(nullif(${address}::text, ''), '10.0.' || n / 250 || '.' || n % 250),
           case when n < ${ofDb}::int then '5432' else '443' end, 'ALLOW',
           now() at time zone 'utc' - ${ago}::text::interval - (${flows}::int - n) * interval '1 minute',
           ${peer === '' ? null : kind}::text, 'shop', ${peer || null}::text, 'Deployment', ${pod}::text
    from generate_series(0, ${flows}::int - 1) n`
}

/** The time so many days ago, as text of PostgreSQL. */
const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, -1)

async function pass(windowSecs = 0): Promise<void> {
  await othersEnded(sql)
  const config = { ...app.deps.config, peerLateResolveWindowSecs: windowSecs }
  await flowEdges.run({ config, db: app.db, log: app.deps.log, signal: new AbortController().signal })
}

beforeEach(async () => {
  await sql`truncate traffic, flow_edge, flow_edge_pod, flow_edge_pending, flow_pod, flow_address, pod_labels`
  await sql`
    update flow_edge_cursor set next_tx = pg_current_xact_id(), time_stamp = null, uuid = null, open_secs = null,
                                complete_since = '-infinity', pods_since = '-infinity',
                                addresses_since = '-infinity'`
})

const SIZES: Sizes[] = [
  { first: 1, next: 1, rows: 1 },
  { first: 1, next: 2, rows: 3 },
  { first: 2, next: 30, rows: 10 },
]
/** In both orders, in steps of several sizes. */
async function assertSame(subject = 'port', value = '5432'): Promise<void> {
  for (const order of ['newest', 'oldest'])
    for (const sizes of SIZES)
      await assertSameByPods(
        app,
        [
          [subject, value],
          ['order', order],
        ],
        sizes,
      )
}

const byPod = (...wanted: Condition['wanted']): FlowQuery => ({
  ...newest,
  filter: [{ subject: 'pod', side: 'either', wanted, excluded: [] }],
})
const byLabel: FlowQuery = {
  ...newest,
  filter: [{ subject: 'label', side: 'either', wanted: [{ key: 'app', value: 'db' }], excluded: [] }],
}
/** Labels of a pod since so many days ago. */
const label = (pod: string, days: number, app = 'db') => sql`
  insert into pod_labels (pod_namespace, pod_name, since, labels, node_name)
  values ('shop', ${pod}, ${daysAgo(days)}::text::timestamp, ${sql.json({ app })}, 'node-1')`
const byAddress = (...wanted: Condition['wanted']): FlowQuery => ({
  ...newest,
  filter: [{ subject: 'ip', side: 'either', wanted, excluded: [] }],
})
const byNode: FlowQuery = {
  ...newest,
  filter: [{ subject: 'node', side: 'either', wanted: ['node-1'], excluded: [] }],
}
const podsSince = (value: string) => sql`update flow_edge_cursor set pods_since = ${value}::text::timestamp`

test('GET /flows 200: a rare filter reads the pods of its edges only, and finds what all flows have', async () => {
  await store('a', 20, 7)
  await store('b', 30, 2)
  await store('c', 25, 0)
  await pass()
  assert.deepEqual(await podsOf(newest), ['a', 'b'])
  await assertSame()
})

test('GET /flows 200: flows that are not counted yet, or whose peer may become known, are found', async () => {
  await store('a', 9, 3)
  await pass(86_400)
  await store('b', 9, 3)
  assert.deepEqual(await podsOf(newest), ['a', 'b'])
  await assertSame()
  await store('c', 9, 3, { peer: '' })
  await pass(86_400)
  const [{ pending }] = await sql<[{ pending: number }]>`select count(*)::int as pending from flow_edge_pending`
  assert.equal(pending, 9)
  assert.deepEqual(await podsOf(newest), ['a', 'b', 'c'])
  await assertSame()
})

test('GET /flows 200: flows from before edges were complete are examined one by one', async () => {
  await store('a', 9, 3)
  await pass()
  // The window was raised: flows that were counted as unresolved may have become known since.
  await pass(60)
  await store('b', 9, 3, { ago: '-1 hour' })
  await pass(60)
  const reporters = await reportersOf(newest)
  assert.deepEqual([reporters?.pods, reporters?.hasOlder], [['b'], true])
  assert.equal(await podsOf(oldest), undefined)
  await assertSame()
  await pass(30)
  assert.deepEqual(await podsOf(newest), ['b'])
})

test('GET /flows 200: edges forget pods that are gone, so older flows are examined one by one', async () => {
  await store('a', 9, 3, { ago: '100 days' })
  await store('b', 9, 3)
  await pass()
  const reporters = await reportersOf(newest)
  assert.deepEqual([reporters?.pods, reporters?.hasOlder], [['b'], true])
  assert.equal(await podsOf(oldest), undefined)
  await assertSame()
  assert.deepEqual(await podsOf({ ...oldest, since: daysAgo(30) }), ['b'])
})

test('GET /flows 200: flows without a pod or a direction are examined one by one, where the range has some', async () => {
  await store('a', 9, 3)
  await store(null, 2, 1, { ago: '2 days' })
  await pass()
  assert.equal(await podsOf(newest), undefined)
  await assertSame()
  assert.deepEqual(await podsOf({ ...newest, since: daysAgo(1) }), ['a'])
  await sql`delete from traffic where pod_name is null`
  assert.deepEqual(await podsOf(newest), ['a'])
  await sql`update traffic set traffic_type = 'FORWARD' where time_stamp = (select max(time_stamp) from traffic)`
  assert.equal(await podsOf(newest), undefined)
})

test('GET /flows 200: while edges are counted for the first time, and after a restore, all flows are examined', async () => {
  await store('a', 9, 3)
  await pass()
  assert.deepEqual(await podsOf(newest), ['a'])
  await sql`
    update flow_edge_cursor set next_tx = (pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 1000)::text::xid8`
  assert.equal(await podsOf(newest), undefined)
  await sql`update flow_edge_cursor set next_tx = '3', time_stamp = '-infinity', uuid = ''`
  assert.equal(await podsOf(newest), undefined)
  await sql`update flow_edge_cursor set time_stamp = null, uuid = null`
  assert.deepEqual(await podsOf(newest), ['a'])
})

test('GET /flows 200: a pod is found by itself and by the edges of its workload, also by the beginning of its name', async () => {
  await store('a', 20, 7, { peer: 'db-0', kind: 'pod' })
  await store('b', 9, 0, { peer: 'db-1', kind: 'pod' })
  await store('c', 9, 0)
  await store('db-0', 3, 0)
  await pass()
  assert.deepEqual(await podsOf(byPod({ namespace: 'shop', name: 'db-0' })), ['a', 'db-0'])
  assert.deepEqual(await podsOf(byPod({ namespace: 'shop', prefix: 'db-' })), ['a', 'b', 'db-0', 'db-1'])
  assert.deepEqual(await podsOf(byPod({ namespace: 'other', name: 'db-0' })), [])
  assert.deepEqual(await podsOf({ ...byPod({ namespace: 'shop', prefix: '' }), ...EVER }), [
    'a',
    'b',
    'c',
    'db-0',
    'db-1',
  ])
  for (const value of ['shop/db-0', 'shop/db-*', 'other/db-0', 'shop/nobody']) await assertSame('pod', value)
})

test('GET /flows 200: pods of a label are found, with those whose labels were not recorded by their first flow', async () => {
  await label('db-0', 3)
  await label('db-1', 3, 'web')
  await label('late', 0, 'web')
  for (const peer of ['db-0', 'db-1', 'late', 'unknown']) {
    await label(`to-${peer}`, 3, 'web')
    await store(`to-${peer}`, 5, 1, { peer, kind: 'pod' })
  }
  await pass()
  assert.deepEqual(await podsOf(byLabel), ['db-0', 'late', 'to-db-0', 'to-late', 'to-unknown', 'unknown'])
  await assertSame('label', 'app=db')
  // The labels of `late` are recorded from its start, after its first flow was counted.
  await label('late', 3, 'web')
  await pass()
  assert.deepEqual(await podsOf(byLabel), ['db-0', 'to-db-0', 'to-unknown', 'unknown'])
})

test('GET /flows 200: flows that were counted before pods were recorded are examined one by one', async () => {
  const query = byPod({ namespace: 'shop', name: 'db-0' })
  await store('a', 9, 3, { peer: 'db-0', kind: 'pod' })
  await pass()
  await sql`truncate flow_pod`
  await podsSince('infinity')
  assert.equal(await podsOf(query), undefined)
  await pass()
  const [since] = await sql<{ is_now: boolean }[]>`
    select pods_since > now() at time zone 'utc' - interval '1 minute' as is_now from flow_edge_cursor`
  assert.equal(since!.is_now, true)
  await store('b', 9, 3, { peer: 'db-0', kind: 'pod', ago: '-1 hour' })
  await pass()
  const reporters = await reportersOf(query)
  assert.deepEqual([reporters?.pods.toSorted(), reporters?.hasOlder], [['b', 'db-0'], true])
  await assertSame('pod', 'shop/db-0')
  // In a database without flows, all are counted with their pods.
  await sql`truncate traffic, flow_edge, flow_edge_pod, flow_pod`
  await podsSince('infinity')
  await sql`update flow_edge_cursor set next_tx = '0'`
  await store('a', 9, 3, { peer: 'db-0', kind: 'pod' })
  await pass()
  assert.deepEqual(await podsOf(query), ['a', 'db-0'])
})

test('GET /flows 200: an address is found as that of a pod, a service, a node or none of these', async () => {
  await store('a', 3, 1, { peer: '', address: '198.51.100.7' })
  await store('b', 3, 1, { peer: 'web', address: '10.96.0.1' })
  await store('c', 3, 1, { peer: 'db-0', kind: 'pod', address: '10.1.2.3' })
  await store('d', 3, 1, { peer: 'agent-1', kind: 'node', address: '192.0.2.11' })
  await sql`update traffic set pod_ip = '10.1.7.7' where pod_name = 'd'`
  await store('db-0', 3, 1, { peer: '', address: '203.0.113.5' })
  await pass()
  for (const [address, ...pods] of [
    ['198.51.100.7', 'a'],
    ['10.96.0.1', 'b'],
    // Flows to the workload of a pod that had this address
    ['10.1.2.3', 'c', 'db-0'],
    ['192.0.2.11', 'd'],
    ['10.1.7.7', 'd'],
    ['10.1.2.4'],
  ] as const) {
    assert.deepEqual(await podsOf(byAddress({ address })), pods, address)
    for (const side of ['', 'from_', 'to_']) await assertSame(`${side}ip`, address)
  }
  const network = (of: string, beginning: string) => podsOf(byAddress({ network: of, beginning }))
  assert.deepEqual(await network('10.1.0.0/16', '10.1.%'), ['c', 'd', 'db-0'])
  assert.deepEqual(await network('192.0.2.8/29', '192.0.2.%'), ['d'])
  assert.deepEqual(await network('198.51.100.0/30', '198.51.100.%'), [])
  for (const value of ['10.1.0.0/16', '192.0.2.8/29', '10.96.0.0/12', 'fd00::/8']) await assertSame('ip', value)
})

test('GET /flows 200: a node is found by its pods and by those that talk to them, also on its own network', async () => {
  for (const pod of ['db-0', 'agent-1', 'a', 'b', 'c']) await label(pod, 3)
  await sql`update pod_labels set node_name = 'node-2' where pod_name in ('a', 'b', 'c')`
  await store('a', 3, 1, { peer: 'db-0', kind: 'pod' })
  await store('b', 3, 1, { peer: 'agent-1', kind: 'node', address: '192.0.2.11' })
  await store('c', 3, 1, { peer: '', address: '192.0.2.12' })
  await pass()
  assert.deepEqual(await podsOf(byNode), ['a', 'agent-1', 'b', 'db-0'])
  await assertSame('node', 'node-1')
  // Of the pod on that network neither labels nor node are known.
  await store('c', 3, 1, { peer: 'agent-2', kind: 'node', address: '192.0.2.13' })
  await pass()
  assert.deepEqual(await podsOf(byNode), ['a', 'agent-1', 'agent-2', 'b', 'c', 'db-0'])
  await assertSame('node', 'node-1')
})

test('GET /flows 200: flows that were counted before addresses were recorded are examined one by one', async () => {
  const query = byAddress({ address: '10.96.0.1' })
  await store('a', 3, 1, { address: '10.96.0.1' })
  await pass()
  await sql`truncate flow_address`
  await sql`update flow_edge_cursor set addresses_since = 'infinity'`
  assert.equal(await podsOf(query), undefined)
  await pass()
  await store('b', 3, 1, { address: '10.96.0.1', ago: '-1 hour' })
  await pass()
  const reporters = await reportersOf(query)
  assert.deepEqual([reporters?.pods, reporters?.hasOlder], [['b'], true])
  await assertSame('ip', '10.96.0.1')
})

test('GET /flows 200: a filter by address that many match examines all flows', async () => {
  await sql`
    insert into flow_address
    select 'shop', 'service-' || n, 'service', '10.96.' || n / 250 || '.' || n % 250, now() at time zone 'utc'
    from generate_series(1, ${MAX_PODS}::int) n`
  await store('a', 1, 0, { peer: 'service-7', address: '10.96.0.7' })
  const all = byAddress({ network: '10.96.0.0/12', beginning: '10.%' })
  await pass()
  assert.deepEqual(await podsOf(all), ['a'])
  await store('b', 1, 0, { peer: 'one-more', address: '10.97.0.7' })
  await pass()
  assert.equal(await podsOf(all), undefined)
  assert.deepEqual(await podsOf(byAddress({ address: '10.97.0.7' })), ['b'])
})

test('GET /flows 200: a filter by pod or label that many pods may match examines all flows', async () => {
  await sql`
    insert into flow_pod
    select 'shop', 'pod-' || n, '', '', now() at time zone 'utc', now() at time zone 'utc', false from generate_series(1, ${MAX_PODS}::int) n`
  assert.equal((await podsOf(byLabel))?.length, MAX_PODS)
  assert.equal((await podsOf(byPod({ namespace: 'shop', prefix: 'pod' })))?.length, MAX_PODS)
  await store('pod-0', 1, 1)
  await pass()
  assert.equal(await podsOf(byLabel), undefined)
  assert.equal(await podsOf(byPod({ namespace: 'shop', prefix: 'pod' })), undefined)
  assert.deepEqual(await podsOf(byPod({ namespace: 'shop', name: 'pod-7' })), ['pod-7'])
})

test('GET /flows 200: pods are read one by one up to a limit', async () => {
  await sql`
    insert into traffic (uuid, pod_name, pod_namespace, pod_ip, pod_port, ip_protocol, traffic_type, traffic_in_out_ip,
                         traffic_in_out_port, decision, time_stamp, peer_kind)
    select 'many-' || n, 'pod-' || n, 'shop', '10.1.0.' || n, '0', 'TCP', 'EGRESS', '10.0.0.9', '5432', 'ALLOW',
           now() at time zone 'utc', 'service'
    from generate_series(1, ${MAX_PODS}::int) n`
  await pass()
  assert.equal((await podsOf(newest))?.length, MAX_PODS)
  await store('one-more', 1, 1)
  assert.equal(await podsOf(newest), undefined)
})

test('GET /flows 200: where there are very many edges, all flows are examined', async () => {
  await store('a', 9, 3)
  await pass()
  await sql`analyze flow_edge`
  const edges = await sql`select from flow_edge`
  assert.notEqual(await readReporters(app.db.read, newest, null, edges.length), null)
  assert.equal(await readReporters(app.db.read, newest, null, edges.length - 1), null)
  // Those of a network are looked through, those of an address are looked up.
  const inNetwork = byAddress({ network: '10.0.0.0/8', beginning: '10.%' })
  assert.notEqual(await readReporters(app.db.read, inNetwork, null, edges.length), null)
  assert.equal(await readReporters(app.db.read, inNetwork, null, edges.length - 1), null)
  assert.notEqual(await readReporters(app.db.read, byAddress({ address: '10.0.0.0' }), null, 0), null)
})

test('GET /flows 200: the pages and streams of a rare filter, behind more flows than one statement examines', async () => {
  await store('busy', 12_000, 0)
  await store('a', 5, 5, { ago: '30 days' })
  await pass()
  const seen: unknown[] = []
  for (let after: string | null = ''; after !== null; ) {
    const { json } = await app.get(`/flows?port=5432&limit=2&after=${after}`)
    seen.push(...json.items.map((item: { pod_name: string }) => item.pod_name))
    after = json.nextAfter
  }
  assert.deepEqual(seen, Array(5).fill('a'))
  const lines = await app.get('/flows?port=5432', { headers: { accept: 'application/x-ndjson' } })
  const end = JSON.parse(lines.text.trimEnd().split('\n').at(-1)!)
  assert.deepEqual([end.end, end.count], [true, 5])
  // Joined columns cannot carry their separator, so the rows are read once more, one by one.
  await sql`update traffic set peer_name = e'odd\\x1f' where pod_name = 'a'`
  const odd = await app.get('/flows?port=5432&limit=3')
  assert.deepEqual(
    odd.json.items.map((item: { peer_name: string }) => item.peer_name),
    Array(3).fill('odd\x1f'),
  )
})
