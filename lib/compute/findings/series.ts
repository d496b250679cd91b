import type { Minute, Usage } from './rows.ts'

/** Two times, in the format of rows. */
export interface Span {
  readonly first: string
  readonly last: string
}

export const total = <R>(rows: readonly R[], value: (row: R) => number): number =>
  rows.reduce((sum, row) => sum + value(row), 0)

/** Ignores rows without a value; null if no row has one. */
export function greatest<R>(rows: readonly R[], value: (row: R) => number | null): number | null {
  return rows.reduce<number | null>((max, row) => {
    const one = value(row)
    return one === null || (max !== null && max >= one) ? max : one
  }, null)
}

/** The throttled share of the time of all periods, 0 to 1; 0 without periods. */
export function throttledRatio(rows: readonly Minute[]): number {
  const periodsUsec = total(rows, (row) => row.periods * row.periodUsec)
  if (periodsUsec <= 0) return 0
  return Math.min(Math.max(total(rows, (row) => row.throttledUsec) / periodsUsec, 0), 1)
}

export const meanUsageMillis = (rows: readonly Usage[]): number => total(rows, (row) => row.usageMillis) / rows.length

/**
 * Returns null unless `holds` is true for two consecutive rows, however far apart in time. The span goes from the first
 * to the last row for which it is true, consecutive or not.
 */
export function sustained(rows: readonly Minute[], holds: (row: Minute) => boolean): Span | null {
  const results = rows.map(holds)
  if (!results.some((one, i) => one && results[i + 1] === true)) return null
  return { first: rows[results.indexOf(true)]!.ts, last: rows[results.lastIndexOf(true)]!.ts }
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
