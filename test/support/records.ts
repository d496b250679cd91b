/** Posts of pods and services as agents send them, and a query for the rows made from them. */
import type postgres from 'postgres'

export const POD_KEYS = [
  ...['pod_name', 'pod_ip', 'pod_namespace', 'pod_obj', 'time_stamp', 'node_name', 'is_dead', 'pod_identity'],
  ...[
    'workload_selector_labels',
    'pod_ips',
    'workload_kind',
    'workload_name',
    'capture_level',
    'host_network',
    'started_at',
  ],
]
export const SERVICE_KEYS = ['svc_ip', 'svc_name', 'svc_namespace', 'service_spec', 'time_stamp']

type Fields = Record<string, unknown>

let made = 0

/** A post with the five required keys and a new name; a key given as undefined is left out. */
export function podPost(fields: Fields = {}): Fields & { pod_name: string } {
  made++
  return {
    pod_name: `pod-${made}`,
    pod_ip: `10.9.${made >> 8}.${made & 255}`,
    time_stamp: '2024-05-01T10:00:00',
    node_name: 'node-1',
    is_dead: false,
    ...fields,
  }
}

/** A post with every key that is stored, none of them derived. */
export function wholePodPost(fields: Fields = {}) {
  return podPost({
    pod_namespace: 'shop',
    pod_obj: { metadata: { name: 'cart', uid: 'uid-1', labels: { app: 'cart' } } },
    pod_identity: 'cart',
    workload_selector_labels: { app: 'cart', tier: 'web' },
    workload_kind: 'Deployment',
    workload_name: 'cart',
    capture_level: 'high',
    host_network: false,
    started_at: '2024-05-01T09:00:00',
    ...fields,
  })
}

/** A post with the two required keys and a new address. */
export function servicePost(fields: Fields = {}): Fields & { svc_ip: string } {
  made++
  return { svc_ip: `10.96.${made >> 8}.${made & 255}`, time_stamp: '2024-05-01T10:00:00', ...fields }
}

/** Pods whose rows in pod_address differ from the addresses of the pod row; addresses without a pod count too. */
export async function podsWithWrongAddresses(sql: postgres.Sql): Promise<string[]> {
  const rows = await sql<{ pod_name: string }[]>`
    with held as (select pod_name, array_agg(ip order by ip) as ips from pod_address group by pod_name),
         meant as (select pod_name, (select array_agg(distinct ip collate "C" order by ip collate "C") from unnest(pod_ips) ip) as ips from pod)
    select pod_name from held full join meant using (pod_name) where held.ips is distinct from meant.ips`
  return rows.map((row) => row.pod_name)
}
