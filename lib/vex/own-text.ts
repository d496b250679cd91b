/** The text of a statement for decisions that VEX has no word for. */
import type { ImageDecision } from './read.ts'

const PREFIXES: Partial<Record<ImageDecision['decision'], string>> = {
  accepted: 'Risk accepted: ',
  will_not_fix: 'Will not be fixed: ',
}

/** Why it was decided; for words that VEX does not have, which word it was. */
export const whyOf = ({ decision, why }: ImageDecision): string => `${PREFIXES[decision] ?? ''}${why}`

/** Names the author of a decision, and the day until which it holds. */
export const notesOf = ({ by, until }: ImageDecision): string =>
  `Decided by ${by}.${until === null ? '' : ` Holds until the end of ${until}, UTC.`}`
