import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { deadPodDays, deadPodRetention } from '../../jobs/dead-pod-retention.ts'
import { podsWithWrongAddresses } from '../support/records.ts'
import { until } from '../support/until.ts'
import { abortedAfter, inside, startScene, waiting } from './scene.ts'

const DAY = 86_400
const scene = await startScene(deadPodRetention, { auditRetentionBatchSize: 100 })
const { ago, pod, run, count, sql } = scene

beforeEach(async () => {
  await sql`truncate pod, pod_address, pod_instance, pod_labels, syscall_contribution, unattributed_syscalls, workload_syscalls, pod_syscalls, node_facts, compute_node`
})

/** Stores `n` pods of two addresses each. */
async function manyPods(n: number, secsAgo: number, prefix: string, isDead = true): Promise<void> {
  await sql`
    insert into pod (pod_name, pod_ip, pod_ips, time_stamp, node_name, is_dead)
    select ${prefix}::text || to_char(i, 'FM00000'), '10.0.0.1', array['10.0.0.1', 'fd00::' || i], ${ago(secsAgo)}::text::timestamp,
           'node-a', ${isDead}::boolean
    from generate_series(1, ${n}::int) i`
  await sql`
    insert into pod_address (ip, pod_name)
    select unnest(pod_ips), pod_name from pod where starts_with(pod_name, ${prefix}) on conflict do nothing`
}

async function names(): Promise<string[]> {
  assert.deepEqual(await podsWithWrongAddresses(sql), [], 'rows and addresses do not agree')
  const rows = await sql<{ pod_name: string }[]>`select pod_name from pod order by pod_name`
  return rows.map(({ pod_name }) => pod_name)
}

test('a dead pod older than 30 days is deleted with all its addresses', async () => {
  await pod({
    pod_name: 'gone',
    pod_ip: '10.0.0.1',
    pod_ips: ['10.0.0.1', 'fd00::1'],
    is_dead: true,
    time_stamp: ago(31 * DAY),
  })
  await pod({ pod_name: 'heir', pod_ip: '10.0.0.1' })
  assert.deepEqual(await run(), { outcome: 'done', rows: 1, batches: 5 })
  assert.deepEqual(await names(), ['heir'])
  const addresses = await sql`select ip, pod_name from pod_address`
  assert.deepEqual([...addresses], [{ ip: '10.0.0.1', pod_name: 'heir' }])
  assert.equal((await scene.get('/pod/name/gone')).status, 404)
})

test('a younger dead pod and a living pod of any age stay unchanged', async () => {
  await pod({ pod_name: 'dead', is_dead: true, time_stamp: ago(29 * DAY) })
  await pod({ pod_name: 'alive', time_stamp: ago(300 * DAY) })
  const before = await sql`select * from pod order by pod_name`
  assert.deepEqual(await run(), { outcome: 'done', rows: 0, batches: 5 })
  assert.deepEqual([...(await sql`select * from pod order by pod_name`)], [...before])
  assert.deepEqual(await names(), ['alive', 'dead'])
})

test('age counts from the time of the record, not from the start or the death of the pod', async () => {
  await pod({ pod_name: 'old start', started_at: ago(300 * DAY), time_stamp: ago(10) })
  await pod({ pod_name: 'old record', started_at: ago(300 * DAY), time_stamp: ago(40 * DAY) })
  await scene.post('/pod/mark_dead', { pod_name: 'old start' })
  await scene.post('/pod/mark_dead', { pod_name: 'old record' })
  await run()
  assert.deepEqual(await names(), ['old start'])
})

test('a dead pod exactly 30 days old stays, one a microsecond older is deleted, in a session with another time zone too', async () => {
  await sql.begin(async (now) => {
    await now`set local time zone 'Pacific/Kiritimati'`
    await now`
      insert into pod (pod_name, pod_ip, pod_ips, time_stamp, node_name, is_dead)
      select name, '', '{}', now() at time zone 'utc' - age::interval, 'node-a', true
      from (values ('at', '30 days'), ('past', '30 days 0.000001 s')) v (name, age)`
    assert.equal(await count({ db: inside(now) }), 1)
    assert.equal((await run({ db: inside(now) })).rows, 1)
  })
  assert.deepEqual(await names(), ['at'])
})

