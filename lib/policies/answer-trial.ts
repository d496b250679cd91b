/** Reads what a trial of policies needs, and makes its answer (docs/contract.md#network-policies). */
import { type Database, fixed, type Gate } from '../db/index.ts'
import { Slice } from '../event-loop/slices.ts'
import { stillCounting } from '../flows/index.ts'
import { judgeOwnNode, strictest } from './evaluate.ts'
import { readExamples } from './example-flows.ts'
import { MAX_EDGES_BY_POD, readPodPairs } from './pod-pairs.ts'
import type { Policy } from './policy.ts'
import { namespacesOf, readConnections, readEdgeFacts, readPods, readServices, type Window } from './read.ts'
import { isOfDifferingPods, type JudgedEdge, Trial } from './trial.ts'
import type { PolicyTrial } from './trial-record.ts'
import { DIRECTIONS, summaryOf } from './trial-summary.ts'

const ABOUT =
  'Only the given policies were looked at, not those that are in the cluster, and only connections that were seen: ' +
  'one that stays open, or that nobody needed yet, is not among them, nor is UDP to an address with which the pod ' +
  'had another connection before, or what an earlier pod with the same address did, too.'

/**
 * Tries policies on the edges of a window, all of them or those of a namespace.
 * @throws HttpError 503 while stored flows are counted for the first time; 400 if there are too many edges
 */
export async function trialOf(
  db: Database,
  policies: readonly Policy[],
  window: Window,
  namespace: string | null,
  edgeRetentionDays: number,
): Promise<PolicyTrial> {
  const { asOf, observedSince } = await readEdgeFacts(db.read, window.since, edgeRetentionDays)
  if (asOf === null) throw stillCounting()
  const connections = await readConnections(db.read, window, namespace === null ? null : { namespace })
  const namespaces = [...new Set([...namespacesOf(connections), ...policies.map((one) => one.namespace)])]
  const services = await readServices(db.read, namespaces)
  const selectors = services.flatMap(({ selector }) => Object.keys(selector ?? {}))
  const keys = [...new Set([...policies.flatMap(labelKeysOf), ...selectors])]
  const { pods, postedAt } = await readPods(db.read, namespaces, keys)
  const trial = new Trial(policies, { pods, services, connections })
  const judged = await byPods(db.read, trial, await trial.edges(), policies.some(looksAtAddresses))
  const edges = await withOwnNodes(db.read, judged)
  const summary = await summaryOf(policies, pods, edges)
  const exampleOf = await readExamples(db.read, summary.deniedEdges)
  return {
    about: ABOUT,
    asOf,
    observedSince,
    labelsAsOf: postedAt,
    ...summary,
    deniedEdges: summary.deniedEdges.map(({ edgeIds, ...edge }) => ({ ...edge, example: exampleOf({ edgeIds }) })),
  }
}

/** The labels that a policy looks at. */
const labelKeysOf = (policy: Policy): string[] => [
  ...policy.subject.map(({ key }) => key),
  ...DIRECTIONS.flatMap((name) => [...(policy[name]?.allow ?? []), ...(policy[name]?.deny ?? [])])
    .flatMap(({ peers }) => peers ?? [])
    .flatMap((peer) => (peer.kind === 'pods' ? peer.pods.map(({ key }) => key) : [])),
]

const looksAtAddresses = (policy: Policy): boolean =>
  DIRECTIONS.flatMap((name) => [...(policy[name]?.allow ?? []), ...(policy[name]?.deny ?? [])])
    .flatMap(({ peers }) => peers ?? [])
    .some(({ kind }) => kind === 'block')

async function byPods(
  gate: Gate,
  trial: Trial,
  edges: readonly JudgedEdge[],
  byAddress: boolean,
): Promise<readonly JudgedEdge[]> {
  const differing = edges.filter(isOfDifferingPods).slice(0, MAX_EDGES_BY_POD)
  const pairs = await readPodPairs(gate, differing, byAddress)
  const slice = new Slice()
  const judged: JudgedEdge[] = []
  for (const edge of edges) {
    if (slice.isOver) await slice.next()
    const own = pairs.get(edge)
    judged.push(own === undefined ? edge : await trial.byPods(edge, own, slice))
  }
  return judged
}

/**
 * Edges between pods and a node that all of these pods ran on, or may have run on: `is_known` is false where the node
 * of a pod that is gone is not known any more.
 */
const OWN_NODES = fixed<{ id: string; is_known: boolean }[]>(`
  select e.id::text, bool_and(o.node_name is not null) as is_known
  from json_array_elements_text($1::text::json) i(id)
  join flow_edge e on e.id = i.id::uuid
  join flow_edge_pod r on r.edge_id = e.id
  left join pod p on p.pod_name = r.pod_name and p.pod_namespace = e.pod_namespace
  left join lateral (
    select l.node_name from pod_labels l where l.pod_namespace = e.pod_namespace and l.pod_name = r.pod_name
    order by l.since desc limit 1) l on true
  cross join lateral (select coalesce(l.node_name, p.node_name) as node_name) o
  where e.peer_kind = 'node'
  group by e.id
  having bool_and(o.node_name is null or exists (
    select from pod_address a
    join pod n on n.pod_name = a.pod_name
    where a.ip = e.traffic_in_out_ip and n.host_network and n.node_name = o.node_name))`)
const UNKNOWN_NODE = 'on which node a pod that is gone ran is not known any more'

function byOwnNode(edge: JudgedEdge, isKnown: boolean): JudgedEdge {
  const sides = edge.sides.map((side) => {
    const reasons = new Set(side.reasons)
    const verdict = judgeOwnNode(side.policies, side.direction, side.attempt, side.verdict, reasons)
    if (isKnown || verdict === side.verdict) return { ...side, verdict, reasons: [...reasons] }
    return { ...side, verdict: 'unknown' as const, reasons: [...reasons, UNKNOWN_NODE] }
  })
  return { ...edge, sides, verdict: strictest(sides.map(({ verdict }) => verdict)) }
}

async function withOwnNodes(gate: Gate, edges: readonly JudgedEdge[]): Promise<readonly JudgedEdge[]> {
  const isOfNode = ({ verdict, from, to }: JudgedEdge) =>
    verdict !== 'allowed' && (from.type === 'node' || to.type === 'node')
  const ids = edges.filter(isOfNode).flatMap(({ edgeIds }) => edgeIds)
  if (ids.length === 0) return edges
  const rows = await gate((sql) => OWN_NODES(sql, JSON.stringify(ids)))
  const own = new Map(rows.map(({ id, is_known }) => [id, is_known]))
  return edges.map((edge) => {
    const isOwn = isOfNode(edge) && edge.edgeIds.length > 0 && edge.edgeIds.every((id) => own.has(id))
    const isKnown = edge.edgeIds.every((id) => own.get(id))
    return isOwn ? byOwnNode(edge, isKnown) : edge
  })
}
