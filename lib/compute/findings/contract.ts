import { z } from 'zod'
import { documentedAs } from '../../openapi/declare.ts'

/** Containers that are evaluated for one answer. */
export const MAX_VICTIMS = 500
/** Each container has at most one CPU finding and one memory finding. */
const MAX_FINDINGS = 2 * MAX_VICTIMS
/** Memory to reserve for a request: rows read, nodes read whole, and the answer. */
export const MAX_BYTES = 16 * 1024 * 1024
/** The window, in minutes: older rows do not count. */
export const WINDOW_MINUTES = 5

const KINDS = ['noisy-neighbor', 'cpu-throttled', 'cpu-contended', 'memory-pressure', 'memory-limit-thrash'] as const
const SEVERITIES = ['critical', 'high', 'medium'] as const

const percent = z.number().min(0).describe('Percent of the time.')
const sum = z.number().min(0)
const share = z.number().min(0).max(1)
const wholeSeconds = documentedAs(z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/), {
  type: 'string',
  format: 'date-time',
  description: 'RFC 3339, UTC, with `Z`, whole seconds.',
})

const Victim = z.strictObject({
  pod_uid: z.string(),
  namespace: z.string(),
  pod_name: z.string(),
  container: z.string(),
  container_uid: z.string().describe('`<pod_uid>/<container>`.'),
  node: z.string(),
})

const Culprit = z
  .strictObject({
    kind: z.enum(['pod', 'system', 'kernel']),
    ref: z.string().describe('`namespace/pod/container`, a system unit, or `kernel`.'),
    pod_uid: z.string().nullable().describe('Null unless `kind` is `pod`, as are the other names of a pod.'),
    namespace: z.string().nullable(),
    pod_name: z.string().nullable(),
    container_uid: z.string().nullable(),
    blame_share: share.describe(
      "The share of a noisy neighbor in the waits of the victim; else the share in the node's memory beyond requests.",
    ),
    cpu_usage_millis: z.number().min(0).nullable().describe('Null for a container that is not sampled.'),
    cpu_request_millis: z.number().min(0).nullable().describe('Null where it has none.'),
  })
  .meta({ id: 'ComputeCulprit' })

const Evidence = z
  .strictObject({
    window_minutes: z.literal(WINDOW_MINUTES),
    cpu_psi_some10_max: percent,
    cpu_psi_full10_max: percent,
    runq_p99_us_max: z.number().min(0).nullable().describe('Null without the scheduler probe.'),
    throttled_ratio: share,
    mem_psi_some10_max: percent,
    node_mem_some10_max: percent.describe('The pressure of its node; 0 in CPU findings.'),
    refault_delta: sum,
    mem_events_high_delta: sum,
  })
  .meta({ id: 'ComputeEvidence' })

/** A finding (docs/contract.md#compute). */
export const Finding = z
  .strictObject({
    kind: z.enum(KINDS),
    severity: z.enum(SEVERITIES),
    victim: Victim,
    culprit: Culprit.nullable(),
    evidence: Evidence,
    first_seen: wholeSeconds,
    last_seen: wholeSeconds,
    message: z.string().describe('One line for people to read; it may change.'),
  })
  .meta({ id: 'ComputeFinding' })

/** The answer of GET /compute/findings. */
export const Findings = z
  .strictObject({
    findings: z
      .array(Finding)
      .max(MAX_FINDINGS)
      .describe('By `container_uid` of the victim; of one container, the CPU finding comes first.'),
    truncated: z.boolean().describe('Whether some data was left out because there is too much.'),
    victims_evaluated: z.int().min(0).max(MAX_VICTIMS),
    history_disabled: z.boolean(),
  })
  .meta({ id: 'ComputeFindings' })

export type Findings = z.output<typeof Findings>
export type Finding = z.output<typeof Finding>
export type Culprit = z.output<typeof Culprit>
export type Severity = Finding['severity']
