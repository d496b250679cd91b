import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beforeEach, test } from 'node:test'
import { trafficRetention } from '../../jobs/traffic-retention.ts'
import { until } from '../support/until.ts'
import { abortedAfter, inside, startScene, waiting } from './scene.ts'

const DAY = 86_400
const OLD = 20 * DAY
const scene = await startScene(trafficRetention, { trafficRetentionBatchSize: 100 })
const { ago, run, count, sql } = scene

beforeEach(async () => {
  await sql`truncate traffic, pod, pod_address, traffic_retention_cursor, traffic_deletion`
})

/** The stored number of statements that deleted flows. */
const deletions = async () => Number((await sql`select statements from traffic_deletion`)[0]?.statements ?? 0)

let made = 0

/** A flow of `web` to the pod `db-0` of the workload `db`, 20 days old. Ingest treats each as a different flow. */
const example = () => ({
  uuid: randomUUID(),
  pod_name: 'web',
  pod_namespace: 'shop',
  pod_ip: `10.0.0.${made}`,
  pod_port: '0',
  ip_protocol: 'TCP',
  traffic_type: 'EGRESS',
  traffic_in_out_ip: `10.9.${made >> 8}.${made++ & 255}`,
  traffic_in_out_port: '443',
  decision: 'ALLOW',
  time_stamp: ago(OLD),
  peer_kind: 'pod',
  peer_namespace: 'data',
  peer_name: 'db-0',
  peer_uid: 'uid-db-0',
  peer_workload_kind: 'StatefulSet',
  peer_workload_name: 'db',
  peer_resolved_at: ago(OLD),
})
type Flow = { [K in keyof ReturnType<typeof example>]: string | null }

async function flow(fields: Partial<Flow> = {}): Promise<string> {
  const row = { ...example(), ...fields }
  await sql`insert into traffic select * from json_populate_record(null::traffic, ${JSON.stringify(row)}::text::json)`
  return row.uuid!
}

const NO_PEER = {
  peer_kind: null,
  peer_namespace: null,
  peer_name: null,
  peer_uid: null,
  peer_workload_kind: null,
  peer_workload_name: null,
  peer_resolved_at: null,
}

/** Stores `n` flows without a peer, each a second younger than the one before; uuids begin with the name of the pod. */
async function manyFlows(
  n: number,
  secsAgo: number,
  pod_name = 'web',
  pod_namespace: string | null = 'shop',
): Promise<void> {
  await sql`
    insert into traffic (uuid, pod_name, pod_namespace, time_stamp)
    select format('%s-%s', ${pod_name}::text, to_char(i, 'FM000000')), ${pod_name}::text, ${pod_namespace}::text,
           ${ago(secsAgo)}::text::timestamp + i * interval '1 s'
    from generate_series(1, ${n}::int) i`
}

const alive = (fields: Record<string, unknown> = {}) =>
  scene.pod({ pod_name: 'web', started_at: ago(100 * DAY), ...fields })

async function uuids(): Promise<string[]> {
  const rows = await sql<{ uuid: string }[]>`select uuid from traffic order by time_stamp, uuid`
  return rows.map(({ uuid }) => uuid)
}

async function rowsByPod(): Promise<Record<string, number>> {
  const rows = await sql<{ pod: string; n: number }[]>`
    select format('%s/%s', pod_namespace, pod_name) as pod, count(*)::int as n from traffic group by pod_namespace, pod_name order by 1`
  return Object.fromEntries(rows.map(({ pod, n }) => [pod, n]))
}

const cursor = async () =>
  (await sql`select to_json(time_stamp) as time_stamp, uuid, pod_name from traffic_retention_cursor`)[0] ?? null
const AT_START = { time_stamp: null, uuid: null, pod_name: null }

// ---- Rule 1: no living pod ------------------------------------------------------------------------------------------

test('an old flow of a deleted pod is deleted, a young one and those of a living pod stay unchanged', async () => {
  await alive()
  const kept = [await flow(), await flow({ pod_name: 'gone', time_stamp: ago(13 * DAY) })]
  await flow({ pod_name: 'gone' })
  const before = await sql`select * from traffic where uuid in ${sql(kept)} order by uuid`
  assert.deepEqual(await run(), { outcome: 'done', rows: 1, batches: 1 })
  assert.deepEqual([...(await sql`select * from traffic order by uuid`)], [...before])
})

