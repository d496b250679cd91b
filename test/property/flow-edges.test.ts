import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { flowEdges } from '../../jobs/flow-edges.ts'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { othersEnded } from '../support/transactions.ts'
import { assertSameByPods, type Sizes } from '../traffic/by-pods.ts'
import { type Backend, type Edge, type EdgeAnswer, type EdgeStore, edgesOf } from '../traffic/edge-model.ts'
import { microseconds, type PodHistory, type Query, type StoredFlow } from '../traffic/flow-model.ts'
import { filter, flows, history, INSERT_FLOWS, range } from '../traffic/flow-values.ts'

const app = await startApp()

/** Questions put to each store. */
const QUESTIONS = 10
const STORES = depth(8, 1_000)
/** Flows may still become more known for this long: also those of 2024. */
const LONG_SECS = 1e9

// ---- Generated stores and questions ---------------------------------------------------------------------------------

/** A flow of the same edge, of any pod and time, perhaps as the other side reports it. */
const copy = fc.record({
  of: fc.nat(),
  pod: fc.constantFrom('web-1', 'web-2', 'db-0', null),
  time: fc.nat(),
  isMirrored: fc.boolean(),
})
const MAX_FLOWS = 30
/** Whether each flow has a pod and a direction: lists of others are not read by pods. */
const isWhole = fc.boolean()
const edgeFlows = fc
  .tuple(flows, fc.array(copy, { maxLength: MAX_FLOWS / 2 }), isWhole)
  .map(([all, copies, isWhole]) => {
    const first = all
      .slice(0, MAX_FLOWS / 2)
      .map(
        (one, i): StoredFlow =>
          isWhole
            ? { ...one, pod_name: one.pod_name ?? 'web-1', traffic_type: i % 3 === 0 ? 'INGRESS' : 'EGRESS' }
            : one,
      )
    return [
      ...first,
      ...copies.map(({ of, pod, time, isMirrored }, i): StoredFlow => {
        const one = first[of % first.length]!
        const again = {
          ...{
            ...one,
            uuid: `copy-${i}`,
            pod_name: isWhole ? (pod ?? 'dns') : pod,
            time_stamp: all[time % all.length]!.time_stamp,
          },
          ...(one.traffic_type === 'EGRESS' ? { pod_port: `1${i}` } : { traffic_in_out_port: `1${i}` }),
        }
        return isMirrored && pod !== null && one.peer_kind === 'pod' ? mirrored(again) : again
      }),
    ]
  })

const mirrored = (flow: StoredFlow): StoredFlow => ({
  ...{ ...flow, traffic_type: flow.traffic_type === 'EGRESS' ? 'INGRESS' : 'EGRESS' },
  ...{ pod_ip: flow.traffic_in_out_ip, traffic_in_out_ip: flow.pod_ip },
  ...{ pod_port: flow.traffic_in_out_port, traffic_in_out_port: flow.pod_port },
  ...{ pod_namespace: flow.peer_namespace, peer_namespace: flow.pod_namespace },
  ...{ pod_name: flow.peer_name, peer_name: flow.pod_name },
  ...{ pod_workload_kind: flow.peer_workload_kind, peer_workload_kind: flow.pod_workload_kind },
  ...{ pod_workload_name: flow.peer_workload_name, peer_workload_name: flow.pod_workload_name },
})

/** How the flows come in: each in one of some transactions, with passes of the job and late peers in between. */
interface Story {
  /** Whether flows without a peer or a workload wait for one. */
  isOpen: boolean
  /** For each flow the number of its transaction, and whether its peer and workload become known later. */
  flows: { transaction: number; isLate: boolean }[]
  /** Whether the job runs after each transaction. */
  passes: boolean[]
  /** Whether flows stop to wait before they are read. */
  isSettled: boolean
  /** Whether the first of the flows are deleted. */
  isDeleted: boolean
}
const TRANSACTIONS = 3
const story: fc.Arbitrary<Story> = fc.record({
  isOpen: fc.boolean(),
  flows: fc.array(fc.record({ transaction: fc.nat(TRANSACTIONS - 1), isLate: fc.boolean() }), {
    minLength: MAX_FLOWS,
    maxLength: MAX_FLOWS,
  }),
  passes: fc.array(fc.boolean(), { minLength: TRANSACTIONS, maxLength: TRANSACTIONS }),
  isSettled: fc.boolean(),
  isDeleted: fc.boolean(),
})

