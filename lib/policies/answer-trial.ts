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
  'one that stays open, or that nobody needed yet, is not among them.'

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
  const examples = await readExamples(db.read, summary.deniedEdges)
  return {
    about: ABOUT,
    asOf,
    observedSince,
    labelsAsOf: postedAt,
    ...summary,
    deniedEdges: summary.deniedEdges.map(({ edgeIds, ...edge }) => ({
      ...edge,
      example: edgeIds.map((id) => examples.get(id)).find((one) => one !== undefined) ?? null,
    })),
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

/** Edges between pods and a node that all of these pods ran on. */
const OWN_NODES = fixed<{ id: string }[]>(`
  select e.id::text
  from json_array_elements_text($1::text::json) i(id)
  join flow_edge e on e.id = i.id::uuid
  where e.peer_kind = 'node'
    and exists (select from flow_edge_pod r where r.edge_id = e.id)
    and not exists (
      select from flow_edge_pod r
      left join lateral (
        select l.node_name from pod_labels l where l.pod_namespace = e.pod_namespace and l.pod_name = r.pod_name
        order by l.since desc limit 1) l on true
      where r.edge_id = e.id
        and not exists (
          select from pod_address a
          join pod n on n.pod_name = a.pod_name
          where a.ip = e.traffic_in_out_ip and n.host_network and n.node_name = l.node_name))`)

function byOwnNode(edge: JudgedEdge): JudgedEdge {
  const sides = edge.sides.map((side) => {
    const reasons = new Set(side.reasons)
    const verdict = judgeOwnNode(side.policies, side.direction, side.attempt, side.verdict, reasons)
    return { ...side, verdict, reasons: [...reasons] }
  })
  return { ...edge, sides, verdict: strictest(sides.map(({ verdict }) => verdict)) }
}

async function withOwnNodes(gate: Gate, edges: readonly JudgedEdge[]): Promise<readonly JudgedEdge[]> {
  const isOfNode = ({ verdict, from, to }: JudgedEdge) =>
    verdict !== 'allowed' && (from.type === 'node' || to.type === 'node')
  const ids = edges.filter(isOfNode).flatMap(({ edgeIds }) => edgeIds)
  if (ids.length === 0) return edges
  const rows = await gate((sql) => OWN_NODES(sql, JSON.stringify(ids)))
  const own = new Set(rows.map(({ id }) => id))
  return edges.map((edge) =>
    isOfNode(edge) && edge.edgeIds.length > 0 && edge.edgeIds.every((id) => own.has(id)) ? byOwnNode(edge) : edge,
  )
}
