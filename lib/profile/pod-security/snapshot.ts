/** The security contexts of a version of a profile, and what today's rules say of them. */
import type { Check, Level, PodSecurity } from '../record/pod-security.ts'
import type { PodSecuritySnapshot } from '../snapshot.ts'
import { UNKNOWN_POD } from './contexts.ts'
import { type JudgedPart, judgeContexts } from './judgement.ts'

/** The part of a dimension that makes a version (docs/contract.md#workload-profiles). */
export function podSecuritySnapshot({ level, pod, containers }: PodSecurity): PodSecuritySnapshot {
  const { failing: _, ...block } = pod
  return {
    level,
    pod: containers.length > 0 ? block : null,
    containers: Object.fromEntries(
      containers.map(({ name, kind, securityContext }) => [name, { kind, securityContext }]),
    ),
  }
}

/** A pod or a container of a snapshot. Checks are named once, in the order of answers. */
export interface RejudgedPart {
  readonly level: Level
  readonly failing: readonly Check[]
  /** Checks that could not be made, because the fields of the pod were not known. They neither failed nor passed. */
  readonly unjudged: readonly Check[]
}

export interface Rejudged {
  /** Null without containers. */
  readonly level: Level | null
  /** Null without containers. */
  readonly pod: RejudgedPart | null
  readonly containers: ReadonlyMap<string, RejudgedPart>
}

/** Judges a stored snapshot with today's rules, so that it compares with a snapshot of today. */
export function rejudge(snapshot: PodSecuritySnapshot): Rejudged {
  const contexts = Object.entries(snapshot.containers).map(([name, container]) => ({ name, ...container }))
  if (contexts.length === 0) return { level: null, pod: null, containers: new Map() }
  const { level, pod, containers } = judgeContexts(snapshot.pod ?? UNKNOWN_POD, contexts)
  return {
    level,
    pod: rejudgedPart(pod),
    containers: new Map(containers.map((container) => [container.name, rejudgedPart(container)])),
  }
}

const rejudgedPart = ({ level, failing, unjudged }: JudgedPart): RejudgedPart => ({
  level,
  failing: [...new Set(failing.map(({ check }) => check))],
  unjudged,
})
