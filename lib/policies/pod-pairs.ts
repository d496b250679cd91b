/**
 * Edges do not tell which pods of a workload talked to which. Where policies treat these pods differently, the stored
 * flows do (docs/contract.md#network-policies).
 */
import { fixed, type Gate } from '../db/index.ts'
import type { PodEnd } from './evaluate.ts'
import { IS_OF_EDGE } from './flows-of-edge.ts'

/** Edges of one trial whose flows are read at most. */
export const MAX_EDGES_BY_POD = 500

/** Two pods, and how many of their flows are stored. Null where an end is no pod: it is the end of the edge. */
export interface PodPair {
  readonly from: PodEnd | null
  readonly to: PodEnd | null
  readonly flows: number
}

const PAIRS = fixed<{ id: string; is_egress: boolean; own: string; peer: string | null; flows: number }[]>(`
  select e.id::text, e.traffic_type = 'EGRESS' as is_egress,
         json_build_array(e.pod_namespace, t.pod_name)::text as own,
         case when e.peer_kind = 'pod' then json_build_array(e.peer_namespace, t.peer_name)::text end as peer,
         count(*)::int as flows
  from json_array_elements_text($1::text::json) i(id)
  join flow_edge e on e.id = i.id::uuid
  join flow_edge_pod r on r.edge_id = e.id
  cross join lateral (select t as flow, t.pod_name, t.peer_name from traffic t where t.pod_name = r.pod_name offset 0) t
  cross join lateral edge_of_flow(t.flow) f
  where ${IS_OF_EDGE}
  group by e.id, e.traffic_type, own, peer`)

/** The labels that pods had last; pods that are gone keep them as long as their flows. */
const PODS = fixed<{ pod: string; end: string | null }[]>(`
  select n.pod::text,
         case when l.labels is not null then json_build_object(
           'type', 'pod', 'namespace', n.pod ->> 0, 'namespaceLabels', null, 'labels', l.labels,
           'ips', coalesce(to_json(p.pod_ips), '[]'),
           'namedPorts', p.named_ports, 'isHostNetwork', p.host_network) end::text as "end"
  from json_array_elements($1::text::json) n(pod)
  left join pod p on p.pod_name = n.pod ->> 1 and p.pod_namespace = n.pod ->> 0
  left join lateral (
    select l.labels from pod_labels l where l.pod_namespace = n.pod ->> 0 and l.pod_name = n.pod ->> 1
    order by l.since desc limit 1) k on true
  cross join lateral (select coalesce(k.labels, p.workload_selector_labels::jsonb) as labels) l`)

/** The pairs of pods of edges, by edge. Flows that are no longer stored are in none. */
export async function readPodPairs<E extends { readonly edgeIds: readonly string[] }>(
  gate: Gate,
  edges: readonly E[],
): Promise<ReadonlyMap<E, readonly PodPair[]>> {
  const edgeOf = new Map(edges.flatMap((edge) => edge.edgeIds.map((id) => [id, edge] as const)))
  if (edgeOf.size === 0) return new Map()
  const rows = await gate((sql) => PAIRS(sql, JSON.stringify([...edgeOf.keys()])))
  const names = new Set(rows.flatMap(({ own, peer }) => (peer === null ? own : [own, peer])))
  const known = await gate((sql) => PODS(sql, `[${[...names].join()}]`))
  const ends = new Map(known.map(({ pod, end }) => [pod, end === null ? unknownPod(pod) : (JSON.parse(end) as PodEnd)]))
  const pairs = new Map<E, PodPair[]>()
  for (const { id, is_egress: isEgress, own, peer, flows } of rows) {
    const [ownEnd, peerEnd] = [ends.get(own)!, peer === null ? null : ends.get(peer)!]
    const edge = edgeOf.get(id)!
    const list = pairs.get(edge) ?? []
    list.push(isEgress ? { from: ownEnd, to: peerEnd, flows } : { from: peerEnd, to: ownEnd, flows })
    pairs.set(edge, list)
  }
  return pairs
}

const unknownPod = (pod: string): PodEnd => ({
  ...{ type: 'pod', namespace: JSON.parse(pod)[0], namespaceLabels: null, labels: null, ips: [], namedPorts: null },
  isHostNetwork: null,
})
