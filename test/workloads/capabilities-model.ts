/** A model of docs/contract.md#capabilities for workloads whose containers each run one image. */

export const CAPABILITIES = ['CHOWN', 'KILL', 'NET_RAW', 'SYS_ADMIN'] as const
/** How a container is watched. */
export const WATCHED = ['whole', 'nobody', 'untracked', 'partial', 'late'] as const

export interface DrawnContainer {
  readonly kind: 'init' | 'regular' | 'ephemeral'
  readonly isPrivileged: boolean
  readonly isRunning: boolean
  readonly added: readonly string[]
  readonly watched: (typeof WATCHED)[number]
  readonly checks: readonly {
    readonly capability: string
    readonly granted: boolean
    readonly probed: boolean
    readonly isOfOldImage: boolean
    readonly count: number
  }[]
}

const REASONS = {
  whole: null,
  nobody: 'no_runtime_data',
  untracked: 'capabilities_not_tracked',
  partial: 'capabilities_partial_hook',
  late: 'capabilities_not_seen_since_start',
}

/** The answer about a container, without its name, digests and times; capabilities that are left out without why. */
export function expected({ kind, isPrivileged, isRunning, added, watched, checks }: DrawnContainer) {
  const totals = (granted: boolean, probed: boolean) =>
    CAPABILITIES.flatMap((capability) => {
      const all = checks.filter(
        (one) => one.capability === capability && one.granted === granted && one.probed === probed,
      )
      return all.length === 0 ? [] : [{ capability, count: all.reduce((sum, { count }) => sum + count, 0) }]
    })
  const [used, denied, probed] = [totals(true, false), totals(false, false), totals(true, true)]
  const isIn = (list: typeof used, name: string) => list.some(({ capability }) => capability === name)
  const reason = isRunning ? REASONS[watched] : 'no_current_digest'
  const isOmitted = isIn(probed, 'SYS_ADMIN') && !isIn(used, 'SYS_ADMIN') && !isPrivileged && kind !== 'ephemeral'
  const isNeeded = (name: string) => isIn(used, name) || (isIn(probed, name) && !(name === 'SYS_ADMIN' && isOmitted))
  const recommendation = {
    drop: ['ALL'],
    add: CAPABILITIES.filter(isNeeded),
    probedKept: CAPABILITIES.filter((name) => isNeeded(name) && !isIn(used, name)),
    probedOmitted: isOmitted ? ['SYS_ADMIN'] : [],
    ...(isOmitted ? { requires: { allowPrivilegeEscalation: false } } : {}),
  }
  return {
    evidence: reason === null ? 'sufficient' : 'insufficient',
    reason,
    used,
    denied,
    probed,
    recommendation: reason === null ? recommendation : null,
    unusedAdded:
      reason === null ? added.filter((name) => name !== 'ALL' && !isIn(used, name) && !isIn(probed, name)) : [],
  }
}
