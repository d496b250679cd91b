/** Tries policies on the connections that were seen (docs/contract.md#network-policies). */
import { HttpError } from '../errors.ts'
import { Slice } from '../event-loop/slices.ts'
import { isolatingPolicies, judgeSide, strictest, type Verdict } from './evaluate.ts'
import { type Connection, type End, type Facts, isLoopbackEnd, workloadOfEnd } from './facts.ts'
import { type Attempt, type DirectionName, type EvaluatedEnd, SOME_ADDRESSES } from './match.ts'
import type { PodPair } from './pod-pairs.ts'
import { keyOfWorkload } from './pods.ts'
import type { Peer, Policy } from './policy.ts'
import { type Target, Topology } from './topology.ts'

const DIFFERING_PODS = 'the policies treat the pods of a workload, or the workloads behind a service, differently'
const MAYBE_ONE_POD = 'no policy denies a pod access to itself, and flows of a workload with itself may be of one pod'
const NOT_ALL_READ =
  'which pods of a workload took part is not known: some of its flows are no longer stored or were not read'

/** Peers and ports that are compared in one trial at most: some seconds of work. */
const MAX_COMPARED = 20_000_000
/** Addresses are compared with blocks so much faster. */
const BLOCKS_AT_ONCE = 10

/** All connections between the same ends on one port, whichever side reported them. */
export interface TriedEdge {
  /** Differs for different edges. */
  readonly key: string
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

/** Judges edges by policies and by what is known of the ends. */
export class Trial {
  readonly #topology: Topology
  readonly #isolating: Isolating
  readonly #connections: readonly Connection[]
  readonly #sizes: ReadonlyMap<Policy, Size>

  constructor(policies: readonly Policy[], facts: Facts) {
    this.#topology = new Topology(facts)
    this.#isolating = isolatingByEnd(policies)
    this.#connections = facts.connections
    this.#sizes = new Map(policies.map((policy) => [policy, sizeOf(policy)]))
  }

