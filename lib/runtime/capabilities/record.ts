/** The answer of GET /workloads/{namespace}/{kind}/{name}/capabilities (docs/contract.md#capabilities). */
import { z } from 'zod'
import { wireTime } from '../../http/request/fields.ts'
import { digestText } from '../../images/index.ts'
import { ReasonDetail } from '../reason-detail.ts'
import { CAPABILITY_PATTERN } from './entry.ts'

const capability = z.string().regex(new RegExp(CAPABILITY_PATTERN))

const SeenCapability = z.strictObject({
  capability: capability.describe('As Kubernetes spells it.'),
  count: z.int().min(0).describe('Checks of it. A post that an agent repeats counts again.'),
  firstSeen: wireTime,
  lastSeen: wireTime,
})
export type SeenCapability = z.output<typeof SeenCapability>

const Omitted = z.strictObject({ capability, reason: z.string() })

const Recommendation = z.strictObject({
  drop: z.tuple([z.literal('ALL')]),
  add: z.array(capability).describe('The used ones and those of `probedKept`, sorted.'),
  probedKept: z.array(capability).describe('Only probed, but added all the same.'),
  probedOmitted: z.array(Omitted).describe('Only probed, and not needed with what `requires` says.'),
  requires: z
    .strictObject({ allowPrivilegeEscalation: z.literal(false) })
    .optional()
    .describe('To be set as well. Absent where `probedOmitted` is empty.'),
})
export type Recommendation = z.output<typeof Recommendation>

/** Why evidence is insufficient, in the order in which the reasons are looked for. */
export const REASONS = [
  ...['no_current_digest', 'rows_truncated', 'no_runtime_data', 'probes_missing', 'libraries_not_tracked'],
  ...['events_dropped', 'events_pending', 'incomplete_paths', 'capture_gap', 'capabilities_not_tracked'],
  ...['capabilities_partial_hook', 'capabilities_not_seen_since_start'],
] as const

const ContainerCapabilities = z.strictObject({
  container: z.string(),
  digests: z.array(digestText).describe('The digests that run, the newest first.'),
  evidence: z.enum(['sufficient', 'insufficient']),
  reason: z.enum(REASONS).nullable().describe('Why it is insufficient, the first that holds; else null.'),
  reasonDetail: ReasonDetail.nullable(),
  observedSince: wireTime
    .nullable()
    .describe('Since when all running digests are watched; null where nobody watches any.'),
  used: z.array(SeenCapability).describe('Granted, and asked for to do something.'),
  denied: z.array(SeenCapability).describe('Not granted.'),
  probed: z.array(SeenCapability).describe('Granted, where the kernel only asked.'),
  recommendation: Recommendation.nullable().describe('Null where the evidence is insufficient.'),
  unusedAdded: z
    .array(z.string())
    .describe('Added by the newest running digest and neither used nor probed. Empty where evidence is insufficient.'),
})
export type ContainerCapabilities = z.output<typeof ContainerCapabilities>

export const WorkloadCapabilities = z
  .strictObject({
    windowHours: z.int().min(1).describe('Hours that the evidence must span.'),
    containers: z
      .array(ContainerCapabilities)
      .describe('All containers of the inventory, by name. Empty for an unknown workload.'),
  })
  .meta({ id: 'WorkloadCapabilities' })
export type WorkloadCapabilities = z.output<typeof WorkloadCapabilities>
