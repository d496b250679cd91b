/** What the profiling benchmark reads, seeded by SQL: posting it would take longer than measuring it. */
import type postgres from 'postgres'

export interface Scale {
  readonly workloads: number
  readonly podsPerWorkload: number
  readonly nodes: number
  readonly filesPerNode: number
  readonly resources: number
  readonly denials: number
}

export const FULL: Scale = {
  workloads: 5_000,
  podsPerWorkload: 10,
  nodes: 300,
  filesPerNode: 3_000,
  resources: 3_000,
  denials: 100_000,
}

export const PROFILE_DIR = 'kguardian'
const NAMESPACES = 60
/** Of so many names a workload has so many. */
const NAMES = 350
const NAMES_PER_WORKLOAD = 200
/** Workloads with denials; each has as many rows. */
const DENIED_PART = 4

/** The path of workload `i`. */
export const profilePath = (i: number) => `/seccomp/profiles/ns-${i % NAMESPACES}/Deployment/web-${i}`

/** Workloads with their pods, a custom resource for the first of them: a third as observed, a third with less, a third with other names. */
export async function seedWorkloads(
  sql: postgres.Sql,
  { workloads, podsPerWorkload, resources, denials }: Scale,
): Promise<void> {
  await sql`
    insert into workload_syscalls (pod_namespace, workload_kind, workload_name, syscalls, arches, hash, syscall_count, updated_at)
    select 'ns-' || n % ${NAMESPACES}::int, 'Deployment', 'web-' || n, u.names, '{x86_64}', substr(md5(u.names), 1, 16), u.count,
           now() at time zone 'utc' - n * interval '1 second'
    from generate_series(0, ${workloads - 1}::int) n
    cross join lateral (
      select string_agg('call_' || lpad(i::text, 4, '0'), ',' order by i) as names, count(*) as count
      from generate_series(1, ${NAMES}::int) i
      where (i * 131 + n * 17) % ${NAMES}::int < ${NAMES_PER_WORKLOAD}::int) u`
  await sql`
    insert into pod (pod_name, pod_ip, pod_namespace, pod_obj, time_stamp, node_name, is_dead, pod_ips, started_at, workload_kind, workload_name,
                     capture_level)
    select 'web-' || n || '-' || md5(p::text), '10.0.0.1', 'ns-' || n % ${NAMESPACES}::int,
           json_build_object('spec', (select string_agg(md5((n * 100 + p * 50 + i)::text), '') from generate_series(1, 40) i)),
           now() at time zone 'utc', 'node-' || (n + p) % 300, p > 8, '{10.0.0.1}', now() at time zone 'utc', 'Deployment', 'web-' || n,
           case (n + p) % 11 when 0 then 'low' when 1 then null else 'full' end
    from generate_series(0, ${workloads - 1}::int) n, generate_series(1, ${podsPerWorkload}::int) p`
  await sql`
    insert into pod_syscalls (pod_name, pod_namespace, syscalls, arch, time_stamp)
    select p.pod_name, p.pod_namespace, w.syscalls, 'x86_64', p.time_stamp
    from pod p
    join workload_syscalls w using (pod_namespace, workload_kind, workload_name)`
  await sql`
    insert into seccomp_cr (namespace, name, default_action, architectures, syscalls, syscall_count, workload_kind, workload_name, hash, ready, total,
                            state, updated_at)
    select w.pod_namespace, 'deployment-' || w.workload_name, 'SCMP_ACT_ERRNO', '{SCMP_ARCH_X86_64}',
           case n % 3 when 0 then w.syscalls when 1 then substr(w.syscalls, 11) else replace(w.syscalls, 'call_01', 'other_01') end,
           w.syscall_count - (n % 3 = 1)::int, w.workload_kind, w.workload_name, md5(n::text), 300, 300, 'Ready', now() at time zone 'utc'
    from generate_series(0, ${resources - 1}::int) n
    join workload_syscalls w on w.pod_namespace = 'ns-' || n % ${NAMESPACES}::int and w.workload_name = 'web-' || n`
  await sql`
    insert into seccomp_denial (pod_uid, pod_name, pod_namespace, workload_kind, workload_name, node_name, syscall, action, count, first_seen, last_seen)
    select 'uid-' || n, 'pod-' || n, 'ns-' || w % ${NAMESPACES}::int, 'Deployment', 'web-' || w, 'node-1',
           'call_' || lpad((n % 90)::text, 4, '0'), case n % 2 when 0 then 'SCMP_ACT_LOG' else 'SCMP_ACT_ERRNO' end, n,
           now() at time zone 'utc', now() at time zone 'utc'
    from (select n, n % ${Math.ceil(workloads / DENIED_PART)}::int * ${DENIED_PART}::int as w from generate_series(1, ${denials}::int) n) d`
}

/** All nodes live, each with one of so many sets of files. */
export async function seedNodes(sql: postgres.Sql, { nodes, filesPerNode }: Scale, sets: number): Promise<void> {
  await sql`truncate seccomp_node, seccomp_file, seccomp_file_set, seccomp_denial_node`
  await sql`insert into seccomp_file_set select sha256(n::text::bytea) from generate_series(1, ${sets}::int) n`
  // Sets differ in the hash of a file in a hundred.
  await sql`
    insert into seccomp_file (path, file_set_id, hash)
    select ${`${PROFILE_DIR}/`} || 'ns-' || f % ${NAMESPACES}::int || '/deployment-web-' || f || '.json', sha256(n::text::bytea),
           md5(case f % 100 when 0 then n || '/' || f else f::text end)
    from generate_series(1, ${sets}::int) n, generate_series(0, ${filesPerNode - 1}::int) f`
  await sql`
    insert into seccomp_node (node_name, file_set_id, updated_at)
    select 'node-' || n, sha256((1 + n % ${sets}::int)::text::bytea), now() at time zone 'utc' from generate_series(0, ${nodes - 1}::int) n`
  await sql`
    insert into seccomp_denial_node (node_name, capturing, interval_seconds, posts, updated_at)
    select 'node-' || n, true, 10, '{}', now() at time zone 'utc' from generate_series(0, ${nodes - 1}::int) n`
  await sql.unsafe('vacuum analyze')
}
