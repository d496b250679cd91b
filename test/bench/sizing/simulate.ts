/**
 * Ten minutes of 10 000 nodes with one thousandth of the data: the pods of ten nodes, one on each of as many nodes.
 * Posts of nodes themselves come from all of them, as often as in a cluster.
 */
import { openLoop, run, type Steady } from '../client.ts'
import * as bodies from './bodies.ts'
import { busyCores } from './busy-cores.ts'
import { startSite } from './measure.ts'
import type { Measured, PostName, Simulation } from './measured.ts'
import { postsOf, unitBytes } from './model.ts'
import { DEFAULTS, type Parameters } from './parameters.ts'
import { readTables, TOPICS, type TopicName, topicOf } from './topics.ts'

const NODES = 10_000
const DATA_NODES = NODES / 1_000
const REPLICAS = 2
const DAY_SECS = 86_400
const SETUP_CONNECTIONS = 8
/** Agents have a connection each. Here they share some, so many that hardly one waits for another. */
const RATE_PER_CONNECTION = 2
const MIN_CONNECTIONS = 8

/** A pod is a workload of its own, with one container, and alone on its node. */
const PARAMETERS: Parameters = {
  ...DEFAULTS,
  podsPerNode: DEFAULTS.podsPerNode * DEFAULTS.containersPerPod,
  ...{ containersPerPod: 1, podsPerWorkload: 1, verdictsPerNewFlow: 0 },
}
const PODS = DATA_NODES * PARAMETERS.podsPerNode
const nodeName = (i: number) => `node-${i}`

interface Source {
  readonly name: PostName
  readonly requestsPerSecond: number
  readonly entriesPerRequest: number
  /** Requests after which they begin anew. */
  readonly count: number
  readonly request: (i: number) => Buffer
}

function sources(): Source[] {
  /** Of so many in turn, each so often. */
  const each = (name: PostName, count: number, secs: number, request: (i: number) => Buffer): Source => ({
    ...{ name, count, requestsPerSecond: count / secs, entriesPerRequest: 1, request: (i) => request(i % count) },
  })
  const posts = postsOf(DATA_NODES, PARAMETERS)
  const drains = Array.from({ length: NODES }, (_, i) => bodies.drain(nodeName(i)))
  const files = Array.from({ length: NODES }, (_, i) => bodies.nodeFiles(nodeName(i)))
  const flows = Array.from({ length: 40 }, (_, b) => bodies.flows(b, PODS, DEFAULTS.flowsPerPost)).flat()
  const p = PARAMETERS
  return [
    each('knownPods', PODS, p.podPostSecs, (i) => bodies.pod(i, nodeName(i), 1)),
    each('services', Math.ceil(PODS / p.podsPerService), p.servicePostSecs, bodies.service),
    each('nodeFacts', NODES, p.nodeFactsSecs, bodies.nodeFacts),
    each('syscalls', PODS, DAY_SECS / p.syscallPostsPerPodDay, bodies.podSyscalls),
    {
      ...{ name: 'fewNewFlows', requestsPerSecond: posts.fewNewFlows.requestsPerSecond },
      ...{ count: 0, entriesPerRequest: p.flowsPerPost, request: (i) => flows[i % flows.length]! },
    },
    each('samples', PODS, p.sampleSecs, (i) => bodies.sampleOfOne(nodeName(i), i)),
    each('nodeSamples', NODES - PODS, 300, (i) => bodies.nodeSample(nodeName(PODS + i))),
    each('minutes', PODS, p.minuteSecs, (i) => bodies.minuteOfOne(nodeName(i), i)),
    {
      ...{
        name: 'knownExecutables',
        requestsPerSecond: posts.knownExecutables.entriesPerSecond / bodies.REPEATED_FILES,
      },
      ...{ count: 0, entriesPerRequest: bodies.REPEATED_FILES, request: (i) => bodies.repeatedExecutables(i, PODS) },
    },
    each('heartbeats', PODS, p.heartbeatSecs, (i) => bodies.heartbeats(i, 0, 1)),
    {
      ...each(
        'capabilities',
        Math.floor(PODS / bodies.CAPABILITY_CONTAINERS),
        p.capabilityPostSecs,
        bodies.capabilities,
      ),
      entriesPerRequest: bodies.CAPABILITY_CONTAINERS * p.capabilitiesPerContainer,
    },
    each('drains', NODES, p.denialPostSecs, (i) => drains[i]!),
    each('nodeFiles', NODES, p.nodeFilesSecs, (i) => files[i]!),
  ]
}