test('an old flow of a pod that fell silent stays for a week: it may live, and would not report it again', async () => {
  await alive({ time_stamp: ago(7_200) })
  const sweep = (hours: number) => sql`
    update pod set is_dead = true, swept_at = now() at time zone 'utc' - make_interval(hours => ${hours})`
  const uuid = await flow()
  await sweep(1)
  assert.equal(await count(), 0)
  await run()
  assert.deepEqual(await uuids(), [uuid])
  // It was posted again, and then posted dead.
  await alive({ is_dead: true })
  assert.equal(await count(), 1)
  await alive({ time_stamp: ago(30 * DAY) })
  await sweep(8 * 24)
  assert.equal(await count(), 1)
  await run()
  assert.deepEqual(await uuids(), [])
})

test('a flow exactly 14 days old stays, one a microsecond older is deleted, in a session with another time zone too', async () => {
  await sql.begin(async (now) => {
    await now`set local time zone 'Pacific/Kiritimati'`
    await now`
      insert into traffic (uuid, pod_name, time_stamp)
      select name, 'gone', now() at time zone 'utc' - age::interval from (values ('at', '14 days'), ('past', '14 days 0.000001 s')) v (name, age)`
    assert.equal(await count({ db: inside(now) }), 1)
    assert.equal((await run({ db: inside(now) })).rows, 1)
  })
  assert.deepEqual(await uuids(), ['at'])
})

/** The pod `web`, the namespace in a flow of it, and whether the flow stays. */
const pods: [what: string, pod: Record<string, unknown> | null, namespace: string | null, stays: boolean][] = [
  ['no record of the pod', null, 'shop', false],
  ['a living pod', {}, 'shop', true],
  ['a dead pod', { is_dead: true }, 'shop', false],
  ['a living pod of another name', { pod_name: 'web-1' }, 'shop', false],
  ['a living pod of another namespace', { pod_namespace: 'other' }, 'shop', false],
  ['a living pod, its namespace unknown', { pod_namespace: null }, 'shop', true],
  ['a living pod, its namespace blank', { pod_namespace: '' }, 'shop', true],
  ['a living pod, the namespace of the flow unknown', {}, null, true],
  ['a living pod, the namespace of the flow blank', {}, '', true],
  ['a living pod, neither namespace known', { pod_namespace: null }, null, true],
  ['a dead pod, neither namespace known', { pod_namespace: null, is_dead: true }, null, false],
  ['a living pod that started at that time', { started_at: ago(OLD) }, 'shop', true],
  ['a living pod that started exactly an hour later', { started_at: ago(OLD - 3600) }, 'shop', true],
  [
    'a living pod that started a microsecond more than an hour later',
    { started_at: `${ago(OLD - 3600)}001` },
    'shop',
    false,
  ],
  ['a living pod of unknown start', { started_at: null }, 'shop', true],
  ['a living pod of another namespace and unknown start', { pod_namespace: 'other', started_at: null }, 'shop', false],
]

for (const [what, pod, pod_namespace, stays] of pods) {
  for (const peer_kind of ['pod', 'node', 'service', null]) {
    test(`${what}: an old flow ${peer_kind === null ? 'without a peer' : `to a ${peer_kind}`} ${stays ? 'stays' : 'is deleted'}`, async () => {
      if (pod !== null) await alive(pod)
      const uuid = await flow({ pod_namespace, ...(peer_kind === null ? NO_PEER : { peer_kind }) })
      assert.equal(await count(), stays ? 0 : 1)
      assert.equal((await run()).rows, stays ? 0 : 1)
      assert.deepEqual(await uuids(), stays ? [uuid] : [])
    })
  }
}

test('an old flow without a pod name is deleted', async () => {
  await alive()
  await flow({ pod_name: null })
  assert.equal((await run()).rows, 1)
})

test('all old flows of a deleted pod are deleted, also the newest of its rule', async () => {
  await flow()
  await flow({ time_stamp: ago(OLD - 10) })
  assert.equal((await run()).rows, 2)
})

