import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileLocked } from '../support/routes.ts'
import { culprit, latest, nodes, sample, take } from './posts.ts'

const PATH = '/compute/latest'
const app = await startApp()
const { sql } = app

beforeEach(async () => {
  await sql`truncate compute_latest, compute_node`
})

const KEYS = [
  ...[
    'container_uid',
    'pod_uid',
    'namespace',
    'pod_name',
    'container',
    'node',
    'cgroup_id',
    'ts',
    'interval_ms',
    'cpu_usage_millis',
  ],
  ...[
    'cpu_quota_usec',
    'cpu_period_usec',
    'cpu_request_millis',
    'cpu_limit_millis',
    'cpu_nr_periods',
    'cpu_nr_throttled',
  ],
  ...[
    'cpu_throttled_usec',
    'cpu_psi_some10',
    'cpu_psi_full10',
    'mem_current',
    'mem_working_set',
    'mem_limit',
    'mem_request',
  ],
  ...[
    'mem_psi_some10',
    'mem_psi_full10',
    'mem_events_high',
    'mem_events_max',
    'mem_oom_kill',
    'mem_refault',
    'mem_pgmajfault',
  ],
  ...['runq_count', 'runq_p50_us', 'runq_p95_us', 'runq_p99_us', 'runq_max_us', 'runq_overflow', 'blame', 'updated_at'],
  ...['blame_omitted', 'blame_omitted_wait_ns'],
]

/** So many rows, of pods `pod-00001` and on. */
const fill = (rows: number, namespace: string, node = 'node-a') => sql`
  insert into compute_latest
  select ${namespace} || n, 'u', ${namespace}, 'pod-' || lpad(n::text, 5, '0'), 'app', ${node}, n, now(), 5000, 0.5, null, 100000, null, null, 0, 0, 0, 0, 0,
         1, 1, null, null, 0, 0, 0, 0, 0, 0, 0, null, null, null, null, null, null, '[]', 0, 0, now()
  from generate_series(1, ${rows}::int) n`

test('GET /compute/latest 200: a namespace without samples', async () => {
  await take(app, [sample({ namespace: 'other' })])
  assert.deepEqual(await latest(app), { containers: [], nodes: [] })
})

test('GET /compute/latest 200: by pod and container in byte order, with the nodes by name, keys in wire order', async () => {
  const at = (pod_name: string, container: string) => sample({ pod_name, container, blame: [culprit(2)] })
  await take(app, [at('b', 'z'), at('a', 'side'), at('Z', 'x')], { node: 'node-é' })
  await take(app, [at('b', 'app'), at('a', 'app'), at('a-', 'app')], { node: 'node-1' })
  await take(app, [sample({ namespace: 'other' }), sample({ namespace: 'shop2' })], { node: 'node-2' })
  const { containers, nodes: hosts } = await latest(app)
  assert.deepEqual(
    containers.map((row) => [row.pod_name, row.container, row.node]),
    [
      ['Z', 'x', 'node-é'],
      ['a', 'app', 'node-1'],
      ['a', 'side', 'node-é'],
      ['a-', 'app', 'node-1'],
      ['b', 'app', 'node-1'],
      ['b', 'z', 'node-é'],
    ],
  )
  for (const row of containers) assert.deepEqual(Object.keys(row), KEYS)
  assert.deepEqual(Object.keys(containers[0]!.blame[0]), [
    'cgroup_id',
    'kind',
    'ref',
    'container_uid',
    'count',
    'wait_ns',
  ])
  assert.deepEqual(
    hosts,
    (await nodes(app)).filter(({ node }) => node !== 'node-2'),
  )
  assert.deepEqual(
    hosts.map(({ node }) => node),
    ['node-1', 'node-é'],
  )
})

