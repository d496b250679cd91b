/** The data of the benches of flows: 50 nodes, 2 000 workloads and flows over 40 000 edges, counted. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbedded } from '../../lib/db/embedded/index.ts'
import { openPool } from '../../lib/db/open-pool.ts'
import { migrate } from '../../sql/migrate/index.ts'
import { noLog } from '../support/log.ts'
import { withoutIndexes } from './dataset.ts'

const print = (line: string) => process.stdout.write(`${line}\n`)

/** The flows of an edge are those of 5 times 5 pods, which are replaced again and again. */
const EDGES = 40_000
const COUNTED_AT_ONCE = 50_000
export const WORKLOADS = 2_000
export const PODS = 5 * WORKLOADS
export const NODES = 50
/** Of the pods that live now. */
export const newestGeneration = (flows: number) => Math.ceil(flows / EDGES / 25) - 1

/** Five pods a workload, 40 namespaces; of the 20 edges of a workload 14 are to workloads, 2 to services, 4 go out. */
function dataOf(flows: number): string[] {
  const newest = newestGeneration(flows)
  // A pod has one flow to a service.
  const newestCaller = Math.ceil(flows / EDGES / 5) - 1
  return [
    `create function bench_ip(generation int, pod int) returns text language sql immutable
   as $$ select '10.' || generation || '.' || pod / 256 || '.' || pod % 256 $$`,
    `create function bench_pod(generation int, pod int) returns text language sql immutable
   as $$ select 'app-' || pod / 5 || '-' || pod % 5 || '-' || generation $$`,
    `insert into pod (pod_name, pod_ip, pod_namespace, time_stamp, node_name, is_dead, pod_ips, workload_kind,
                    workload_name, host_network, started_at, pod_uid)
   select bench_pod(${newest}, n), bench_ip(${newest}, n), 'ns-' || n / 5 % 40, now() at time zone 'utc',
          'node-' || n % 50, false, array[bench_ip(${newest}, n)], 'Deployment', 'app-' || n / 5, false, '2020-01-01',
          'uid-' || n
   from generate_series(0, ${5 * WORKLOADS - 1}) n`,
    'insert into pod_address (ip, pod_name) select pod_ip, pod_name from pod',
    `insert into pod_labels (pod_namespace, pod_name, since, labels, node_name)
   select 'ns-' || n / 5 % 40, bench_pod(g, n), '2020-01-01',
          json_build_object('app', 'app-' || n / 5, 'tier', 'tier-' || n % 10)::jsonb, 'node-' || n % 50
   from generate_series(0, ${newestCaller}) g, generate_series(0, ${5 * WORKLOADS - 1}) n`,
    `insert into service (svc_ip, svc_name, svc_namespace, time_stamp, service_spec)
   select '10.96.' || n / 256 || '.' || n % 256, 'app-' || n * 4, 'ns-' || n * 4 % 40,
          now() at time zone 'utc',
          json_build_object('spec', json_build_object(
            'selector', json_build_object('app', 'app-' || n * 4),
            'ports', json_build_array(json_build_object('port', 443, 'targetPort', 8443),
                                      json_build_object('port', 8080))))
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
          case when f.n < 4 or f.n = 14 then 443 when f.n < 8 or f.n = 15 then 8080 when f.n = 8 then 5432 else 1024 + f.e % 3000 end,
          case when f.e % 97 = 0 then 'DROP' else 'ALLOW' end,
          now() at time zone 'utc' - (${flows} - f.i) * (interval '30 days' / ${flows}),
          case when f.n < 14 then 'pod' when f.n < 16 then 'service' end,
          case when f.n < 14 then 'ns-' || f.v % 40 when f.n < 16 then 'ns-' || f.v % 500 * 4 % 40 end,
          case when f.n < 14 then bench_pod(f.g, f.v * 5 + f.q) when f.n < 16 then 'app-' || f.v % 500 * 4 end, null,
          case when f.n < 14 then 'Deployment' end, case when f.n < 14 then 'app-' || f.v end,
          case when f.n < 16 then now() at time zone 'utc' end, 'Deployment', 'app-' || f.w, null
   from (select i, k, e, n, e / 20 as w, (e / 20 * 7 + n * 131) % ${WORKLOADS} as v, k / 5 % 5 as q,
                case when n between 14 and 15 then k / 5 else k / 25 end as g
         from generate_series(0, ${flows - 1}) i,
              lateral (select i / ${EDGES} as k, ((i::bigint * 7919) % ${EDGES})::int as e) x,
              lateral (select e % 20 as n) y) f`,
  ]
}

/** Starts the database in a folder, and makes the data if it has none. */
export async function openFlows(flows: number, dataDir: string) {
  const server = await startEmbedded({ dataDir, log: noLog })
  await migrate({ connection: server.options, log: noLog })
  const sql = openPool(server.options, { max: 1, fetch_types: false, connect_timeout: 0, onnotice: () => {} })
  const [stored] = await sql<{ any: boolean }[]>`select exists (select from traffic) as any`
  if (!stored!.any) {
    const startedAt = performance.now()
    await sql.unsafe("set synchronous_commit = off; set maintenance_work_mem = '1GB'")
    const statements = dataOf(flows)
    for (const text of statements.slice(0, -1)) await sql.unsafe(text)
    await withoutIndexes(sql, 'traffic', async () => void (await sql.unsafe(statements.at(-1)!)))
    await sql.unsafe('vacuum analyze')
    print(`${flows} flows made in ${Math.round((performance.now() - startedAt) / 1_000)} s`)
  }
  return {
    sql,
    stop: async () => {
      await sql.end({ timeout: 1 })
      await server.stop()
    },
  }
}

/**
 * Starts a database with the data and counts its edges; kept in `data` if that is given, and made already. `stop` ends
 * it.
 */
export async function startFlows(flows: number, data: string | undefined) {
  const dataDir = data ?? mkdtempSync(join(tmpdir(), 'broker-flows-'))
  process.once('exit', () => data ?? rmSync(dataDir, { recursive: true, force: true }))
  const { sql, stop } = await openFlows(flows, dataDir)
  await sql`update flow_edge_cursor set time_stamp = '-infinity', uuid = '' where next_tx = '0'`
  const startedAt = performance.now()
  // The job would rest for three quarters of the time.
  for (let isLast = false; !isLast; ) {
    const [step] = await sql<{ is_last: boolean }[]>`select is_last from count_flow_edges(${COUNTED_AT_ONCE}, 0)`
    isLast = step!.is_last
  }
  const [edges] = await sql`
    select (select count(*)::int from flow_edge) as edges, (select count(*)::int from flow_edge_pod) as pairs,
           (select count(*)::int from flow_pod) as pods, (select sum(flows)::float8 from flow_edge) as flows`
  print(`${JSON.stringify(edges)} counted in ${Math.round((performance.now() - startedAt) / 1_000)} s`)
  await sql.unsafe('vacuum analyze')
  return { dataDir, stop }
}
