import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { deadPodRetention } from '../../jobs/dead-pod-retention.ts'
import type { JobContext } from '../../jobs/job.ts'
import { trafficRetention } from '../../jobs/traffic-retention.ts'
import { abortedAfter, startScene } from '../jobs/scene.ts'
import { depth } from '../support/depth.ts'
import { podsWithWrongAddresses } from '../support/records.ts'

const scene = await startScene(trafficRetention)
const { sql, db, ago } = scene
const { config } = scene.context()
const DAY = 86_400
const MINUTE = 60

// ---- Generated rows: few values of each kind, so that flows match each other ----------------------------------------

/** Moments are one minute apart; those from YOUNG on are within the window. */
const MOMENTS = 5
const YOUNG = 3
const timeOf = (moment: number) => (moment < YOUNG ? ago(20 * DAY - moment * MINUTE) : ago(DAY - moment * MINUTE))
/** Pod starts are in minutes after the first moment: 0, or about an hour. */
const SLACK = 60
const startOf = (minutes: number) => ago(20 * DAY - minutes * MINUTE)

const option = <T>(one: fc.Arbitrary<T>, freq = 4) => fc.option(one, { freq })
const mostly = (usual: string, ...others: (string | null)[]) =>
  fc.oneof(
    { weight: 6, arbitrary: fc.constant<string | null>(usual) },
    { weight: 1, arbitrary: fc.constantFrom(...others) },
  )
const namespace = fc.constantFrom('x', 'x', 'x', 'y', '', null)

const pod = fc.record({
  name: fc.constantFrom('a', 'b', 'c'),
  namespace,
  isDead: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
  start: option(fc.oneof(fc.constant(0), fc.integer({ min: SLACK - 1, max: SLACK + MOMENTS }))),
})
type Pod = typeof pod extends fc.Arbitrary<infer T> ? T : never

const flow = fc.record({
  pod: fc.constantFrom('a', 'a', 'a', 'b', 'c', 'd', null),
  namespace,
  time: fc.nat(MOMENTS - 1),
  kind: fc.constantFrom('pod', 'pod', 'service', 'node', null),
  peerNamespace: mostly('p', 'q', null),
  peerName: fc.constantFrom('peer-1', 'peer-2'),
  owner: option(fc.constantFrom('w', 'peer-1'), 2),
  ownerKind: mostly('Deployment', 'Job', null),
  type: mostly('EGRESS', 'INGRESS', null),
  protocol: mostly('TCP', 'UDP', null),
  podPort: mostly('0', '80', null),
  peerPort: mostly('443', '80', null),
  decision: mostly('ALLOW', 'DROP', null),
})
type Flow = (typeof flow extends fc.Arbitrary<infer T> ? T : never) & { uuid: string }

// ---- The model: docs/contract.md#retention --------------------------------------------------------------------------

const isUnknown = (one: string | null) => one === null || one === ''

/** Rule 1: a live pod of that name and namespace exists that had started by the row's time plus an hour. */
const hasLivePod = (row: Flow, pods: Pod[]) =>
  pods.some(
    (one) =>
      one.name === row.pod &&
      !one.isDead &&
      (isUnknown(one.namespace) || isUnknown(row.namespace) || one.namespace === row.namespace) &&
      (one.start === null || one.start <= row.time + SLACK),
  )

/** Rule 2: a newer row of the same pod has the same rule. */
const sameRule = (row: Flow) =>
  JSON.stringify([
    [row.pod, row.namespace],
    [row.kind, row.peerNamespace, row.ownerKind, row.owner ?? row.peerName],
    [row.type, row.protocol, row.podPort, row.peerPort, row.decision],
  ])
const isSuperseded = (row: Flow, rows: Flow[]) =>
  (row.kind === 'pod' || row.kind === 'service') &&
  rows.some((other) => other.time > row.time && sameRule(other) === sameRule(row))

const staysByAge = (rows: Flow[], pods: Pod[]) =>
  rows.filter((row) => row.time >= YOUNG || (hasLivePod(row, pods) && !isSuperseded(row, rows)))

/** Rule 4: when a pod has more rows than the cap, its oldest rows without a peer are deleted. */
function staysBelow(cap: number, rows: Flow[]): Flow[] {
  const byPod = new Map<string, Flow[]>()
  for (const row of rows) byPod.set(podOf(row), [...(byPod.get(podOf(row)) ?? []), row])
  return [...byPod.values()].flatMap((all) => {
    if (all[0]!.pod === null || cap === 0) return all
    const unresolved = all
      .filter(({ kind }) => kind === null)
      .sort((a, b) => a.time - b.time || (a.uuid < b.uuid ? -1 : 1))
    const goes = new Set(unresolved.slice(0, Math.max(0, all.length - cap)))
    return all.filter((row) => !goes.has(row))
  })
}
const podOf = (row: Flow) => JSON.stringify([row.namespace, row.pod])

// ---- The tables -----------------------------------------------------------------------------------------------------