test('GET /compute/latest 200: times are truncated to whole seconds', async () => {
  await take(app, [sample()])
  const [{ second }] = await sql<[{ second: string }]>`
    update compute_latest set ts = date_trunc('second', ts) + interval '0.999999 s', updated_at = date_trunc('second', ts) + interval '1.5 s'
    returning to_char(ts, 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as second`
  await sql`update compute_node set ts = timestamp '2026-01-01 00:00:02.999', updated_at = timestamp '2026-01-01 00:00:03.1'`
  const { containers, nodes: hosts } = await latest(app)
  assert.deepEqual([containers[0]!.ts, Date.parse(containers[0]!.updated_at)], [second, Date.parse(second) + 1_000])
  assert.deepEqual([hosts[0]!.ts, hosts[0]!.updated_at], ['2026-01-01T00:00:02Z', '2026-01-01T00:00:03Z'])
})

describe('live containers', () => {
  const shown = async (namespace?: string) => (await latest(app, namespace)).containers.map(({ pod_name }) => pod_name)
  const bySecs = (secs: number) => sql`select now() at time zone 'utc' - make_interval(secs => ${secs}) as at`
  const age = async (pod: string, column: 'ts' | 'updated_at', secs: number) => {
    const [{ at }] = (await bySecs(secs)) as unknown as [{ at: string }]
    await sql`update compute_latest set ${sql(column)} = ${at} where pod_name = ${pod}`
  }

  test('GET /compute/latest 200: a container is not live if its sample is older than three intervals and a minute, by either of its times', async () => {
    for (const column of ['ts', 'updated_at'] as const) {
      await sql`truncate compute_latest, compute_node`
      await take(app, [sample({ pod_name: 'silent' }), sample({ pod_name: 'here' })])
      await take(app, [sample({ pod_name: 'slow' })], { node: 'slow', interval_ms: 300_000 })
      await take(app, [sample({ pod_name: 'slower' })], { node: 'slower', interval_ms: 300_000 })
      await age('silent', column, 76)
      await age('here', column, 70)
      await age('slow', column, 950)
      await age('slower', column, 961)
      const { containers, nodes: hosts } = await latest(app)
      assert.deepEqual(
        [containers.map(({ pod_name }) => pod_name), hosts.map(({ node }) => node)],
        [
          ['here', 'slow'],
          ['node-a', 'slow'],
        ],
      )
    }
  })

  test('GET /compute/latest 200: a sample from twenty minutes ago is not live, although it was posted just now', async () => {
    await take(app, [sample()], { ts: new Date(Date.now() - 1_200_000).toISOString() })
    assert.deepEqual(await latest(app), { containers: [], nodes: [] })
    await take(app, [sample()])
    assert.equal((await latest(app)).containers.length, 1)
  })

  test('GET /compute/latest 200: the longest interval of a post is accepted', async () => {
    await take(app, [sample({ pod_name: 'once-a-year' })], { interval_ms: 366 * 86_400_000 })
    assert.deepEqual(await shown(), ['once-a-year'])
  })

  test('GET /compute/latest 200: a container of a dead pod is not live; one of another pod of that name is', async () => {
    const pod = (pod_name: string, fields: object) =>
      sql`insert into pod ${sql({ pod_name, pod_namespace: 'shop', pod_ip: '', pod_ips: '{}', time_stamp: '2026-01-01', node_name: 'n', is_dead: true, ...fields })}`
    await sql`truncate pod, pod_address`
    const names = [
      'alive',
      'dead',
      'dead-elsewhere',
      'dead-of-another-uid',
      'dead-of-no-namespace',
      'dead-of-no-uid',
      'unknown',
    ]
    await take(
      app,
      names.map((pod_name) => sample({ pod_name, pod_uid: `uid-${pod_name}` })),
    )
    await pod('alive', { is_dead: false, pod_uid: 'uid-alive' })
    await pod('dead', { pod_uid: 'uid-dead' })
    await pod('dead-elsewhere', { pod_namespace: 'other' })
    await pod('dead-of-another-uid', { pod_uid: 'uid-of-the-one-before' })
    await pod('dead-of-no-namespace', { pod_namespace: null, pod_uid: 'uid-dead-of-no-namespace' })
    await pod('dead-of-no-uid', {})
    assert.deepEqual(await shown(), ['alive', 'dead-elsewhere', 'dead-of-another-uid', 'unknown'])
    await sql`update pod set is_dead = true`
    assert.deepEqual(await shown(), ['dead-elsewhere', 'dead-of-another-uid', 'unknown'])
    await sql`truncate pod, pod_address`
  })

  test('GET /compute/latest 200: containers that are not live do not use up the limit', async () => {
    await fill(5_001, 'crowd')
    await sql`update compute_latest set ts = ts - interval '1 hour' where pod_name < 'pod-05001'`
    assert.deepEqual(await shown('crowd'), ['pod-05001'])
  })
})

