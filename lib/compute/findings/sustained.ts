import type { Minute } from './rows.ts'

/** From one time to another, both as rows have them. */
export interface Span {
  readonly first: string
  readonly last: string
}

/**
 * Null unless two rows that follow one another hold, however far apart in time. The span is from the first to the last row that holds,
 * neighbors or not.
 */
export function sustained(rows: readonly Minute[], holds: (row: Minute) => boolean): Span | null {
  const held = rows.map(holds)
  if (!held.some((one, i) => one && held[i + 1] === true)) return null
  return { first: rows[held.indexOf(true)]!.ts, last: rows[held.lastIndexOf(true)]!.ts }
}

/** From the first of them to the last; null of none. */
export function spanOf(...spans: readonly (Span | null)[]): Span | null {
  const known = spans.filter((one) => one !== null)
  if (known.length === 0) return null
  return {
    first: known.map(({ first }) => first).sort()[0]!,
    last: known
      .map(({ last }) => last)
      .sort()
      .at(-1)!,
  }
}

/** From the first row to the last. */
export const spanOfRows = (rows: readonly Minute[]): Span => ({ first: rows[0]!.ts, last: rows.at(-1)!.ts })
