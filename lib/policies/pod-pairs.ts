/**
 * Edges do not tell which pods of a workload talked to which. Where policies treat these pods differently, the stored
 * flows do (docs/contract.md#network-policies).
 */
import { fixed, type Gate } from '../db/index.ts'
import { Slice } from '../event-loop/slices.ts'
import type { PodEnd } from './match.ts'

/** Edges of one trial whose flows are read at most. */
export const MAX_EDGES_BY_POD = 500
/** Flows that are read for them at most, under a second of work. Edges with others stay unknown. */
const MAX_FLOWS_BY_POD = 30_000

/**
 * Pods that policies cannot tell apart, and how many of their flows are stored. Null where an end is no pod: it is the
 * end of the edge.
 */
export interface PodPair {
  readonly from: PodEnd | null
  readonly to: PodEnd | null
  /** Whether both are the same pod. */
  readonly isOnePod: boolean
  readonly flows: number
}

const PAIRS = fixed<{ id: string; is_egress: boolean; own: string; peer: string | null; flows: number }[]>(`
  select p.edge_id::text as id, p.is_egress, p.own, p.peer, p.flows::int as flows
  from pod_pairs_of_edges(array(select i.id::uuid from json_array_elements_text($1::text::json) i(id)),
                          ${MAX_FLOWS_BY_POD}) p`)

/** The labels that pods had last; pods that are gone keep them as long as their flows. */
const PODS = fixed<{ pod: string; end: string | null }[]>(`
  select n.pod::text,
         case when l.labels is not null then json_build_object(
           'type', 'pod', 'namespace', n.pod ->> 0, 'namespaceLabels', null, 'labels', l.labels,
           'hasPartialLabels', k.labels is null,
           'ips', case when $1::boolean then coalesce(to_json(p.pod_ips), '[]') else '[]' end,
           'namedPorts', p.named_ports, 'isHostNetwork', p.host_network) end::text as "end"
  from json_array_elements($2::text::json) n(pod)
  left join pod p on p.pod_name = n.pod ->> 1 and p.pod_namespace = n.pod ->> 0
  left join lateral (
    select l.labels from pod_labels l where l.pod_namespace = n.pod ->> 0 and l.pod_name = n.pod ->> 1
    order by l.since desc limit 1) k on true
  cross join lateral (select coalesce(k.labels, p.workload_selector_labels::jsonb) as labels) l`)

/**
 * The pairs of pods of edges, by edge. Flows that are no longer stored, and those beyond the limit, are in none.
 * `byAddress`: the policies look at addresses, so that any two pods differ.
 */
export async function readPodPairs<E extends { readonly edgeIds: readonly string[] }>(
  gate: Gate,
  edges: readonly E[],
  byAddress: boolean,
): Promise<ReadonlyMap<E, readonly PodPair[]>> {
  const edgeOf = new Map(edges.flatMap((edge) => edge.edgeIds.map((id) => [id, edge] as const)))
  if (edgeOf.size === 0) return new Map()
  const rows = await gate((sql) => PAIRS(sql, JSON.stringify([...edgeOf.keys()])))
  const ends = await readEnds(
    gate,
    rows.flatMap(({ own, peer }) => (peer === null ? own : [own, peer])),
    byAddress,
  )
  const pairs = new Map<E, Map<string, PodPair & { flows: number }>>()
  const slice = new Slice()
  for (const { id, is_egress: isEgress, own, peer, flows } of rows) {
    if (slice.isOver) await slice.next()
    const [ownEnd, peerEnd] = [ends.get(own)!, peer === null ? null : ends.get(peer)!]
    const [from, to] = isEgress ? [ownEnd, peerEnd] : [peerEnd, ownEnd]
    const edge = edgeOf.get(id)!
    const ofEdge = pairs.get(edge) ?? new Map()
    pairs.set(edge, ofEdge)
    const isOnePod = own === peer
    const key = `${from?.number} ${to?.number} ${isOnePod}`
    const known = ofEdge.get(key)
    if (known === undefined) ofEdge.set(key, { from: from?.end ?? null, to: to?.end ?? null, isOnePod, flows })
    else known.flows += flows
  }
  return new Map([...pairs].map(([edge, ofEdge]) => [edge, [...ofEdge.values()]]))
}

/** The ends of pods; those of pods that are alike are one, with one number. */
async function readEnds(gate: Gate, pods: readonly string[], byAddress: boolean) {
  const known = await gate((sql) => PODS(sql, byAddress, `[${[...new Set(pods)].join()}]`))
  const alike = new Map<string, { readonly number: number; readonly end: PodEnd }>()
  return new Map(
    known.map(({ pod, end }) => {
      const text = end ?? pod
      const one = alike.get(text) ?? { number: alike.size, end: end === null ? unknownPod(pod) : JSON.parse(end) }
      alike.set(text, one)
      return [pod, one] as const
    }),
  )
}

const unknownPod = (pod: string): PodEnd => ({
  ...{ type: 'pod', namespace: JSON.parse(pod)[0], namespaceLabels: null, labels: null, ips: [], namedPorts: null },
  isHostNetwork: null,
})
