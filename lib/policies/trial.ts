/** Tries policies on the connections that were seen (docs/contract.md#network-policies). */
import { Slice } from '../event-loop/slices.ts'
import {
  type Attempt,
  type DirectionName,
  type EvaluatedEnd,
  isolatingPolicies,
  judgeSide,
  strictest,
  type Verdict,
} from './evaluate.ts'
import type { Connection, End, Facts } from './facts.ts'
import type { Policy } from './policy.ts'
import { type Target, Topology } from './topology.ts'

/** All connections between the same ends on one port, whichever side reported them. */
export interface TriedEdge {
  readonly from: End
  /** The workload behind a service where there is exactly one. */
  readonly to: End
  /** On which the server listens; of the service where `to` is one. */
  readonly port: string
  readonly protocol: string
  flows: number
  firstSeenAt: string
  lastNewAt: string
  readonly edgeIds: string[]
}

/** The verdict of one end of an edge. */
interface SideOfEdge {
  readonly direction: DirectionName
  readonly verdict: Verdict
  readonly policies: readonly Policy[]
  readonly reasons: readonly string[]
  /** An attempt that is denied, to explain it. */
  readonly attempt: Attempt
}

export interface JudgedEdge extends TriedEdge {
  readonly verdict: Verdict
  readonly sides: readonly SideOfEdge[]
}

/** Judges every edge that a policy may isolate an end of. Dropped connections were none. */
export async function tryPolicies(policies: readonly Policy[], facts: Facts): Promise<JudgedEdge[]> {
  const topology = new Topology(facts)
  const isolating = isolatingByEnd(policies)
  const judged: JudgedEdge[] = []
  const slice = new Slice()
  for (const edge of await edgesOf(facts.connections, topology, slice)) {
    if (slice.isOver) await slice.next()
    const sides = sidesOf(edge, topology, isolating)
    if (sides.length > 0) judged.push({ ...edge, verdict: strictest(sides.map(({ verdict }) => verdict)), sides })
  }
  return judged
}

async function edgesOf(connections: readonly Connection[], topology: Topology, slice: Slice): Promise<TriedEdge[]> {
  const edges = new Map<string, TriedEdge>()
  for (const connection of connections) {
    if (slice.isOver) await slice.next()
    if (connection.isDropped) continue
    const { from, protocol, flows, firstSeenAt, lastNewAt, edgeId } = connection
    const { to, port } = topology.behindService(connection)
    const key = [topology.keyOf(from), topology.keyOf(to), port, protocol].join('\0')
    const edge = edges.get(key)
    if (edge === undefined) {
      const edgeIds = edgeId === null ? [] : [edgeId]
      edges.set(key, { from, to, port, protocol, flows, firstSeenAt, lastNewAt, edgeIds })
      continue
    }
    edge.flows += flows
    if (firstSeenAt < edge.firstSeenAt) edge.firstSeenAt = firstSeenAt
    if (lastNewAt > edge.lastNewAt) edge.lastNewAt = lastNewAt
    if (edgeId !== null) edge.edgeIds.push(edgeId)
  }
  return [...edges.values()]
}

type Isolating = (direction: DirectionName, end: EvaluatedEnd) => readonly Policy[]

/** The policies that isolate an end, looked for once for each end. */
function isolatingByEnd(policies: readonly Policy[]): Isolating {
  const known = {
    egress: new Map<EvaluatedEnd, readonly Policy[]>(),
    ingress: new Map<EvaluatedEnd, readonly Policy[]>(),
  }
  return (direction, end) => {
    let found = known[direction].get(end)
    if (found === undefined) {
      found = isolatingPolicies(policies, direction, end)
      known[direction].set(end, found)
    }
    return found
  }
}

function sidesOf(edge: TriedEdge, topology: Topology, isolating: Isolating): SideOfEdge[] {
  const from = topology.podsOf(edge.from)
  const to = topology.targetsOf(edge)
  return (['egress', 'ingress'] as const).flatMap((direction) => {
    const isAny = (direction === 'egress' ? from : to.map(({ end }) => end)).some(
      (end) => isolating(direction, end).length > 0,
    )
    return isAny ? [sideOf(direction, edge.protocol, from, to, isolating)] : []
  })
}

/** The verdict of one end, which has to be the same for all its pods and for all pods at the other end. */
function sideOf(
  direction: DirectionName,
  protocol: string,
  from: readonly EvaluatedEnd[],
  to: readonly Target[],
  isolating: Isolating,
): SideOfEdge {
  const verdicts = new Set<Verdict>()
  const policies = new Set<Policy>()
  const reasons = new Set<string>()
  let shown: Attempt | null = null
  for (const source of from)
    for (const { end, port } of to) {
      const attempt = { from: source, to: end, port, protocol }
      const applying = isolating(direction, direction === 'egress' ? source : end)
      const found = new Set<string>()
      const verdict = applying.length === 0 ? 'allowed' : judgeSide(applying, direction, attempt, found).verdict
      verdicts.add(verdict)
      for (const one of applying) policies.add(one)
      if (verdict === 'unknown') for (const one of found) reasons.add(one)
      shown ??= attempt
    }
  const [verdict = 'allowed'] = verdicts
  if (verdicts.size > 1 && !verdicts.has('unknown'))
    reasons.add('the policies treat the pods of a workload, or the workloads behind a service, differently')
  return {
    direction,
    verdict: verdicts.size > 1 ? 'unknown' : verdict,
    policies: [...policies],
    reasons: [...reasons],
    attempt: shown!,
  }
}
