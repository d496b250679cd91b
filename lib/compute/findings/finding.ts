import type { Culprit, Finding, Severity } from './contract.ts'
import { evidenceOf } from './evidence.ts'
import { sentence } from './message.ts'
import type { Victim } from './rows.ts'
import type { Span } from './sustained.ts'

const SECONDS_END = 19
/** Cuts a time to whole seconds, like all times that compute answers. */
const wholeSeconds = (ts: string) => `${ts.slice(0, SECONDS_END)}Z`

interface Found {
  readonly kind: Finding['kind']
  readonly severity: Severity
  readonly culprit: Culprit | null
  readonly span: Span
  /** 0 in CPU findings. */
  readonly nodeMemorySome10: number
  readonly said: string
}

/** Returns a finding as the API answers it. */
export const findingOf = (
  { container, rows }: Victim,
  { kind, severity, culprit, span, nodeMemorySome10, said }: Found,
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
  evidence: evidenceOf(rows, nodeMemorySome10),
  first_seen: wholeSeconds(span.first),
  last_seen: wholeSeconds(span.last),
  message: sentence(container, said),
})
