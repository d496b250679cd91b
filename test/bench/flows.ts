/**
 * `npm run bench:flows`: `GET /flows` and `GET /flows/edges` on 50 nodes, 2 000 workloads and 10 million flows over
 * 40 000 edges, filter by filter, with 8 clients; then an export. Options: `--flows 10000000`, `--seconds 3` a filter,
 * `--only WORDS` (repeatable), `--data DIR` to keep the database.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startEmbedded } from '../../lib/db/embedded/index.ts'
import { openPool } from '../../lib/db/open-pool.ts'
import { migrate } from '../../sql/migrate/index.ts'
import { noLog } from '../support/log.ts'
import { startBroker } from './broker.ts'
import { get, run } from './client.ts'
import { withoutIndexes } from './dataset.ts'

const { values: options } = parseArgs({
  options: {
    ...{ flows: { type: 'string', default: '10000000' }, seconds: { type: 'string', default: '3' } },
    ...{ only: { type: 'string', multiple: true }, data: { type: 'string' } },
  },
})
const FLOWS = Number(options.flows)
const CLIENTS = 8
const P95_MS = 50
const EDGES_P95_MS = 200
const print = (line: string) => process.stdout.write(`${line}\n`)

/** The flows of an edge are those of 5 times 5 pods, which are replaced again and again. */
const EDGES = 40_000
const GENERATIONS = Math.ceil(FLOWS / EDGES / 25)
const NEWEST = GENERATIONS - 1
const WORKLOADS = 2_000

/** Five pods a workload, 40 namespaces; of the 20 edges of a workload 14 are to workloads, 2 to services, 4 go out. */
const DATA = [
  `create function bench_ip(generation int, pod int) returns text language sql immutable
   as $$ select '10.' || generation || '.' || pod / 256 || '.' || pod % 256 $$`,
  `create function bench_pod(generation int, pod int) returns text language sql immutable
   as $$ select 'app-' || pod / 5 || '-' || pod % 5 || '-' || generation $$`,
  `insert into pod (pod_name, pod_ip, pod_namespace, time_stamp, node_name, is_dead, pod_ips, workload_kind,
                    workload_name, host_network, started_at, pod_uid)
   select bench_pod(${NEWEST}, n), bench_ip(${NEWEST}, n), 'ns-' || n / 5 % 40, now() at time zone 'utc',
          'node-' || n % 50, false, array[bench_ip(${NEWEST}, n)], 'Deployment', 'app-' || n / 5, false, '2020-01-01',
          'uid-' || n
   from generate_series(0, ${5 * WORKLOADS - 1}) n`,
  'insert into pod_address (ip, pod_name) select pod_ip, pod_name from pod',
  `insert into pod_labels (pod_namespace, pod_name, since, labels, node_name)
   select 'ns-' || n / 5 % 40, bench_pod(g, n), '2020-01-01',
          json_build_object('app', 'app-' || n / 5, 'tier', 'tier-' || n % 10)::jsonb, 'node-' || n % 50
   from generate_series(0, ${NEWEST}) g, generate_series(0, ${5 * WORKLOADS - 1}) n`,
  `insert into service (svc_ip, svc_name, svc_namespace, time_stamp)
   select '10.96.' || n / 256 || '.' || n % 256, 'app-' || n * 4, 'ns-' || n * 4 % 40,
          now() at time zone 'utc'
   from generate_series(0, 499) n`,
  `insert into traffic (uuid, pod_name, pod_namespace, pod_ip, pod_port, ip_protocol, traffic_type, traffic_in_out_ip,
                        traffic_in_out_port, decision, time_stamp, peer_kind, peer_namespace, peer_name, peer_uid,
                        peer_workload_kind, peer_workload_name, peer_resolved_at, pod_workload_kind,
                        pod_workload_name, tx)
   select gen_random_uuid()::text, bench_pod(f.g, f.w * 5 + f.k % 5), 'ns-' || f.w % 40,
          bench_ip(f.g, f.w * 5 + f.k % 5),
          case when f.n < 16 then '0' else f.k::text end,
          case when f.n = 13 then 'UDP' else 'TCP' end, 'EGRESS',
          case when f.n < 14 then bench_ip(f.g, f.v * 5 + f.q)
               when f.n < 16 then '10.96.' || f.v % 500 / 256 || '.' || f.v % 500 % 256
               else '52.' || f.v % 200 || '.' || f.e % 250 || '.' || f.n end,
          case when f.n < 4 then 443 when f.n < 8 then 8080 when f.n = 8 then 5432 else 1024 + f.e % 3000 end,
          case when f.e % 97 = 0 then 'DROP' else 'ALLOW' end,
          now() at time zone 'utc' - (${FLOWS} - f.i) * (interval '30 days' / ${FLOWS}),
          case when f.n < 14 then 'pod' when f.n < 16 then 'service' end,
          case when f.n < 14 then 'ns-' || f.v % 40 when f.n < 16 then 'ns-' || f.v % 500 * 4 % 40 end,
          case when f.n < 14 then bench_pod(f.g, f.v * 5 + f.q) when f.n < 16 then 'app-' || f.v % 500 * 4 end, null,
          case when f.n < 14 then 'Deployment' end, case when f.n < 14 then 'app-' || f.v end,
          case when f.n < 16 then now() at time zone 'utc' end, 'Deployment', 'app-' || f.w, null
   from (select i, k, e, n, e / 20 as w, (e / 20 * 7 + n * 131) % ${WORKLOADS} as v, k / 5 % 5 as q,
                case when n between 14 and 15 then k / 5 else k / 25 end as g
         from generate_series(0, ${FLOWS - 1}) i,
              lateral (select i / ${EDGES} as k, ((i::bigint * 7919) % ${EDGES})::int as e) x,
              lateral (select e % 20 as n) y) f`,
]

