import type { Minute } from './rows.ts'

/** Two times, in the format of rows. */
export interface Span {
  readonly first: string
  readonly last: string
}

/**
 * Returns null unless `holds` is true for two consecutive rows, however far apart in time. The span goes from the first
 * to the last row for which it is true, consecutive or not.
 */
export function sustained(rows: readonly Minute[], holds: (row: Minute) => boolean): Span | null {
  const held = rows.map(holds)
  if (!held.some((one, i) => one && held[i + 1] === true)) return null
  return { first: rows[held.indexOf(true)]!.ts, last: rows[held.lastIndexOf(true)]!.ts }
}

/** Returns the span that covers all given spans; null for none. */
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

export const spanOfRows = (rows: readonly Minute[]): Span => ({ first: rows[0]!.ts, last: rows.at(-1)!.ts })
