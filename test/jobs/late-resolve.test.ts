import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beforeEach, test } from 'node:test'
import { lateResolve } from '../../jobs/late-resolve.ts'
import { until } from '../support/until.ts'
import { abortedAfter, inside, isWaiting, startScene } from './scene.ts'

const scene = await startScene(lateResolve)
const { ago, pod, service, run, count, sql } = scene
const NO_PEER = {
  kind: null,
  namespace: null,
  name: null,
  uid: null,
  workload_kind: null,
  workload_name: null,
  resolved: false,
}

beforeEach(async () => {
  await sql`truncate traffic, pod, pod_address, service`
})

/** Stores a flow without a peer, a minute old. */
async function flow(peerIp: string | null, fields: Record<string, unknown> = {}): Promise<string> {
  const row = {
    uuid: randomUUID(),
    pod_name: 'seen',
    pod_ip: '10.0.0.1',
    traffic_in_out_ip: peerIp,
    time_stamp: ago(60),
    ...fields,
  }
  await sql`insert into traffic ${sql(row)}`
  return row.uuid
}

/** Stores `n` flows with the same time, each to its own address in 10.9.x.y, or all to `peerIp`. */
async function manyFlows(n: number, secsAgo: number, peerIp: string | null = null): Promise<void> {
  await sql`
    insert into traffic (uuid, pod_name, traffic_in_out_ip, time_stamp)
    select gen_random_uuid()::text, 'seen', coalesce(${peerIp}::text, format('10.9.%s.%s', i / 250, i % 250)), ${ago(secsAgo)}::text::timestamp
    from generate_series(1, ${n}::int) i`
}

async function peer(uuid: string) {
  const [row] = await sql`
    select peer_kind as kind, peer_namespace as namespace, peer_name as name, peer_uid as uid, peer_workload_kind as workload_kind,
           peer_workload_name as workload_name, peer_resolved_at is not null as resolved
    from traffic where uuid = ${uuid}`
  return { ...row }
}

async function stampedRows(): Promise<number> {
  const [row] = await sql<{ n: number }[]>`select count(*)::int as n from traffic where peer_kind is not null`
  return row!.n
}

test('a flow gets all fields of a peer pod that was posted after it', async () => {
  const { pod_name, pod_ip } = await pod({ pod_ip: '10.0.0.2' })
  const uuid = await flow(pod_ip)
  assert.deepEqual(await run(), { outcome: 'done', rows: 1, batches: 1 })
  assert.deepEqual(await peer(uuid), {
    kind: 'pod',
    namespace: 'shop',
    name: pod_name,
    uid: `uid-${pod_name}`,
    workload_kind: 'Deployment',
    workload_name: 'web',
    resolved: true,
  })
  const [row] =
    await sql`select peer_resolved_at between ${ago(0)}::text::timestamp and now() at time zone 'utc' as is_now from traffic`
  assert.equal(row!.is_now, true)
})

test('a flow to any address of a pod gets that pod', async () => {
  await pod({ pod_name: 'dual', pod_ip: '10.0.0.2', pod_ips: ['10.0.0.2', 'fd00::2'] })
  const uuid = await flow('fd00::2')
  await run()
  assert.equal((await peer(uuid)).name, 'dual')
})

test('the kind is node for a pod on the host network, and pod otherwise, also where the network is unknown', async () => {
  await pod({ pod_ip: '10.0.0.2', host_network: true })
  await pod({ pod_ip: '10.0.0.3', host_network: false })
  await pod({ pod_ip: '10.0.0.4', host_network: null })
  const uuids = [await flow('10.0.0.2'), await flow('10.0.0.3'), await flow('10.0.0.4')]
  await run()
  const kinds = await Promise.all(uuids.map(async (uuid) => (await peer(uuid)).kind))
  assert.deepEqual(kinds, ['node', 'pod', 'pod'])
})

test('a flow gets the service of its address if no pod has it, without a workload', async () => {
  await service('10.96.0.1')
  const uuid = await flow('10.96.0.1')
  await run()
  assert.deepEqual(await peer(uuid), {
    ...NO_PEER,
    kind: 'service',
    namespace: 'shop',
    name: 'web',
    uid: 'uid-svc',
    resolved: true,
  })
})

