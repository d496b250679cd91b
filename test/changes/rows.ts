/** Rows of everything that changes are read from, inserted directly. Times are naive UTC or hours before now. */
import type postgres from 'postgres'

/** Hours before now as naive UTC. */
export const hoursAgo = (hours: number, now = Date.now()): string =>
  new Date(now - hours * 3_600_000).toISOString().slice(0, 23)

export interface Container {
  namespace: string
  kind: string
  workload: string
  container: string
  digest: string
  first: string
  last: string
  pod: string | null
  state: string
}

export async function storeContainers(sql: postgres.Sql, rows: readonly Partial<Container>[]): Promise<void> {
  const whole = rows.map((row) => ({
    ...{ namespace: 'shop', kind: 'Deployment', workload: 'web', container: 'app', state: 'running', pod: null },
    ...row,
  }))
  await sql`
    insert into image (digest, tags, digest_kind, first_seen, last_seen)
    select distinct digest, '{}'::text[], 'repo', now() at time zone 'utc', now() at time zone 'utc'
    from json_to_recordset(${JSON.stringify(whole)}::text::json) r(digest text)
    on conflict do nothing`
  await sql`
    insert into workload_container (cluster_id, pod_namespace, workload_kind, workload_name, container_name,
                                    image_digest, container_kind, image_ref, security_context, pod_security,
                                    last_pod_name, state, first_seen, last_seen)
    select 'primary', namespace, kind, workload, container, digest, 'regular', 'registry.test/app:' || left(digest, 12),
           '{}', '{}', pod, state, first, last
    from json_to_recordset(${JSON.stringify(whole)}::text::json) r(namespace text, kind text, workload text,
         container text, digest text, pod text, state text, first timestamp, last timestamp)`
}

export interface Instance {
  id: string
  namespace: string
  kind: string
  workload: string
  container: string
  digest: string
  pod: string
  exec: boolean
  lib: boolean
  startMode: 'start' | 'backfill'
  tracking: string
  covered: string
  last: string
  dropped: number
  unsent: number
  incomplete: boolean
  ended: boolean
}

let made = 0

export async function storeInstances(sql: postgres.Sql, rows: readonly Partial<Instance>[]): Promise<void> {
  const whole = rows.map((row) => {
    const id = `instance-${++made}`
    const tracking = row.tracking ?? row.covered ?? hoursAgo(1_000)
    return {
      ...{ id, namespace: 'shop', kind: 'Deployment', workload: 'web', container: 'app', digest: '', pod: id },
      ...{ exec: true, lib: true, startMode: 'start', covered: tracking, last: hoursAgo(0), dropped: 0 },
      ...{ unsent: 0, incomplete: false, ended: false },
      ...row,
      tracking,
    }
  })
  await sql`
    insert into runtime_coverage (cluster_id, container_id, pod_namespace, workload_kind, workload_name, container_name,
                                  image_digest, pod_name, node_name, mode, exec_probe, lib_probe, start_mode,
                                  tracking_since, covered_since, last_heartbeat, heartbeat_secs, gaps, events_dropped,
                                  unsent, incomplete, ended)
    select 'primary', id, namespace, kind, workload, container, digest, pod, 'node', 'full', exec, lib, "startMode",
           tracking, covered, last, 300, 0, dropped, unsent, incomplete, ended
    from json_to_recordset(${JSON.stringify(whole)}::text::json) r(id text, namespace text, kind text, workload text,
         container text, digest text, pod text, exec boolean, lib boolean, "startMode" text, tracking timestamp,
         covered timestamp, last timestamp, dropped integer, unsent integer, incomplete boolean, ended boolean)`
}

export interface Edge {
  namespace: string
  kind: string | null
  workload: string | null
  pod: string | null
  type: 'INGRESS' | 'EGRESS'
  peerKind: string | null
  peerNamespace: string | null
  peerWorkloadKind: string | null
  peerWorkload: string | null
  peerName: string | null
  ip: string | null
  isPublic: boolean
  port: string
  decision: string
  first: string
  last: string
  /** Pods that reported it. */
  reporters: readonly string[]
}

export async function storeEdges(sql: postgres.Sql, rows: readonly Partial<Edge>[]): Promise<void> {
  const whole = rows.map((row) => ({
    ...{ namespace: 'shop', kind: 'Deployment', workload: 'web', pod: null, type: 'EGRESS', peerKind: null },
    ...{ peerNamespace: null, peerWorkloadKind: null, peerWorkload: null, peerName: null, ip: null, isPublic: false },
    ...{ port: '443', decision: 'ALLOW', reporters: [] },
    ...row,
  }))
  await sql`
    with given as materialized (
      select gen_random_uuid() as id, r.*
      from json_to_recordset(${JSON.stringify(whole)}::text::json) r(namespace text, kind text, workload text, pod text,
           type text, "peerKind" text, "peerNamespace" text, "peerWorkloadKind" text, "peerWorkload" text,
           "peerName" text, ip text, "isPublic" boolean, port text, decision text, first timestamp, last timestamp,
           reporters text[])),
    reporters as (
      insert into flow_edge_pod (edge_id, pod_name, last_new_at)
      select g.id, p.name, g.last from given g cross join unnest(g.reporters) p(name))
    insert into flow_edge (id, traffic_type, pod_namespace, pod_workload_kind, pod_workload_name, pod_name, peer_kind,
                           peer_namespace, peer_workload_kind, peer_workload_name, peer_name, traffic_in_out_ip,
                           is_public, port, ip_protocol, decision, flows, pods, first_seen_at, last_new_at, counted_at)
    select id, type, namespace, kind, workload, pod, "peerKind", "peerNamespace", "peerWorkloadKind", "peerWorkload",
           "peerName", ip, "isPublic", port, 'TCP', decision, 1, cardinality(reporters), first, last, last
    from given`
}

