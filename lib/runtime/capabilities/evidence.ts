/** Judges the capabilities of a container: evidence, and a recommendation from it (docs/contract.md#capabilities). */
import type { ContainerCapabilities, Recommendation, SeenCapability } from './record.ts'

type Reason = NonNullable<ContainerCapabilities['reason']>
type Detail = ContainerCapabilities['reasonDetail']

/** A digest that runs, and whether it was watched; a null reason says that it was. Times are as answers have them. */
export interface RunningDigest {
  readonly digest: string
  readonly isPrivileged: boolean
  readonly isEphemeral: boolean
  readonly observedSince: string | null
  readonly reason: Reason | null
  readonly reasonDetail: Detail
}

/** Checks of a capability over all digests of a container. */
export interface SeenChecks extends SeenCapability {
  readonly granted: boolean
  readonly probed: boolean
}

export interface ContainerFacts {
  readonly container: string
  /** The newest first. */
  readonly running: readonly RunningDigest[]
  /** The capabilities that the newest running digest adds, as its pod spells them. */
  readonly added: readonly string[]
  /** By name; each name once for each combination of `granted` and `probed`. */
  readonly checks: readonly SeenChecks[]
  /** Whether there are more rows than are read. */
  readonly isTruncated: boolean
}

/**
 * The kernel asks for it when memory is reserved, and when a seccomp filter is loaded without `no_new_privs`. Neither
 * needs it.
 */
const PROBED_BY_KERNEL = 'SYS_ADMIN'
const OMITTED_REASON =
  'only probed: the kernel asks for it when a process reserves memory or loads a seccomp filter; ' +
  'with allowPrivilegeEscalation: false neither needs it'

export function judge(facts: ContainerFacts): ContainerCapabilities {
  const { container, running, checks } = facts
  const { reason, reasonDetail } = reasonOf(facts)
  const isSufficient = reason === null
  const used = seen(checks, ({ granted, probed }) => granted && !probed)
  const probed = seen(checks, ({ granted, probed }) => granted && probed)
  const known = new Set([...used, ...probed].map(({ capability }) => capability))
  return {
    container,
    digests: running.map(({ digest }) => digest),
    evidence: isSufficient ? 'sufficient' : 'insufficient',
    reason,
    reasonDetail,
    observedSince: latest(running.map(({ observedSince }) => observedSince)),
    used,
    denied: seen(checks, ({ granted, probed }) => !granted && !probed),
    probed,
    recommendation: isSufficient ? recommendation(facts, used, probed) : null,
    unusedAdded: isSufficient ? facts.added.filter((one) => plain(one) !== 'ALL' && !known.has(plain(one))) : [],
  }
}

function reasonOf({ running, isTruncated }: ContainerFacts): { reason: Reason | null; reasonDetail: Detail } {
  if (running.length === 0) return { reason: 'no_current_digest', reasonDetail: null }
  if (isTruncated) return { reason: 'rows_truncated', reasonDetail: null }
  return running.find(({ reason }) => reason !== null) ?? { reason: null, reasonDetail: null }
}

function recommendation(
  { running }: ContainerFacts,
  used: readonly SeenCapability[],
  probed: readonly SeenCapability[],
): Recommendation {
  const isUsed = new Set(used.map(({ capability }) => capability))
  // `allowPrivilegeEscalation: false` cannot be set on a privileged container, nor on one that is added to a live pod.
  const needsAll = running.some(({ isPrivileged, isEphemeral }) => isPrivileged || isEphemeral)
  const onlyProbed = probed.map(({ capability }) => capability).filter((one) => !isUsed.has(one))
  const isKept = (one: string) => needsAll || one !== PROBED_BY_KERNEL
  const probedKept = onlyProbed.filter(isKept)
  const probedOmitted = onlyProbed
    .filter((one) => !isKept(one))
    .map((capability) => ({ capability, reason: OMITTED_REASON }))
  return {
    drop: ['ALL'],
    add: [...isUsed, ...probedKept].sort(),
    probedKept,
    probedOmitted,
    ...(probedOmitted.length > 0 && { requires: { allowPrivilegeEscalation: false } }),
  }
}

const seen = (checks: readonly SeenChecks[], isOf: (one: SeenChecks) => boolean): SeenCapability[] =>
  checks.filter(isOf).map(({ capability, count, firstSeen, lastSeen }) => ({ capability, count, firstSeen, lastSeen }))

/** The spelling of agents: container runtimes take any case, and names with a prefix. */
const plain = (capability: string) => capability.toUpperCase().replace(/^CAP_(?!\d+$)/, '')

/** The latest time, null without any. */
const latest = (times: readonly (string | null)[]) =>
  times.reduce((a, b) => (a === null || (b !== null && b > a) ? b : a), null)