const backends: fc.Arbitrary<Backend[]> = fc.uniqueArray(
  fc.record({
    namespace: fc.constantFrom('shop', 'shop', 'shop-2'),
    service: fc.constantFrom('web', 'db', 'web-1'),
    port: fc.constantFrom('443', '8080'),
    protocol: fc.constantFrom('TCP', 'TCP', 'UDP'),
    kind: fc.constantFrom('Deployment', 'StatefulSet', 'Pod'),
    workload: fc.constantFrom('web', 'db', 'web-1'),
    targetPort: fc.constantFrom('443', '8999', '8080'),
  }),
  { maxLength: 6, selector: ({ namespace, service, port, protocol }) => [namespace, service, port, protocol].join() },
)

const option = (name: string, ...values: string[]) =>
  fc.constantFrom<Query>([], [], ...values.map((value): Query => [[name, value]]))

interface Question {
  query: Query
  limit: number
}
const question: fc.Arbitrary<Question> = fc.record({
  query: fc
    .tuple(
      fc.array(filter, { maxLength: 3 }).map((filters) => filters.flat()),
      fc.option(range, { nil: [], freq: 2 }),
      option('group', 'workload', 'namespace', 'service'),
      option('cidr', '24', '0', '32', '15'),
      option('order', 'lastNewAt', 'flows'),
    )
    .map((parts) => parts.flat()),
  limit: fc.integer({ min: 1, max: 7 }),
})

/** Lists of flows, read by the pods of their edges. */
interface List {
  query: Query
  sizes: Sizes
}
const LISTS = 3
const list: fc.Arbitrary<List> = fc.record({
  query: fc
    .tuple(
      fc.array(filter, { minLength: 1, maxLength: 3 }).map((filters) => filters.flat()),
      fc.option(range, { nil: [], freq: 2 }),
      option('order', 'newest', 'oldest'),
    )
    .map((parts) => parts.flat()),
  sizes: fc.record({
    first: fc.integer({ min: 1, max: 4 }),
    next: fc.integer({ min: 1, max: 4 }),
    rows: fc.integer({ min: 1, max: 4 }),
  }),
})

// ---- The same flows on the broker -----------------------------------------------------------------------------------

async function pass(openSecs: number): Promise<void> {
  await othersEnded(app.sql)
  const { deps, db } = app
  const config = { ...deps.config, peerLateResolveWindowSecs: openSecs, flowEdgeRetentionDays: 0 }
  await flowEdges.run({ config, db, log: deps.log, signal: new AbortController().signal })
}

const OPEN = {
  ...{ peer_kind: null, peer_namespace: null, peer_name: null, peer_uid: null, peer_resolved_at: null },
  ...{ peer_workload_kind: null, peer_workload_name: null, pod_workload_kind: null, pod_workload_name: null },
}

/** Calls `check` between the transactions, and when the last one was counted. */
async function hold(
  sent: StoredFlow[],
  told: Story,
  pods: PodHistory[],
  services: Backend[],
  check: () => Promise<void>,
): Promise<EdgeStore> {
  const { sql } = app
  await sql`truncate traffic, pod_labels, service_backend, flow_edge, flow_edge_pod, flow_edge_pending, flow_pod,
                     flow_address`
  await sql`
    update flow_edge_cursor set next_tx = pg_current_xact_id(), time_stamp = null, uuid = null, open_secs = null,
                                complete_since = '-infinity', pods_since = '-infinity',
                                addresses_since = '-infinity'`
  await sql`
    insert into pod_labels (pod_namespace, pod_name, since, labels, node_name)
    select namespace, name, since, labels, node
    from json_to_recordset(${JSON.stringify(pods)}::text::json)
      as p(namespace text, name text, since timestamp, labels jsonb, node text)`
  const openSecs = told.isOpen ? LONG_SECS : 0
  const counted: StoredFlow[] = []
  for (let transaction = 0; transaction < TRANSACTIONS; transaction++) {
    const some = sent.filter((_, i) => told.flows[i]!.transaction === transaction)
    // Without an address and a namespace there is nothing that could become known later.
    const isResolvable = (one: StoredFlow) => one.traffic_in_out_ip !== null || one.pod_namespace !== null
    const isLate = (one: StoredFlow) => told.isOpen && told.flows[sent.indexOf(one)]!.isLate && isResolvable(one)
    const first = some.map((one) => (isLate(one) ? { ...one, ...OPEN } : one))
    const rows = await sql.unsafe<{ uuid: string }[]>(INSERT_FLOWS, [JSON.stringify(first)])
    const stored = new Set(rows.map(({ uuid }) => uuid))
    counted.push(...some.filter(({ uuid }) => stored.has(uuid)))
    if (told.passes[transaction]) await pass(openSecs)
    for (const one of some)
      if (isLate(one)) {
        const known = Object.fromEntries(Object.keys(OPEN).map((key) => [key, one[key as keyof StoredFlow]]))
        await sql`
          update traffic t set ${sql(known)}, first_tx = coalesce(t.first_tx, t.tx), tx = pg_current_xact_id()
          where t.uuid = ${one.uuid}`
      }
    await check()
  }
  await pass(openSecs)
  if (told.isSettled) await pass(0)
  const deleted = told.isDeleted ? counted.slice(0, counted.length / 2).map(({ uuid }) => uuid) : []
  await sql`delete from traffic where uuid = any (array(select json_array_elements_text(${JSON.stringify(deleted)}::text::json)))`
  await sql`
    insert into service_backend
      (svc_namespace, svc_name, port, protocol, workload_kind, workload_name, target_port)
    select namespace, service, port, protocol, kind, workload, "targetPort"
    from json_to_recordset(${JSON.stringify(services)}::text::json)
      as s(namespace text, service text, port text, protocol text, kind text, workload text, "targetPort" text)`
  await check()
  const flows = counted.filter(({ uuid }) => !deleted.includes(uuid))
  return { counted, flows, history: pods, backends: services }
}