for (const [own, audit, days] of [
  [5, 30, 5],
  [5, 0, 5],
  [60, 30, 60],
  [0, 30, 30],
  [0, 12, 12],
  [0, 0, 7],
] as const) {
  test(`with ${own || 'no'} days for dead pods and ${audit || 'no'} days for verdicts, dead pods are kept ${days} days`, async () => {
    const { config } = scene.context()
    const configured = { ...config, deadPodRetentionDays: own, auditRetentionDays: audit }
    assert.equal(deadPodDays(configured), days)
    assert.equal(deadPodRetention.everySecs(configured), config.auditRetentionIntervalSecs)
    await pod({ pod_name: 'younger', is_dead: true, time_stamp: ago(days * DAY - 600) })
    await pod({ pod_name: 'older', is_dead: true, time_stamp: ago(days * DAY + 600) })
    assert.equal(await count({ config: configured }), 1)
    assert.equal((await run({ config: configured })).rows, 1)
    assert.deepEqual(await names(), ['younger'])
  })
}

test('the interval is the one of verdict retention, and the first pass starts after a minute', () => {
  const { config } = scene.context()
  assert.equal(deadPodRetention.everySecs({ ...config, auditRetentionIntervalSecs: 77 }), 77)
  assert.equal(deadPodRetention.firstAfterSecs, 60)
})

test('batches have the configured size, and no dead pod between two is missed', async () => {
  await manyPods(250, 40 * DAY, 'b-dead-')
  await manyPods(120, 40 * DAY, 'a-alive-', false)
  await manyPods(1, 40 * DAY, 'z-dead-')
  assert.deepEqual(await run(abortedAfter(1, scene.db)), { outcome: 'aborted', rows: 100, batches: 1 })
  assert.equal((await names()).length, 271)
  assert.deepEqual(await run(), { outcome: 'done', rows: 151, batches: 6 })
  assert.ok((await names()).every((name) => name.startsWith('a-alive-')))
})

test('dead pods that follow thousands of living ones are deleted', async () => {
  // A statement reads 5 000 pods: one dead pod is the last of these, the other comes right after them.
  await manyPods(4_999, 40 * DAY, 'a-alive-', false)
  await pod({ pod_name: 'b-dead', is_dead: true, time_stamp: ago(40 * DAY) })
  await pod({ pod_name: 'c-dead', is_dead: true, time_stamp: ago(40 * DAY) })
  assert.deepEqual(await run(), { outcome: 'done', rows: 2, batches: 6 })
  assert.equal((await names()).length, 4_999)
})

test('a pass ends after 200 batches, and the next pass does the rest', async () => {
  await manyPods(2_005, 40 * DAY, 'dead-')
  const config = { ...scene.context().config, auditRetentionBatchSize: 10 }
  assert.equal(await count({ config }), 2_000)
  assert.deepEqual(await run({ config }), { outcome: 'capped', rows: 2_000, batches: 204 })
  assert.deepEqual(await run({ config }), { outcome: 'done', rows: 5, batches: 5 })
  assert.deepEqual(await names(), [])
})

test('a pod that another transaction is writing is skipped, and the others are deleted', async () => {
  await manyPods(3, 40 * DAY, 'dead-')
  await sql.begin(async (post) => {
    await post`update pod set time_stamp = now() at time zone 'utc', is_dead = false where pod_name = 'dead-00002'`
    assert.equal((await run()).rows, 2)
  })
  assert.deepEqual(await names(), ['dead-00002'])
})

test('a pod that is posted after the pass found it, before its deletion, keeps its row and its addresses', async () => {
  await pod({ pod_name: 'a', pod_ip: '10.0.0.1', is_dead: true, time_stamp: ago(40 * DAY) })
  await pod({ pod_name: 'back', pod_ip: '10.0.0.2', is_dead: true, time_stamp: ago(40 * DAY) })
  const pass = await scene.whileDeleting('pod', 'before', () =>
    pod({ pod_name: 'back', pod_ip: '10.0.0.3', time_stamp: ago(0) }),
  )
  assert.deepEqual(pass, { outcome: 'done', rows: 1, batches: 5 })
  assert.deepEqual(await names(), ['back'])
  assert.equal((await scene.get('/pod/ip/10.0.0.3')).json.is_dead, false)
})