/** Says that all stored flows are counted. */
export const countFlows = (sql: postgres.Sql) => sql`update flow_edge_cursor set as_of = now() at time zone 'utc'`

export interface Pod {
  name: string
  namespace: string
  kind: string | null
  workload: string | null
  containers: readonly string[]
  isDead: boolean
  isSwept: boolean
}

export async function storePods(sql: postgres.Sql, rows: readonly Partial<Pod>[]): Promise<void> {
  const whole = rows.map((row) => ({
    ...{ namespace: 'shop', kind: 'Deployment', workload: 'web', containers: [], isDead: false, isSwept: false },
    ...row,
  }))
  await sql`
    insert into pod (pod_name, pod_ip, pod_namespace, time_stamp, node_name, is_dead, pod_ips, workload_kind,
                     workload_name, running_containers, swept_at)
    select name, '10.0.0.1', namespace, now() at time zone 'utc', 'node', "isDead", '{10.0.0.1}', kind, workload,
           containers, case when "isSwept" then now() at time zone 'utc' end
    from json_to_recordset(${JSON.stringify(whole)}::text::json) r(name text, namespace text, kind text, workload text,
         containers text[], "isDead" boolean, "isSwept" boolean)`
}

export interface File {
  namespace: string
  kind: string
  workload: string
  container: string
  digest: string
  entryKind: 'exec' | 'lib'
  path: string
  complete: boolean
  origin: string
  first: string
  last: string
}

export async function storeFiles(sql: postgres.Sql, rows: readonly Partial<File>[]): Promise<void> {
  const whole = rows.map((row) => ({
    ...{ namespace: 'shop', kind: 'Deployment', workload: 'web', container: 'app', digest: '', entryKind: 'exec' },
    ...{ path: '/bin/x', complete: true, origin: 'image', last: hoursAgo(0) },
    ...row,
  }))
  await sql`
    insert into runtime_executable (cluster_id, pod_namespace, workload_kind, workload_name, container_name,
                                    image_digest, kind, path, path_hash, path_complete, source, origin, last_pod_name,
                                    first_seen, last_seen)
    select 'primary', namespace, kind, workload, container, digest, "entryKind", path,
           sha256(convert_to(path, 'UTF8')), complete, 'ebpf', origin, 'pod', first, last
    from json_to_recordset(${JSON.stringify(whole)}::text::json) r(namespace text, kind text, workload text,
         container text, digest text, "entryKind" text, path text, complete boolean, origin text, first timestamp,
         last timestamp)`
}

export interface Observed {
  namespace: string
  kind: string
  workload: string
  names: readonly string[]
  firstSeen: readonly (string | null)[]
  images: readonly number[]
  digests: readonly string[]
  updated: string
  reset: string | null
  isComplete: boolean
}

export async function storeSyscalls(sql: postgres.Sql, row: Partial<Observed>): Promise<void> {
  const names = row.names ?? []
  const whole = {
    ...{ namespace: 'shop', kind: 'Deployment', workload: 'web', names, firstSeen: names.map(() => null) },
    ...{ images: names.map(() => 0), digests: [], updated: hoursAgo(0), reset: null, isComplete: true },
    ...row,
  }
  const json = JSON.stringify(whole)
  const columns =
    'namespace text, kind text, workload text, names text[], "firstSeen" timestamp[], images bigint[], digests text[], updated timestamp, reset timestamp, "isComplete" boolean'
  const from = `from json_to_record($1::text::json) r(${columns})`
  await sql.unsafe(
    `insert into workload_syscalls_seen (pod_namespace, workload_kind, workload_name, names, first_seen, last_seen,
                                         images, image_digests, image_seen)
     select namespace, kind, workload, names, "firstSeen", "firstSeen", images, digests,
            array_fill(updated, array[cardinality(digests)]) ${from}`,
    [json],
  )
  await sql.unsafe(
    `insert into workload_syscalls (pod_namespace, workload_kind, workload_name, syscalls, arches, hash, syscall_count,
                                    updated_at, reset_at)
     select namespace, kind, workload, array_to_string(names, ','), '{}', '', cardinality(names), updated, reset ${from}`,
    [json],
  )
  await sql.unsafe(
    `insert into syscall_contribution (pod_name, pod_namespace, instance, workload_kind, workload_name, syscalls, arches,
                                       capture_level, level_at, seen_until)
     select workload || '-pod', namespace, 'i', kind, workload, array_to_string(names, ','), '{}',
            case when "isComplete" then 'full' else 'low' end, updated, updated ${from}`,
    [json],
  )
}
