/** The estimate of docs/sizing.md, and that the page is what it says. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { JOBS, type Measured, POSTS, readMeasured, type Work } from '../bench/sizing/measured.ts'
import { endsOf, LIMITS, largest, model, postsOf, unitBytes, unitsOf } from '../bench/sizing/model.ts'
import { digits, page, size, wrapped } from '../bench/sizing/page.ts'
import { DEFAULTS, RETENTION_DAYS } from '../bench/sizing/parameters.ts'
import { SMALL, TOPICS, type TopicName, topicOf } from '../bench/sizing/topics.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const measured = readMeasured()

const FREE: Work = { requests: 1, entries: 1, seconds: 1, brokerCpuSecs: 0, postgresCpuSecs: 0, walBytes: 0 }
/** Nothing takes anything, but for what is given. */
const figures = (given: Partial<Measured['posts']>, tables: Measured['tables'] = []): Measured => ({
  ...measured,
  posts: { ...(Object.fromEntries(Object.keys(POSTS).map((name) => [name, FREE])) as Measured['posts']), ...given },
  jobs: Object.fromEntries(Object.keys(JOBS).map((name) => [name, FREE])) as Measured['jobs'],
  tables,
})

test('docs/sizing.md is what the figures say: `npm run docs` writes it', () => {
  assert.equal(read('docs/sizing.md'), page(measured))
})

test('each table of the schema has a topic, or is known to be small', () => {
  const tables = [...read('sql/schema.snapshot.sql').matchAll(/^table public\.(\w+)/gm)].map(([, name]) => name!)
  assert.ok(tables.length > 50)
  const without = tables.filter((table) => topicOf(table) === null && !SMALL.some((one) => table.startsWith(one)))
  assert.deepEqual(without, [])
})

test('a table belongs to the topic with the longest prefix', () => {
  assert.equal(topicOf('compute_minute'), 'compute')
  assert.equal(topicOf('compute_latest'), 'samples')
  assert.equal(topicOf('compute_node'), 'nodes')
  assert.equal(topicOf('flow_edge'), 'edges')
  assert.equal(topicOf('flow_edge_pod'), 'edgePods')
  assert.equal(topicOf('image'), 'images')
  assert.equal(topicOf('image_finding'), 'findings')
  assert.equal(topicOf('schema_migration'), null)
})

test('all posts, jobs and topics were measured', () => {
  const works = Object.entries({ ...measured.posts, ...measured.jobs })
  assert.equal(works.length, Object.keys(POSTS).length + Object.keys(JOBS).length)
  for (const [name, { entries }] of works) assert.ok(entries > 0, name)
  for (const [topic, bytes] of Object.entries(unitBytes(measured))) assert.ok(bytes > 0, topic)
})

test('bytes of a unit are those of all tables of the topic', () => {
  const bytes = unitBytes({
    tables: [
      { table: 'flow_edge', rows: 10, bytes: 2_000 },
      { table: 'flow_edge_cursor', rows: 1, bytes: 1_000 },
      { table: 'flow_edge_pod', rows: 4, bytes: 400 },
    ],
  })
  assert.equal(bytes.edges, 300)
  assert.equal(bytes.edgePods, 100)
  assert.equal(bytes.flows, 0)
})

test('posts of a node', () => {
  const posts = postsOf(1, { ...DEFAULTS, podsPerNode: 60, containersPerPod: 2, podPostSecs: 60, sampleSecs: 5 })
  assert.deepEqual(posts.knownPods, { requestsPerSecond: 1, entriesPerSecond: 1 })
  assert.deepEqual(posts.samples, { requestsPerSecond: 0.2, entriesPerSecond: 24 })
  const flows = postsOf(1, {
    ...DEFAULTS,
    podsPerNode: 1,
    newFlowsPerPodDay: 86_400,
    flowsPerPost: 5,
    verdictsPerNewFlow: 0,
  })
  assert.deepEqual(flows.fewNewFlows, { requestsPerSecond: 0.2, entriesPerSecond: 1 })
  assert.equal(flows.evaluatedFlows.entriesPerSecond, 0)
})

test('units that live, and those that came and went and are kept', () => {
  const p = { ...DEFAULTS, podsPerNode: 10, podChurnPerDay: 0.5, newFlowsPerPodDay: 20 }
  const units = unitsOf(1, p, { ...RETENTION_DAYS, flows: 14, deadPods: 30 })
  assert.deepEqual(units.flows, { perDay: 200, kept: 2_800 })
  assert.deepEqual(units.pods, { perDay: 5, kept: 160 })
  const days = Object.fromEntries(Object.keys(RETENTION_DAYS).map((name) => [name, 0])) as typeof RETENTION_DAYS
  assert.equal(unitsOf(1, p, days).flows.kept, 0)
  assert.equal(unitsOf(1, p, days).pods.kept, 10)
  assert.equal(unitsOf(1, p, days).compute.kept, 0)
})

