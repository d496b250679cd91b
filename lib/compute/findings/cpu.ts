import type { Finding } from './contract.ts'
import { attribute } from './culprit.ts'
import { CRITICAL_FULL10, findingOf, severityOf } from './finding.ts'
import { throttled } from './message.ts'
import type { FindNeighbor, Minute, Victim } from './rows.ts'
import { greatest, spanOf, spanOfRows, sustained, throttledRatio } from './series.ts'
import type { Thresholds } from './thresholds.ts'

const US_PER_MS = 1_000
const CRITICAL_P99_US = 200_000

/**
 * A row covers a minute, so its counts are rates. Waits in the overflow bucket are not part of the p99 and always
 * count.
 */
const isLate = ({ runqCount, runqP99Us, runqOverflow }: Minute, { minRunqEvents, runqP99Ms }: Thresholds): boolean =>
  (runqCount !== null && runqP99Us !== null && runqCount >= minRunqEvents && runqP99Us >= runqP99Ms * US_PER_MS) ||
  (runqOverflow ?? 0) > 0

const isCritical = (rows: readonly Minute[]): boolean =>
  (greatest(rows, (row) => row.cpuFullMax) ?? 0) >= CRITICAL_FULL10 ||
  (greatest(rows, (row) => row.runqOverflow) ?? 0) > 0 ||
  (greatest(rows, (row) => row.runqP99Us) ?? 0) >= CRITICAL_P99_US

/** Returns the CPU finding of a container, null if it got the CPU it could use (docs/contract.md#compute). */
export function cpuFinding(victim: Victim, find: FindNeighbor, thresholds: Thresholds): Finding | null {
  const { rows } = victim
  const pressure = sustained(rows, (row) => row.cpuSomeAvg >= thresholds.stallSome)
  const lateness = sustained(rows, (row) => isLate(row, thresholds))
  const span = spanOf(pressure, lateness)
  const ratio = throttledRatio(rows)
  if (ratio >= thresholds.throttledRatio)
    return findingOf(victim, {
      kind: 'cpu-throttled',
      severity: span === null ? 'medium' : 'high',
      culprit: null,
      span: spanOfRows(rows),
      nodeMemorySome10: 0,
      message: throttled(ratio, rows.at(-1)!.limitMillis),
    })
  if (span === null || ratio > thresholds.throttledRatioMax) return null
  const { culprit, message } = attribute(victim, find, thresholds.blameShare)
  return findingOf(victim, {
    kind: culprit === null ? 'cpu-contended' : 'noisy-neighbor',
    severity: severityOf(isCritical(rows), pressure, lateness),
    culprit,
    span,
    nodeMemorySome10: 0,
    message,
  })
}
