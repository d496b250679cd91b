/**
 * `npm run bench:large`: every read route's latency and every job's pass on 2 million flows, 50 000 pods and 1 million verdicts,
 * beside the same on a tenth of it. Both brokers stand beside each other and are measured in turn. Then retention of a million
 * flows under ingest. Options: `--seconds 3` a phase, `--only name,name`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import type postgres from 'postgres'
import { startEmbedded } from '../../lib/db/embedded/index.ts'
import { openPool } from '../../lib/db/open-pool.ts'
import { migrate } from '../../sql/migrate/index.ts'
import { logTo } from '../support/log.ts'
import { flowBatch, podAddress, podName } from './bodies.ts'
import { type Bench, startBroker } from './broker.ts'
import { get, type Measured, post, run } from './client.ts'
import {
  insertFlows,
  insertVerdicts,
  LARGE,
  load,
  type Scale,
  SERVICES_PER_POD,
  TENTH,
  withoutIndexes,
} from './dataset.ts'

const { values: options } = parseArgs({
  options: { seconds: { type: 'string', default: '3' }, only: { type: 'string' } },
})
const FOR_MS = Number(options.seconds) * 1_000
const only = options.only?.split(',')
const isWanted = (name: string) => !only || only.some((word) => name.includes(word))
const print = (line: string) => process.stdout.write(`${line}\n`)
const log = logTo((level, message, fields) => {
  if (level === 'warn') process.stderr.write(`${message} ${JSON.stringify(fields)}\n`)
})

interface Site {
  scale: Scale
  dataDir: string
  sql: postgres.Sql
  broker: Bench
  stop(): Promise<void>
}

async function open(scale: Scale): Promise<Site> {
  const dataDir = await mkdtemp(join(tmpdir(), 'broker-large-'))
  const server = await startEmbedded({ dataDir, log })
  await migrate({ connection: server.options, log })
  const sql = openPool(server.options, { max: 1, fetch_types: false, connect_timeout: 0, onnotice: () => {} })
  const startedAt = performance.now()
  await load(sql, scale)
  const [size] = await sql`select pg_size_pretty(pg_database_size(current_database())) as size`
  const seconds = Math.round((performance.now() - startedAt) / 1_000)
  print(`${scale.flows} flows, ${scale.pods} pods, ${scale.verdicts} verdicts: ${size!.size}, made in ${seconds} s`)
  const broker = await startBroker({ DATA_DIR: dataDir, JOBS: 'external' })
  return {
    scale,
    dataDir,
    sql,
    broker,
    async stop() {
      await broker.stop()
      await sql.end({ timeout: 1 })
      await server.stop()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** Paths that are to answer as fast on ten times the rows, and those whose answer grows with them. */
const READS: [name: string, path: (i: number, scale: Scale) => string, grows?: true][] = [
  ['GET /pod/name/{name}', (i, { pods }) => `/pod/name/${podName((i * 7_919) % pods)}`],
  ['GET /pod/ip/{ip}', (i, { pods }) => `/pod/ip/${podAddress((i * 7_919) % pods)}`],
  ['GET /pod/ip/{ip}?at=', (i, { pods }) => `/pod/ip/${podAddress((i * 7_919) % pods)}?at=${AT}`],
  ['GET /pod/list/{node}', (i, { pods }) => `/pod/list/node-${i % (pods / 100)}`],
  ['GET /pod/namespaces', () => '/pod/namespaces'],
  ['GET /pod/traffic', () => '/pod/traffic'],
  ['GET /pod/traffic?limit=100', () => '/pod/traffic?limit=100'],
  ['GET /pod/traffic/{name}', (i, { pods }) => `/pod/traffic/${podName((i * 7_919) % pods)}`],
  ['GET /pod/syscalls/{name}', (i, { pods }) => `/pod/syscalls/${podName((i * 7_919) % pods)}`],
  ['GET /svc/ip/{ip}', (i, { pods }) => `/svc/ip/10.250.0.${i % Math.min(250, pods * SERVICES_PER_POD)}`],
  ['GET /audit/verdicts', () => '/audit/verdicts'],
  ['GET /audit/verdicts?policy=', (i) => `/audit/verdicts?policy=policy-${i % 400}`],
  [
    'GET /audit/verdicts?namespace=&verdict=',
    (i) => `/audit/verdicts?namespace=shop-${i % 40}&verdict=WouldDeny&limit=500`,
  ],
  ['GET /version', () => '/version'],
  ['GET /pod/info', () => '/pod/info', true],
  ['GET /svc/info', () => '/svc/info', true],
  ['GET /node/status', () => '/node/status', true],
  ['GET /cluster/environment', () => '/cluster/environment', true],
]
const AT = new Date(Date.now() - 3_600_000).toISOString().slice(0, 19)
const CONNECTIONS = 4
const ROUNDS = 3

