/** Reads the remarks from the comments of a generated text, to show them beside it. */
import { linesOf } from './line-diff.ts'

export const REMARK_KINDS = ['leftOut', 'warning', 'notCovered', 'identity', 'note', 'allows'] as const
export type RemarkKind = (typeof REMARK_KINDS)[number]

export interface Remark {
  readonly kind: RemarkKind
  readonly text: string
  /** Counted from 1. */
  readonly line: number
}

const BEGINNINGS: readonly (readonly [RemarkKind, RegExp])[] = [
  ['leftOut', /^(?:NOTE: )?(?=LEFT OUT|dropped, so not allowed|dropped: \+)/],
  ['warning', /^WARNING: |^(?=CLUSTER-WIDE|REVIEW EVERY)/],
  ['notCovered', /^not covered: /],
  ['identity', /^identity: /],
  ['note', /^(?:NOTE|CAVEAT): /],
  ['allows', /^(?=Allows )/],
]

/** Comment lines with a warning, an omission or a point to review, in the order of the text. */
export function remarksOf(text: string): Remark[] {
  return linesOf(text).flatMap((raw, i) => {
    // Only comments can stand in place of a document that could not be generated.
    const comment = /^#\s*(?:#\s*)?(.*)$/.exec(raw)?.[1]
    if (comment === undefined) return []
    const found = BEGINNINGS.find(([, beginning]) => beginning.test(comment))
    return found === undefined ? [] : [{ kind: found[0], text: comment.replace(found[1], ''), line: i + 1 }]
  })
}