// ---- Rules 2 and 3: superseded --------------------------------------------------------------------------------------

test('an old flow is deleted if a newer one of its rule exists, of any age; the newest always stays', async () => {
  await alive()
  const [, , newest] = [
    await flow(),
    await flow({ time_stamp: ago(OLD - 10) }),
    await flow({ time_stamp: ago(OLD - 20) }),
  ]
  await flow({ decision: 'DROP' })
  const young = await flow({ decision: 'DROP', time_stamp: ago(10) })
  assert.equal(await count(), 3)
  assert.equal((await run()).rows, 3)
  assert.deepEqual(await uuids(), [newest, young])
  assert.equal((await run()).rows, 0)
})

test('a young flow is never superseded', async () => {
  await alive()
  const kept = [await flow({ time_stamp: ago(13 * DAY) }), await flow({ time_stamp: ago(10) })]
  assert.equal((await run()).rows, 0)
  assert.deepEqual(await uuids(), kept)
})

test('flows of the same microsecond do not supersede each other', async () => {
  await alive()
  await flow()
  await flow()
  assert.equal((await run()).rows, 0)
  await flow({ time_stamp: `${ago(OLD)}001` })
  assert.equal((await run()).rows, 2)
})

test('flows of one rule may differ in fields that are not part of the rule', async () => {
  await alive()
  await flow()
  const newer = await flow({
    time_stamp: ago(10),
    pod_ip: '10.2.2.2',
    peer_name: 'db-1',
    peer_uid: 'other',
    peer_resolved_at: null,
  })
  assert.equal((await run()).rows, 1)
  assert.deepEqual(await uuids(), [newer])
})

for (const [member, value] of Object.entries({
  pod_name: 'api',
  pod_namespace: 'other',
  peer_kind: 'service',
  peer_namespace: 'other',
  peer_workload_kind: 'Deployment',
  peer_workload_name: 'other',
  traffic_type: 'INGRESS',
  ip_protocol: 'UDP',
  pod_port: '8080',
  traffic_in_out_port: '80',
  decision: 'DROP',
})) {
  for (const other of [value, null]) {
    // A newer flow without `peer_kind` has no peer, whatever its other fields are.
    test(`a newer flow whose ${member} is ${other === null ? 'unknown' : 'another'} supersedes nothing`, async () => {
      await alive()
      await alive({ pod_name: 'api', pod_namespace: null })
      const kept = [await flow(), await flow({ time_stamp: ago(10), [member]: other })]
      assert.equal((await run()).rows, 0)
      assert.deepEqual(await uuids(), kept)
    })
  }

  if (member === 'pod_name' || member === 'peer_kind') continue
  test(`two flows whose ${member} is unknown are the same rule`, async () => {
    await alive()
    await flow({ [member]: null })
    const newer = await flow({ time_stamp: ago(10), [member]: null })
    assert.equal((await run()).rows, 1)
    assert.deepEqual(await uuids(), [newer])
  })
}

test('peers without a workload are distinguished by their names', async () => {
  await alive()
  const bare = { peer_workload_kind: null, peer_workload_name: null }
  const kept = [
    await flow({ ...bare, peer_name: 'one' }),
    await flow({ ...bare, peer_name: 'two', time_stamp: ago(10) }),
  ]
  assert.equal((await run()).rows, 0)
  kept.push(await flow({ ...bare, peer_name: 'one', time_stamp: ago(5) }))
  assert.equal((await run()).rows, 1)
  assert.deepEqual(await uuids(), kept.slice(1))
})

test('a flow to a service is superseded by a newer one to the service of the same name', async () => {
  await alive()
  const service = { peer_kind: 'service', peer_name: 'api', peer_workload_kind: null, peer_workload_name: null }
  await flow(service)
  const newer = await flow({ ...service, time_stamp: ago(10) })
  assert.equal((await run()).rows, 1)
  assert.deepEqual(await uuids(), [newer])
})

for (const [what, peer] of [
  ['to a node', { peer_kind: 'node' }],
  ['without a peer', NO_PEER],
] as const) {
  test(`flows ${what} of a living pod are never deleted by age, even if newer ones exist`, async () => {
    await alive()
    const kept = [
      await flow(peer),
      await flow({ ...peer, time_stamp: ago(OLD - 10) }),
      await flow({ ...peer, time_stamp: ago(10) }),
    ]
    assert.equal(await count(), 0)
    assert.equal((await run()).rows, 0)
    assert.deepEqual(await uuids(), kept)
  })
}

