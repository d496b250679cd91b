// Node reporting status, the version record and the daily check-in.
// The first check-in happens 120 s after the start and no setting shortens that: the cases that need one run only with
// CONFORMANCE_SLOW=1 and add about two minutes.

import assert from 'node:assert/strict'
import { after } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually, startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'
import { stubServer } from '../lib/stubs.mjs'

const SLOW = process.env.CONFORMANCE_SLOW === '1'
const cleanups = []
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup().catch(() => {})
})
const lazy = (make) => {
  let made
  return () => (made ??= make())
}
const brokerWith = async (env) => {
  const b = await startBroker({ env })
  cleanups.push(() => b.stop())
  return b
}

const plain = lazy(() => brokerWith({}))
// A window of two minutes, swept every five seconds; a version service that always fails.
const watched = lazy(async () => {
  const stub = await stubServer(() => ({ status: 500, text: 'down' }))
  cleanups.push(stub.close)
  return brokerWith({
    PEER_STALE_ALIVE_SECS: '120',
    PEER_LATE_RESOLVE_INTERVAL_SECS: '5',
    TELEMETRY_ENDPOINT: stub.url,
    CHART_VERSION: '2.4.0',
    KUBE_VERSION: 'v1.31.2',
  })
})
const optedOut = lazy(async () => {
  const stub = await stubServer(() => ({ json: { latest: { chart: '9.9.9' } } }))
  cleanups.push(stub.close)
  return {
    stub,
    b: await brokerWith({ TELEMETRY_ENABLED: 'false', TELEMETRY_ENDPOINT: stub.url, CHART_VERSION: '2.4.0' }),
  }
})

const naive = (ms) => new Date(ms).toISOString().slice(0, -1)
const ago = (seconds) => naive(Date.now() - seconds * 1000)
let address = 1
const postPod = async (b, pod_name, node_name, over = {}) => {
  const n = address++
  const r = await b.post('/pod/spec', {
    pod_name,
    pod_ip: `10.40.${n >> 8}.${n & 255}`,
    pod_namespace: 'shop',
    node_name,
    is_dead: false,
    time_stamp: ago(5),
    ...over,
  })
  assert.equal(r.status, 200, r.text)
}
const nodeStatus = async (b) => {
  const r = await b.get('/node/status')
  assert.equal(r.status, 200, r.text)
  return r.json
}
const nodeRow = async (b, node) => (await nodeStatus(b)).nodes.find((row) => row.node === node)

// ---- nodes

check('nodes: a broker that heard from no node answers the window and no rows', async () => {
  const b = await plain()
  const r = await b.get('/node/status')
  assert.equal(r.status, 200)
  assert.equal(r.text.replaceAll(/\s/g, ''), '{"staleAfterSecs":900,"nodes":[]}')
})

check('nodes: a row has the node, its newest post, its live pods, its heartbeat and staleness', async () => {
  const b = await plain()
  const whole = new Date(Math.floor(Date.now() / 1000) * 1000 - 10_000)
  await postPod(b, 'row-a', 'node-row', { time_stamp: naive(whole.getTime() - 60_000) })
  await postPod(b, 'row-b', 'node-row', { time_stamp: naive(whole.getTime()).replace('.000', '') })
  const row = await nodeRow(b, 'node-row')
  assert.deepEqual(Object.keys(row), ['node', 'lastPodPostAt', 'alivePods', 'lastHeartbeatAt', 'stale'])
  assert.deepEqual(row, {
    node: 'node-row',
    lastPodPostAt: whole.toISOString().replace('.000Z', 'Z'),
    alivePods: 2,
    lastHeartbeatAt: null,
    stale: false,
  })
})

check('nodes: rows are ordered by node name', async () => {
  const b = await plain()
  for (const node of ['node-z', 'node-a', 'node-m']) await postPod(b, `order-${node}`, node)
  const names = (await nodeStatus(b)).nodes.map((row) => row.node)
  assert.deepEqual(
    names.filter((n) => ['node-a', 'node-m', 'node-z'].includes(n)),
    ['node-a', 'node-m', 'node-z'],
  )
  assert.equal(new Set(names).size, names.length)
})

