import type { Severity } from './contract.ts'
import type { Minute } from './rows.ts'
import { greatest, total } from './sums.ts'

/** Percent of the time in which all tasks of the container were stalled. */
const CRITICAL_FULL10 = 10
const CRITICAL_P99_US = 200_000

const inGeneral = (isCritical: boolean, signals: readonly unknown[]): Severity => {
  if (isCritical) return 'critical'
  return signals.every((one) => one !== null) ? 'high' : 'medium'
}

/** The severity of a CPU stall. A signal is null if it does not show the stall (docs/contract.md#compute). */
export const stallSeverity = (rows: readonly Minute[], ...signals: readonly unknown[]): Severity =>
  inGeneral(
    (greatest(rows, (row) => row.cpuFullMax) ?? 0) >= CRITICAL_FULL10 ||
      (greatest(rows, (row) => row.runqOverflow) ?? 0) > 0 ||
      (greatest(rows, (row) => row.runqP99Us) ?? 0) >= CRITICAL_P99_US,
    signals,
  )

/** The severity of a memory finding, likewise. */
export const memorySeverity = (rows: readonly Minute[], ...signals: readonly unknown[]): Severity =>
  inGeneral(
    total(rows, (row) => row.oomKills) > 0 || (greatest(rows, (row) => row.memoryFullMax) ?? 0) >= CRITICAL_FULL10,
    signals,
  )