test('a pod takes precedence over a service with the same address, unless it started after the flow', async () => {
  await service('10.96.0.1')
  await pod({ pod_name: 'before', pod_ip: '10.96.0.1', started_at: ago(30) })
  const [older, newer] = [await flow('10.96.0.1'), await flow('10.96.0.1', { time_stamp: ago(20) })]
  await run()
  assert.equal((await peer(older)).kind, 'service')
  assert.equal((await peer(newer)).name, 'before')
})

test('a pod must have started at or before the time of the flow; an unknown start does not match', async () => {
  await pod({ pod_ip: '10.0.0.2', started_at: `${ago(60)}001` })
  await pod({ pod_ip: '10.0.0.3', started_at: null })
  await pod({ pod_ip: '10.0.0.4', started_at: ago(60) })
  const uuids = [await flow('10.0.0.2'), await flow('10.0.0.3'), await flow('10.0.0.4')]
  assert.equal((await run()).rows, 1)
  const kinds = await Promise.all(uuids.map(async (uuid) => (await peer(uuid)).kind))
  assert.deepEqual(kinds, [null, null, 'pod'])
})

test('a dead pod is a peer up to its last record, and only if no living pod has the address', async () => {
  await pod({ pod_ip: '10.0.0.2', is_dead: true, time_stamp: ago(60) })
  await pod({ pod_ip: '10.0.0.3', is_dead: true, time_stamp: ago(61) })
  await pod({ pod_name: 'dead', pod_ip: '10.0.0.4', is_dead: true, started_at: ago(100) })
  await pod({ pod_name: 'alive', pod_ip: '10.0.0.4', started_at: ago(200) })
  const uuids = [await flow('10.0.0.2'), await flow('10.0.0.3'), await flow('10.0.0.4')]
  await run()
  assert.equal((await peer(uuids[0]!)).kind, 'pod')
  assert.deepEqual(await peer(uuids[1]!), NO_PEER)
  assert.equal((await peer(uuids[2]!)).name, 'alive')
})

test('a flow exactly 600 seconds old gets a peer, one a microsecond older does not', async () => {
  await pod({ pod_ip: '10.0.0.2', started_at: ago(7200) })
  const result = await sql.begin(async (now) => {
    await now`
      insert into traffic (uuid, traffic_in_out_ip, time_stamp)
      values ('at', '10.0.0.2', now() at time zone 'utc' - interval '600 s'),
             ('past', '10.0.0.2', now() at time zone 'utc' - interval '600.000001 s')`
    assert.equal(await count({ db: inside(now) }), 1)
    return run({ db: inside(now) })
  })
  assert.equal(result.rows, 1)
  assert.equal((await peer('at')).kind, 'pod')
  assert.deepEqual(await peer('past'), NO_PEER)
})

/** The stamps of the own pod, and whether the row was written again. */
async function own(uuid: string) {
  const [row] = await sql`
    select pod_workload_kind as kind, pod_workload_name as name, first_tx < tx as is_update
    from traffic where uuid = ${uuid}`
  return { ...row }
}

test('a flow gets the workload of its pod, and its peer, when these are posted after it', async () => {
  await pod({ pod_name: 'cart' })
  await pod({ pod_name: 'peer', pod_ip: '10.0.0.2' })
  const uuid = await flow('10.0.0.2', { pod_name: 'cart', pod_namespace: 'shop' })
  const others = [
    await flow(null, { pod_name: 'cart', pod_namespace: 'bank' }),
    await flow(null, { pod_name: 'cart' }),
    await flow(null, { pod_name: 'cart', pod_namespace: 'shop', time_stamp: ago(7200) }),
  ]
  const [inserted] = await sql`select tx from traffic where uuid = ${uuid}`
  assert.equal(await count(), 1)
  assert.deepEqual(await run(), { outcome: 'done', rows: 1, batches: 1 })
  const expected = { kind: 'Deployment', name: 'web', is_update: true }
  assert.deepEqual(await own(uuid), expected)
  const [updated] = await sql`select first_tx from traffic where uuid = ${uuid}`
  assert.equal(updated!.first_tx, inserted!.tx)
  const none = { kind: null, name: null, is_update: null }
  for (const other of others) assert.deepEqual(await own(other), none)
  assert.deepEqual(await run(), { outcome: 'done', rows: 0, batches: 1 })
})

