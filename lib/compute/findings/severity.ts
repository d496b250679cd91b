import type { Severity } from './contract.ts'
import type { Minute } from './rows.ts'
import { greatest, total } from './sums.ts'

/** Percent of the time in which nothing in the container got on. */
const CRITICAL_FULL10 = 10
const CRITICAL_P99_US = 200_000

const inGeneral = (isCritical: boolean, signals: readonly unknown[]): Severity => {
  if (isCritical) return 'critical'
  return signals.every((one) => one !== null) ? 'high' : 'medium'
}

/** Of a stall, by the signals that show it, null for one that does not (docs/contract.md#findings). */
export const stallSeverity = (rows: readonly Minute[], ...signals: readonly unknown[]): Severity =>
  inGeneral(
    (greatest(rows, (row) => row.cpuFullMax) ?? 0) >= CRITICAL_FULL10 ||
      (greatest(rows, (row) => row.runqOverflow) ?? 0) > 0 ||
      (greatest(rows, (row) => row.runqP99Us) ?? 0) >= CRITICAL_P99_US,
    signals,
  )

/** The same of memory (Memory rule, step 1). */
export const memorySeverity = (rows: readonly Minute[], ...signals: readonly unknown[]): Severity =>
  inGeneral(
    total(rows, (row) => row.oomKills) > 0 || (greatest(rows, (row) => row.memoryFullMax) ?? 0) >= CRITICAL_FULL10,
    signals,
  )