async function store(pods: Pod[], rows: Flow[]): Promise<void> {
  await sql`truncate traffic, pod, pod_address, traffic_retention_cursor`
  const podRows = pods.map((one) => ({
    pod_name: one.name,
    pod_ip: '10.0.0.1',
    pod_namespace: one.namespace,
    pod_ips: ['10.0.0.1'],
    time_stamp: ago(0),
    node_name: 'node',
    is_dead: one.isDead,
    started_at: one.start === null ? null : startOf(one.start),
  }))
  await sql`select upsert_pods(${JSON.stringify(podRows)}::text::json)`
  const flowRows = rows.map((row, n) => ({
    uuid: row.uuid,
    pod_name: row.pod,
    pod_namespace: row.namespace,
    pod_ip: '10.0.0.1',
    pod_port: row.podPort,
    ip_protocol: row.protocol,
    traffic_type: row.type,
    traffic_in_out_ip: `10.1.0.${n}`,
    traffic_in_out_port: row.peerPort,
    decision: row.decision,
    time_stamp: timeOf(row.time),
    peer_kind: row.kind,
    peer_namespace: row.peerNamespace,
    peer_name: row.peerName,
    peer_workload_kind: row.ownerKind,
    peer_workload_name: row.owner,
  }))
  await sql`insert into traffic select * from json_populate_recordset(null::traffic, ${JSON.stringify(flowRows)}::text::json)`
}

async function stored(): Promise<string[]> {
  return (await sql<{ uuid: string }[]>`select uuid from traffic order by uuid`).map(({ uuid }) => uuid)
}

const uuidsOf = (rows: Flow[]) => rows.map(({ uuid }) => uuid).sort()
const numbered = (rows: Omit<Flow, 'uuid'>[]): Flow[] =>
  rows.map((row, n) => ({ ...row, uuid: `flow-${(n * 37) % 100}-${n}` }))
const run = (batchRows: number, cap: number, changes: Partial<JobContext> = {}) =>
  scene.run({ config: { ...config, trafficRetentionBatchSize: batchRows, trafficMaxRowsPerPod: cap }, ...changes })

const history = {
  pods: fc.uniqueArray(pod, { selector: ({ name }) => name, maxLength: 3 }),
  rows: fc.array(flow, { maxLength: 40 }).map(numbered),
}

test('after a pass the table has exactly the rows that the rules keep, and the dry run counted the deleted ones', {
  timeout: 900_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({ ...history, batchRows: fc.integer({ min: 1, max: 9 }), cap: fc.constantFrom(0, 0, 1, 3, 6) }),
      async ({ pods, rows, batchRows, cap }) => {
        await store(pods, rows)
        const expected = uuidsOf(staysBelow(cap, staysByAge(rows, pods)))
        const context = { config: { ...config, trafficRetentionBatchSize: batchRows, trafficMaxRowsPerPod: cap } }
        assert.equal(await scene.count(context), rows.length - expected.length)
        assert.deepEqual(await stored(), uuidsOf(rows))
        const pass = await run(batchRows, cap)
        assert.deepEqual(await stored(), expected)
        assert.deepEqual([pass.outcome, pass.rows], ['done', rows.length - expected.length])
        assert.equal((await run(batchRows, cap)).rows, 0)
      },
    ),
    { numRuns: depth(18, 150) },
  )
})

test('passes that end early never delete what the rules keep, and together delete the rest', {
  timeout: 900_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        ...history,
        batchRows: fc.integer({ min: 1, max: 5 }),
        cap: fc.constantFrom(0, 3),
        ends: fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 4 }),
      }),
      async ({ pods, rows, batchRows, cap, ends }) => {
        await store(pods, rows)
        const expected = uuidsOf(staysBelow(cap, staysByAge(rows, pods)))
        for (const end of ends) {
          await run(batchRows, cap, abortedAfter(end, db))
          const left = new Set(await stored())
          const lost = expected.filter((uuid) => !left.has(uuid))
          assert.deepEqual(lost, [])
        }
        await run(batchRows, cap)
        await run(batchRows, cap)
        assert.deepEqual(await stored(), expected)
      },
    ),
    { numRuns: depth(16, 80) },
  )
})

test('dead pods older than the retention are deleted with their addresses, all others are kept', {
  timeout: 900_000,
}, async () => {
  const record = fc.record({
    isDead: fc.boolean(),
    ageDays: fc.constantFrom(0, 6.9, 7.1, 29.9, 30.1, 100),
    addresses: fc.uniqueArray(fc.constantFrom('10.0.0.1', '10.0.0.2', 'fd00::1'), { minLength: 1 }),
  })
  const days = fc.record({ own: fc.constantFrom(0, 30, 50), audit: fc.constantFrom(0, 30) })
  await fc.assert(
    fc.asyncProperty(
      fc.array(record, { maxLength: 20 }),
      days,
      fc.integer({ min: 1, max: 5 }),
      async (pods, { own, audit }, batchRows) => {
        await sql`truncate pod, pod_address`
        const rows = pods.map((one, n) => ({
          pod_name: `pod-${n}`,
          pod_ip: one.addresses[0],
          pod_ips: one.addresses,
          time_stamp: ago(one.ageDays * DAY),
          node_name: 'node',
          is_dead: one.isDead,
        }))
        await sql`select upsert_pods(${JSON.stringify(rows)}::text::json)`
        const kept = own > 0 ? own : audit > 0 ? audit : 7
        const expected = pods.flatMap((one, n) => (one.isDead && one.ageDays > kept ? [] : [`pod-${n}`])).sort()
        const context = scene.context({
          config: {
            ...config,
            deadPodRetentionDays: own,
            auditRetentionDays: audit,
            auditRetentionBatchSize: batchRows,
          },
        })
        assert.equal(await deadPodRetention.count(context), pods.length - expected.length)
        const pass = await deadPodRetention.run(context)
        assert.equal(pass.rows, pods.length - expected.length)
        const left = await sql<{ pod_name: string }[]>`select pod_name from pod order by pod_name`
        assert.deepEqual(
          left.map(({ pod_name }) => pod_name),
          expected,
        )
        assert.deepEqual(await podsWithWrongAddresses(sql), [])
      },
    ),
    { numRuns: depth(15, 100) },
  )
})