check('nodes: dead pods count for the newest post and not as alive', async () => {
  const b = await plain()
  await postPod(b, 'dead-a', 'node-dead', { time_stamp: ago(300) })
  const newest = ago(30)
  await postPod(b, 'dead-b', 'node-dead', { time_stamp: newest })
  assert.equal((await b.post('/pod/mark_dead', { pod_name: 'dead-b' })).json, 1)
  const row = await nodeRow(b, 'node-dead')
  assert.equal(row.alivePods, 1)
  assert.equal(Date.parse(row.lastPodPostAt), Date.parse(`${newest}Z`))
  assert.match(row.lastPodPostAt, /Z$/)
  assert.equal((await b.post('/pod/mark_dead', { pod_name: 'dead-a' })).json, 1)
  assert.equal((await nodeRow(b, 'node-dead')).alivePods, 0)
})

check('nodes: a node is stale when its newest post is older than the window', async () => {
  const b = await plain()
  await postPod(b, 'stale-a', 'node-stale', { time_stamp: ago(1000) })
  await postPod(b, 'fresh-a', 'node-fresh', { time_stamp: ago(800) })
  assert.equal((await nodeRow(b, 'node-stale')).stale, true)
  assert.equal((await nodeRow(b, 'node-fresh')).stale, false)
  await postPod(b, 'stale-b', 'node-stale')
  assert.equal((await nodeRow(b, 'node-stale')).stale, false)
})

check('nodes: the window is PEER_STALE_ALIVE_SECS', async () => {
  const b = await watched()
  assert.equal((await nodeStatus(b)).staleAfterSecs, 120)
  await postPod(b, 'window-old', 'node-window-old', { time_stamp: ago(150) })
  await postPod(b, 'window-new', 'node-window-new', { time_stamp: ago(30) })
  assert.equal((await nodeRow(b, 'node-window-old')).stale, true)
  assert.equal((await nodeRow(b, 'node-window-new')).stale, false)
})

check('nodes: after the sweep a stale node has no live pods and keeps its newest post', async () => {
  const b = await watched()
  const when = ago(200)
  await postPod(b, 'swept-a', 'node-swept', { time_stamp: when })
  await postPod(b, 'kept-a', 'node-kept')
  await eventually(async () => (await nodeRow(b, 'node-swept')).alivePods === 0, {
    timeoutMs: 30_000,
    what: 'the sweep',
  })
  const row = await nodeRow(b, 'node-swept')
  assert.equal(row.stale, true)
  assert.equal(Date.parse(row.lastPodPostAt), Date.parse(`${when}Z`))
  const kept = await nodeRow(b, 'node-kept')
  assert.equal(kept.alivePods, 1)
  assert.equal(kept.stale, false)
})

// ---- version

const VERSION_KEYS = ['broker', 'chart', 'telemetry_enabled', 'latest', 'checked_at', 'update_available']

check('version: without chart and address everything but the broker is unknown', async () => {
  const b = await plain()
  const r = await b.get('/version')
  assert.equal(r.status, 200)
  assert.deepEqual(Object.keys(r.json), VERSION_KEYS)
  const { broker, ...rest } = r.json
  assert.match(broker, /^\d+\.\d+\.\d+/)
  assert.deepEqual(rest, {
    chart: 'unknown',
    telemetry_enabled: false,
    latest: null,
    checked_at: null,
    update_available: false,
  })
})

check('version: the chart version is the injected one, and nothing is known before a check-in succeeded', async () => {
  const b = await watched()
  const { broker, ...rest } = (await b.get('/version')).json
  assert.ok(broker)
  assert.deepEqual(rest, {
    chart: '2.4.0',
    telemetry_enabled: true,
    latest: null,
    checked_at: null,
    update_available: false,
  })
})

