/** Fills a database through the routes of a broker, runs its jobs, and measures both. */
import { mkdtempSync, rmSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { cpus, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { jobs } from '../../../jobs/index.ts'
import { startEmbedded } from '../../../lib/db/embedded/index.ts'
import { openPool } from '../../../lib/db/open-pool.ts'
import { migrate } from '../../../sql/migrate/index.ts'
import { noLog } from '../../support/log.ts'
import { type Bench, startBroker } from '../broker.ts'
import { read, run } from '../client.ts'
import { CONTAINERS_PER_NODE, datasetOf } from '../profiling-compute-dataset.ts'
import { Posts, samplesOf } from '../profiling-compute-posts.ts'
import { pass, TOKENS } from '../supply-chain-broker.ts'
import { at } from '../supply-chain-dataset.ts'
import * as bodies from './bodies.ts'
import { busyCores } from './busy-cores.ts'
import type { JobName, Measured, PostName, Work } from './measured.ts'
import { Meter, type Used } from './meter.ts'
import { DEFAULTS, RETENTION_DAYS } from './parameters.ts'
import { readTables, topicOf } from './topics.ts'

const CONNECTIONS = 8
const WHOLE_MS = 3_600_000
/** Of posts that change little: the rate is the result. */
const RATE_MS = 4_000

const PODS = 10_000
const SERVICES = 1_000
const NODES = 500
const FLOW_BATCHES = 2_000
const SMALL_FLOW_BATCHES = 300
const EVALUATED_BATCHES = 300
const VERDICTS_PER_FLOW = 4
const EXECUTABLE_WORKLOADS = 1_000
const COVERAGE_NODES = 500
const CAPABILITY_POSTS = 500
const DENIAL_POSTS = 2_000
const SAMPLED = datasetOf(1 / 6)
const MINUTES_PER_DAY = 1_440
const MINUTE_MS = 60_000
const PROFILE_SECS = 15
const POLL_MS = 250

const print = (line: string) => process.stdout.write(`${line}\n`)
const list = <T>(count: number, one: (i: number) => T) => Array.from({ length: count }, (_, i) => one(i))

const NOTHING: Work = {
  ...{ requests: 0, entries: 0, seconds: 0, brokerCpuSecs: 0, postgresCpuSecs: 0, walBytes: 0 },
}
const sum = (a: Work, used: Used, requests: number, entries: number): Work => ({
  requests: a.requests + requests,
  entries: a.entries + entries,
  seconds: a.seconds + used.seconds,
  brokerCpuSecs: a.brokerCpuSecs + used.brokerCpuSecs,
  postgresCpuSecs: a.postgresCpuSecs + used.postgresCpuSecs,
  walBytes: a.walBytes + used.walBytes,
})

/** A fresh database on a server of its own, which goes with `stop`. */
export async function startSite() {
  const dataDir = mkdtempSync(join(tmpdir(), 'broker-sizing-'))
  process.once('exit', () => rmSync(dataDir, { recursive: true, force: true }))
  const server = await startEmbedded({ dataDir, log: noLog })
  await migrate({ connection: server.options, log: noLog })
  const sql = openPool(server.options, { max: 1, fetch_types: false, connect_timeout: 0, onnotice: () => {} })
  return {
    ...{ sql, url: server.url, meter: new Meter(sql, server.pid) },
    broker: (settings: NodeJS.ProcessEnv = {}) =>
      startBroker({ DATABASE_URL: server.url, DATA_DIR: dataDir, JOBS: 'external', LOG_LEVEL: 'info', ...settings }),
    async stop() {
      await sql.end({ timeout: 1 })
      await server.stop()
    },
  }
}
type Site = Awaited<ReturnType<typeof startSite>>

/** Finds the same verdicts of every flow. */
async function startEvaluator() {
  const results = list(VERDICTS_PER_FLOW, (n) => ({
    ...{ policyNamespace: 'shop-1', policyName: `policy-${n}`, policyUID: `uid-of-policy-${n}` },
    ...{ direction: n % 2 === 0 ? 'Egress' : 'Ingress', verdict: n === 0 ? 'WouldDeny' : 'Allow' },
    reason: n === 0 ? 'no rule matched' : '',
  }))
  const answer = JSON.stringify({ results })
  const server = http.createServer((incoming, outgoing) => {
    incoming.resume().on('end', () => {
      outgoing.setHeader('content-type', 'application/json')
      outgoing.end(answer)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

class Measurement {
  readonly posts = {} as Record<PostName, Work>
  readonly jobs = {} as Record<JobName, Work>
  freshMinutes: Measured['freshMinutes'] = { entries: 0, rows: 0, bytes: 0 }
  readonly #site: Site
  readonly #broker: Bench

  constructor(site: Site, broker: Bench) {
    this.#site = site
    this.#broker = broker
  }

  /** Sends requests until there is none left, or for as long. Each has so many entries. */
  async post(
    name: PostName,
    entries: number,
    request: (i: number) => Buffer | null,
    forMs = WHOLE_MS,
    broker = this.#broker,
    settled: () => Promise<unknown> = async () => {},
  ): Promise<void> {
    let calls = 0
    const used = await this.#site.meter.measure([broker.pid], async () => {
      const measured = await run({ port: broker.port, connections: CONNECTIONS, forMs, request })
      if (measured.failed > 0) throw new Error(`${name}: ${measured.failed} of ${measured.calls} posts failed`)
      calls = measured.calls
      await settled()
    })
    this.posts[name] = sum(this.posts[name] ?? NOTHING, used, calls, calls * entries)
  }

  postAll = (name: PostName, entries: number, requests: readonly Buffer[], broker = this.#broker) =>
    this.post(name, entries, (i) => requests[i] ?? null, WHOLE_MS, broker)

  tell(name: PostName | JobName): void {
    const work = this.posts[name as PostName] ?? this.jobs[name as JobName]
    const perThousand = (secs: number) => `${((1_000 * secs) / work.entries).toFixed(3)} s`
    const rate = Math.round(work.entries / work.seconds)
    print(
      `${name.padEnd(22)} ${String(rate).padStart(7)} entries/s for ${work.seconds.toFixed(1)} s; of a thousand: ` +
        `broker ${perThousand(work.brokerCpuSecs)}, PostgreSQL ${perThousand(work.postgresCpuSecs)}; ` +
        `${Math.round(work.walBytes / work.entries)} bytes of log each`,
    )
  }

  /** Passes of jobs whose names begin so, of each until one is whole, or at most so many. */
  async job(name: JobName, entries: () => Promise<number> | number, settings: NodeJS.ProcessEnv = {}, passes = 100) {
    const { url, meter } = this.#site
    const used = await meter.measure([], async () => {
      for (const job of jobs.filter((one) => one.name.startsWith(name)))
        for (let n = 0; n < passes; n++) if ((await pass(url, job.name, settings)).outcome !== 'capped') break
    })
    this.jobs[name] = sum(this.jobs[name] ?? NOTHING, used, 0, await entries())
    this.tell(name)
  }
}

async function postPods(measurement: Measurement): Promise<void> {
  await measurement.postAll(
    'newPods',
    1,
    list(PODS, (i) => bodies.pod(i)),
  )
  const known = list(PODS, (i) => bodies.pod(i))
  await measurement.post('knownPods', 1, (i) => known[i % PODS]!, RATE_MS)
  await measurement.postAll('services', 1, list(SERVICES, bodies.service))
  await measurement.postAll('services', 1, list(SERVICES, bodies.service))
  await measurement.postAll('nodeFacts', 1, list(NODES, bodies.nodeFacts))
  await measurement.postAll('syscalls', 1, list(PODS, bodies.podSyscalls))
  for (const name of ['newPods', 'knownPods', 'services', 'nodeFacts', 'syscalls'] as const) measurement.tell(name)
}

async function postFlows(measurement: Measurement, site: Site): Promise<void> {
  const large = list(FLOW_BATCHES, (b) => bodies.flows(b, PODS)).flat()
  await measurement.postAll('newFlows', 100, large)
  await measurement.post('knownFlows', 100, (i) => large[i % 500]!, RATE_MS)
  const small = list(SMALL_FLOW_BATCHES, (b) => bodies.flows(FLOW_BATCHES + b, PODS, DEFAULTS.flowsPerPost)).flat()
  await measurement.postAll('fewNewFlows', DEFAULTS.flowsPerPost, small)

  const evaluator = await startEvaluator()
  const broker = await site.broker({ EVALUATOR_URL: evaluator.url, AUDIT_QUEUE_CAPACITY: '100000' })
  const first = FLOW_BATCHES + SMALL_FLOW_BATCHES
  const evaluated = list(EVALUATED_BATCHES, (b) => bodies.flows(first + b, PODS)).flat()
  await measurement.post(
    'evaluatedFlows',
    100,
    (i) => evaluated[i] ?? null,
    WHOLE_MS,
    broker,
    () => allEvaluated(broker),
  )
  await broker.stop()
  evaluator.server.close()
  evaluator.server.closeAllConnections()
  for (const name of ['newFlows', 'fewNewFlows', 'knownFlows', 'evaluatedFlows'] as const) measurement.tell(name)
  // Flows whose peer may become known wait to be counted otherwise.
  await measurement.job('flow-edges', () => count(site, 'traffic'), { PEER_LATE_RESOLVE_WINDOW_SECS: '0' })
}

/** Waits until no flow waits for the evaluator. */
async function allEvaluated({ port }: Bench): Promise<void> {
  for (;;) {
    const metrics = await read(port, '/metrics')
    if (/^broker_audit_queue_length 0$/m.test(metrics)) return
    await delay(POLL_MS)
  }
}

const count = async ({ sql }: Site, table: string) => {
  const [row] = await sql<{ rows: number }[]>`select count(*)::float8 as rows from ${sql(table)}`
  return row!.rows
}

/** All that is kept of a node, day by day, then what the jobs make of it. */
async function postCompute(measurement: Measurement, site: Site): Promise<void> {
  const samples = new Posts(samplesOf, SAMPLED)
  await measurement.post('samples', CONTAINERS_PER_NODE, (i) => samples.next(i), RATE_MS)
  measurement.tell('samples')
  await measurement.post('nodeSamples', 1, (i) => bodies.nodeSample(`node-${i % NODES}`), RATE_MS)
  measurement.tell('nodeSamples')
  const now = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS
  const days = RETENTION_DAYS.compute
  const dayMs = MINUTES_PER_DAY * MINUTE_MS
  // With a row of each day the job creates its partition.
  for (let day = days; day >= 1; day--)
    await measurement.postAll('minutes', CONTAINERS_PER_NODE, [bodies.minute(now - day * dayMs)])
  await pass(site.url, 'compute-retention')
  for (let day = days; day >= 1; day--)
    await measurement.postAll(
      'minutes',
      CONTAINERS_PER_NODE,
      list(MINUTES_PER_DAY, (m) => bodies.minute(now - day * dayMs + m * MINUTE_MS)),
    )
  measurement.tell('minutes')
  const history = (await readTables(site.sql)).filter(({ table }) => topicOf(table) === 'compute')
  measurement.freshMinutes = {
    entries: measurement.posts.minutes.entries,
    rows: history.reduce((all, one) => all + one.rows, 0),
    bytes: history.reduce((all, one) => all + one.bytes, 0),
  }
  // A new database packs nothing for an hour.
  await site.sql`update compute_fold set pack_after = '-infinity'`
  await measurement.job('compute-', () => days * MINUTES_PER_DAY * CONTAINERS_PER_NODE)
  // One job deletes what another one has made superfluous.
  await measurement.job('compute-', () => 0)
  // Here all rows came at once; in a cluster new ones take the place of those that are packed or forgotten.
  for (const table of ['compute_minute', 'compute_contention', 'compute_contention_kept'])
    await site.sql.unsafe(`vacuum full ${table}`)
}

async function postRuntime(measurement: Measurement): Promise<void> {
  const { executablesPerContainer } = DEFAULTS
  const started = list(EXECUTABLE_WORKLOADS, bodies.startedExecutables)
  await measurement.postAll('newExecutables', executablesPerContainer, started)
  const repeated = list(5_000, (i) => bodies.repeatedExecutables(i, EXECUTABLE_WORKLOADS))
  await measurement.post('knownExecutables', bodies.REPEATED_FILES, (i) => repeated[i] ?? null, RATE_MS)
  for (const [name, secs] of [
    ['newHeartbeats', 600],
    ['heartbeats', 300],
  ] as const)
    await measurement.postAll(
      name,
      CONTAINERS_PER_NODE,
      list(COVERAGE_NODES, (i) => bodies.heartbeats(i, secs)),
    )
  const capabilities = list(CAPABILITY_POSTS, bodies.capabilities)
  const perPost = bodies.CAPABILITY_CONTAINERS * DEFAULTS.capabilitiesPerContainer
  for (let n = 0; n < 2; n++) await measurement.postAll('capabilities', perPost, capabilities)
  await measurement.postAll('denials', bodies.DENIALS_PER_POST, list(DENIAL_POSTS, bodies.denials))
  const drains = list(NODES, (i) => bodies.drain(`node-${i}`))
  await measurement.post('drains', 1, (i) => drains[i % NODES]!, RATE_MS)
  const files = list(NODES, (i) => bodies.nodeFiles(`node-${i}`))
  await measurement.post('nodeFiles', 1, (i) => files[i % NODES]!, RATE_MS)
  for (const name of [
    ...(['newExecutables', 'knownExecutables', 'newHeartbeats', 'heartbeats', 'capabilities'] as const),
    ...(['denials', 'drains', 'nodeFiles'] as const),
  ])
    measurement.tell(name)
}

async function postScans(measurement: Measurement, site: Site): Promise<void> {
  // Scanners need a token.
  const broker = await site.broker(TOKENS)
  for (const [name, secs] of [
    ['newFindings', -3_600],
    ['knownFindings', -1_800],
  ] as const) {
    const scans = list(bodies.SCANNED_IMAGES, (image) => bodies.findings(image, at(secs))).flat()
    const rows = scans.reduce((all, one) => all + one.rows, 0)
    await measurement.postAll(
      name,
      rows / scans.length,
      scans.map(({ bytes }) => bytes),
      broker,
    )
    measurement.tell(name)
  }
  await measurement.postAll('components', bodies.COMPONENTS, list(bodies.SCANNED_IMAGES, bodies.sbom), broker)
  await broker.stop()
  measurement.tell('components')
  const stored = async () => (await count(site, 'image_finding')) + (await count(site, 'image_component'))
  await measurement.job('supply-chain-refresh', stored)
  await measurement.job(
    'profile-snapshots',
    () => count(site, 'workload_profile_version'),
    { PROFILE_SNAPSHOT_TICK_BUDGET_SECS: String(PROFILE_SECS) },
    1,
  )
}

export async function measure(): Promise<Omit<Measured, 'simulation'>> {
  const now = new Date()
  const load = await busyCores()
  const site = await startSite()
  const broker = await site.broker()
  try {
    const [version] = await site.sql<{ server_version: string }[]>`show server_version`
    const measurement = new Measurement(site, broker)
    await postPods(measurement)
    await postFlows(measurement, site)
    await postCompute(measurement, site)
    await postRuntime(measurement)
    await postScans(measurement, site)
    await site.sql.unsafe('vacuum (analyze)')
    await site.sql.unsafe('checkpoint')
    const tables = await readTables(site.sql)
    for (const { table, rows, bytes } of tables.slice(0, 20))
      print(`${table.padEnd(26)} ${rows} rows of ${Math.round(bytes / rows)} bytes`)
    return {
      date: now.toISOString().slice(0, 10),
      hoursOfDay: now.getUTCHours(),
      machine: {
        cores: cpus().length,
        memoryGib: Math.round(totalmem() / 1_024 ** 3),
        postgres: version!.server_version,
        node: process.versions.node,
        load,
      },
      connections: CONNECTIONS,
      ...{ posts: measurement.posts, jobs: measurement.jobs, freshMinutes: measurement.freshMinutes, tables },
    }
  } finally {
    await broker.stop()
    await site.stop()
  }
}