test('a pod that is posted while its row is being deleted gets a new row with its addresses', async () => {
  await pod({ pod_name: 'back', pod_ip: '10.0.0.2', is_dead: true, time_stamp: ago(40 * DAY) })
  let posted: Promise<unknown> | undefined
  const pass = await scene.whileDeleting('pod', 'after', async () => {
    posted = pod({ pod_name: 'back', pod_ip: '10.0.0.2', time_stamp: ago(0) })
    await until('the post waits for the pass', async () => (await waiting(sql)) === 2)
  })
  assert.deepEqual(pass, { outcome: 'done', rows: 1, batches: 5 })
  await posted
  assert.deepEqual(await names(), ['back'])
  assert.equal((await scene.get('/pod/ip/10.0.0.2')).json.is_dead, false)
})

test('posts during a pass do not fail, and no posted pod is lost', async (t) => {
  const other = scene.otherProcess(t)
  await manyPods(2000, 40 * DAY, 'pod-')
  const back = Array.from({ length: 2000 }, (_, i) => `pod-${String(i + 1).padStart(5, '0')}`).filter(
    (_, i) => i % 3 === 0,
  )
  const post = async (all: string[]) => {
    for (let i = 0; i < all.length; i += 20) {
      const docs = all.slice(i, i + 20).map((pod_name) => ({
        pod_name,
        pod_ip: '10.0.0.9',
        pod_ips: ['10.0.0.9'],
        time_stamp: ago(0),
        node_name: 'node-b',
        is_dead: false,
      }))
      await other.ingest((db) => db`select upsert_pods(${JSON.stringify(docs)}::text::json)`)
    }
  }
  const [pass] = await Promise.all([run(), post(back), post([...back].reverse())])
  assert.equal(pass.outcome, 'done')
  await run()
  assert.deepEqual(await names(), back)
})

test('two processes at once delete every pod once', async (t) => {
  await manyPods(3000, 40 * DAY, 'dead-')
  await manyPods(10, 40 * DAY, 'alive-', false)
  const passes = await Promise.all([run(), run({ db: scene.otherProcess(t) })])
  assert.ok(passes.some(({ outcome }) => outcome === 'done'))
  assert.equal(passes[0].rows + passes[1].rows, 3000)
  assert.equal((await names()).length, 10)
})

test('with the lock held elsewhere it reports skipped and does nothing', async () => {
  await manyPods(2, 40 * DAY, 'dead-')
  await scene.whileLocked('dead-pod-retention', async () =>
    assert.deepEqual(await run(), { outcome: 'skipped', rows: 0, batches: 0 }),
  )
  assert.equal((await names()).length, 2)
  await scene.whileLocked('audit-retention', async () => assert.equal((await run()).rows, 2))
})

test('aborted before the first batch it does nothing', async () => {
  await manyPods(1, 40 * DAY, 'dead-')
  assert.deepEqual(await run({ signal: AbortSignal.abort() }), { outcome: 'aborted', rows: 0, batches: 0 })
  assert.equal((await names()).length, 1)
})

test('counting returns the number of pods that a pass would delete, and deletes none', async () => {
  await manyPods(250, 40 * DAY, 'old-')
  await manyPods(3, 10, 'young-')
  await manyPods(3, 40 * DAY, 'alive-', false)
  await scene.whileLocked('dead-pod-retention', async () => assert.equal(await count(), 250))
  assert.equal((await names()).length, 256)
})

// ---- Contributors to captures

/** Stores `n` dead pods of a workload that contributed at `level` and were last posted `days` days ago. */
async function contributors(n: number, level: string, days: number, prefix: string, name = 'web') {
  for (let i = 0; i < n; i++) {
    const pod_name = `${prefix}-${String(i).padStart(2, '0')}`
    const owner = { pod_namespace: 'shop', workload_kind: 'Deployment', workload_name: name }
    await pod({
      pod_name,
      capture_level: level,
      ...owner,
      is_dead: true,
      time_stamp: ago(days * DAY),
      started_at: null,
    })
    await scene.post('/pod/syscalls', [
      { pod_name, pod_namespace: '', syscalls: ['read'], arch: 'x86_64', time_stamp: ago(days * DAY) },
    ])
    await sql`update pod_instance set last_seen = ${ago(days * DAY)}::text::timestamp where pod_name = ${pod_name}`
  }
}
const captureOf = async (name = 'web') => (await scene.get(`/seccomp/profiles/shop/Deployment/${name}`)).json.capture
const instances = async () => Number((await sql`select count(*) as n from pod_instance`)[0]!.n)

