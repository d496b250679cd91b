/** Edges of flows: names of their sides, links to more, and words for verdicts. */
import { type Edge, flowsQuery, type Side } from '../api/edge.ts'
import { href } from '../place.ts'
import { Badge, Workload, type WorkloadName } from './text.tsx'

/** A verdict in words. For `DROP` the agent saw no answer to a SYN, and does not know the cause. */
export const VERDICT_WORDS = { ALLOW: 'allowed', DROP: 'dropped' } as const
export const DROPPED_MEANS = 'A SYN without an answer: a policy, a full server or a dead address can be the reason.'

export function Verdict({ verdict }: { verdict: string | null }) {
  if (verdict === 'DROP')
    return (
      <Badge tone="bad" title={DROPPED_MEANS}>
        {VERDICT_WORDS.DROP}
      </Badge>
    )
  return <Badge>{verdict === 'ALLOW' ? VERDICT_WORDS.ALLOW : (verdict ?? 'unknown')}</Badge>
}

/** The workload of a side; null if the side is not a workload. */
export function workloadOf({ kind, namespace, workload }: Side): WorkloadName | null {
  if (kind !== 'workload' || namespace === null || workload === null) return null
  const slash = workload.indexOf('/')
  return { namespace, kind: workload.slice(0, slash), name: workload.slice(slash + 1) }
}

/** `namespace/Kind/name`, as filters take it. */
export const workloadText = ({ namespace, kind, name }: WorkloadName) => `${namespace}/${kind}/${name}`

/** A side as text on one line. */
export function sideText(side: Side): string {
  const { kind, namespace, name, workload, ip } = side
  if (kind === 'workload') return `${namespace}/${workload}`
  if (kind === 'namespace') return `${namespace}`
  if (kind === 'pod' || kind === 'service') return `${kind} ${namespace}/${name}`
  return `${kind} ${ip}`
}

const SIDE_NOTES: Readonly<Record<string, { readonly tone: 'plain' | 'warn' | 'info'; readonly meaning: string }>> = {
  pod: { tone: 'plain', meaning: 'A pod whose workload was not recorded.' },
  service: { tone: 'plain', meaning: 'A service. It is not known which one workload is behind it.' },
  node: { tone: 'plain', meaning: 'A machine of the cluster.' },
  external: { tone: 'info', meaning: 'A public address that is no pod and no service.' },
  unresolved: { tone: 'warn', meaning: 'An address that is not public, of which nobody said whose it is.' },
}

/** A side of an edge. A workload links to its dossier, or to the result of `workloadTo`. */
export function SideName({ side, workloadTo }: { side: Side; workloadTo?: (workload: WorkloadName) => string }) {
  const { kind, namespace, name, ip } = side
  const workload = workloadOf(side)
  if (workload !== null && workloadTo === undefined) return <Workload {...workload} />
  if (workload !== null)
    return (
      <a href={workloadTo!(workload)}>
        <span class="faint">
          <bdi>{workload.namespace}</bdi>/
        </span>
        <bdi>{workload.name}</bdi> <span class="kind">{workload.kind}</span>
      </a>
    )
  if (kind === 'namespace') return <span>{namespace}</span>
  const note = SIDE_NOTES[kind]
  return (
    <span>
      <bdi>{name === null ? ip : `${namespace}/${name}`}</bdi>{' '}
      <Badge tone={note?.tone ?? 'plain'} {...(note && { title: note.meaning })}>
        {kind}
      </Badge>
    </span>
  )
}

/** Link to the flows of an edge, as far as they are still stored. */
export const flowsHref = (edge: Edge): string => href(['flows'], flowsQuery(edge))

/** The agents that reported an edge, in words. A report from one side may mean that the other node has no agent. */
export function seenByText(seenBy: readonly string[]): string {
  if (seenBy.length > 1) return 'reported from both sides'
  return seenBy[0] === 'from' ? 'reported only by the caller’s agent' : 'reported only by the callee’s agent'
}