test('GET /compute/latest 200: the first 5000 containers', async () => {
  await fill(5_001, 'large')
  await sql`update compute_latest set node = 'node-z' where pod_name = 'pod-05001'`
  for (const node of ['node-a', 'node-z']) await take(app, [], { node })
  const { containers, nodes: hosts } = await latest(app, 'large')
  assert.deepEqual([containers.length, containers.at(-1)!.pod_name], [5_000, 'pod-05000'])
  assert.deepEqual(
    hosts.map(({ node }) => node),
    ['node-a'],
  )
})

describe('containers of a workload', () => {
  const shown = async (query: string) => {
    const { json, status, text } = await app.get(`${PATH}?namespace=shop&${query}`)
    assert.equal(status, 200, text)
    return {
      pods: json.containers.map(({ pod_name }: { pod_name: string }) => pod_name),
      nodes: json.nodes.map(({ node }: { node: string }) => node),
    }
  }
  const pod = (pod_name: string, fields: object) =>
    sql`insert into pod ${sql({ pod_name, pod_namespace: 'shop', pod_ip: '', pod_ips: '{}', time_stamp: '2026-01-01', node_name: 'n', is_dead: false, ...fields })}`
  const names = ['api-1', 'api-2', 'api-of-before', 'bare', 'elsewhere', 'half', 'nameless', 'web-1', 'web-job']

  beforeEach(async () => {
    await sql`truncate pod, pod_address`
    for (const node of ['node-1', 'node-2']) {
      const there = names.filter((name) => (name === 'api-2' || name === 'bare') === (node === 'node-2'))
      const samples = there.map((pod_name) => sample({ pod_name, pod_uid: `uid-${pod_name}` }))
      await take(app, samples, { node })
    }
    const of = (workload_kind: string, workload_name: string) => ({ workload_kind, workload_name })
    await pod('api-1', of('Deployment', 'api'))
    await pod('api-2', { ...of('Deployment', 'api'), pod_uid: 'uid-api-2' })
    await pod('api-of-before', { ...of('Deployment', 'api'), pod_uid: 'uid-of-another-pod' })
    await pod('bare', {})
    await pod('half', { workload_kind: 'ReplicaSet', workload_name: ' ' })
    await pod('nameless', { workload_name: 'x' })
    await pod('elsewhere', { ...of('Deployment', 'api'), pod_namespace: 'other' })
    await pod('web-1', of('Deployment', 'web'))
    await pod('web-job', of('Job', 'web'))
  })
  after(() => sql`truncate pod, pod_address`)

  test('GET /compute/latest 200: of pods whose record names it, and their nodes', async () => {
    for (const [query, pods, nodes] of [
      ['kind=Deployment&workload=api', ['api-1', 'api-2'], ['node-1', 'node-2']],
      ['kind=Deployment', ['api-1', 'api-2', 'web-1'], ['node-1', 'node-2']],
      ['workload=web', ['web-1', 'web-job'], ['node-1']],
      ['kind=Pod', ['bare', 'half', 'nameless'], ['node-1', 'node-2']],
      ['kind=Pod&workload=half', ['half'], ['node-1']],
      ['workload=nameless', ['nameless'], ['node-1']],
      ['kind=ReplicaSet', [], []],
      ['workload=x', [], []],
      ['kind=Pod&workload=bare', ['bare'], ['node-2']],
      ['workload=bare&kind=%20', ['bare'], ['node-2']],
      ['kind=deployment', [], []],
      ['kind=&workload=', names, ['node-1', 'node-2']],
    ] as const)
      assert.deepEqual(await shown(query), { pods, nodes }, query)
  })

  test('GET /compute/latest 200: the first `limit` of them, with their nodes', async () => {
    assert.deepEqual(await shown('limit=1'), { pods: ['api-1'], nodes: ['node-1'] })
    assert.deepEqual(await shown('workload=web&limit=1'), { pods: ['web-1'], nodes: ['node-1'] })
    assert.equal((await shown('limit=0')).pods.length, 1)
    assert.equal((await shown('limit=1000000')).pods.length, names.length)
  })

  test('GET /compute/latest 200: names that need escaping', async () => {
    await take(app, [sample({ pod_name: 'odd\u001f', pod_uid: 'u' })])
    await pod('odd\u001f', { workload_kind: 'Job', workload_name: 'odd\u001f' })
    assert.deepEqual(await shown('workload=odd%1F'), { pods: ['odd\u001f'], nodes: ['node-a'] })
  })
})