async function compareReads(tenth: Site, large: Site): Promise<void> {
  print(`\n| ${'route'.padEnd(42)} | p50 tenth | p50 large | p99 tenth | p99 large | calls/s, large to tenth |`)
  print(`|${'-'.repeat(44)}|----------:|----------:|----------:|----------:|------------------------:|`)
  for (const [name, path, grows] of READS) {
    if (!isWanted(name)) continue
    const rounds: [Measured, Measured][] = []
    for (let round = 0; round < ROUNDS; round++) {
      const measure = ({ broker, scale }: Site) =>
        run({
          port: broker.port,
          connections: grows ? 1 : CONNECTIONS,
          forMs: FOR_MS,
          request: (i) => get(path(i, scale)),
        })
      rounds.push([await measure(tenth), await measure(large)])
    }
    const failed = rounds.flat().reduce((sum, one) => sum + one.failed, 0)
    const median = (pick: (pair: [Measured, Measured]) => number) =>
      rounds.map(pick).sort((a, b) => a - b)[ROUNDS >> 1]!
    const ms = (pick: (pair: [Measured, Measured]) => number) => `${median(pick).toFixed(2)} ms`.padStart(9)
    const ratio = median(([a, b]) => b.calls / b.seconds / (a.calls / a.seconds)).toFixed(2)
    const note = `${ratio}${grows ? ' (ten times the answer)' : ''}${failed > 0 ? ` ${failed} FAILED` : ''}`
    print(
      `| ${name.padEnd(42)} | ${ms(([a]) => a.p50Ms)} | ${ms(([, b]) => b.p50Ms)} | ${ms(([a]) => a.p99Ms)} | ${ms(([, b]) => b.p99Ms)} | ${note} |`,
    )
  }
}

const LONG_AGO = { from: '60 days', to: '40 days' }

/** Rows for each job to work on, as many on both sites. */
const JOBS: [name: string, rows: number, arrange: (site: Site, rows: number) => Promise<unknown>][] = [
  [
    'late-resolve',
    20_000,
    ({ sql }, rows) => sql`
      insert into traffic (uuid, pod_name, pod_ip, pod_port, ip_protocol, traffic_type, traffic_in_out_ip, traffic_in_out_port, decision, time_stamp)
      select 'late-' || n, bench_pod(n % 5000), bench_ip(n % 5000), '0', 'TCP', 'EGRESS', bench_ip((n * 31) % 5000), 'late-' || n, 'ALLOW',
             now() at time zone 'utc' - interval '1 min'
      from generate_series(0, ${rows - 1}::int) n`,
  ],
  [
    'stale-sweep',
    2_000,
    ({ sql }, rows) => sql`
      update pod set time_stamp = now() at time zone 'utc' - interval '1 hour'
      where pod_name in (select pod_name from pod where not is_dead order by pod_name limit ${rows})`,
  ],
  ['audit-retention', 50_000, ({ sql }, rows) => insertVerdicts(sql, rows, LONG_AGO)],
  [
    'dead-pod-retention',
    2_000,
    async ({ sql }, rows) => {
      await sql`
      insert into pod (pod_name, pod_ip, pod_ips, time_stamp, node_name, is_dead)
      select 'dead-' || n, '10.9.' || n / 250 || '.' || n % 250, array['10.9.' || n / 250 || '.' || n % 250],
             now() at time zone 'utc' - interval '60 days', 'node-0', true
      from generate_series(1, ${rows}::int) n`
      await sql`insert into pod_address (ip, pod_name) select pod_ip, pod_name from pod where pod_name like 'dead-%'`
    },
  ],
  ['traffic-retention', 50_000, ({ sql }, rows) => insertFlows(sql, 1_000, rows, LONG_AGO, 'old', 'bench_gone')],
]