check('version: with telemetry disabled the record still works and nobody is called', async () => {
  const { stub, b } = await optedOut()
  const { broker, ...rest } = (await b.get('/version')).json
  assert.ok(broker)
  assert.deepEqual(rest, {
    chart: '2.4.0',
    telemetry_enabled: false,
    latest: null,
    checked_at: null,
    update_available: false,
  })
  assert.deepEqual(stub.seen, [])
})

// ---- the check-in, about two minutes after the start

const checkedIn = lazy(async () => {
  const stub = await stubServer(() => ({ json: { latest: { chart: '2.5.0', broker: '7.0.0', controller: '1.2.3' } } }))
  cleanups.push(stub.close)
  const b = await brokerWith({ TELEMETRY_ENDPOINT: stub.url, CHART_VERSION: '2.4.0+build.7', KUBE_VERSION: 'v1.31.2' })
  await postPod(b, 'secret-pod-a', 'secret-node-1', { pod_namespace: 'secret-ns', pod_ip: '10.41.77.1' })
  await postPod(b, 'secret-pod-b', 'secret-node-1', { pod_namespace: 'secret-ns', pod_ip: '10.41.77.2' })
  await postPod(b, 'secret-pod-c', 'secret-node-2', { pod_namespace: 'secret-ns', pod_ip: '10.41.77.3' })
  await postPod(b, 'secret-pod-d', 'secret-node-3', { pod_namespace: 'secret-ns', pod_ip: '10.41.77.4' })
  await b.post('/pod/mark_dead', { pod_name: 'secret-pod-d' })
  await b.post('/svc/spec', {
    svc_ip: '10.98.77.1',
    svc_name: 'secret-svc',
    svc_namespace: 'secret-ns',
    time_stamp: ago(5),
  })
  return { stub, b }
})
if (SLOW) checkedIn().catch(() => {})
/** Each step waits less than a case may take. */
for (const step of [1, 2, 3]) {
  check(`version: waiting for the first check-in, part ${step} of 3`, async (t) => {
    if (!SLOW) return t.skip('CONFORMANCE_SLOW=1 runs it')
    const { stub } = await checkedIn()
    for (let i = 0; i < 50 && stub.seen.length === 0; i++) await sleep(1000)
    if (step === 3) assert.equal(stub.seen.length, 1, 'one request')
  })
}

check('version: the check-in sends the named parameters and nothing of the cluster', async (t) => {
  if (!SLOW) return t.skip('CONFORMANCE_SLOW=1 runs it')
  const { stub, b } = await checkedIn()
  const [call] = stub.seen
  assert.equal(call.method, 'GET')
  assert.equal(call.path, '/v1/check')
  assert.equal(call.body, '')
  const named = ['install', 'broker', 'chart', 'k8s', 'nodes', 'arch']
  const added = ['provider', 'distro', 'cni', 'ip_family', 'node_os', 'pods_bucket', 'features']
  for (const key of named) assert.ok(key in call.query, `${key} is missing`)
  for (const key of Object.keys(call.query))
    assert.ok(named.includes(key) || added.includes(key), `${key} is not a parameter of the contract`)
  assert.match(call.query.install, /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.equal(call.query.broker, (await b.get('/version')).json.broker)
  assert.equal(call.query.chart, '2.4.0')
  assert.equal(call.query.k8s, 'v1.31.2')
  assert.equal(call.query.nodes, '2')
  assert.match(call.query.arch, /^[A-Za-z0-9_]{1,16}$/)
  assert.ok(!/secret|10\.41\.77|10\.98\.77/.test(JSON.stringify(call)), 'a name or address of the cluster was sent')
})

check('version: a check-in fills latest, checked_at and update_available', async (t) => {
  if (!SLOW) return t.skip('CONFORMANCE_SLOW=1 runs it')
  const { b } = await checkedIn()
  const version = await eventually(
    async () => {
      const { json } = await b.get('/version')
      return json.latest && json
    },
    { what: 'the result of the check-in' },
  )
  assert.deepEqual(version.latest, { chart: '2.5.0', broker: '7.0.0', controller: '1.2.3' })
  assert.match(version.checked_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?$/)
  assert.equal(version.update_available, true)
})
