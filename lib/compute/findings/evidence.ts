import { type Finding, WINDOW_MINUTES } from './contract.ts'
import type { Minute } from './rows.ts'
import { greatest, throttledRatio, total } from './sums.ts'

/** Returns the evidence of a finding over the window. `nodeMemorySome10` is 0 in CPU findings. */
export const evidenceOf = (rows: readonly Minute[], nodeMemorySome10: number): Finding['evidence'] => ({
  window_minutes: WINDOW_MINUTES,
  cpu_psi_some10_max: greatest(rows, (row) => row.cpuSomeMax)!,
  cpu_psi_full10_max: greatest(rows, (row) => row.cpuFullMax)!,
  runq_p99_us_max: greatest(rows, (row) => row.runqP99Us),
  throttled_ratio: throttledRatio(rows),
  mem_psi_some10_max: greatest(rows, (row) => row.memorySomeMax)!,
  node_mem_some10_max: nodeMemorySome10,
  refault_delta: total(rows, (row) => row.refaults),
  mem_events_high_delta: total(rows, (row) => row.eventsHigh),
})