test('a side that is known keeps its stamp when the other side becomes known', async () => {
  await pod({ pod_name: 'cart' })
  const known = { peer_kind: 'pod', peer_name: 'earlier', peer_namespace: 'shop', peer_resolved_at: ago(50) }
  const ofPeer = await flow('10.0.0.2', { pod_name: 'cart', pod_namespace: 'shop', ...known })
  await pod({ pod_ip: '10.0.0.3' })
  const ofPod = await flow('10.0.0.3', {
    pod_name: 'cart',
    pod_namespace: 'shop',
    pod_workload_kind: 'Pod',
    pod_workload_name: 'cart',
  })
  assert.equal((await run()).rows, 2)
  assert.equal((await peer(ofPeer)).name, 'earlier')
  const [{ is_kept }] = (await sql`
    select peer_resolved_at = ${ago(50)}::text::timestamp as is_kept from traffic where uuid = ${ofPeer}`) as unknown as [
    { is_kept: boolean },
  ]
  assert.equal(is_kept, true)
  assert.equal((await own(ofPeer)).name, 'web')
  assert.equal((await own(ofPod)).name, 'cart')
  assert.equal((await peer(ofPod)).kind, 'pod')
})

test('a pod whose owner has no workload yet gives it when that is posted', async () => {
  const late = { pod_name: 'cart', workload_kind: null, workload_name: null, pod_obj: {}, has_owner: true }
  await pod(late)
  const uuid = await flow(null, { pod_name: 'cart', pod_namespace: 'shop' })
  assert.equal((await run()).rows, 0)
  await pod({ pod_name: 'cart' })
  assert.equal((await run()).rows, 1)
  assert.equal((await own(uuid)).name, 'web')
})

test('the configuration sets the window and the interval; a window of 0 turns the job off', async () => {
  await pod({ pod_ip: '10.0.0.2' })
  await flow('10.0.0.2')
  const { config } = scene.context()
  assert.equal((await run({ config: { ...config, peerLateResolveWindowSecs: 30 } })).rows, 0)
  assert.equal((await run({ config: { ...config, peerLateResolveWindowSecs: 3600 } })).rows, 1)
  assert.equal(lateResolve.everySecs({ ...config, peerLateResolveWindowSecs: 0 }), null)
  assert.equal(lateResolve.everySecs({ ...config, peerLateResolveIntervalSecs: 5 }), 5)
})

test('a flow with a peer is never changed, and one without a peer address never gets a peer', async () => {
  await pod({ pod_ip: '10.0.0.2' })
  const stamped = await flow('10.0.0.2', { peer_kind: 'pod', peer_name: 'earlier', peer_resolved_at: ago(50) })
  await flow(null)
  const before = await sql`select * from traffic order by uuid`
  assert.equal((await run()).rows, 0)
  assert.deepEqual([...(await sql`select * from traffic order by uuid`)], [...before])
  assert.equal((await peer(stamped)).name, 'earlier')
})

test('a flow that gets a peer from another session during the pass keeps that peer', async () => {
  await pod({ pod_name: 'ours', pod_ip: '10.0.0.2' })
  const [contested, free] = [await flow('10.0.0.2'), await flow('10.0.0.2')]
  let pass: ReturnType<typeof run> | undefined
  await sql.begin(async (other) => {
    await other`update traffic set peer_kind = 'pod', peer_name = 'theirs', peer_resolved_at = now() where uuid = ${contested}`
    pass = run()
    await until('the pass waits for the row', () => isWaiting(sql))
  })
  assert.deepEqual(await pass, { outcome: 'done', rows: 1, batches: 1 })
  assert.equal((await peer(contested)).name, 'theirs')
  assert.equal((await peer(free)).name, 'ours')
})