test('deleting pods does not raise the level of a capture: the worst contributors of a workload stay, the others are deleted', async () => {
  await contributors(2, 'low', 40, 'low')
  await contributors(30, 'full', 40, 'full')
  await contributors(1, 'full', 0, 'young')
  const before = await captureOf()
  assert.deepEqual([before.level, before.complete, before.more], ['low', false, 13])
  // 32 dead pods, and 12 of their instances.
  assert.equal(await count(), 32 + 12)
  assert.equal((await run()).rows, 32 + 12)
  assert.deepEqual(await captureOf(), { ...before, more: 1 })
  assert.equal(await instances(), 21)
  assert.equal((await run()).rows, 0)
})

test('a capture stays complete when its pods are gone', async () => {
  await contributors(1, 'full', 40, 'last')
  await run()
  assert.deepEqual(await captureOf(), {
    level: 'full',
    complete: true,
    pods: [{ name: 'last-00', level: 'full' }],
    more: 0,
    incomplete: 0,
  })
})

test('a pod instance that contributed nothing is deleted when it was not posted within the retention', async () => {
  await pod({ pod_name: 'gone' })
  await pod({ pod_name: 'alive' })
  await sql`update pod_instance set last_seen = ${ago(31 * DAY)}::text::timestamp where pod_name = 'gone'`
  assert.equal((await run()).rows, 1)
  assert.deepEqual(
    (await sql`select pod_name from pod_instance`).map(({ pod_name }) => pod_name),
    ['alive'],
  )
})

test('unattributed syscalls are deleted after the retention, unless a pod that contributed may have sent them', async () => {
  await contributors(1, 'full', 40, 'heir')
  const send = (pod_name: string, days: number) =>
    scene.post('/pod/syscalls', [
      { pod_name, pod_namespace: '', syscalls: ['bpf'], arch: 'x86_64', time_stamp: ago(days * DAY) },
    ])
  await send('heir-00', 35)
  await send('nobody', 35)
  await send('young', 2)
  await sql`update unattributed_syscalls set received_at = sent_at`
  assert.equal((await captureOf()).level, 'unknown')
  const counted = await count()
  assert.equal((await run()).rows, counted)
  assert.deepEqual(
    (await sql`select pod_name from unattributed_syscalls order by 1`).map(({ pod_name }) => pod_name),
    ['heir-00', 'young'],
  )
  assert.equal((await captureOf()).level, 'unknown')
})

test('a pod whose syscalls wait to be attributed stays among the worst contributors', async () => {
  await contributors(25, 'full', 40, 'full')
  await contributors(1, 'full', 40, 'waiting')
  await contributors(1, 'full', 40, 'reset')
  await sql`update syscall_contribution set cut_at = level_at where pod_name = 'reset-00'`
  for (const pod_name of ['waiting-00', 'reset-00'])
    await scene.post('/pod/syscalls', [
      { pod_name, pod_namespace: '', syscalls: ['bpf'], arch: 'x86_64', time_stamp: ago(35 * DAY) },
    ])
  await sql`update unattributed_syscalls set received_at = sent_at`
  const before = await captureOf()
  assert.deepEqual([before.level, before.complete, before.incomplete], ['unknown', false, 2])
  const counted = await count()
  const { rows } = await run()
  const after = await captureOf()
  assert.deepEqual([after.level, after.complete, after.incomplete], ['unknown', false, 2])
  assert.equal(rows, counted)
})

// ---- Labels of pods

/** Stores labels of a pod since so many days ago. */
const labels = (pod_name: string, days: number, pod_namespace = 'shop') => sql`
  insert into pod_labels (pod_namespace, pod_name, since, labels, node_name)
  values (${pod_namespace}::text, ${pod_name}::text, ${ago(days * DAY)}::text::timestamp, '{"app": "web"}', 'node-a')`
