import type { Finding } from './contract.ts'
import { verdictOn } from './culprit.ts'
import { findingOf } from './finding.ts'
import { throttled } from './message.ts'
import type { FindNeighbor, Minute, Victim } from './rows.ts'
import { stallSeverity } from './severity.ts'
import { throttledRatio } from './sums.ts'
import { spanOf, spanOfRows, sustained } from './sustained.ts'
import type { Thresholds } from './thresholds.ts'

const US_PER_MS = 1_000

/** Rows are of a minute, so that a count of one is a rate. What waited longest of all is not in the p99, and always counts. */
const isLate = ({ runqCount, runqP99Us, runqOverflow }: Minute, { minRunqEvents, runqP99Ms }: Thresholds): boolean =>
  (runqCount !== null && runqP99Us !== null && runqCount >= minRunqEvents && runqP99Us >= runqP99Ms * US_PER_MS) ||
  (runqOverflow ?? 0) > 0

/** Why a container did not get the CPU it could have used; null when it did (docs/contract.md#findings). */
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
      said: throttled(ratio, rows.at(-1)!.limitMillis),
    })
  if (span === null || ratio > thresholds.throttledRatioMax) return null
  const { culprit, said } = verdictOn(victim, find, thresholds.blameShare)
  return findingOf(victim, {
    kind: culprit === null ? 'cpu-contended' : 'noisy-neighbor',
    severity: stallSeverity(rows, pressure, lateness),
    culprit,
    span,
    nodeMemorySome10: 0,
    said,
  })
}