test('replicas: as many as keep each at its share of a core, and at least two', () => {
  // A pod a second.
  const p = { ...DEFAULTS, podsPerNode: 60, podPostSecs: 60, maxReplicaCpu: 0.5, minReplicas: 2 }
  const replicas = (brokerCpuSecs: number) => model(1, figures({ knownPods: { ...FREE, brokerCpuSecs } }), p).replicas
  assert.equal(replicas(0), 2)
  assert.equal(replicas(1), 2)
  assert.equal(replicas(1.01), 3)
  assert.equal(replicas(1.5), 3)
  assert.equal(model(1, figures({ knownPods: { ...FREE, brokerCpuSecs: 1.5 } }), p).connections, 4 * 32)
})

test('cores of the server: half of them stays free, and there is one', () => {
  const p = { ...DEFAULTS, podsPerNode: 60, podPostSecs: 60, maxPostgresCpu: 0.5 }
  const cores = (postgresCpuSecs: number) =>
    model(1, figures({ knownPods: { ...FREE, postgresCpuSecs } }), p).postgresCores
  assert.equal(cores(0), 1)
  assert.equal(cores(0.5), 1)
  assert.equal(cores(0.51), 2)
})

test('no nodes: nothing but the replicas of a broker', () => {
  const none = model(0, measured)
  assert.equal(none.diskBytes, 0)
  assert.equal(none.requestsPerSecond, 0)
  assert.equal(none.replicas, DEFAULTS.minReplicas)
  assert.equal(none.postgresCores, 1)
})

test('twice the nodes take twice the disk, requests and cores', () => {
  const [one, two] = [model(1_000, measured), model(2_000, measured)]
  for (const key of ['diskBytes', 'diskBytesPerDay', 'requestsPerSecond', 'brokerCores', 'walBytesPerSec'] as const)
    assert.ok(Math.abs(two[key] / one[key] - 2) < 1e-9, key)
})

test('shorter retention takes less of its topics only', () => {
  const long = model(1_000, measured).disk
  const short = model(1_000, measured, DEFAULTS, { ...RETENTION_DAYS, flows: 7, compute: 2 }).disk
  const changed = (Object.keys(TOPICS) as TopicName[]).filter((topic) => short[topic].bytes !== long[topic].bytes)
  assert.deepEqual(changed, ['flows', 'compute'])
  assert.ok(short.flows.bytes < long.flows.bytes)
})

test('the largest number for which something holds', () => {
  assert.equal(
    largest(10, () => true),
    10,
  )
  assert.equal(
    largest(10, () => false),
    0,
  )
  for (let end = 0; end <= 10; end++)
    assert.equal(
      largest(10, (n) => n <= end),
      end,
    )
})

test('one server ends where a limit holds for the last time', () => {
  const ends = endsOf(measured)
  assert.deepEqual(ends.map(({ limit }) => limit).sort(), Object.keys(LIMITS).sort())
  for (const { limit, nodes } of ends) {
    assert.ok(LIMITS[limit](model(nodes, measured)), limit)
    assert.ok(!LIMITS[limit](model(nodes + 1, measured)), limit)
  }
  assert.deepEqual(
    ends.map(({ nodes }) => nodes),
    ends.map(({ nodes }) => nodes).toSorted((a, b) => a - b),
  )
})

test('prose is broken at 120 columns, and tables are not', () => {
  const long = Array.from({ length: 40 }, () => 'word').join(' ')
  const lines = wrapped(`${long}\n\n- ${long}\n- short\n\n| ${long} |`).split('\n')
  assert.deepEqual(
    lines.map(({ length }) => length),
    [119, 79, 0, 116, 86, 7, 0, 203],
  )
  assert.ok(lines[4]!.startsWith('  word'))
})

test('numbers and sizes as the page shows them', () => {
  assert.deepEqual([0, 0.0123, 9.96, 10.4, 123.4, 45_678, 1_234_567].map(digits), [
    ...['0', '0.012', '10', '10', '123', '45 700', '1 230 000'],
  ])
  assert.deepEqual([0, 999, 1_000, 4e12, 1.5e15].map(size), ['0 bytes', '999 bytes', '1 kB', '4 TB', '1.5 PB'])
})
