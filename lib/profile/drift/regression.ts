/** Drift of security contexts: checks of the Pod Security Standards that passed before and fail now. */
import type { Drift } from '../record/drift.ts'
import { CHECKS, type Check, type Level } from '../record/pod-security.ts'
import type { PodSecuritySnapshot } from '../snapshot.ts'
import { type Checked, checked, found, notEvaluated } from './checked.ts'
import type { DriftFacts } from './facts.ts'

/** A pod or a container by today's rules. */
interface RejudgedPart {
  readonly level: Level
  readonly failing: readonly Check[]
  /** Checks that could not be made: they neither failed nor passed. */
  readonly unjudged: readonly Check[]
}
/** Judges a stored snapshot with today's rules; the pod is null without containers. */
export type Rejudge = (snapshot: PodSecuritySnapshot) => {
  readonly pod: RejudgedPart | null
  readonly containers: ReadonlyMap<string, RejudgedPart>
}

interface Baseline {
  readonly shown: NonNullable<Drift['baselines']['securityContext']>
  readonly podSecurity: PodSecuritySnapshot
}

/** The export if there is one, else the newest of the last versions with other security contexts than now. */
export function baselineOf({ export: exported, versions }: DriftFacts, hashNow: string): Baseline | null {
  if (exported !== null) {
    const { revision, exportedAt, podSecurity } = exported
    return { shown: { source: 'export', revision, since: exportedAt }, podSecurity }
  }
  const other = versions.find(({ podSecurityHash }) => podSecurityHash !== hashNow)
  if (!other) return null
  return {
    shown: { source: 'previousVersion', revision: other.revision, since: other.createdAt },
    podSecurity: other.podSecurity,
  }
}

/** Compares the pod, and each container that the baseline has too. What became better is no drift. */
export function regression(baseline: Baseline | null, now: PodSecuritySnapshot, rejudge: Rejudge): Checked {
  if (baseline === null) return notEvaluated('securityContextRegression', 'no_baseline')
  const [before, after] = [rejudge(baseline.podSecurity), rejudge(now)]
  if (before.pod === null || after.pod === null) return notEvaluated('securityContextRegression', 'no_container_data')
  return checked(
    weakened(before, after).map(({ container, newlyFailing, levelFrom, levelTo }) => {
      const severity = newlyFailing.some(isBaseline) ? 'high' : 'medium'
      const title = `The security context of ${container === null ? 'the pod' : `container ${container}`} has become weaker`
      const detail = `Checks that passed before fail now: ${newlyFailing.join(', ')}.`
      return found(
        'securityContextRegression',
        severity,
        container,
        { title, detail },
        { newlyFailing, levelFrom, levelTo },
      )
    }),
  )
}

/** The pod (null) or a container with checks that passed before and fail now. */
export interface Weakened {
  readonly container: string | null
  readonly newlyFailing: Check[]
  readonly levelFrom: Level
  readonly levelTo: Level
}

/** Compares the pod, and each container of both. A check that could not be made before has not passed. */
export function weakened(before: ReturnType<Rejudge>, after: ReturnType<Rejudge>): Weakened[] {
  const parts = [
    { container: null, old: before.pod, part: after.pod },
    ...[...after.containers].map(([container, part]) => ({ container, old: before.containers.get(container), part })),
  ]
  return parts.flatMap(({ container, old, part }) => {
    if (!old || !part) return []
    const newlyFailing = part.failing.filter((check) => !old.failing.includes(check) && !old.unjudged.includes(check))
    return newlyFailing.length === 0 ? [] : [{ container, newlyFailing, levelFrom: old.level, levelTo: part.level }]
  })
}

/** The checks of the level `restricted` come last. */
const isBaseline = (check: Check) => CHECKS.indexOf(check) < CHECKS.indexOf('volumeTypes')
