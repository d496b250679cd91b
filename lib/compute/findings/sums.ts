import type { Minute, Usage } from './rows.ts'

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
