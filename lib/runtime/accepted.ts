import type { Dropped } from '../entries/index.ts'

/** The answer to a post of entries. */
export interface Accepted {
  /** All entries except dropped ones; repeated ones count. */
  readonly accepted: number
  readonly dropped: number
  /** Rows that are new or changed. */
  readonly written: number
}

export function accepted(entries: number, dropped: Dropped, written: number): Accepted {
  const sum = totalOf(dropped)
  return { accepted: entries - sum, dropped: sum, written }
}

/** The number of dropped entries. */
export const totalOf = (dropped: Dropped): number => Object.values(dropped).reduce((total, count) => total + count, 0)