test('a pass reads flows that stay without a peer once, and reaches the flows after them', async () => {
  await manyFlows(2500, 120)
  await pod({ pod_ip: '10.0.0.2' })
  const uuid = await flow('10.0.0.2')
  assert.deepEqual(await run(), { outcome: 'done', rows: 1, batches: 3 })
  assert.equal((await peer(uuid)).kind, 'pod')
})

test('a pass skips any number of flows with a peer, and these do not fill batches', async () => {
  await manyFlows(12_000, 120)
  await sql`update traffic set peer_kind = 'pod'`
  await manyFlows(20, 110)
  await pod({ pod_ip: '10.0.0.2' })
  const uuid = await flow('10.0.0.2')
  assert.deepEqual(await run(), { outcome: 'done', rows: 1, batches: 3 })
  assert.equal((await peer(uuid)).kind, 'pod')
})

test('no flow between two batches is missed, full or not', async () => {
  // A statement reads 5 000 rows: one flow is the last of these, the other comes right after them.
  await manyFlows(4_999, 120)
  await sql`update traffic set peer_kind = 'pod'`
  await pod({ pod_ip: '10.0.0.2', started_at: ago(3600) })
  const uuids = [await flow('10.0.0.2', { time_stamp: ago(110) }), await flow('10.0.0.2', { time_stamp: ago(109) })]
  await manyFlows(10, 100)
  assert.deepEqual(await run(), { outcome: 'done', rows: 2, batches: 2 })
  for (const uuid of uuids) assert.equal((await peer(uuid)).kind, 'pod')
})

test('a pass reads the oldest 20 000 flows', async () => {
  await pod({ pod_ip: '10.0.0.2' })
  await manyFlows(19_999, 120)
  const inTime = await flow('10.0.0.2', { time_stamp: ago(110) })
  const tooMany = await flow('10.0.0.2', { time_stamp: ago(100) })
  assert.equal(await count(), 1)
  assert.deepEqual(await run(), { outcome: 'capped', rows: 1, batches: 20 })
  assert.equal((await peer(inTime)).kind, 'pod')
  assert.deepEqual(await peer(tooMany), NO_PEER)
  // One flow has a peer by now and no longer counts.
  assert.deepEqual(await run(), { outcome: 'capped', rows: 1, batches: 20 })
  assert.equal((await peer(tooMany)).kind, 'pod')
})

test('flows that lack only their workload do not count against those without a peer, and have a limit, too', async () => {
  await manyFlows(20_000, 120)
  await sql`update traffic set pod_namespace = 'shop', peer_kind = 'pod'`
  await pod({ pod_ip: '10.0.0.2', pod_name: 'cart' })
  const tooMany = await flow(null, { pod_name: 'cart', pod_namespace: 'shop', time_stamp: ago(115) })
  const uuid = await flow('10.0.0.2', { pod_name: 'cart', pod_namespace: 'shop', time_stamp: ago(110) })
  assert.equal(await count(), 1)
  const pass = await run()
  assert.deepEqual([pass.outcome, pass.rows], ['capped', 1])
  assert.equal((await peer(uuid)).kind, 'pod')
  assert.equal((await own(uuid)).name, 'web')
  assert.equal((await own(tooMany)).name, null)
  await sql`delete from traffic where pod_name = 'seen' and uuid < '8'`
  assert.equal(await count(), 1)
  assert.deepEqual((await run()).rows, 1)
  assert.equal((await own(tooMany)).name, 'web')
})

test('the limit of 20 000 flows holds beside flows that lack only their workload', async () => {
  await manyFlows(19_500, 120)
  await manyFlows(3000, 115)
  await sql`update traffic set pod_namespace = 'shop', peer_kind = 'pod' where time_stamp > ${ago(118)}::text::timestamp`
  await manyFlows(499, 112)
  await pod({ pod_ip: '10.0.0.2' })
  const inTime = await flow('10.0.0.2', { time_stamp: ago(110) })
  const tooMany = await flow('10.0.0.2', { time_stamp: ago(100) })
  const pass = await run()
  assert.deepEqual([pass.outcome, pass.rows], ['capped', 1])
  assert.ok(pass.batches < 30, `${pass.batches} batches`)
  assert.equal((await peer(inTime)).kind, 'pod')
  assert.deepEqual(await peer(tooMany), NO_PEER)
})

