import { z } from 'zod'
import { wireTime } from '../http/request/fields.ts'

export const CAPTURE_LEVELS = ['full', 'high', 'medium', 'low', 'custom'] as const

const text = z.string().nullable()

/** A pod in the form of all reads, keys in wire order (docs/contract.md#pods). */
export const PodRecord = z
  .strictObject({
    pod_name: z.string(),
    pod_ip: z.string(),
    pod_namespace: text,
    pod_obj: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe('`metadata` without `managedFields`, and `spec.hostNetwork`.'),
    time_stamp: wireTime,
    node_name: z.string(),
    is_dead: z.boolean(),
    pod_identity: text,
    workload_selector_labels: z.record(z.string(), z.string()).nullable(),
    pod_ips: z.array(z.string()).describe('All addresses, canonical, the primary one first.'),
    workload_kind: text,
    workload_name: text,
    capture_level: z.enum(CAPTURE_LEVELS).nullable().describe('Null counts as `low`.'),
    host_network: z.boolean().nullable(),
    started_at: wireTime.nullable(),
  })
  .meta({ id: 'PodRecord' })
export type PodRecord = z.output<typeof PodRecord>

/** The answer to a post without a pod name: the record as posted. Nothing was written. */
export const PodEcho = PodRecord.extend({
  pod_name: z.string().regex(/^\s*$/),
  pod_obj: z.record(z.string(), z.unknown()).nullable(),
  pod_ips: z.unknown(),
  capture_level: text,
}).meta({
  id: 'PodEcho',
  description: 'The answer to a post with a blank `pod_name`: what was posted. Nothing was written.',
})
export type PodEcho = z.output<typeof PodEcho>