test('GET /compute/latest 200: a node that was deleted is left out', async () => {
  await take(app, [sample()], { node: 'gone' })
  await take(app, [sample()], { node: 'there' })
  await sql`delete from compute_node where node = 'gone'`
  const { containers, nodes: hosts } = await latest(app)
  assert.equal(containers.length, 2)
  assert.deepEqual(
    hosts.map(({ node }) => node),
    ['there'],
  )
})

test('GET /compute/latest 200: names that need escaping are returned unchanged and in the same order', async () => {
  const odd = ['\u001f', '\u0001', '"'.repeat(200), '\\'.repeat(253), '\u0007é']
  for (const [n, node] of ['n\u001f2', 'n1', 'né'].entries())
    await take(
      app,
      odd.map((name, i) =>
        sample({ pod_name: name, container: `c${n}`, container_uid: `u-${n}-${i}`, pod_uid: name.slice(0, 128) }),
      ),
      { node },
    )
  await sql`delete from compute_node where node = 'n1'`
  const { containers, nodes: hosts } = await latest(app)
  const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
  assert.deepEqual(
    containers.map((row) => [row.pod_name, row.container]),
    odd.sort(byBytes).flatMap((name) => ['c0', 'c1', 'c2'].map((container) => [name, container])),
  )
  for (const row of containers) assert.deepEqual([Object.keys(row), row.pod_uid], [KEYS, row.pod_name.slice(0, 128)])
  assert.deepEqual(hosts, await nodes(app))
  assert.deepEqual(
    hosts.map(({ node }) => node),
    ['n\u001f2', 'né'],
  )
})

test('GET /compute/latest 400: filters with U+0000 and a limit that is no integer', async () => {
  for (const query of ['kind=a%00b', 'workload=a%00b', 'limit=', 'limit=few', 'limit=1.5']) {
    const { status, text } = await app.get(`${PATH}?namespace=shop&${query}`)
    assert.equal(status, 400, query)
    assert.match(text, /^Query deserialize error: (kind|workload|limit): /)
  }
})

test('GET /compute/latest 400: without a namespace, in plain text', async () => {
  for (const query of ['', '?namespace=', '?namespace=%20%09', '?namespace=a%00b']) {
    const { status, text, headers } = await app.get(PATH + query)
    assert.equal(status, 400, query)
    assert.match(text, /^Query deserialize error: namespace: /)
    assert.match(headers.get('content-type')!, /^text\/plain/)
  }
})

describe('access and faults', async () => {
  const guarded = await startApp({
    ...TOKENS,
    DB_STATEMENT_TIMEOUT_MS: '300',
    BROKER_READ_ACQUIRE_WAIT_MS: '0',
    BROKER_READ_MEMORY_BUDGET_MB: '8',
  })
  const path = `${PATH}?namespace=shop`
  const token = TOKENS.BROKER_TOKEN_READ

  test('GET /compute/latest 401: without a token', async () => assertUnauthorized(await guarded.get(path)))

  test('GET /compute/latest 503: 5000 KiB are charged', async () => {
    const release = await guarded.deps.budget.acquire(8 * 1024 - 4_999)
    assertShed(await guarded.get(path, { token }), 5_000, 8 * 1024)
    release()
    assert.equal((await guarded.get(path, { token })).status, 200)
  })

  test('GET /compute/latest 503: a statement that is cancelled', async () => {
    await whileLocked(guarded.sql, 'compute_latest', async () => assertDatabaseBusy(await guarded.get(path, { token })))
  })
})
