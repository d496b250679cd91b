/** The answer of GET /compute/workloads/{namespace}/{kind}/{name} (docs/contract.md#sizing-of-workloads). */
import { z } from 'zod'
import { zonedTime } from '../../http/request/fields.ts'

/** Fewer minutes say nothing about a size. */
export const MIN_MINUTES = 60
/** A request that is at least so many times the p95 is far above what is used. */
export const OVER_FACTOR = 2
/** The bounds of the buckets in which minutes are counted grow by 2^(1/16). */
export const MAX_ESTIMATE_ERROR = 2 ** (1 / 16) - 1
/** Periods of other requests and limits that are listed for a container. */
export const MAX_SETTINGS = 20
/** Container names that are listed. */
export const MAX_NAMES = 200

const count = z.int().min(0)
const amount = z.number().min(0)
const ratio = z.number().min(0).max(1)

const limits = {
  cpuRequestMillis: amount.nullable().describe('Millicores; null where none is set.'),
  cpuLimitMillis: amount.nullable(),
  memRequestBytes: amount.nullable(),
  memLimitBytes: amount.nullable(),
}
const throttledRatio = ratio.nullable().describe('Throttled periods of all periods of the CPU limit; null without any.')

const Setting = z.strictObject({
  ...limits,
  firstSeen: zonedTime,
  lastSeen: zonedTime.describe('Periods of several settings overlap while pods are replaced.'),
  minutes: amount,
  pods: count,
  cpuMaxMillis: amount,
  memMaxBytes: amount,
  throttledRatio,
  oomKills: count,
})

const percentile = amount.nullable().describe('Null with fewer minutes than `minMinutes`.')

export const FIT_RULES = [
  'noRequest',
  'requestUnderP95',
  'requestOverP95',
  'noLimit',
  'limitUnderMax',
  'throttled',
  'oomKilled',
] as const

const Fit = z.strictObject({
  resource: z.enum(['cpu', 'memory']),
  rule: z.enum(FIT_RULES),
  configured: amount.nullable().describe('The request or limit, in millicores or bytes; null where none is set.'),
  observed: amount.describe('The value that it is compared with: millicores, bytes, a ratio, or kills.'),
})
export type Fit = z.output<typeof Fit>

const Container = z.strictObject({
  container: z.string(),
  pods: count.describe('Pods that were observed.'),
  minutes: amount.describe('Minutes of all pods together.'),
  observedShare: ratio.describe(
    'The share of the time from the first to the last minute of each pod of which there is a minute. Gaps are not zeros.',
  ),
  firstSeen: zonedTime,
  lastSeen: zonedTime,
  current: z.strictObject(limits).describe('The requests and limits of the newest minute.'),
  cpu: z.strictObject({
    p50Millis: percentile,
    p95Millis: percentile,
    p99Millis: percentile,
    maxMillis: amount.describe('The highest sample within any minute.'),
    throttledRatio,
  }),
  memory: z.strictObject({
    p50Bytes: percentile,
    p95Bytes: percentile,
    p99Bytes: percentile,
    maxBytes: amount.describe('The largest working set.'),
    oomKills: count,
  }),
  settings: z
    .array(Setting)
    .min(1)
    .max(MAX_SETTINGS)
    .describe('What was observed under each combination of requests and limits, the newest first.'),
  settingsTruncated: z.boolean(),
  fit: z.array(Fit).nullable().describe('The rules that hold; null where `reason` says why nothing is judged.'),
  reason: z.enum(['too_few_minutes']).nullable(),
})
export type Container = z.output<typeof Container>

export const WorkloadSizing = z
  .strictObject({
    namespace: z.string(),
    kind: z.string(),
    name: z.string(),
    days: z.int().min(0).describe('Days of the calendar (UTC) with today, as far as history is kept.'),
    since: zonedTime.nullable(),
    until: zonedTime.nullable(),
    minMinutes: z.literal(MIN_MINUTES),
    maxRelativeError: z
      .number()
      .min(0)
      .describe('By how much a percentile may be above the exact one, as a share; 0 where percentiles are exact.'),
    pods: z.strictObject({
      live: count,
      liveUnobserved: count.describe('Live pods without a minute in the window: nothing is known of them.'),
      observed: count.describe('Pods with a minute in the window, gone ones too.'),
    }),
    containers: z.array(Container).max(MAX_NAMES).describe('By name.'),
    truncated: z.boolean().describe('Whether older pods or containers were left out.'),
    reason: z
      .enum(['history_disabled', 'unknown_workload', 'no_samples'])
      .nullable()
      .describe('Why there are no containers; null where there are.'),
  })
  .meta({ id: 'WorkloadSizing' })
export type WorkloadSizing = z.output<typeof WorkloadSizing>