const pathOf = (query: Query) => `/flows/edges?${new URLSearchParams(query)}`

async function pages({ query, limit }: Question): Promise<{ edges: Edge[]; unstamped: number }> {
  const edges: Edge[] = []
  let after = ''
  for (let left = 200; left > 0; left--) {
    const place: Query = after === '' ? [] : [['after', after]]
    const page = await app.get(pathOf([...query, ['limit', String(limit)], ...place]))
    assert.equal(page.status, 200, page.text)
    assert.ok(page.json.items.length <= limit, `a page of ${page.json.items.length} edges`)
    edges.push(...page.json.items)
    if (page.json.nextAfter === null) return { edges, unstamped: page.json.unstamped }
    after = page.json.nextAfter
  }
  assert.fail('the pages do not end')
}

const SIDE = ['kind', 'namespace', 'name', 'workload', 'ip'] as const
const sideText = (side: Edge['from']) => JSON.stringify(SIDE.map((name) => side[name]))

/** One text for each edge, in one order. */
const texts = (edges: Edge[]) =>
  edges
    .map(({ from, to, port, protocol, verdict, flows, pods, seenBy, firstSeenAt, lastNewAt }) =>
      [
        ...[sideText(from), '>', sideText(to), port, protocol, verdict, `${flows} of ${pods} ${seenBy}`],
        ...[microseconds(firstSeenAt), microseconds(lastNewAt)],
      ].join(' '),
    )
    .sort()

async function assertAnswers(asked: Question, expected: EdgeAnswer): Promise<void> {
  const found = await pages(asked)
  assert.deepEqual(texts(found.edges), texts(expected.edges))
  if (expected.unstamped !== null) assert.equal(found.unstamped, expected.unstamped, 'unstamped')
  const isByFlows = asked.query.some(([name, value]) => name === 'order' && value === 'flows')
  const keys = found.edges.map((edge) => (isByFlows ? BigInt(edge.flows) : microseconds(edge.lastNewAt)))
  for (const [i, key] of keys.entries()) assert.ok(i === 0 || key <= keys[i - 1]!, 'order')
}

test('any filters and groups of edges answer what the contract says, in pages of any size', {
  timeout: 1_800_000,
}, async () => {
  const seen = { some: 0, merged: 0, both: 0, unknown: 0, byPods: 0 }
  await fc.assert(
    fc.asyncProperty(
      edgeFlows,
      story,
      history,
      backends,
      fc.array(question, { minLength: QUESTIONS, maxLength: QUESTIONS }),
      fc.array(list, { minLength: LISTS, maxLength: LISTS }),
      async (sent, told, pods, services, questions, lists) => {
        const store = await hold(sent, told, pods, services, async () => {
          for (const { query, sizes } of lists) if (await assertSameByPods(app, query, sizes)) seen.byPods++
        })
        for (const asked of questions) {
          const expected = edgesOf(store, asked.query)
          if (expected.edges.length > 1) seen.some++
          if (expected.edges.some((edge) => edge.flows > 1 && edge.pods > 1)) seen.merged++
          if (expected.edges.some(({ seenBy }) => seenBy.length > 1)) seen.both++
          if (expected.unstamped) seen.unknown++
          try {
            await assertAnswers(asked, expected)
          } catch (cause) {
            throw new Error(`${pathOf(asked.query)} with limit ${asked.limit}: ${(cause as Error).message}`, { cause })
          }
        }
      },
    ),
    { numRuns: STORES, includeErrorInReport: true },
  )
  assert.ok(
    Math.min(seen.some, seen.merged, seen.unknown, seen.byPods) > STORES / 4 && seen.both >= depth(0, STORES / 12),
    `too few questions tell flows apart: ${JSON.stringify(seen)}`,
  )
})
