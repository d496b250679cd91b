/**
 * `npm run bench:answers`: search, components, coverage, changes, diffs, right-sizing and files from outside the image,
 * with 8 clients on 2 000 workloads and 5 000 images with 500 000 findings, 1.5 million SBOM components and 2 million
 * files that ran, beside the p95 to hold; then ingest of new SBOMs, findings and files, whose rates are for comparison
 * with another checkout. Client, broker and PostgreSQL share the machine. Options: `--workloads`, `--images`,
 * `--findings`, `--components`, `--files`, `--seconds 3` a read, `--data DIR` to keep the database.
 */
import { cpus, loadavg } from 'node:os'
import { gzipSync } from 'node:zlib'
import type postgres from 'postgres'
import { run } from './client.ts'
import { makeDays, seedMinutes } from './profiling-compute-dataset.ts'
import { createRead, print, request } from './reads.ts'
import { pass, SupplyChainBroker, TOKENS } from './supply-chain-broker.ts'
import {
  componentOf,
  earlierImageOf,
  imageDigest,
  NAMESPACES,
  namespaceOf,
  packageName,
  readOptions,
  startWorkloads,
  vulnerabilityOf,
  workloadName,
} from './workloads-data.ts'

const { scale, seconds: secondsOfRead, data } = readOptions()
const SEARCH_P95_MS = 100
const DIFF_P95_MS = 200
const SIZING_P95_MS = 300
const SIZED_PODS = 50
const SENDERS = 3
const SBOMS = 200
const WHOLE_MS = 3_600_000
const SINCE = new Date(Date.now() - 7 * 86_400_000).toISOString()

/** Seven days of minutes of a workload of 50 pods with two containers each, as the job has counted them. */
async function seedUsage(sql: postgres.Sql): Promise<void> {
  const [stored] = await sql<{ any: boolean }[]>`select exists (select from compute_container) as any`
  if (stored!.any) return
  await sql.unsafe(`
    insert into pod (pod_name, pod_ip, pod_namespace, time_stamp, node_name, is_dead, pod_ips, workload_kind,
                     workload_name, host_network, started_at, pod_uid, running_containers, has_owner)
    select 'sized-' || p, '10.9.0.' || p, 'ns-0', now() at time zone 'utc', 'node-1', false, array['10.9.0.' || p],
           'Deployment', 'sized', false, now() at time zone 'utc' - interval '8 days', 'sized-uid-' || p, '{a,b}', true
    from generate_series(1, ${SIZED_PODS}) p`)
  await sql.unsafe(`
    insert into compute_container (container_uid, pod_uid, namespace, pod_name, container, node)
    select 'sized-uid-' || p || '/' || c, 'sized-uid-' || p, 'ns-0', 'sized-' || p, c, 'node-1'
    from generate_series(1, ${SIZED_PODS}) p cross join unnest('{a,b}'::text[]) c`)
  const line = `date_trunc('hour', now() at time zone 'utc' - interval '7 days')`
  await sql.unsafe(
    `update compute_fold
     set folded_until = ${line}, closed_until = ${line}, counted_until = ${line}, count_closed_until = ${line}`,
  )
  await makeDays(sql)
  await seedMinutes(sql, { nodes: 1, containers: 2 * SIZED_PODS, namespaces: 1 })
}

const site = await startWorkloads(scale, data)
const broker = await SupplyChainBroker.start(site.url)
const { port } = broker
const read = createRead({ port, clients: 8, seconds: secondsOfRead })

async function ingest(name: string, bodies: readonly Buffer[], rows: number): Promise<void> {
  const { seconds, failed, p50Ms } = await run({
    ...{ port, connections: SENDERS, forMs: WHOLE_MS, request: (i: number) => bodies[i] ?? null },
  })
  print(`${name}: ${Math.round(rows / seconds)} rows/s, ${failed} failed, p50 ${p50Ms.toFixed(1)} ms`)
}

