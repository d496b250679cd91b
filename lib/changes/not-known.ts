/** Why a part of a diff is null (docs/contract.md#changes). Absent is never shown as new. */

/** The parts of the answers, in the order in which `notKnown` names them. */
export const PARTS = [
  ...(['images', 'components', 'findings', 'signatures', 'edges', 'files', 'syscalls'] as const),
  ...(['syscallsOnlyBefore', 'confinement'] as const),
] as const
export type Part = (typeof PARTS)[number]

export const REASONS = [
  ...(['no_inventory', 'not_recorded_then', 'before_retention', 'too_many'] as const),
  ...(['no_sbom', 'no_report', 'not_counted', 'no_common_source', 'not_checked'] as const),
  ...(['no_runtime_data', 'probes_missing', 'libraries_not_tracked', 'events_dropped', 'events_pending'] as const),
  ...(['incomplete_paths', 'capture_gap', 'watched_too_short'] as const),
  ...(['no_syscalls', 'reset_since', 'capture_incomplete', 'image_not_recorded'] as const),
  ...(['no_versions'] as const),
] as const
export type Reason = (typeof REASONS)[number]

/** A part that is null, or is null for one container or image. */
export interface Gap {
  readonly part: Part
  readonly reason: Reason
  readonly container: string | null
  readonly digest: string | null
}

/** A part, or the reasons why it is null. A part that is known may have gaps for some of its containers. */
export interface Known<T> {
  readonly value: T | null
  readonly gaps: readonly Gap[]
}

export const gap = (part: Part, reason: Reason, of: Partial<Pick<Gap, 'container' | 'digest'>> = {}): Gap => ({
  part,
  reason,
  container: of.container ?? null,
  digest: of.digest ?? null,
})

export const known = <T>(value: T, gaps: readonly Gap[] = []): Known<T> => ({ value, gaps })
export const unknown = (...gaps: readonly Gap[]): Known<never> => ({ value: null, gaps })

/** The gaps in the order of parts, each once. */
export function sortedGaps(gaps: readonly Gap[]): Gap[] {
  const key = ({ part, container, digest, reason }: Gap) =>
    JSON.stringify([PARTS.indexOf(part) + 10, container ?? '', digest ?? '', REASONS.indexOf(reason) + 10])
  const byKey = new Map(gaps.map((one) => [key(one), one]))
  return [...byKey].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one)
}