/** Each remaining row as its pod and its age in days. */
const labelRows = async () =>
  (
    await sql<{ row: string }[]>`
      select concat_ws(' ', pod_namespace, pod_name, round(extract(epoch from ${ago(0)}::text::timestamp - since) / ${DAY}::int)) as row
      from pod_labels order by pod_namespace, pod_name, since`
  ).map(({ row }) => row)
/** A post of a pod that started `days` ago, with a manifest. */
const labelledPod = (pod_name: string, days: number, fields: Record<string, unknown> = {}) =>
  pod({
    pod_name,
    started_at: ago(days * DAY),
    pod_obj: { metadata: { labels: { app: 'web' } } },
    labels_hash: '1'.repeat(32),
    ...fields,
  })

test('the labels of a pod with a record are deleted when later ones hold for the whole retention; the latest stay', async () => {
  await labelledPod('alive', 300)
  for (const days of [200, 31, 29, 1]) await labels('alive', days)
  await labelledPod('dead', 100, { is_dead: true, time_stamp: ago(20 * DAY) })
  await labelledPod('b-single', 90)
  assert.equal(await count(), 2)
  assert.equal((await run()).rows, 2)
  assert.deepEqual(await labelRows(), [
    'shop alive 31',
    'shop alive 29',
    'shop alive 1',
    'shop b-single 90',
    'shop dead 100',
  ])
  assert.equal((await run()).rows, 0)
})

test('the labels of a pod without a record are deleted once they are older than the retention', async () => {
  await labelledPod('web', 50)
  for (const days of [40, 29]) await labels('gone', days)
  // The record is that of a pod in another namespace.
  await labels('web', 40, 'bank')
  assert.equal(await count(), 2)
  assert.equal((await run()).rows, 2)
  assert.deepEqual(await labelRows(), ['shop gone 29', 'shop web 50'])
})

test('labels stay while a flow of the pod is stored of the time for which they hold', async () => {
  const flowOf = (pod_name: string, days: number) => sql`
    insert into traffic (uuid, pod_name, time_stamp) values (${`${pod_name}-${days}`}, ${pod_name}, ${ago(days * DAY)})`
  for (const name of ['gone', 'other']) for (const days of [90, 80, 70]) await labels(name, days)
  await flowOf('gone', 75)
  await flowOf('gone', 100)
  await flowOf('other', 65)
  assert.equal(await count(), 4)
  assert.equal((await run()).rows, 4)
  assert.deepEqual(await labelRows(), ['shop gone 80', 'shop other 70'])
  await sql`truncate traffic`
})

test('once labels of a pod are deleted, flows that name it may be from before its labels', async () => {
  await sql`
    insert into flow_pod
    select 'shop', v.name, 'Deployment', 'web', now() at time zone 'utc', now() at time zone 'utc', true
    from (values ('gone'), ('kept')) v(name)`
  for (const [name, days] of [
    ['gone', 40],
    ['kept', 29],
  ] as const)
    await labels(name, days)
  assert.equal((await run()).rows, 1)
  assert.deepEqual(
    [...(await sql`select pod_name, is_labelled from flow_pod order by pod_name`)].map((one) => ({ ...one })),
    [
      { pod_name: 'gone', is_labelled: false },
      { pod_name: 'kept', is_labelled: true },
    ],
  )
  await sql`truncate flow_pod`
})

test('counting includes the labels of the pods that the pass deletes', async () => {
  await labelledPod('expired', 60, { is_dead: true, time_stamp: ago(40 * DAY) })
  await sql`truncate pod_instance`
  await labels('expired', 45)
  assert.equal(await count(), 3)
  assert.equal((await run()).rows, 3)
  assert.deepEqual(await labelRows(), [])
})

test('labels since exactly 30 days stay, those since a microsecond longer are deleted', async () => {
  await sql.begin(async (now) => {
    await now`
      insert into pod_labels (pod_namespace, pod_name, since, labels, node_name)
      select 'shop', name, now() at time zone 'utc' - age::interval, '{}', 'node-a'
      from (values ('at', '30 days'), ('past', '30 days 0.000001 s')) v (name, age)`
    assert.equal(await count({ db: inside(now) }), 1)
    assert.equal((await run({ db: inside(now) })).rows, 1)
  })
  assert.deepEqual(await labelRows(), ['shop at 30'])
})