const FILTERS = [
  '',
  'namespace=ns-7',
  'from_namespace=ns-7',
  'to_namespace=ns-7',
  'workload=ns-7/app-47',
  'from_workload=ns-7/Deployment/app-47',
  'to_workload=ns-7/Deployment/app-47',
  'pod=ns-7/app-47-1-0',
  'to_pod=ns-7/app-47-1-0',
  'pod=ns-7/app-47-*',
  'service=ns-8/app-8',
  'ip=10.1.1.3',
  'to_ip=52.10.0.0/16',
  'to_ip=52.10.12.3',
  'label=app=app-47',
  'label=tier=tier-3',
  'node=node-17',
  'from_node=node-17',
  'port=5432',
  'port=443',
  'port=2000-2010',
  'protocol=UDP',
  'verdict=DROP',
  'peer=external',
  'public=true',
  'from_namespace=ns-7&to_namespace=ns-8',
  'from_namespace=ns-7&port=5432',
  'namespace=ns-7&verdict=DROP',
  'from_workload=ns-7/app-47&to_workload=ns-1/app-1',
  'since=7d&until=6d',
  'since=1h',
]

const EDGE_QUERIES = [
  '',
  'since=30d',
  'since=30d&limit=20000',
  'group=namespace&since=30d',
  'group=namespace&since=30d&cidr=8',
  'group=service',
  'cidr=16',
  'order=flows',
  'from_workload=ns-7/app-47',
  'to_workload=ns-7/app-47',
  'namespace=ns-7',
  'peer=external',
  'verdict=DROP',
  'label=app=app-47&since=3d',
]

