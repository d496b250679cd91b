/** How the confinement of a workload has changed between two versions of its profile (docs/contract.md#changes). */
import { weakened as newlyFailing, type Weakened } from '../profile/drift/index.ts'
import { rejudge } from '../profile/pod-security/index.ts'
import type { PodSecuritySnapshot, Snapshot } from '../profile/snapshot.ts'
import { isAudit } from '../profile/syscalls/index.ts'
import { change, podSecurityDiff } from '../profile/versions/index.ts'
import { gap, type Known, known, unknown } from './not-known.ts'

/** A stored version, with the parts that confine. */
export interface VersionAt {
  readonly revision: number
  readonly createdAt: string
  /** Left out, like the profile, where neither differs between the two versions. */
  readonly podSecurity?: PodSecuritySnapshot
  readonly seccompProfile?: Snapshot['syscalls']['cr']
  /** A profile without observed syscalls, as after a reset, has no resource, whatever is applied. */
  readonly isSeccompUnknown?: boolean
  /** Whether it has no container. */
  readonly isEmpty?: boolean
}

export interface VersionRecord {
  /** The newest versions at both times, with containers if any has some; null where there was none. */
  readonly from: VersionAt | null
  readonly to: VersionAt | null
  /** The first revision that is still stored; null without versions. */
  readonly oldestRevision: number | null
}

const NO_CHANGE = { containers: [], containersAdded: [], containersRemoved: [], level: null, pod: [] }

export interface ConfinementDiff {
  readonly fromRevision: number
  readonly toRevision: number
  /** As in the diff of two versions of the profile. */
  readonly podSecurity: ReturnType<typeof podSecurityDiff>
  /** Null where it is the same, and where it is not known at either time. */
  readonly seccompProfile: ReturnType<typeof change<NonNullable<Snapshot['syscalls']['cr']>>>
  /** The pod or containers with checks that passed before and fail now, by today's rules. */
  readonly weakened: readonly Weakened[]
  /** Whether a seccomp profile that enforced is gone, or only audits now. */
  readonly isSeccompWeakened: boolean
}

export function confinementDiff({ from, to, oldestRevision }: VersionRecord): Known<ConfinementDiff> {
  if (oldestRevision === null) return unknown(gap('confinement', 'no_versions'))
  if (from === null || to === null)
    return unknown(gap('confinement', oldestRevision === 1 ? 'not_recorded_then' : 'before_retention'))
  const revisions = { fromRevision: from.revision, toRevision: to.revision }
  const gaps = from.isEmpty || to.isEmpty ? [gap('confinement', 'no_inventory')] : []
  if (from.podSecurity === undefined || to.podSecurity === undefined) {
    const same = { podSecurity: NO_CHANGE, seccompProfile: null, weakened: [], isSeccompWeakened: false }
    return known({ ...revisions, ...same }, gaps)
  }
  const isSeccompKnown = !from.isSeccompUnknown && !to.isSeccompUnknown
  return known(
    {
      ...revisions,
      podSecurity: podSecurityDiff(from.podSecurity, to.podSecurity),
      seccompProfile: isSeccompKnown ? change(from.seccompProfile ?? null, to.seccompProfile ?? null) : null,
      weakened: newlyFailing(rejudge(from.podSecurity), rejudge(to.podSecurity)),
      isSeccompWeakened: isSeccompKnown && doesEnforce(from) && !doesEnforce(to),
    },
    isSeccompKnown ? gaps : [...gaps, gap('confinement', 'no_syscalls')],
  )
}

const doesEnforce = ({ seccompProfile = null }: VersionAt) => seccompProfile !== null && !isAudit(seccompProfile)

export const isWeakened = ({ weakened, isSeccompWeakened }: ConfinementDiff): boolean =>
  weakened.length > 0 || isSeccompWeakened
