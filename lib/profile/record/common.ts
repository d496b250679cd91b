/** The parts that all dimensions of a workload's profile share (docs/contract.md#workload-profiles). */
import { z } from 'zod'
import { zonedTime } from '../../http/request/fields.ts'

export const STATUSES = ['ok', 'warn', 'risk', 'unknown'] as const
export type Status = (typeof STATUSES)[number]
/** The most severe first. */
export const SEVERITIES = ['critical', 'high', 'medium', 'low', 'info'] as const
export type Severity = (typeof SEVERITIES)[number]
/** The dimensions that decide the posture, in the order of answers. */
export const CORE_DIMENSIONS = ['network', 'syscalls', 'podSecurity', 'images'] as const
export type CoreDimension = (typeof CORE_DIMENSIONS)[number]

export const status = z.enum(STATUSES)
export const severity = z.enum(SEVERITIES)
export const count = z.int().min(0)

const Reason = z.strictObject({
  code: z.string().describe('Stable.'),
  message: z.string().describe('For people; may change.'),
})
export type Reason = z.output<typeof Reason>

/** The first keys of every dimension. */
export const envelope = {
  status,
  coverage: z.strictObject({
    level: z.enum(['full', 'partial', 'none']),
    fraction: z
      .number()
      .min(0)
      .max(1)
      .nullable()
      .describe('The part of the checks that was made; only of podSecurity.'),
    observedSince: zonedTime.nullable(),
    note: z.string(),
  }),
  reasons: z.array(Reason).describe('Why it has that status.'),
}

export const Finding = z
  .strictObject({
    id: z.string().describe('Stable. `/<container>` follows where it is about one.'),
    dimension: z.enum([...CORE_DIMENSIONS, 'compute', 'drift']),
    severity,
    tier: z.enum(['P0', 'P1', 'P2']).nullable().describe('critical: P0, high: P1, medium: P2, else null.'),
    title: z.string(),
    detail: z.string(),
    container: z.string().nullable(),
  })
  .meta({ id: 'ProfileFinding' })
export type Finding = z.output<typeof Finding>
