/** A cluster that has run for two weeks, made by the database itself: names and addresses are those of `bodies.ts`. */
import type postgres from 'postgres'

export interface Scale {
  pods: number
  flows: number
  verdicts: number
}

export const LARGE: Scale = { pods: 50_000, flows: 2_000_000, verdicts: 1_000_000 }
export const TENTH: Scale = { pods: 5_000, flows: 200_000, verdicts: 100_000 }

const PODS_PER_NODE = 100
export const SERVICES_PER_POD = 1 / 50
export const POLICIES = 400

/** Fills an empty, migrated database. */
export async function load(sql: postgres.Sql, { pods, flows, verdicts }: Scale): Promise<void> {
  await sql.unsafe(HELPERS)
  await sql`
    insert into pod (pod_name, pod_ip, pod_namespace, pod_obj, time_stamp, node_name, is_dead, pod_identity, workload_selector_labels,
                     pod_ips, workload_kind, workload_name, host_network, started_at, pod_uid)
    select bench_pod(i), bench_ip(i), 'shop-' || i % 40,
           json_build_object('metadata', json_build_object('name', bench_pod(i), 'namespace', 'shop-' || i % 40, 'uid', md5(i::text),
             'labels', json_build_object('app.kubernetes.io/name', 'checkout-api-' || i % 97, 'team', 'payments'),
             'annotations', json_build_object('checksum/config', repeat('a', 64)))),
           now() at time zone 'utc', 'node-' || i / ${PODS_PER_NODE}::int, i % 20 = 19, 'checkout-api-' || i % 97,
           json_build_object('app.kubernetes.io/name', 'checkout-api-' || i % 97), array[bench_ip(i)], 'Deployment',
           'checkout-api-' || i % 97, false, now() at time zone 'utc' - interval '20 days', md5(i::text)
    from generate_series(0, ${pods - 1}::int) i`
  await sql`insert into pod_address (ip, pod_name) select pod_ip, pod_name from pod`
  await sql`
    insert into service (svc_ip, svc_name, svc_namespace, service_spec, time_stamp, svc_uid)
    select '10.250.' || i / 250 || '.' || i % 250, 'svc-' || i, 'shop-' || i % 40,
           json_build_object('spec', json_build_object('selector', json_build_object('app', 'checkout'))), now() at time zone 'utc', md5(i::text)
    from generate_series(0, ${Math.round(pods * SERVICES_PER_POD) - 1}::int) i`
  await sql`
    insert into pod_syscalls (pod_name, pod_namespace, syscalls, arch, time_stamp)
    select pod_name, '', 'read,write,close,fstat,mmap,openat,futex,epoll_wait,sendto,recvfrom', 'x86_64', now() at time zone 'utc' from pod`
  await sql`
    insert into node_facts (node_name, provider, distro, cni, ip_family, node_os, policy_enforcement, time_stamp)
    select distinct node_name, 'aws', 'eks', 'cilium', 'ipv4', 'bottlerocket', 'enforced', now() at time zone 'utc' from pod`
  await sql`
    insert into compute_node
    select distinct node_name, now() at time zone 'utc', 5000, 1200, true, true, false, 10, 1, 2, 0, 8, 34359738368, 0, 0, 0, 0, null::bigint,
           null::bigint, now() at time zone 'utc' from pod`
  await withoutIndexes(sql, 'traffic', () =>
    insertFlows(sql, pods, flows, { from: '13 days', to: '0' }, 'bench', 'bench_pod', true),
  )
  await withoutIndexes(sql, 'audit_verdict', () => insertVerdicts(sql, verdicts, { from: '29 days', to: '0' }))
  await sql.unsafe('vacuum (analyze)')
}

/** When rows are from, evenly spread: intervals before now. */
export interface Age {
  from: string
  to: string
}

const at = (n: string, rows: number, { from, to }: Age) =>
  `now() at time zone 'utc' - interval '${from}' + (interval '${from}' - interval '${to}') * (${n}::float8 / ${rows})`

/**
 * Flows of the pods, none a duplicate of another. `series` tells sets apart; `pod` is the function that names their pods. `udp`:
 * a tenth is UDP, of which there is one flow from a pod to a peer in all sets.
 */
export async function insertFlows(
  sql: postgres.Sql,
  pods: number,
  flows: number,
  age: Age,
  series: string,
  pod = 'bench_pod',
  udp = false,
): Promise<void> {
  await sql.unsafe(`
    insert into traffic (uuid, pod_name, pod_namespace, pod_ip, pod_port, ip_protocol, traffic_type, traffic_in_out_ip,
                         traffic_in_out_port, decision, time_stamp, peer_kind, peer_namespace, peer_name, peer_uid, peer_workload_kind,
                         peer_workload_name, peer_resolved_at)
    select '${series}-' || md5(n::text), ${pod}(source), 'shop-' || source % 40, bench_ip(source), '0', case n % ${udp ? 10 : 1} when 9 then 'UDP' else 'TCP' end,
           'EGRESS', bench_ip(peer), '${series}-' || n, 'ALLOW', at, 'pod', 'shop-' || peer % 40, bench_pod(peer), md5(peer::text),
           'Deployment', 'checkout-api-' || peer % 97, at
    from (select n, n % ${pods} as source, (n::bigint * 7919 + n / ${pods} * 13)::bigint % ${pods} as peer, ${at('n', flows, age)} as at
          from generate_series(0, ${flows - 1}) n) f`)
}

export async function insertVerdicts(sql: postgres.Sql, verdicts: number, age: Age): Promise<void> {
  await sql.unsafe(`
    insert into audit_verdict (policy_uid, policy_namespace, policy_name, direction, src_namespace, src_pod, dst_port, protocol, reason,
                               observed_at, verdict)
    select md5((n % ${POLICIES})::text), 'shop-' || n % 40, 'policy-' || n % ${POLICIES}, case n % 3 when 0 then 'Ingress' else 'Egress' end,
           'shop-' || n % 40, bench_pod(n % 50000), 443, 'TCP', case n % 50 when 0 then 'no rule matched' else '' end,
           ${at('n', verdicts, age)}, case n % 50 when 0 then 'WouldDeny' else 'Allow' end
    from generate_series(0, ${verdicts - 1}) n`)
}

/** Rows first and indexes after, which takes a third of the time. The primary key stays. */
export async function withoutIndexes(sql: postgres.Sql, table: string, work: () => Promise<void>): Promise<void> {
  const indexes = await sql<{ name: string; definition: string }[]>`
    select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition
    from pg_index where indrelid = ${table}::text::regclass and not indisprimary`
  for (const { name } of indexes) await sql.unsafe(`drop index ${name}`)
  await work()
  for (const { definition } of indexes) await sql.unsafe(definition)
}

const HELPERS = `
  set synchronous_commit = off;
  set maintenance_work_mem = '512MB';
  create or replace function bench_pod(i bigint) returns text language sql immutable
    as $$ select 'checkout-api-' || i % 97 || '-7c9f6d5b8-' || lpad(to_hex(i), 5, '0') $$;
  create or replace function bench_gone(i bigint) returns text language sql immutable as $$ select 'gone-' || i $$;
  create or replace function bench_ip(i bigint) returns text language sql immutable
    as $$ select '10.' || 40 + i / 62500 || '.' || (i / 250) % 250 || '.' || i % 250 + 1 $$;`
