/** Connections that a workload has begun or ended (docs/contract.md#changes). */
import { compareTexts } from './listed.ts'
import { gap, type Known, known, type Reason, unknown } from './not-known.ts'

export interface EdgePeer {
  readonly kind: 'pod' | 'service' | 'node' | 'external' | 'unresolved'
  readonly namespace: string | null
  readonly workloadKind: string | null
  readonly workloadName: string | null
  /** Of a service, or of a pod without a known workload. */
  readonly name: string | null
  readonly ip: string | null
}

/** All flows of one direction, protocol, port, verdict and peer that the pods of a workload reported. */
export interface Edge {
  readonly direction: 'ingress' | 'egress'
  readonly protocol: string
  readonly port: string | null
  readonly verdict: string | null
  readonly peer: EdgePeer
  readonly firstSeenAt: string
  readonly lastNewAt: string
  /** Whether a pod that reported it may live: then it may be in use, however old its newest flow is. */
  readonly mayLive: boolean
}

export interface EdgeRecord {
  readonly edges: readonly Edge[]
  readonly isCut: boolean
  /** Since when edges are recorded in the cluster; null without any edge. */
  readonly observedSince: string | null
  /** False while the stored flows are counted for the first time. */
  readonly areFlowsCounted: boolean
  /** Edges without a newer flow may be deleted; null where none is. */
  readonly keptSince: string | null
  /** Whether the workload was known at the time that the range begins. */
  readonly isRecorded: boolean
}

export interface EdgesDiff {
  /** First seen in the range, the newest first. */
  readonly firstSeen: readonly Edge[]
  /** Without a new flow since the range began, and no pod that reported one lives; the last new one first. */
  readonly goneQuiet: readonly Edge[]
  /** Without a new flow since the range began, while such a pod may live: they may be in use. */
  readonly maybeQuiet: number
}

/** Compares the edges at both times; `from` is before `to`. */
export function edgesDiff(record: EdgeRecord, from: string, to: string): Known<EdgesDiff> {
  const reason = whyUnknown(record, from)
  if (reason !== null) return unknown(gap('edges', reason))
  const { edges } = record
  const old = edges.filter(({ lastNewAt }) => lastNewAt <= from)
  const quiet = old.filter(({ mayLive }) => !mayLive)
  const inOrder = (key: 'firstSeenAt' | 'lastNewAt') => (a: Edge, b: Edge) =>
    compareTexts(b[key], a[key]) || compareTexts(edgeKey(a), edgeKey(b))
  return known({
    firstSeen: edges.filter((one) => from < one.firstSeenAt && one.firstSeenAt <= to).sort(inOrder('firstSeenAt')),
    goneQuiet: quiet.sort(inOrder('lastNewAt')),
    maybeQuiet: old.length - quiet.length,
  })
}

function whyUnknown(record: EdgeRecord, from: string): Reason | null {
  const { areFlowsCounted, keptSince, observedSince, isRecorded, edges, isCut } = record
  if (!areFlowsCounted) return 'not_counted'
  if (keptSince !== null && from < keptSince) return 'before_retention'
  if (observedSince === null || observedSince > from) return 'not_recorded_then'
  if (!isRecorded && !edges.some(({ firstSeenAt }) => firstSeenAt <= from)) return 'not_recorded_then'
  return isCut ? 'too_many' : null
}

/** Two edges with this key are the same. */
export const edgeKey = ({ direction, protocol, port, verdict, peer }: Edge): string =>
  JSON.stringify([direction, protocol, port, verdict, Object.values(peer)])

const isDropped = ({ verdict }: Edge) => verdict === 'DROP'

/** Whether an edge goes to an address that is routable on the internet. */
export const isToOutside = (edge: Edge): boolean =>
  !isDropped(edge) && edge.direction === 'egress' && edge.peer.kind === 'external'

/** Whether an edge makes its workload exposed, as in docs/contract.md#tiers. */
export const isExposing = (edge: Edge, namespace: string): boolean => {
  const { kind, namespace: peerNamespace } = edge.peer
  if (isDropped(edge) || edge.direction === 'egress' || kind === 'node') return false
  return kind === 'external' || kind === 'unresolved' || peerNamespace !== namespace
}