interface Pass {
  rows: number
  durationMs: number
  outcome: string
}

/** One pass in a process of its own. */
async function pass({ dataDir }: Site, job: string): Promise<Pass> {
  const env = { ...process.env, DATA_DIR: dataDir, LOG_LEVEL: 'info' }
  const child = spawn(process.execPath, ['dist/jobs/run.js', job], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  let report: Pass | undefined
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.includes('"job pass"')) report = JSON.parse(line)
  })
  const [code] = await once(child, 'exit')
  if (code !== 0 || !report) throw new Error(`${job} ended with ${code}`)
  return report
}

async function compareJobs(tenth: Site, large: Site): Promise<void> {
  print(`\n| ${'job'.padEnd(20)} | nothing to do: tenth | large | with rows: tenth | large | rows |`)
  print(`|${'-'.repeat(22)}|---------------------:|------:|-----------------:|------:|-----:|`)
  for (const [job, rows, arrange] of JOBS) {
    if (!isWanted(job)) continue
    const idle = [await pass(tenth, job), await pass(large, job)]
    for (const site of [tenth, large]) {
      await arrange(site, rows)
      await site.sql.unsafe('vacuum (analyze) pod, traffic, audit_verdict')
    }
    const busy = [await pass(tenth, job), await pass(large, job)]
    const ms = ({ durationMs }: Pass) => `${durationMs} ms`
    print(
      `| ${job.padEnd(20)} | ${idle.map(ms).join(' | ')} | ${busy.map(ms).join(' | ')} | ${busy.map((one) => one.rows).join(', ')} |`,
    )
  }
}

const EXPIRED = 1_000_000
const SLICE_MS = 2_000
const SLICES = 8

/** What ingest loses while a million expired flows go. */
async function retentionUnderIngest(site: Site): Promise<void> {
  const { sql, broker } = site
  await withoutIndexes(sql, 'traffic', () => insertFlows(sql, 10_000, EXPIRED, LONG_AGO, 'expired', 'bench_gone'))
  await sql.unsafe('vacuum (analyze) traffic')
  let batch = 1_000_000
  const ingest = async (forMs: number) => {
    const first = batch
    const { calls, seconds, failed } = await run({
      port: broker.port,
      connections: 8,
      forMs,
      request: (i) => {
        batch = Math.max(batch, first + i + 1)
        return post('/pod/traffic/batch', flowBatch(first + i, LARGE.pods))
      },
    })
    if (failed > 0) throw new Error(`${failed} batches failed`)
    return (calls * 100) / seconds
  }
  /** In slices, like what is measured while a job runs that ends when it ends. */
  const slices = async (isOver: (slice: number) => boolean) => {
    const rates: number[] = []
    while (!isOver(rates.length)) rates.push(await ingest(SLICE_MS))
    return rates.reduce((sum, one) => sum + one, 0) / rates.length
  }
  await slices((n) => n === 2)
  const before = await slices((n) => n === SLICES)
  const deleting = pass(site, 'traffic-retention')
  let isDone = false
  const done = deleting.finally(() => {
    isDone = true
  })
  const mean = await slices(() => isDone)
  const { rows, durationMs } = await done
  const after = await slices((n) => n === SLICES)
  const share = mean / ((before + after) / 2)
  print(`\n${rows} expired flows deleted in ${(durationMs / 1_000).toFixed(1)} s while flows were posted by 8 clients`)
  print(
    `new flows a second: ${Math.round(before)} before, ${Math.round(mean)} meanwhile, ${Math.round(after)} after: ${share.toFixed(2)} (hold 0.8)`,
  )
}

print(
  `Node ${process.version}, ${process.platform}, ${FOR_MS / 1_000} s a phase, ${new Date().toISOString().slice(0, 10)}`,
)
const tenth = await open(TENTH)
const large = await open(LARGE)
try {
  await compareReads(tenth, large)
  await compareJobs(tenth, large)
  if (isWanted('retention-under-ingest')) await retentionUnderIngest(large)
  print(`\nresident memory of the broker: ${Math.round(await large.broker.peakMib())} MiB at its peak (hold 300 MiB)`)
} finally {
  await tenth.stop()
  await large.stop()
}