  /**
   * Every edge that a policy may isolate an end of. Dropped connections were none.
   * @throws HttpError 400 if the policies have too many peers and ports for so many edges
   */
  async edges(): Promise<JudgedEdge[]> {
    const slice = new Slice()
    const isolated: TriedEdge[] = []
    let compared = 0
    for (const edge of await edgesOf(this.#connections, this.#topology, slice)) {
      if (slice.isOver) await slice.next()
      const size = this.#sizeOf(edge)
      if (size > 0) isolated.push(edge)
      compared += size
    }
    if (compared > MAX_COMPARED)
      throw new HttpError(400, 'too many peers and ports for so many edges: narrow them with namespace, since or until')
    const judged: JudgedEdge[] = []
    for (const edge of isolated) {
      if (slice.isOver) await slice.next()
      const [from, to] = [this.#topology.podsOf(edge.from), this.#topology.targetsOf(edge)]
      const sides = this.#sidesOf(edge.protocol, from, to, this.#isOfOnePod(edge))
      judged.push({ ...edge, verdict: strictest(sides.map(({ verdict }) => verdict)), sides })
    }
    return judged
  }

  /** Peers and ports that an edge is compared with; 0 where no policy may isolate an end of it. */
  #sizeOf(edge: TriedEdge): number {
    const from = this.#topology.podsOf(edge.from)
    const to = this.#topology.targetsOf(edge).map(({ end }) => end)
    const sum = (direction: DirectionName, ends: readonly EvaluatedEnd[], peers: readonly EvaluatedEnd[]) => {
      const addresses = peers.reduce((count, peer) => count + (peer.type === 'pod' ? peer.ips.length : 1), 0)
      return ends
        .flatMap((end) => this.#isolating(direction, end))
        .map((policy) => this.#sizes.get(policy)!)
        .reduce((size, one) => size + one.all * peers.length + (one.blocks * addresses) / BLOCKS_AT_ONCE, 0)
    }
    return sum('egress', from, to) + sum('ingress', to, from)
  }

  /** An edge, judged by the pods whose flows are stored. Where some of them are denied, `flows` are these. */
  async byPods(edge: JudgedEdge, pairs: readonly PodPair[], slice: Slice): Promise<JudgedEdge> {
    const targets = this.#topology.targetsOf(edge)
    const port = targets[0]?.port ?? null
    const judged: { readonly flows: number; readonly sides: readonly SideOfEdge[]; readonly verdict: Verdict }[] = []
    for (const { from, to, isOnePod, flows } of pairs) {
      if (slice.isOver) await slice.next()
      const sources = from === null ? this.#topology.podsOf(edge.from) : [from]
      const isItself = from === null || to === null ? this.#isOfOnePod(edge) : isOnePod
      const sides = this.#sidesOf(edge.protocol, sources, to === null ? targets : [{ end: to, port }], isItself)
      judged.push({ flows, sides, verdict: strictest(sides.map(({ verdict }) => verdict)) })
    }
    const denied = judged.filter(({ verdict }) => verdict === 'denied')
    const sum = (list: readonly { flows: number }[]) => list.reduce((total, { flows }) => total + flows, 0)
    if (denied.length > 0)
      return { ...edge, flows: sum(denied), verdict: 'denied', sides: denied.flatMap(({ sides }) => sides) }
    const sides = judged.flatMap((one) => one.sides)
    if (judged.some(({ verdict }) => verdict === 'unknown')) return { ...edge, verdict: 'unknown', sides }
    if (sum(judged) >= edge.flows) return { ...edge, verdict: 'allowed', sides }
    return { ...edge, sides: edge.sides.map((side) => ({ ...side, reasons: [NOT_ALL_READ] })) }
  }

  /** `isOnePod`: whether a pod talks to itself; null where it may. */
  #sidesOf(
    protocol: string,
    from: readonly EvaluatedEnd[],
    to: readonly Target[],
    isOnePod: boolean | null,
  ): SideOfEdge[] {
    return (['egress', 'ingress'] as const).flatMap((direction) => {
      const subjects = direction === 'egress' ? from : to.map(({ end }) => end)
      if (!subjects.some((end) => this.#isolating(direction, end).length > 0)) return []
      const side = sideOf(direction, protocol, from, to, this.#isolating)
      if (side.verdict === 'allowed' || isOnePod === false) return [side]
      if (isOnePod === true) return [{ ...side, verdict: 'allowed' as const }]
      return [{ ...side, verdict: 'unknown' as const, reasons: [...side.reasons, MAYBE_ONE_POD] }]
    })
  }

  /** "A pod cannot block access to itself." Null where pods of one workload may be one. */
  #isOfOnePod({ from, to }: TriedEdge): boolean | null {
    if (isLoopbackEnd(from) || isLoopbackEnd(to)) return true
    const [own, other] = [workloadOfEnd(from), workloadOfEnd(to)]
    if (own === null) return false
    if (to.type === 'service') return this.#topology.isBehind(own, to) && null
    return other !== null && keyOfWorkload(own) === keyOfWorkload(other) && (own.kind === 'Pod' || null)
  }
}

interface Size {
  /** Peers, ports and rules of a policy, and those of its peers that are blocks of addresses. */
  readonly all: number
  readonly blocks: number
}

function sizeOf({ ingress, egress }: Policy): Size {
  const rules = [ingress, egress].flatMap((direction) => [...(direction?.allow ?? []), ...(direction?.deny ?? [])])
  const isBlock = ({ kind }: Peer) => kind === 'block'
  return {
    all: rules.reduce((size, { peers, ports }) => size + (peers?.length ?? 0) + (ports?.length ?? 0) + 1, 1),
    blocks: rules.reduce((size, { peers }) => size + (peers ?? []).filter(isBlock).length, 0),
  }
}

/** Reasons of edges of whose pods their flows tell more. */
const OF_PODS = [DIFFERING_PODS, SOME_ADDRESSES, MAYBE_ONE_POD]

/** Whether an edge is unknown because its pods differ, or may be one: their flows tell more. */
export const isOfDifferingPods = ({ verdict, sides }: JudgedEdge): boolean =>
  verdict === 'unknown' && sides.some(({ reasons }) => reasons.some((one) => OF_PODS.includes(one)))

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
      edges.set(key, { key, from, to, port, protocol, flows, firstSeenAt, lastNewAt, edgeIds })
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
  if (verdicts.size > 1 && !verdicts.has('unknown')) reasons.add(DIFFERING_PODS)
  return {
    direction,
    verdict: verdicts.size > 1 ? 'unknown' : verdict,
    policies: [...policies],
    reasons: [...reasons],
    attempt: shown!,
  }
}