/** Rows and bytes that are there after so many minutes, from an empty database. */
export function predict(measured: Measured, minutes: number): { rows: number; bytes: number } {
  const posts = postsOf(DATA_NODES, PARAMETERS)
  const flows = posts.fewNewFlows.entriesPerSecond * minutes * 60
  const units: Partial<Record<TopicName, number>> = {
    // So few flows are of an edge each.
    ...{ flows, edges: flows, edgePods: flows, pods: PODS, services: PODS / PARAMETERS.podsPerService, nodes: NODES },
    ...{ executables: PODS * PARAMETERS.executablesPerContainer, watched: PODS, images: PODS, profiles: PODS },
    ...{ capabilities: PODS * PARAMETERS.capabilitiesPerContainer, samples: PODS },
  }
  const bytesOf = unitBytes(measured)
  const { freshMinutes } = measured
  const containerMinutes = PODS * minutes
  let rows = (freshMinutes.rows / freshMinutes.entries) * containerMinutes
  let bytes = (freshMinutes.bytes / freshMinutes.entries) * containerMinutes
  for (const [topic, count] of Object.entries(units) as [TopicName, number][]) {
    const stored = measured.tables.filter(({ table }) => topicOf(table) === topic)
    const counted = stored.find(({ table }) => table === TOPICS[topic].countedBy)
    rows += (count * stored.reduce((sum, one) => sum + one.rows, 0)) / (counted?.rows ?? 1)
    bytes += count * bytesOf[topic]
  }
  return { rows, bytes }
}

/** @param print a line of progress */
export async function simulate(
  measured: Measured,
  minutes: number,
  print: (line: string) => void,
): Promise<Simulation> {
  const load = await busyCores()
  const site = await startSite()
  const brokers = await Promise.all(
    Array.from({ length: REPLICAS }, () => site.broker({ JOBS: 'in-process', TELEMETRY_ENABLED: 'false' })),
  )
  try {
    const ports = brokers.map(({ port }) => port)
    const pids = brokers.map(({ pid }) => pid)
    let failed = 0
    let requests = 0
    const empty = await bytesOfTables(site.sql)
    const setUp = async (bodies: readonly Buffer[]) => {
      const load = { connections: SETUP_CONNECTIONS, forMs: 3_600_000, request: (i: number) => bodies[i] ?? null }
      const measured = await run({ port: ports[0]!, ...load })
      failed += measured.failed
      requests += measured.calls
    }
    const all = sources()
    // Each source once, and all files: what is known from then on is most of what a cluster posts.
    await setUp(Array.from({ length: PODS }, (_, i) => bodies.startedExecutables(i)))
    for (const { count, request } of all) await setUp(Array.from({ length: count }, (_, i) => request(i)))
    print('set up')

    const forMs = minutes * 60_000
    const loadOf = ({ requestsPerSecond, request }: Source): Steady => ({
      ...{ ports, forMs, request, ratePerSecond: requestsPerSecond },
      connections: Math.max(MIN_CONNECTIONS, Math.ceil(requestsPerSecond / RATE_PER_CONNECTION)),
    })
    const results: Simulation['posts'][number][] = []
    let answered = 0
    const used = await site.meter.measure(pids, async () => {
      await Promise.all(
        all.map(async (source) => {
          const one = await openLoop(loadOf(source))
          failed += one.failed
          requests += one.calls
          answered += one.calls
          results.push({ post: source.name, requests: one.calls, p50Ms: one.p50Ms, p95Ms: one.p95Ms, p99Ms: one.p99Ms })
        }),
      )
    })
    await site.sql.unsafe('vacuum (analyze)')
    const tables = await readTables(site.sql)
    const predicted = predict(measured, minutes)
    const coresOf = (value: 'brokerCpuSecs' | 'postgresCpuSecs') =>
      all.reduce((sum, { name, requestsPerSecond, entriesPerRequest }) => {
        const work = measured.posts[name]
        return sum + (requestsPerSecond * entriesPerRequest * work[value]) / work.entries
      }, 0)
    const peaks = await Promise.all(brokers.map((broker) => broker.peakMib()))
    return {
      date: new Date().toISOString().slice(0, 10),
      ...{ nodes: NODES, minutes, replicas: REPLICAS, requests, failed },
      load,
      requestsPerSecond: all.reduce((sum, one) => sum + one.requestsPerSecond, 0),
      answersPerSecond: answered / used.seconds,
      posts: results.sort((a, b) => b.requests - a.requests),
      ...{ brokerCores: used.brokerCpuSecs / used.seconds, postgresCores: used.postgresCpuSecs / used.seconds },
      ...{ predictedBrokerCores: coresOf('brokerCpuSecs'), predictedPostgresCores: coresOf('postgresCpuSecs') },
      peakMib: Math.max(...peaks),
      rows: tables.filter(({ table }) => topicOf(table) !== null).reduce((sum, one) => sum + one.rows, 0),
      bytes: (await bytesOfTables(site.sql)) - empty,
      ...{ predictedRows: predicted.rows, predictedBytes: predicted.bytes },
    }
  } finally {
    for (const broker of brokers) await broker.stop()
    await site.stop()
  }
}

type Sql = Awaited<ReturnType<typeof startSite>>['sql']
async function bytesOfTables(sql: Sql): Promise<number> {
  const [row] = await sql<{ bytes: number }[]>`
    select sum(pg_total_relation_size(relid))::float8 as bytes from pg_stat_user_tables`
  return row!.bytes
}
