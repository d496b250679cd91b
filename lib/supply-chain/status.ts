/** The status that scanners give to a fix of a finding (docs/contract.md#findings). */
import { z } from 'zod'

/**
 * The least reassuring first: where sources differ, the first one is shown. A status is stored as its index in this
 * list. The words are those of Trivy.
 */
export const STATUSES = [
  ...(['affected', 'will_not_fix', 'end_of_life', 'fix_deferred', 'under_investigation', 'unknown'] as const),
  ...(['fixed', 'not_affected'] as const),
] as const
export type Status = (typeof STATUSES)[number]

/** A status as answers have it. */
export const statusName = z.enum(STATUSES).meta({ id: 'FindingStatus' })

/** The states of a fix in Grype. One that is not fixed has no fix yet. */
const OTHER_WORDS: Readonly<Record<string, Status>> = { not_fixed: 'affected', wont_fix: 'will_not_fix' }

const NUMBERS = new Map<string, number>([
  ...STATUSES.map((name, number) => [name, number] as const),
  ...Object.entries(OTHER_WORDS).map(([word, name]) => [word, STATUSES.indexOf(name)] as const),
])

/** Returns the stored number of a word of Trivy or Grype, in any case; undefined for any other text or none. */
export const statusNumber = (word: string | null | undefined): number | undefined =>
  NUMBERS.get(word?.trim().toLowerCase().replaceAll('-', '_') ?? '')

/** SQL: the word of a stored number; null where it is null. */
export const nameOfStatus = (number: string) => `('{${STATUSES.join(',')}}'::text[])[${number} + 1]`
