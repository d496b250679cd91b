/** Edges of a workload: the new ones, and links to their peers. */
import type { JsonAnswer } from '../../../api/answers.ts'
import { toMs } from '../../../parts/moment.ts'
import { type Named, wholeName } from '../name.ts'

export type Edge = JsonAnswer<'/flows/edges'>['items'][number]
export type Side = Edge['from']
/** `callers` open connections to the workload, `callees` accept connections of it. */
export type Direction = 'callers' | 'callees'

export const peerOf = (edge: Edge, direction: Direction): Side => (direction === 'callers' ? edge.from : edge.to)

/** Whether a side is this workload. One workload can be both sides of an edge. */
export const isOf = ({ kind, namespace, workload }: Side, named: Named): boolean =>
  kind === 'workload' && namespace === named.namespace && workload === `${named.kind}/${named.name}`

export interface NewEdges {
  readonly edges: readonly Edge[]
  /** False if unread edges may be new, too. */
  readonly isWhole: boolean
}

/**
 * The edges with a first flow at `fromMs` or later, newest first. The answer is ordered by the newest flow, and a new
 * edge has a new flow: so all new edges are known once an edge with an older newest flow was read.
 */
export function newEdges(page: { items: readonly Edge[]; nextAfter: string | null }, fromMs: number): NewEdges {
  const edges = page.items
    .filter(({ firstSeenAt }) => toMs(firstSeenAt) >= fromMs)
    .sort((one, other) => toMs(other.firstSeenAt) - toMs(one.firstSeenAt))
  const last = page.items.at(-1)
  return { edges, isWhole: page.nextAfter === null || (last !== undefined && toMs(last.lastNewAt) < fromMs) }
}

/** Link to a side: its dossier if it is a workload, whose name is `Kind/name`. */
export function workloadOfSide({ kind, namespace, workload }: Side): Named | null {
  const end = workload?.indexOf('/') ?? -1
  if (kind !== 'workload' || namespace === null || workload === null || end < 0) return null
  return { namespace, kind: workload.slice(0, end), name: workload.slice(end + 1) }
}

/** A side as text, for CSV and screen readers. */
export function sideText(side: Side): string {
  const named = workloadOfSide(side)
  if (named !== null) return wholeName(named)
  const { kind, namespace, name, ip } = side
  const known = name ?? ip
  return `${kind} ${[namespace, known].filter((part) => part !== null).join('/')}`.trim()
}

/** `DROP` means an unanswered SYN. The cause is not known; a policy is one possibility. */
export const verdictText = (verdict: string | null): string =>
  verdict === 'DROP' ? 'not answered' : verdict === 'ALLOW' ? 'allowed' : (verdict ?? 'not known')
