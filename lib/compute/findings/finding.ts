import { type Culprit, type Finding, type Severity, WINDOW_MINUTES } from './contract.ts'
import { sentence } from './message.ts'
import type { Victim } from './rows.ts'
import { greatest, type Span, throttledRatio, total } from './series.ts'

const SECONDS_END = 19
/** Cuts a time to whole seconds, like all times that compute answers. */
const wholeSeconds = (ts: string) => `${ts.slice(0, SECONDS_END)}Z`

/** Percent of the time in which all tasks of the container were stalled: from here on, a stall is critical. */
export const CRITICAL_FULL10 = 10

/** The severity of a stall. A signal is null if it does not show the stall (docs/contract.md#compute). */
export function severityOf(isCritical: boolean, ...signals: readonly (Span | null)[]): Severity {
  if (isCritical) return 'critical'
  return signals.every((one) => one !== null) ? 'high' : 'medium'
}

interface Found {
  readonly kind: Finding['kind']
  readonly severity: Severity
  readonly culprit: Culprit | null
  readonly span: Span
  /** 0 in CPU findings. */
  readonly nodeMemorySome10: number
  /** The message behind the name of the victim. */
  readonly message: string
}

/** Returns a finding as the API answers it, with the evidence of the window. */
export const findingOf = (
  { container, rows }: Victim,
  { kind, severity, culprit, span, nodeMemorySome10, message }: Found,
): Finding => ({
  kind,
  severity,
  victim: {
    pod_uid: container.podUid,
    namespace: container.namespace,
    pod_name: container.podName,
    container: container.container,
    container_uid: container.containerUid,
    node: container.node,
  },
  culprit,
  evidence: {
    window_minutes: WINDOW_MINUTES,
    cpu_psi_some10_max: greatest(rows, (row) => row.cpuSomeMax)!,
    cpu_psi_full10_max: greatest(rows, (row) => row.cpuFullMax)!,
    runq_p99_us_max: greatest(rows, (row) => row.runqP99Us),
    throttled_ratio: throttledRatio(rows),
    mem_psi_some10_max: greatest(rows, (row) => row.memorySomeMax)!,
    node_mem_some10_max: nodeMemorySome10,
    refault_delta: total(rows, (row) => row.refaults),
    mem_events_high_delta: total(rows, (row) => row.eventsHigh),
  },
  first_seen: wholeSeconds(span.first),
  last_seen: wholeSeconds(span.last),
  message: sentence(container, message),
})
