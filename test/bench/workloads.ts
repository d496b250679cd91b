/**
 * `npm run bench:workloads`: in-use states and tiers of 2 000 workloads and 5 000 images with 500 000 findings, 1.5
 * million SBOM components and 2 million files that ran, all watched: passes of the job, reads with 8 clients, and
 * ingest, beside the numbers to hold. Rates of ingest are for comparison with another checkout. Client, broker and
 * PostgreSQL share the machine. Options: `--workloads`, `--images`, `--findings`, `--components`, `--files`, `--seconds
 * 3` a read, `--data DIR` to keep the database.
 */
import { cpus, loadavg } from 'node:os'
import { gzipSync } from 'node:zlib'
import { type Measured, run } from './client.ts'
import { createRead, print, request, verdict } from './reads.ts'
import { pass as passOf, refresh, SupplyChainBroker, TOKENS } from './supply-chain-broker.ts'
import {
  findingOf,
  imageDigest,
  NAMESPACES,
  namespaceOf,
  ranPath,
  readOptions,
  startWorkloads,
  vulnerabilityOf,
  workloadName,
} from './workloads-data.ts'

const { scale, seconds: secondsOfRead, data } = readOptions()
const CLIENTS = 8
const P95_MS = 50
const PROFILE_P95_MS = 100
const FIRST_PASS_SECS = 60
const ADDED_SECS = 1
const PASSES = 3
const WHOLE_MS = 3_600_000
/** As many as the component that posts payloads has. */
const SENDERS = 3
const PAYLOADS = 300
const PAYLOAD_FINDINGS = 500
const POSTS = 40
const POST_FILES = 5_000

const whole = (n: number) => Math.round(n).toLocaleString('en').replaceAll(',', ' ')
const seconds = (ms: number) => `${(ms / 1_000).toFixed(2)} s`

const site = await startWorkloads(scale, data)
const broker = await SupplyChainBroker.start(site.url)
const { port } = broker

const post = (path: string, body: unknown) =>
  request('POST', path, TOKENS.BROKER_TOKEN_INGEST, Buffer.from(JSON.stringify(body)))

async function pass(name: string): Promise<number> {
  const { durationMs, rows, batches, outcome } = await refresh(site.url)
  print(`pass, ${name}: ${seconds(durationMs)}, ${outcome}, ${whole(rows)} rows in ${batches} batches`)
  return durationMs
}

async function fastest(name: string): Promise<number> {
  const times: number[] = []
  for (let i = 0; i < PASSES; i++) times.push(await pass(name))
  return Math.min(...times)
}

const at = (ago: number) => new Date(Date.now() - ago * 1_000).toISOString().slice(0, -1)

/** Files of workload `w`, by its first container. */
const entriesOf = (w: number, paths: readonly string[]) =>
  paths.map((path, i) => ({
    ...{ pod_namespace: namespaceOf(w), workload_kind: 'Deployment', workload_name: workloadName(w) },
    ...{ pod_name: `${workloadName(w)}-0`, container_name: 'app', image_digest: imageDigest(w) },
    ...{
      kind: i % 4 === 0 ? 'exec' : 'lib',
      path,
      source: 'ebpf',
      origin: 'image',
      first_seen: at(60),
      last_seen: at(1),
    },
  }))

const measure = createRead({ port, clients: CLIENTS, seconds: secondsOfRead })
const read = (name: string, path: (i: number) => string, p95Ms = P95_MS) => measure(name, path, p95Ms)

async function ingest(name: string, bodies: readonly Buffer[], rows: number): Promise<void> {
  const measured: Measured = await run({
    ...{ port, connections: SENDERS, forMs: WHOLE_MS, request: (i: number) => bodies[i] ?? null },
  })
  print(
    `${name}: ${whole(rows / measured.seconds)} rows/s, ${measured.failed} failed, ` +
      `p50 ${measured.p50Ms.toFixed(1)} ms, p99 ${measured.p99Ms.toFixed(1)} ms`,
  )
}