try {
  const { workloads, images } = scale
  const packages = Math.ceil(scale.components / images)
  print(`${cpus().length} x ${cpus()[0]!.model}, load ${loadavg()[0]!.toFixed(1)}, Node ${process.version}`)
  // Of each container one file ran from a writable layer.
  await site.sql`update runtime_executable set origin = 'writableLayer' where path like '/srv/app-%/bin/tool-0'`
  await seedUsage(site.sql)
  for (const job of ['compute-fold', 'supply-chain-refresh', 'profile-snapshots']) {
    const startedAt = performance.now()
    let outcome: string
    do ({ outcome } = await pass(site.url, job, { PROFILE_SNAPSHOT_TICK_BUDGET_SECS: '3600' }))
    while (outcome === 'capped')
    print(`${job}: ${((performance.now() - startedAt) / 1_000).toFixed(1)} s, ${outcome}`)
  }
  await site.sql.unsafe('vacuum analyze')

  const q = encodeURIComponent
  const imageOf = (i: number) => (i * 7) % images
  const workloadOf = (i: number) => (i * 7) % workloads
  const pathOf = (w: number) => `${namespaceOf(w)}/Deployment/${workloadName(w)}`
  const name = (i: number) => packageName(imageOf(i), i % packages)
  const purl = (i: number) => `pkg:deb/debian/${name(i)}`

  await read('GET /search?q=CVE', (i) => `/search?q=${vulnerabilityOf(imageOf(i), i % 25)}`, SEARCH_P95_MS)
  await read('GET /search?q=purl', (i) => `/search?q=${q(`${purl(i)}@1.${i % packages}`)}`, SEARCH_P95_MS)
  await read('GET /search?q=purl without a version', (i) => `/search?q=${q(purl(i))}`, SEARCH_P95_MS)
  await read('GET /search?q=package', (i) => `/search?q=${name(i)}`, SEARCH_P95_MS)
  await read('GET /search?q=beginning of packages', (i) => `/search?q=package-${imageOf(i) % 30}`, SEARCH_P95_MS)
  await read('GET /search?q=short digest', (i) => `/search?q=${imageDigest(imageOf(i)).slice(0, 71)}`, SEARCH_P95_MS)
  await read('GET /search?q=repository', (i) => `/search?q=team/app-${imageOf(i)}`, SEARCH_P95_MS)
  await read('GET /search?q=workload', (i) => `/search?q=${workloadName(workloadOf(i))}`, SEARCH_P95_MS)
  await read('GET /search?q=address', () => '/search?q=93.184.216.34', SEARCH_P95_MS)
  await read('GET /components?name=', (i) => `/components?name=${name(i)}`, SEARCH_P95_MS)
  await read('GET /components?purl=', (i) => `/components?purl=${q(purl(i))}`, SEARCH_P95_MS)
  await read('GET /components?name=&running=true', (i) => `/components?name=${name(i)}&running=true`, SEARCH_P95_MS)

  await read('GET /coverage', () => '/coverage', WHOLE_MS)
  await read('GET /coverage?namespace=', (i) => `/coverage?namespace=ns-${i % NAMESPACES}`, DIFF_P95_MS)
  await read(
    'GET /images/{digest}/diff/{digest}',
    (i) => `/images/${imageDigest(earlierImageOf(scale, workloadOf(i)))}/diff/${imageDigest(workloadOf(i))}`,
    DIFF_P95_MS,
  )
  await read('GET /workloads/.../diff', (i) => `/workloads/${pathOf(workloadOf(i))}/diff`, DIFF_P95_MS)
  await read('GET /changes?namespace=', (i) => `/changes?namespace=ns-${i % NAMESPACES}&since=${SINCE}`, DIFF_P95_MS)
  await read('GET /runtime/unshipped', () => '/runtime/unshipped', DIFF_P95_MS)
  await read(
    'GET /runtime/unshipped?namespace=',
    (i) => `/runtime/unshipped?namespace=ns-${i % NAMESPACES}`,
    DIFF_P95_MS,
  )
  await read(
    'GET /compute/workloads/...?days=7',
    () => '/compute/workloads/ns-0/Deployment/sized?days=7',
    SIZING_P95_MS,
  )

  const change = `-${Date.now()}`
  const sbomOf = (n: number) => {
    const digest = imageDigest(n)
    const body = {
      ...{ schema_version: 1, source: 'operator-scanner', image: { digest }, scanned_at: new Date().toISOString() },
      ...{ format: 'CycloneDX', spec_version: '1.6' },
      components: Array.from({ length: packages }, (_, i) => componentOf(n, i, change)),
    }
    return request(
      'POST',
      `/images/${digest}/sbom`,
      TOKENS.BROKER_TOKEN_SUPPLYCHAIN,
      gzipSync(JSON.stringify(body)),
      'gzip',
    )
  }
  const sboms = Array.from({ length: SBOMS }, (_, n) => sbomOf((n * 11) % images))
  await ingest('POST /images/{digest}/sbom, new', sboms, SBOMS * packages)
  await ingest('POST /images/{digest}/sbom, unchanged', sboms, SBOMS * packages)
} finally {
  await broker.stop()
  await site.stop()
}