test('each statement that deletes rows is counted in its transaction, others are not', async () => {
  await alive()
  await manyFlows(150, OLD)
  await run()
  assert.equal(await deletions(), 0, 'all stay')
  await manyFlows(150, OLD, 'gone')
  assert.equal(await count(), 150)
  assert.equal(await deletions(), 0, 'a dry run')
  let during: number | undefined
  const pass = await scene.whileDeleting('traffic', 'after', async () => {
    during = await deletions()
  })
  assert.deepEqual([pass.rows, pass.batches, during], [150, 4, 0])
  assert.equal(await deletions(), 3, 'the fourth found nothing left')
})

// ---- Batches and the cursor -----------------------------------------------------------------------------------------

test('a batch reads the configured number of flows, also those that stay, and no flow between two batches is missed', async () => {
  await alive()
  await manyFlows(150, OLD + 1000)
  await manyFlows(150, OLD, 'gone')
  assert.deepEqual(await run(abortedAfter(1, scene.db)), { outcome: 'aborted', rows: 0, batches: 1 })
  assert.deepEqual(await run(abortedAfter(1, scene.db)), { outcome: 'aborted', rows: 50, batches: 1 })
  assert.deepEqual(await run(), { outcome: 'done', rows: 100, batches: 2 })
  assert.deepEqual(await rowsByPod(), { 'shop/web': 150 })
})

test('batches order flows of the same microsecond by uuid, and miss none', async () => {
  await sql`
    insert into traffic (uuid, pod_name, time_stamp)
    select to_char(i, 'FM000'), case when i % 2 = 0 then 'gone' else 'web' end, ${ago(OLD)}::text::timestamp from generate_series(1, 250) i`
  await alive()
  assert.deepEqual(await run(), { outcome: 'done', rows: 125, batches: 3 })
  assert.equal((await uuids()).length, 125)
})

test('a pass ends after 200 batches; the next continues there, in any process, and the one after starts from the oldest', async (t) => {
  await alive()
  const config = { ...scene.context().config, trafficRetentionBatchSize: 10 }
  await manyFlows(2_000, OLD)
  await manyFlows(15, OLD - 2_100, 'gone')
  assert.equal(await count({ config }), 0)
  assert.deepEqual(await run({ config }), { outcome: 'capped', rows: 0, batches: 200 })
  assert.deepEqual(await cursor(), {
    time_stamp: ago(OLD - 2_000).replace(/\.?0+$/, ''),
    uuid: 'web-002000',
    pod_name: null,
  })
  // This flow is before the cursor, so only the round after this one reads it.
  await flow({ pod_name: 'gone', time_stamp: ago(OLD + 5) })
  assert.equal(await count({ config }), 15)
  assert.deepEqual(await run({ config, db: scene.otherProcess(t) }), { outcome: 'done', rows: 15, batches: 2 })
  assert.deepEqual(await cursor(), AT_START)
  assert.equal((await run({ config })).rows, 1)
  assert.deepEqual(await rowsByPod(), { 'shop/web': 2_000 })
})

test('a cursor after the last expired flow is reset', async () => {
  await flow({ pod_name: 'gone' })
  await sql`insert into traffic_retention_cursor (time_stamp, uuid) values (${ago(10)}::text::timestamp, 'x')`
  assert.deepEqual(await run(), { outcome: 'done', rows: 0, batches: 1 })
  assert.equal((await run()).rows, 1)
})

test('a pass ends at the first young flow', async () => {
  await manyFlows(500, 10 * DAY, 'gone')
  assert.deepEqual(await run(), { outcome: 'done', rows: 0, batches: 1 })
})

test('a pass over an empty table has one batch and deletes nothing', async () => {
  assert.deepEqual(await run(), { outcome: 'done', rows: 0, batches: 1 })
  assert.equal(await count(), 0)
})

