/** Gaps: the parts of a comparison that are not known, and the reasons. */
import { shortDigest } from '../output/words.ts'

export interface Gap {
  readonly part: string
  readonly reason: string
  readonly container: string | null
  readonly digest: string | null
}

/** Each part with each of its reasons once. */
export const reasonTexts = (gaps: readonly Gap[]): string[] => [
  ...new Set(gaps.map(({ part, reason }) => `${part}: ${reason}`)),
]

/** A line for each gap, with what it is about. */
export const gapTexts = (gaps: readonly Gap[]): string[] =>
  gaps.map(({ part, reason, container, digest }) =>
    [
      `not known: ${part}: ${reason}`,
      ...(container === null ? [] : [`container ${container}`]),
      ...(digest === null ? [] : [shortDigest(digest)]),
    ].join(', '),
  )
