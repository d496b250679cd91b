/** What the comments of a generated text say, so that it can be shown beside the text. */
import { linesOf } from './line-diff.ts'

export const REMARK_KINDS = ['leftOut', 'warning', 'notCovered', 'identity', 'note', 'allows'] as const
export type RemarkKind = (typeof REMARK_KINDS)[number]

export interface Remark {
  readonly kind: RemarkKind
  readonly text: string
  /** From 1. */
  readonly line: number
}

const BEGINNINGS: readonly (readonly [RemarkKind, RegExp])[] = [
  ['leftOut', /^(?:NOTE: )?(?=LEFT OUT)/],
  ['warning', /^WARNING: |^(?=CLUSTER-WIDE|REVIEW EVERY)/],
  ['notCovered', /^not covered: /],
  ['identity', /^identity: /],
  ['note', /^(?:NOTE|CAVEAT): /],
  ['allows', /^(?=Allows )/],
]

/** The comments at the beginning of lines that warn, leave something out, or are to be reviewed; in their order. */
export function remarksOf(text: string): Remark[] {
  return linesOf(text).flatMap((raw, i) => {
    // Documents that are no objects stand in comments themselves.
    const comment = /^#\s*(?:#\s*)?(.*)$/.exec(raw)?.[1]
    if (comment === undefined) return []
    const found = BEGINNINGS.find(([, beginning]) => beginning.test(comment))
    return found === undefined ? [] : [{ kind: found[0], text: comment.replace(found[1], ''), line: i + 1 }]
  })
}