test('the limit of 20 000 flows holds when batches are not full', async () => {
  await manyFlows(300, 130)
  await sql`update traffic set pod_name = 'early'`
  await manyFlows(6000, 125)
  await sql`update traffic set peer_kind = 'pod' where pod_name = 'seen'`
  await manyFlows(19_699, 120)
  await pod({ pod_ip: '10.0.0.2' })
  const inTime = await flow('10.0.0.2', { time_stamp: ago(110) })
  const tooMany = await flow('10.0.0.2', { time_stamp: ago(100) })
  const pass = await run()
  assert.deepEqual([pass.outcome, pass.rows], ['capped', 1])
  assert.equal((await peer(inTime)).kind, 'pod')
  assert.deepEqual(await peer(tooMany), NO_PEER)
})

test('two processes at once update every flow once', async (t) => {
  await pod({ pod_ip: '10.0.0.2' })
  await manyFlows(6000, 60, '10.0.0.2')
  await sql`create table stamp (uuid text)`
  await sql`
    create function note_stamp() returns trigger language plpgsql
    as $$ begin insert into stamp values (new.uuid); return new; end $$`
  await sql`create trigger note_stamp after update on traffic for each row execute function note_stamp()`
  t.after(() => sql`drop function note_stamp cascade`)
  const passes = await Promise.all([run(), run({ db: scene.otherProcess(t) })])
  assert.ok(passes.some(({ outcome }) => outcome === 'done'))
  assert.equal(passes[0].rows + passes[1].rows, 6000)
  const [row] = await sql`select count(*)::int as stamps, count(distinct uuid)::int as flows from stamp`
  assert.deepEqual({ ...row }, { stamps: 6000, flows: 6000 })
})

test('with the lock held elsewhere it reports skipped and does nothing', async () => {
  await pod({ pod_ip: '10.0.0.2' })
  const uuid = await flow('10.0.0.2')
  await scene.whileLocked('late-resolve', async () =>
    assert.deepEqual(await run(), { outcome: 'skipped', rows: 0, batches: 0 }),
  )
  assert.deepEqual(await peer(uuid), NO_PEER)
  await scene.whileLocked('stale-sweep', async () => assert.equal((await run()).rows, 1))
})

test('a pass aborted between two batches leaves no half-updated row, and the next pass does the rest', async () => {
  await pod({ pod_ip: '10.0.0.2' })
  await manyFlows(2500, 60, '10.0.0.2')
  assert.deepEqual(await run(abortedAfter(1, scene.db)), { outcome: 'aborted', rows: 1000, batches: 1 })
  const [row] = await sql`
    select count(*) filter (where peer_kind is not null and peer_name is not null and peer_resolved_at is not null)::int as whole,
           count(*) filter (where coalesce(peer_kind, peer_name, peer_uid, peer_resolved_at::text) is null)::int as untouched
    from traffic`
  assert.deepEqual({ ...row }, { whole: 1000, untouched: 1500 })
  assert.deepEqual(await run(), { outcome: 'done', rows: 1500, batches: 2 })
})

test('aborted before the first batch it does nothing', async () => {
  await pod({ pod_ip: '10.0.0.2' })
  await flow('10.0.0.2')
  assert.deepEqual(await run({ signal: AbortSignal.abort() }), { outcome: 'aborted', rows: 0, batches: 0 })
  assert.equal(await stampedRows(), 0)
})

test('counting returns the number of flows that would get a peer, and changes none', async () => {
  await pod({ pod_ip: '10.0.0.2' })
  await service('10.96.0.1')
  await manyFlows(1500, 60, '10.0.0.2')
  await flow('10.96.0.1')
  await flow('192.0.2.1')
  await scene.whileLocked('late-resolve', async () => assert.equal(await count(), 1501))
  assert.equal(await stampedRows(), 0)
  assert.equal((await run()).rows, 1501)
})
