/** Stored seccomp reports of agents and controllers, for tests of reads. */
import { createHash } from 'node:crypto'
import type postgres from 'postgres'

export interface WorkloadKey {
  namespace: string
  kind: string
  name: string
}

export interface StoredWorkload extends WorkloadKey {
  names: readonly string[]
  arches?: readonly string[]
  /** By default a hash of the names and architectures. */
  hash?: string
  /** Naive UTC. */
  updatedAt?: string
}

export interface StoredPod {
  name: string
  /** Null for a pod without a workload. */
  of: WorkloadKey | null
  level?: string | null
  isDead?: boolean
  hasSyscalls?: boolean
}

export interface StoredResource {
  namespace: string
  name: string
  /** The workload that it refers to, or null. */
  kind: string | null
  workload: string | null
  names?: readonly string[]
  hash?: string
  action?: string
  architectures?: readonly string[]
  ready?: number
  total?: number
  state?: string
  updatedAt?: string
}

export interface StoredNode {
  name: string
  /** Hashes by path. */
  files: Readonly<Record<string, string | null>>
  secondsAgo?: number
}

export interface StoredDenial {
  pod: string
  namespace: string
  kind?: string | null
  workload?: string | null
  syscall: string
  action?: string
  count?: number
  /** Naive UTC. */
  lastSeen?: string
}

export interface StoredWatcher {
  name: string
  capturing?: boolean
  interval?: number | null
  secondsAgo?: number
}

const TIME = '2026-05-01T10:00:00'
const sha256 = (text: string) => createHash('sha256').update(text).digest()

/** Sorted by bytes, without duplicates. */
export const byBytes = (texts: readonly string[]): string[] =>
  [...new Set(texts)].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))

export const hashOf = (names: readonly string[], arches: readonly string[]): string =>
  sha256(`${byBytes(names)}\x1e${byBytes(arches)}`)
    .toString('hex')
    .slice(0, 16)

export async function storeWorkloads(sql: postgres.Sql, workloads: readonly StoredWorkload[]): Promise<void> {
  const rows = workloads.map(({ names, arches = ['x86_64'], ...one }) => ({
    pod_namespace: one.namespace,
    workload_kind: one.kind,
    workload_name: one.name,
    syscalls: byBytes(names).join(','),
    arches: byBytes(arches),
    hash: one.hash ?? hashOf(names, arches),
    syscall_count: byBytes(names).length,
    updated_at: one.updatedAt ?? TIME,
  }))
  await sql`
    insert into workload_syscalls
    select * from json_populate_recordset(null::workload_syscalls, ${JSON.stringify(rows)}::text::json)
    on conflict (pod_namespace, workload_kind, workload_name) do update
      set (syscalls, arches, hash, syscall_count, updated_at)
        = (excluded.syscalls, excluded.arches, excluded.hash, excluded.syscall_count, excluded.updated_at)`
}

export async function storePods(sql: postgres.Sql, pods: readonly StoredPod[]): Promise<void> {
  const rows = pods.map(({ name, of, level = 'full', isDead = false }) => ({
    pod_name: name,
    pod_ip: '10.0.0.1',
    pod_namespace: of?.namespace ?? 'default',
    time_stamp: TIME,
    node_name: 'n',
    is_dead: isDead,
    pod_ips: ['10.0.0.1'],
    workload_kind: of?.kind ?? null,
    workload_name: of?.name ?? null,
    capture_level: level,
  }))
  await sql`insert into pod select * from json_populate_recordset(null::pod, ${JSON.stringify(rows)}::text::json)`
  const posted = rows.filter((_, i) => pods[i]!.hasSyscalls ?? true)
  await sql`
    insert into pod_syscalls (pod_name, pod_namespace, syscalls, arch, time_stamp)
    select p.pod_name, '', 'read', 'x86_64', ${TIME}::text::timestamp
    from json_to_recordset(${JSON.stringify(posted)}::text::json) p(pod_name text)`
  await storeContributions(sql, posted, TIME)
}

