import assert from 'node:assert/strict'
import test, { beforeEach } from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'

const app = await startApp({ PEER_STALE_ALIVE_SECS: '120' })
const guarded = await startApp(
  {
    ...TOKENS,
    BROKER_READ_ACQUIRE_WAIT_MS: '0',
    BROKER_READ_MEMORY_BUDGET_MB: '1',
  },
  app,
)
const token = TOKENS.BROKER_TOKEN_READ

beforeEach(async () => {
  await app.sql`truncate pod, compute_node`
})

let made = 0
const pod = (node: string, secsAgo: number, isDead = false) => app.sql`
  insert into pod (pod_name, pod_ip, pod_ips, time_stamp, node_name, is_dead)
  values (${`pod-${++made}`}, '10.0.0.1', '{}', now() at time zone 'utc' - make_interval(secs => ${secsAgo}), ${node}, ${isDead})`
const heartbeat = (node: string, time: string) => app.sql`
  insert into compute_node
  select ${node}, now(), 5000, 0, true, true, false, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, null, null, ${time}::text::timestamp`
const nodes = async () => {
  const answer = await app.get('/node/status')
  assert.equal(answer.status, 200, answer.text)
  return answer.json.nodes as Record<string, unknown>[]
}

test('GET /node/status 200: without nodes the answer has the window and an empty list', async () => {
  const { status, json } = await app.get('/node/status')
  assert.equal(status, 200)
  assert.deepEqual(Object.keys(json), ['staleAfterSecs', 'nodes'])
  assert.deepEqual(json, { staleAfterSecs: 120, nodes: [] })
  assert.equal((await guarded.get('/node/status', { token })).json.staleAfterSecs, 900)
})

test('GET /node/status 200: a node has the time of its newest post, dead pods included, its number of live pods and its last heartbeat', async () => {
  await app.sql`
    insert into pod (pod_name, pod_ip, pod_ips, time_stamp, node_name, is_dead)
    select 'p' || n, '10.0.0.1', '{}', timestamp '2024-05-01 10:00:00' + n * interval '1 s', 'node-a', n > 2 from generate_series(1, 5) n`
  await heartbeat('node-a', '2024-05-01T11:00:00.25')
  const [row] = await nodes()
  assert.deepEqual(Object.keys(row!), ['node', 'lastPodPostAt', 'alivePods', 'lastHeartbeatAt', 'stale'])
  assert.deepEqual(row, {
    node: 'node-a',
    lastPodPostAt: '2024-05-01T10:00:05Z',
    alivePods: 2,
    lastHeartbeatAt: '2024-05-01T11:00:00.250Z',
    stale: true,
  })
})

test('GET /node/status 200: a node that sent only heartbeats has no time of a post and is stale', async () => {
  await heartbeat('node-b', '2024-05-01T11:00:00')
  assert.deepEqual(await nodes(), [
    { node: 'node-b', lastPodPostAt: null, alivePods: 0, lastHeartbeatAt: '2024-05-01T11:00:00Z', stale: true },
  ])
})

test('GET /node/status 200: with the stale sweep off, a node is stale after a day', async () => {
  const off = await startApp({ PEER_STALE_ALIVE_SECS: '0' }, app)
  await pod('busy', 10)
  await pod('gone', 86_460)
  const { json } = await off.get('/node/status')
  assert.equal(json.staleAfterSecs, 86_400)
  assert.deepEqual(
    json.nodes.map(({ node, stale }: Record<string, unknown>) => [node, stale]),
    [
      ['busy', false],
      ['gone', true],
    ],
  )
  const { items } = (await off.get('/coverage?part=nodes')).json.nodes
  assert.deepEqual(
    items.map(({ node, missing }: { node: string; missing: string[] }) => [node, missing.includes('silent')]),
    [
      ['busy', false],
      ['gone', true],
    ],
  )
})

test('GET /node/status 200: a node is stale when its newest post is older than the window', async () => {
  await pod('fresh', 100)
  await pod('fresh', 1_000)
  await pod('stale', 130)
  assert.deepEqual(
    (await nodes()).map(({ node, stale }) => [node, stale]),
    [
      ['fresh', false],
      ['stale', true],
    ],
  )
})

test('GET /node/status 200: each node is listed once, in byte order', async () => {
  for (const node of ['b', 'a-', 'a', 'é', 'Z', 'zz', '10', '9']) await pod(node, 1)
  for (const node of ['a', 'c']) await heartbeat(node, '2024-05-01T11:00:00')
  const names = (await nodes()).map(({ node }) => node as string)
  assert.deepEqual(names, ['10', '9', 'Z', 'a', 'a-', 'b', 'c', 'zz', 'é'])
})

test('GET /node/status 401: without a token', async () => assertUnauthorized(await guarded.get('/node/status')))

test('GET /node/status 503: shed when less than 250 KiB of the read budget are free', async () => {
  const release = await guarded.deps.budget.acquire(1024 - 249)
  assertShed(await guarded.get('/node/status', { token }), 250, 1024)
  release()
  assert.equal((await guarded.get('/node/status', { token })).status, 200)
})

test('GET /node/status 503: a statement that is cancelled', async () => {
  await whileRefused(guarded.sql, 'pod', async () => assertDatabaseBusy(await guarded.get('/node/status', { token })))
})