test('batches pass over thousands of labels that stay', async () => {
  const many = (prefix: string, n: number, days: number) => sql`
    insert into pod_labels (pod_namespace, pod_name, since, labels, node_name)
    select 'shop', ${prefix}::text || to_char(i, 'FM00000'), ${ago(days * DAY)}::text::timestamp, '{}', 'node-a'
    from generate_series(1, ${n}::int) i`
  await many('a-', 4_999, 10)
  await many('b-', 2, 40)
  await many('c-', 5_001, 40)
  assert.equal(await count(), 5_003)
  assert.deepEqual(await run(), { outcome: 'done', rows: 5_003, batches: 7 })
  assert.equal((await labelRows()).length, 4_999)
})

test('a pod that is posted again before its labels are deleted keeps them, though the post says the same', async () => {
  await labels('a', 40)
  await labels('back', 40)
  await scene.whileDeleting('pod_labels', 'before', () => labelledPod('back', 40))
  assert.deepEqual(await labelRows(), ['shop back 40'])
})

test('a pod that is posted again while its labels are deleted gets them again', async () => {
  await labels('back', 40)
  let posted: Promise<unknown> | undefined
  const pass = await scene.whileDeleting('pod_labels', 'after', async () => {
    posted = labelledPod('back', 40)
    await until('the post waits for the pass', async () => (await waiting(sql)) === 2)
  })
  assert.equal(pass.rows, 1)
  await posted
  assert.deepEqual(await labelRows(), ['shop back 40'])
})

test('labels that another transaction is writing are skipped', async () => {
  await labels('a', 40)
  await labels('b', 40)
  await sql.begin(async (post) => {
    await post`update pod_labels set node_name = 'node-b' where pod_name = 'b'`
    assert.equal((await run()).rows, 1)
  })
  assert.deepEqual(await labelRows(), ['shop b 40'])
})

// ---- Facts of nodes

test('the facts of a node go with its last pod, so that it counts in the environment no more', async () => {
  const facts = (node_name: string, cni: string, days: number) =>
    scene.post('/node/facts', {
      ...{ node_name, provider: 'aws', distro: 'eks', cni, ip_family: 'ipv4', node_os: 'cos' },
      ...{ policy_enforcement: cni === 'cilium' ? 'enforced' : 'unenforced', time_stamp: ago(days * DAY) },
    })
  await facts('node-old-1', 'flannel', 100)
  await facts('node-old-2', 'flannel', 100)
  await facts('node-new', 'cilium', 100)
  await facts('node-without-pods', 'cilium', 29)
  await pod({ pod_name: 'gone', node_name: 'node-old-1', is_dead: true, time_stamp: ago(40 * DAY) })
  await pod({ pod_name: 'alive', node_name: 'node-new' })
  const counted = await count()
  assert.equal((await run()).rows, counted)
  const { cni, nodes, policy_enforcement } = (await scene.get('/cluster/environment')).json
  assert.deepEqual([cni, nodes, policy_enforcement], ['cilium', 2, 'enforced'])
  assert.equal((await run()).rows, 0)
})

test('the facts of a node stay while its compute heartbeat or any record of a pod does', async () => {
  for (const node of ['beats', 'has-dead-pod'])
    await scene.post('/node/facts', {
      ...{ node_name: node, provider: 'aws', distro: 'eks', cni: 'cilium', ip_family: 'ipv4', node_os: 'cos' },
      time_stamp: ago(100 * DAY),
    })
  await pod({ pod_name: 'dead', node_name: 'has-dead-pod', is_dead: true, time_stamp: ago(20 * DAY) })
  await sql`
    insert into compute_node select (json_populate_record(null::compute_node, t.one)).* from (
      select json_object_agg(a.attname, case when a.attname = 'node' then to_json('beats'::text)
                                             when y.typname = 'timestamp' then to_json(${ago(0)}::text)
                                             when y.typname = 'bool' then to_json(true) else to_json(1) end) as one
      from pg_attribute a join pg_type y on y.oid = a.atttypid
      where a.attrelid = 'compute_node'::regclass and a.attnum > 0 and not a.attisdropped) t`
  await run()
  assert.equal((await scene.get('/cluster/environment')).json.nodes, 2)
})