const dataDir = options.data ?? mkdtempSync(join(tmpdir(), 'broker-flows-'))
const isMade = existsSync(join(dataDir, 'made'))
const server = await startEmbedded({ dataDir, log: noLog })
process.once('exit', () => options.data ?? rmSync(dataDir, { recursive: true, force: true }))
await migrate({ connection: server.options, log: noLog })
const sql = openPool(server.options, { max: 1, fetch_types: false, connect_timeout: 0, onnotice: () => {} })
const [stored] = await sql<{ any: boolean }[]>`select exists (select from traffic) as any`
if (!isMade && !stored!.any) {
  const startedAt = performance.now()
  for (const text of DATA.slice(0, -1)) await sql.unsafe(text)
  await withoutIndexes(sql, 'traffic', async () => void (await sql.unsafe(DATA.at(-1)!)))
  await sql.unsafe('vacuum analyze')
  print(`made in ${Math.round((performance.now() - startedAt) / 1_000)} s`)
}
await sql`update flow_edge_cursor set time_stamp = '-infinity', uuid = '' where next_tx = '0'`
const startedAt = performance.now()
const counted = spawnSync(process.execPath, ['dist/jobs/run.js', 'flow-edges'], {
  env: { ...process.env, DATA_DIR: dataDir, JOBS: 'external' },
  encoding: 'utf8',
})
const [edges] = await sql<{ edges: number; pods: number; flows: number }[]>`
  select (select count(*)::int from flow_edge) as edges, (select count(*)::int from flow_edge_pod) as pods,
         (select sum(flows)::float8 from flow_edge) as flows`
const countedSecs = Math.round((performance.now() - startedAt) / 1_000)
print(`${JSON.stringify(edges)} counted in ${countedSecs} s, exit ${counted.status}`)
await sql.unsafe('vacuum analyze')
const broker = await startBroker({ DATA_DIR: dataDir, JOBS: 'external', LOG_LEVEL: 'info' })

print(`${FLOWS} flows; pages of 1 000, ${CLIENTS} clients; p95 at most ${P95_MS} ms`)
const paths: [path: string, p95Ms: number][] = [
  ...EDGE_QUERIES.map(
    (query) => [`/flows/edges?${query}`, query.includes('namespace&') ? P95_MS : EDGES_P95_MS] as [string, number],
  ),
  ...FILTERS.map((filter) => [`/flows?${filter}`, P95_MS] as [string, number]),
]
for (const [path, p95Ms] of paths) {
  if (options.only && !options.only.some((word) => path.includes(word))) continue
  const once = await run({ port: broker.port, connections: 1, forMs: 1, request: () => get(path) })
  const { calls, failed, slowerThan, p50Ms, p99Ms } = await run({
    ...{ port: broker.port, connections: CLIENTS, forMs: Number(options.seconds) * 1_000 },
    request: () => get(path),
  })
  const within = slowerThan(p95Ms) <= 0.05 * calls
  const ms = (value: number) => value.toFixed(1).padStart(8)
  print(
    `${path.padEnd(62)} one ${ms(once.p50Ms)} ms  p50 ${ms(p50Ms)}  p99 ${ms(p99Ms)} ms ` +
      `${String(calls).padStart(6)} calls ${failed > 0 ? `${failed} FAILED ` : ''}${within ? 'held' : 'SLOW'}`,
  )
}

for (const accept of ['application/x-ndjson', 'text/csv']) {
  if (options.only && !options.only.includes('export')) continue
  const before = await broker.residentMib()
  const startedAt = performance.now()
  let bytes = 0
  let lines = 0
  await new Promise<void>((resolve, reject) => {
    http.get({ port: broker.port, path: '/flows', headers: { accept } }, (answer) => {
      answer.on('data', (part: Buffer) => {
        bytes += part.length
        for (const byte of part) if (byte === 0x0a) lines++
      })
      answer.once('end', resolve).once('error', reject)
    })
  })
  const seconds = (performance.now() - startedAt) / 1_000
  print(
    `export as ${accept}: ${lines} lines, ${Math.round(bytes / 2 ** 20)} MiB, ` +
      `${Math.round(lines / seconds)} a second, ${Math.round((await broker.peakMib()) - before)} MiB more at the most`,
  )
}
await broker.stop()
await sql.end({ timeout: 1 })
await server.stop()
process.exit(0)
