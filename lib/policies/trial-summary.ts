/** Counts what a trial found, and lists the denied edges (docs/contract.md#network-policies). */
import { Slice } from '../event-loop/slices.ts'
import { sortInSlices } from '../event-loop/sort-in-slices.ts'
import { isolates, strictest, type Verdict } from './evaluate.ts'
import type { End, PodGroup } from './facts.ts'
import { selectsPod } from './match.ts'
import { nearestMiss } from './nearest-miss.ts'
import type { Policy } from './policy.ts'
import type { JudgedEdge } from './trial.ts'
import type { PolicyTrial } from './trial-record.ts'

/** Denied edges that are listed at most. */
const MAX_DENIED = 1_000

export const DIRECTIONS = ['ingress', 'egress'] as const

type Listed = Omit<PolicyTrial['deniedEdges'][number], 'example'> & { readonly edgeIds: readonly string[] }
type Summary = Omit<PolicyTrial, 'about' | 'asOf' | 'observedSince' | 'labelsAsOf' | 'deniedEdges'> & {
  readonly deniedEdges: readonly Listed[]
}

type Counts = { evaluated: number } & Record<Verdict, number>
const zero = (): Counts => ({ evaluated: 0, allowed: 0, denied: 0, unknown: 0 })

function count(counts: Counts, verdict: Verdict): void {
  counts.evaluated++
  counts[verdict]++
}

export async function summaryOf(
  policies: readonly Policy[],
  pods: readonly PodGroup[],
  edges: readonly JudgedEdge[],
): Promise<Summary> {
  const slice = new Slice()
  const all = zero()
  const ofPolicy = new Map(policies.map((policy) => [policy, zero()]))
  const reasons = new Map<string, number>()
  for (const { verdict, sides } of edges) {
    if (slice.isOver) await slice.next()
    count(all, verdict)
    const ofEdge = new Map<Policy, Verdict>()
    for (const side of sides) {
      if (slice.isOver) await slice.next()
      for (const policy of side.policies)
        ofEdge.set(policy, strictest([side.verdict, ofEdge.get(policy) ?? side.verdict]))
    }
    for (const [policy, own] of ofEdge) count(ofPolicy.get(policy)!, own)
    if (verdict !== 'unknown') continue
    for (const reason of new Set(sides.flatMap((side) => (side.verdict === 'unknown' ? side.reasons : []))))
      reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
  }
  const tried = []
  for (const policy of policies) {
    if (slice.isOver) await slice.next()
    tried.push({ ...identityOf(policy, pods), ...ofPolicy.get(policy)! })
  }
  const denied = edges.filter(({ verdict }) => verdict === 'denied')
  const ordered = await sortInSlices(denied, (a, b) => byFlows(a, b) < 0, slice)
  const deniedEdges: Listed[] = []
  for (const edge of ordered.slice(0, MAX_DENIED)) deniedEdges.push(await deniedEdge(edge, slice))
  return {
    ...all,
    policies: tried,
    deniedEdges,
    moreDenied: Math.max(0, all.denied - MAX_DENIED),
    unknownReasons: [...reasons]
      .map(([reason, edges]) => ({ reason, edges }))
      .sort((a, b) => b.edges - a.edges || (a.reason < b.reason ? -1 : 1)),
  }
}

function identityOf(policy: Policy, pods: readonly PodGroup[]) {
  const { document, kind, namespace, name, subject } = policy
  const selected = pods.filter((one) => one.workload.namespace === namespace && selectsPod(subject, one))
  return {
    ...{ document, kind, namespace, name },
    directions: DIRECTIONS.filter((direction) => isolates(policy, direction)),
    workloads: [...new Set(selected.map(({ workload }) => `${workload.kind}/${workload.name}`))].sort(),
  }
}

/** The largest first; equal ones in a fixed order. */
const byFlows = (a: JudgedEdge, b: JudgedEdge): number => b.flows - a.flows || (a.key < b.key ? -1 : 1)

async function deniedEdge(edge: JudgedEdge, slice: Slice): Promise<Listed> {
  const { from, to, port, protocol, flows, firstSeenAt, lastNewAt, edgeIds, sides } = edge
  const denials = new Map<string, Listed['deniedBy'][number]>()
  for (const side of sides.filter(({ verdict }) => verdict === 'denied')) {
    if (slice.isOver) await slice.next()
    const denial = denialOf(side)
    denials.set(JSON.stringify(denial), denial)
  }
  return {
    from: sideOf(from),
    to: sideOf(to),
    ...{ port, protocol, flows, firstSeenAt, lastNewAt },
    deniedBy: [...denials.values()],
    edgeIds,
  }
}

function denialOf({ direction, policies, attempt }: JudgedEdge['sides'][number]): Listed['deniedBy'][number] {
  const { policy, path, why } = nearestMiss(policies, direction, attempt)
  return { direction, document: policy.document, policy: `${policy.namespace}/${policy.name}`, path, why }
}

/** An end in the form of the sides of edges. */
function sideOf(end: End): Listed['from'] {
  const none = { namespace: null, name: null, workload: null, ip: null }
  if (end.type === 'workload')
    return { kind: 'workload', ...none, namespace: end.namespace, workload: `${end.kind}/${end.name}` }
  if (end.type === 'pod' || end.type === 'service')
    return { kind: end.type, ...none, namespace: end.namespace, name: end.name }
  return { kind: end.type, ...none, ip: end.ip }
}