/** Stores that pods contributed to the set of their workload, independently of that set. */
export async function storeContributions(
  sql: postgres.Sql,
  pods: readonly {
    pod_name: string
    pod_namespace: string
    workload_kind: string | null
    capture_level: string | null
  }[],
  time: string,
): Promise<void> {
  const rows = pods.filter(({ workload_kind }) => workload_kind !== null)
  await sql`
    insert into syscall_contribution (pod_name, pod_namespace, instance, workload_kind, workload_name, syscalls, arches, capture_level, level_at,
                                      seen_until)
    select p.pod_name, p.pod_namespace, '', p.workload_kind, p.workload_name, 'read', '{x86_64}', p.capture_level, ${time}::text::timestamp,
           ${time}::text::timestamp
    from json_to_recordset(${JSON.stringify(rows)}::text::json) p(
      pod_name text, pod_namespace text, workload_kind text, workload_name text, capture_level text)`
}

export async function storeResources(sql: postgres.Sql, resources: readonly StoredResource[]): Promise<void> {
  const rows = resources.map(({ names = [], ...one }) => ({
    namespace: one.namespace,
    name: one.name,
    default_action: one.action ?? 'SCMP_ACT_ERRNO',
    architectures: one.architectures ?? ['SCMP_ARCH_X86_64'],
    syscalls: byBytes(names).join(','),
    syscall_count: byBytes(names).length,
    workload_kind: one.kind,
    workload_name: one.workload,
    hash: one.hash ?? '',
    ready: one.ready ?? 0,
    total: one.total ?? 0,
    state: one.state ?? 'Pending',
    updated_at: one.updatedAt ?? TIME,
  }))
  await sql`insert into seccomp_cr select * from json_populate_recordset(null::seccomp_cr, ${JSON.stringify(rows)}::text::json)`
}

/** Stores each distinct set of files once. */
export async function storeNodes(sql: postgres.Sql, nodes: readonly StoredNode[]): Promise<void> {
  for (const { name, files, secondsAgo = 1 } of nodes) {
    const id = sha256(JSON.stringify(Object.entries(files).sort()))
    await sql`insert into seccomp_file_set values (${id}) on conflict do nothing`
    await sql`
      insert into seccomp_file (path, file_set_id, hash)
      select f.key, ${id}, f.value from json_each_text(${JSON.stringify(files)}::text::json) f
      on conflict do nothing`
    await sql`
      insert into seccomp_node values (${name}, ${id}, now() at time zone 'utc' - make_interval(secs => ${secondsAgo}))
      on conflict (node_name) do update set file_set_id = excluded.file_set_id, updated_at = excluded.updated_at`
  }
}

let uids = 0

export async function storeDenials(sql: postgres.Sql, denials: readonly StoredDenial[]): Promise<void> {
  const rows = denials.map((one) => ({
    pod_uid: `uid-${uids++}`,
    pod_name: one.pod,
    pod_namespace: one.namespace,
    workload_kind: one.kind ?? null,
    workload_name: one.workload ?? null,
    syscall: one.syscall,
    action: one.action ?? 'SCMP_ACT_LOG',
    count: one.count ?? 1,
    first_seen: TIME,
    last_seen: one.lastSeen ?? TIME,
  }))
  await sql`
    insert into seccomp_denial (pod_uid, pod_name, pod_namespace, workload_kind, workload_name, syscall, action, count, first_seen, last_seen)
    select pod_uid, pod_name, pod_namespace, workload_kind, workload_name, syscall, action, count, first_seen, last_seen
    from json_populate_recordset(null::seccomp_denial, ${JSON.stringify(rows)}::text::json)`
}

/** Stores nodes that reported whether their probe is attached. */
export async function storeWatchers(sql: postgres.Sql, watchers: readonly StoredWatcher[]): Promise<void> {
  for (const { name, capturing = true, interval = 10, secondsAgo = 1 } of watchers)
    await sql`
      insert into seccomp_denial_node values (${name}, ${capturing}, ${interval}, '{}', now() at time zone 'utc' - make_interval(secs => ${secondsAgo}))
      on conflict (node_name) do update
        set (capturing, interval_seconds, updated_at) = (excluded.capturing, excluded.interval_seconds, excluded.updated_at)`
}

export async function forgetSeccomp(sql: postgres.Sql): Promise<void> {
  await sql`
    truncate workload_syscalls, workload_syscalls_seen, pod, pod_address, pod_instance, pod_syscalls, syscall_contribution,
             unattributed_syscalls, seccomp_cr, seccomp_node, seccomp_file, seccomp_file_set, seccomp_denial,
             seccomp_denial_node`
}

export const profilePath = ({ namespace, kind, name }: WorkloadKey): string =>
  `/seccomp/profiles/${[namespace, kind, name].map(encodeURIComponent).join('/')}`
