/** What the benchmark of the runtime inventory reads, seeded by SQL. */
import type postgres from 'postgres'

/** Of `scale` 1 these are 2 million rows; it is the workloads that grow with it. */
const WORKLOADS = 2_000
const APP_PATHS = 850
const SIDECAR_PATHS = 150
/** Each second workload runs an image of its own; of the others so many share one. */
const SHARING = 100
/** So many workloads run the same sidecar. */
const SIDECARS = 500
/** The workloads at the end run one large image, each a part of it of its own that overlaps with those of others. */
const LARGE = 100
const LARGE_STEP = 200

export const NAMESPACES = 50
const INSTANCES = 3

export const workloadsOf = (scale: number) => Math.max(LARGE * 2, Math.round(WORKLOADS * scale))
/** The path of workload `i`. */
export const workloadPath = (i: number) => `/workloads/ns-${i % NAMESPACES}/Deployment/web-${i}/runtime`

const imageOf = (name: string) => `sha256:${name.padStart(64, '0')}`
export const IMAGES = {
  /** 100 workloads run the same paths of it. */
  shared: imageOf('a0'),
  /** 500 workloads. */
  sidecar: imageOf('b0'),
  /** 20 650 paths, each of them run by up to 5 workloads. */
  large: imageOf('c'),
}
/** The path of the large image at such a part of its list. */
export const largePath = (part: number) => pathAt(Math.floor(((LARGE - 1) * LARGE_STEP + APP_PATHS) * part))
const pathAt = (i: number) =>
  `/usr/lib/x86_64-linux-gnu/package-${String(i).padStart(6, '0')}/libexample-${i}.so.${i % 10}.${i % 7}.0`

/** Each of `scale` x 2 000 workloads runs 1 000 files, watched in all its instances. */
export async function seedRuntime(sql: postgres.Sql, scale: number): Promise<number> {
  const workloads = workloadsOf(scale)
  const rows = (container: string, image: string, paths: number, from: string) => sql`
    insert into runtime_executable (cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, kind, path, path_hash,
                                    path_complete, source, origin, last_pod_name, first_seen, last_seen)
    select 'primary', 'ns-' || n % ${NAMESPACES}::int, 'Deployment', 'web-' || n, ${container}, ${sql.unsafe(image)},
           case when p.i % 3 = 0 then 'exec' else 'lib' end, p.path, sha256(convert_to(p.path, 'UTF8')), true, 'ebpf',
           case when p.i % 97 = 0 then 'writableLayer' else 'image' end, 'web-' || n || '-x',
           now() at time zone 'utc' - interval '9 days', now() at time zone 'utc' - (p.i % 3600) * interval '1 second'
    from generate_series(0, ${workloads - 1}::int) n
    cross join lateral (
      select i, '/usr/lib/x86_64-linux-gnu/package-' || lpad(i::text, 6, '0') || '/libexample-' || i || '.so.' || i % 10 || '.' || i % 7 || '.0' as path
      from generate_series(${sql.unsafe(from)}, ${sql.unsafe(from)} + ${paths - 1}::int) i) p`
  const digest = (hex: string) => `'sha256:' || lpad(${hex}, 64, '0')`
  const large = `n >= ${workloads - LARGE}`
  const app = `case when ${large} then '${IMAGES.large}'
                    when n % 2 = 0 then ${digest(`'d' || to_hex(n)`)}
                    else ${digest(`'a' || n / ${2 * SHARING}`)} end`
  const sidecar = digest(`'b' || n / ${SIDECARS}`)
  await rows('app', app, APP_PATHS, `case when ${large} then (n - ${workloads - LARGE}) * ${LARGE_STEP} else 0 end`)
  await rows('proxy', sidecar, SIDECAR_PATHS, '0')
  await sql`
    insert into runtime_coverage (cluster_id, container_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, pod_name, node_name,
                                  mode, exec_probe, lib_probe, start_mode, tracking_since, covered_since, last_heartbeat, heartbeat_secs, gaps,
                                  events_dropped, unsent, incomplete, ended)
    select 'primary', md5(n || c.name || i), 'ns-' || n % ${NAMESPACES}::int, 'Deployment', 'web-' || n, c.name, c.image, 'web-' || n || '-' || i,
           'node-' || (n + i) % 300, 'full', true, true, 'start', t.since, t.since, now() at time zone 'utc', 300, 0, 0, 0, false, false
    from generate_series(0, ${workloads - 1}::int) n
    cross join generate_series(1, ${INSTANCES}::int) i
    cross join lateral (values ('app', ${sql.unsafe(app)}), ('proxy', ${sql.unsafe(sidecar)})) c(name, image)
    cross join (values (now() at time zone 'utc' - interval '9 days')) t(since)`
  await sql`
    insert into pod (pod_name, pod_ip, pod_namespace, pod_obj, time_stamp, node_name, is_dead, pod_ips, started_at, workload_kind, workload_name,
                     running_containers)
    select 'web-' || n || '-' || i, '10.0.0.1', 'ns-' || n % ${NAMESPACES}::int, '{}', now() at time zone 'utc', 'node-' || (n + i) % 300, false,
           '{10.0.0.1}', now() at time zone 'utc', 'Deployment', 'web-' || n, '{app,proxy}'
    from generate_series(0, ${workloads - 1}::int) n, generate_series(1, ${INSTANCES}::int) i
    on conflict do nothing`
  await sql.unsafe('vacuum analyze runtime_executable, runtime_coverage, pod')
  return workloads * (APP_PATHS + SIDECAR_PATHS)
}