test('the configuration sets days, cap and interval; without days and cap the job is off', async () => {
  const { config } = scene.context()
  await flow({ pod_name: 'gone', time_stamp: ago(3 * DAY) })
  assert.equal((await run()).rows, 0)
  assert.equal((await run({ config: { ...config, trafficRetentionDays: 2 } })).rows, 1)
  assert.equal(trafficRetention.everySecs({ ...config, trafficRetentionIntervalSecs: 77 }), 77)
  assert.equal(trafficRetention.everySecs({ ...config, trafficRetentionDays: 0 }), null)
  assert.equal(trafficRetention.everySecs({ ...config, trafficRetentionDays: 0, trafficMaxRowsPerPod: 9 }), 3600)
  assert.equal(trafficRetention.firstAfterSecs, 150)
})

// ---- Races ----------------------------------------------------------------------------------------------------------

test('a flow that another transaction is writing is skipped, and others are deleted', async () => {
  await manyFlows(150, OLD, 'gone')
  await sql.begin(async (other) => {
    await other`update traffic set syn_retries = 1 where uuid = 'gone-000007'`
    assert.deepEqual(await run(), { outcome: 'done', rows: 149, batches: 2 })
  })
  assert.deepEqual(await uuids(), ['gone-000007'])
  assert.equal((await run()).rows, 1)
})

test('a flow that is posted while it is being deleted waits for the batch and is stored again', async () => {
  const row = { ...example(), ...NO_PEER, pod_name: 'gone' }
  await flow(row)
  let posted: Promise<unknown> | undefined
  const pass = await scene.whileDeleting('traffic', 'after', async () => {
    posted = scene.db.ingest((db) => db`insert into traffic ${db({ ...row, uuid: 'again', time_stamp: ago(5) })}`)
    await until('the post waits for the pass', async () => (await waiting(sql)) === 2)
  })
  assert.deepEqual(pass, { outcome: 'done', rows: 1, batches: 1 })
  await posted
  assert.deepEqual(await uuids(), ['again'])
})

test('two processes at once delete every flow once and leave what stays', async (t) => {
  await alive()
  await manyFlows(3000, OLD)
  await manyFlows(3000, OLD, 'gone')
  const passes = await Promise.all([run(), run({ db: scene.otherProcess(t) })])
  assert.ok(passes.some(({ outcome }) => outcome === 'done'))
  assert.equal(passes[0].rows + passes[1].rows, 3000)
  assert.deepEqual(await rowsByPod(), { 'shop/web': 3000 })
})

test('with the lock held elsewhere it reports skipped and does nothing', async () => {
  await manyFlows(2, OLD, 'gone')
  await sql`insert into traffic_retention_cursor (time_stamp, uuid) values (${ago(OLD)}::text::timestamp, 'x')`
  const before = await cursor()
  const { config } = scene.context()
  await scene.whileLocked('traffic-retention', async () => {
    for (const trafficMaxRowsPerPod of [0, 1]) {
      const pass = await run({ config: { ...config, trafficMaxRowsPerPod } })
      assert.deepEqual(pass, { outcome: 'skipped', rows: 0, batches: 0 })
    }
    assert.deepEqual(await run({ config: { ...config, trafficRetentionDays: 0, trafficMaxRowsPerPod: 1 } }), {
      outcome: 'skipped',
      rows: 0,
      batches: 0,
    })
  })
  assert.deepEqual(await cursor(), before)
  await scene.whileLocked('late-resolve', async () => assert.equal((await run()).rows, 2))
})

test('aborted before the first batch it does nothing', async () => {
  await manyFlows(1, OLD, 'gone')
  assert.deepEqual(await run({ signal: AbortSignal.abort() }), { outcome: 'aborted', rows: 0, batches: 0 })
  assert.equal((await uuids()).length, 1)
})

test('counting returns the number of flows that a pass would delete, deletes none and moves no cursor', async () => {
  await alive()
  await manyFlows(350, OLD, 'gone')
  await manyFlows(50, OLD)
  await flow()
  await flow({ time_stamp: ago(10) })
  await scene.whileLocked('traffic-retention', async () => assert.equal(await count(), 351))
  assert.equal((await uuids()).length, 402)
  assert.equal(await cursor(), null)
  assert.equal((await run()).rows, 351)
})
