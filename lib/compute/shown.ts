/** Containers of both posts as the OpenAPI document tells of them; `reading.ts` reads them. */
import { z } from 'zod'
import { MAX_COUNT, MAX_KIND_BYTES, MAX_NAME_BYTES, MAX_POD_UID_BYTES, MAX_REF_BYTES, MAX_UID_BYTES } from './bounds.ts'

const name = (maxBytes: number) => z.string().min(1).max(maxBytes).describe(`Not blank, at most ${maxBytes} bytes.`)
export const counted = () => z.number().min(0).max(MAX_COUNT).optional()
export const limited = () => z.number().min(0).max(MAX_COUNT).nullish()
const id = z
  .number()
  .optional()
  .meta({ format: 'uint64' })
  .describe('Of 64 bits; kept in as many with a sign, so that it may be read back negative.')

const culprit = z.object({
  cgroup_id: id,
  kind: z.string().max(MAX_KIND_BYTES).describe('`pod`, `system`, `kernel` or `unknown`.'),
  ref: z.string().max(MAX_REF_BYTES).describe('`namespace/pod/container`, a unit, or a group.'),
  container_uid: z.string().max(MAX_UID_BYTES).nullish(),
  count: counted(),
  wait_ns: counted(),
})

/** Of CPU, beside what was used and the pressure. */
export const shownCpuCounts = {
  quota_usec: limited(),
  period_usec: counted().describe('Without it, 100000.'),
  request_millis: limited(),
  limit_millis: limited(),
  nr_periods: counted(),
  nr_throttled: counted(),
  throttled_usec: counted(),
}

/** Of memory, beside what was used and the pressure. */
export const shownMemoryCounts = {
  limit: limited(),
  request: limited(),
  events_high: counted(),
  events_max: counted(),
  oom_kill: counted(),
  refault: counted(),
  pgmajfault: counted(),
}

const runq = z.object({
  count: counted(),
  p50_us: counted(),
  p95_us: counted(),
  p99_us: counted(),
  max_us: counted(),
  overflow: counted(),
  hist: z
    .array(z.number())
    .optional()
    .describe('24 buckets: the one at b counts waits from 2^b microseconds on, the last is overflow.'),
})

/** The JSON schema of a container with what a post has of its CPU and memory. */
export function shownContainer(cpu: z.ZodType, memory: z.ZodType, blame: string) {
  const container = z.object({
    container_uid: name(MAX_UID_BYTES),
    pod_uid: name(MAX_POD_UID_BYTES),
    pod_name: name(MAX_NAME_BYTES),
    namespace: name(MAX_NAME_BYTES),
    container: name(MAX_NAME_BYTES),
    cgroup_id: id,
    cpu,
    memory,
    runq: runq.nullish().describe('Null without a probe.'),
    blame: z.array(culprit).nullish().describe(blame),
  })
  const { $schema: _, $defs: __, ...shown } = z.toJSONSchema(container, { io: 'input', reused: 'inline' })
  return shown
}