try {
  const { workloads, images } = scale
  const packages = Math.ceil(scale.components / images)
  print(`${cpus().length} x ${cpus()[0]!.model}, load ${loadavg()[0]!.toFixed(1)}, Node ${process.version}`)
  const [stored] = await site.sql<Record<string, number>[]>`
    select (select count(*)::int from workload_container) as containers, (select count(*)::int from image) as images,
           (select count(*)::int from image_finding) as findings, (select count(*)::int
            from image_component) as components,
           (select count(*)::int from runtime_executable) as files`
  print(JSON.stringify(stored))
  const first = await pass(site.isNew ? 'all is new' : 'the data was kept')
  print(`  of ${FIRST_PASS_SECS} s: ${verdict(first <= 1_000 * FIRST_PASS_SECS)}`)
  if (site.isNew) await site.sql.unsafe('vacuum analyze')
  const idle = await fastest('nothing has changed')
  const changes: number[] = []
  for (let i = 0; i < PASSES; i++) {
    const body = post('/runtime/executables', entriesOf(7 + i, [`${ranPath(7 + i, 2, packages)}.${Date.now()}`]))
    await run({ port, connections: 1, forMs: WHOLE_MS, request: (n) => (n === 0 ? body : null) })
    changes.push(await pass('one container has a new file'))
  }
  const added = Math.min(...changes) - idle
  print(
    `  ${seconds(idle)} without changes, ${seconds(Math.min(...changes))} with one, ${seconds(added)} added of ` +
      `${ADDED_SECS} s: ${verdict(added <= 1_000 * ADDED_SECS)}`,
  )

  const digestOf = (i: number) => imageDigest((i * 7) % images)
  await read('GET /images/{digest}/vulnerabilities', (i) => `/images/${digestOf(i)}/vulnerabilities`)
  await read(
    'GET /images/{digest}/vulnerabilities?limit=500',
    (i) => `/images/${digestOf(i)}/vulnerabilities?limit=500`,
  )
  await read(
    'GET /images/{digest}/vulnerabilities?tier=P0,P1',
    (i) => `/images/${digestOf(i)}/vulnerabilities?tier=P0,P1`,
  )
  await read(
    'GET /images/{digest}/vulnerabilities?in_use=executed,loaded',
    (i) => `/images/${digestOf(i)}/vulnerabilities?in_use=executed,loaded`,
  )
  await read('GET /images/{digest}/sbom', (i) => `/images/${digestOf(i)}/sbom`)
  await read('GET /vulnerabilities', () => '/vulnerabilities')
  await read('GET /vulnerabilities?limit=500', () => '/vulnerabilities?limit=500')
  for (const filter of [
    'tier=P0',
    'tier=Background',
    'in_use=unknown',
    'tier=P2&in_use=loaded',
    'running=true&kev=true',
  ])
    await read(`GET /vulnerabilities?${filter}`, () => `/vulnerabilities?${filter}`)
  await read('GET /vulnerabilities?namespace=', (i) => `/vulnerabilities?namespace=ns-${i % NAMESPACES}`)
  await read(
    'GET /vulnerabilities?namespace=&tier=P0,P1',
    (i) => `/vulnerabilities?namespace=ns-${i % NAMESPACES}&tier=P0,P1`,
  )
  await read(
    'GET /vulnerabilities/{id}/exposure',
    (i) => `/vulnerabilities/${vulnerabilityOf((i * 7) % images, i % 25)}/exposure`,
  )

  const snapshots = await passOf(site.url, 'profile-snapshots', { PROFILE_SNAPSHOT_TICK_BUDGET_SECS: '3600' })
  print(
    `profiles of ${whole(workloads)} workloads computed and stored: ${seconds(snapshots.durationMs)}, ` +
      `${whole(snapshots.rows)} stored, ${snapshots.outcome}`,
  )
  const workloadOf = (i: number) =>
    `${namespaceOf((i * 7) % workloads)}/Deployment/${workloadName((i * 7) % workloads)}`
  await read('GET /workloads', () => '/workloads')
  await read('GET /workloads?limit=500', () => '/workloads?limit=500')
  await read('GET /workloads?namespace=', (i) => `/workloads?namespace=ns-${i % NAMESPACES}`)
  await read('GET /workloads?status=risk&search=9', () => '/workloads?status=risk&search=9')
  await read('GET .../profile', (i) => `/workloads/${workloadOf(i)}/profile`, PROFILE_P95_MS)
  await read('GET .../capabilities', (i) => `/workloads/${workloadOf(i)}/capabilities`)
  await read('GET .../profile/versions', (i) => `/workloads/${workloadOf(i)}/profile/versions`)
  await read('GET .../profile/diff', (i) => `/workloads/${workloadOf(i)}/profile/diff`)
  await read('GET .../export?artifacts=vex', (i) => `/workloads/${workloadOf(i)}/export?artifacts=vex`, WHOLE_MS)

  // Other content than before, also in kept data.
  const change = `-${Date.now()}`
  const payloads = Array.from({ length: PAYLOADS }, (_, n) => {
    const digest = imageDigest((n * 11) % images)
    const body = {
      ...{ schema_version: 1, source: 'db-matcher', image: { digest }, scanned_at: `${at(0)}Z` },
      vulnerabilities: Array.from({ length: PAYLOAD_FINDINGS }, (_, i) => findingOf((n * 11) % images, i, change)),
    }
    const packed = gzipSync(JSON.stringify(body))
    return request('POST', `/images/${digest}/vulnerabilities`, TOKENS.BROKER_TOKEN_SUPPLYCHAIN, packed, 'gzip')
  })
  await ingest('POST /images/{digest}/vulnerabilities, new', payloads, PAYLOADS * PAYLOAD_FINDINGS)
  await ingest('POST /images/{digest}/vulnerabilities, unchanged', payloads, PAYLOADS * PAYLOAD_FINDINGS)
  const posts = Array.from({ length: POSTS }, (_, n) => {
    const paths = Array.from({ length: POST_FILES / 10 }, (_, i) => `${ranPath(n, i, packages)}${change}`)
    return post(
      '/runtime/executables',
      Array.from({ length: 10 }, (_, w) => entriesOf((n * 10 + w) % workloads, paths)).flat(),
    )
  })
  await ingest('POST /runtime/executables, new', posts, POSTS * POST_FILES)
  await ingest('POST /runtime/executables, unchanged', posts, POSTS * POST_FILES)
  await pass('after all that')
  const sizes = await site.sql<{ name: string; size: string }[]>`
    select relname as name, pg_size_pretty(pg_total_relation_size(relid)) as size
    from pg_stat_user_tables order by pg_total_relation_size(relid) desc limit 8`
  print(sizes.map(({ name, size }) => `${name} ${size}`).join(', '))
} finally {
  await broker.stop()
  await site.stop()
}
