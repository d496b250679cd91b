/** Syscalls that a workload was first seen to make (docs/contract.md#changes). */
import { compareTexts } from './listed.ts'
import { type Gap, gap, type Known, known, type Reason, unknown } from './not-known.ts'

/** The observed set of a workload with its times. */
export interface SyscallRecord {
  readonly names: readonly string[]
  /** Of each name; null for one that was seen before times were stored. */
  readonly firstSeen: readonly (string | null)[]
  /** Of each name the positions in `digests` of the images that made it. */
  readonly images: readonly (readonly number[])[]
  readonly digests: readonly string[]
  readonly resetAt: string | null
  /** When the set last grew. */
  readonly updatedAt: string
  /** Whether all pods that contributed were captured in full. */
  readonly isComplete: boolean
}

export interface SyscallsDiff {
  readonly firstSeen: readonly { readonly name: string; readonly at: string }[]
  /** Whether the set has all syscalls, also those of the time before. */
  readonly isComplete: boolean
  /** Syscalls of images that no longer run, which no image makes that runs now; null where that is not known. */
  readonly onlyBefore: readonly string[] | null
}

interface Images {
  /** Images of the older side only. */
  readonly before: readonly string[]
  /** All images of the newer side. */
  readonly now: readonly string[]
}

/** `images` is null where the images of either time are not known. */
export function syscallsDiff(
  record: SyscallRecord | null,
  images: Images | null,
  from: string,
  to: string,
): Known<SyscallsDiff> {
  if (record === null) return unknown(gap('syscalls', 'no_syscalls'))
  const { names, firstSeen, resetAt, updatedAt, isComplete } = record
  if (resetAt !== null && resetAt > from) return unknown(gap('syscalls', 'reset_since'))
  const hasBegun = updatedAt <= from || firstSeen.some((at) => at !== null && at <= from)
  if (!hasBegun) return unknown(gap('syscalls', 'not_recorded_then'))
  const found = names
    .map((name, i) => ({ name, at: firstSeen[i]! }))
    .filter(({ at }) => at !== null && from < at && at <= to)
    .sort((a, b) => compareTexts(b.at, a.at) || compareTexts(a.name, b.name))
  const only = onlyBefore(record, images)
  const gaps: Gap[] = typeof only === 'string' ? [gap('syscallsOnlyBefore', only)] : []
  return known({ firstSeen: found, isComplete, onlyBefore: typeof only === 'string' ? null : only }, gaps)
}

function onlyBefore({ names, images: madeBy, digests, isComplete }: SyscallRecord, images: Images | null) {
  if (images === null) return 'not_recorded_then' satisfies Reason
  if (images.before.length === 0) return []
  if (!isComplete) return 'capture_incomplete' satisfies Reason
  if (![...images.before, ...images.now].every((digest) => digests.includes(digest)))
    return 'image_not_recorded' satisfies Reason
  const isMadeBy = (i: number, some: readonly string[]) => madeBy[i]!.some((place) => some.includes(digests[place]!))
  // A name without images was seen before they were stored: any image may have made it.
  return names.filter((_, i) => isMadeBy(i, images.before) && !isMadeBy(i, images.now)).sort(compareTexts)
}
