/**
 * The JSON schema of a container in both posts. Its numbers come from the same tables that `reading.ts` uses to read
 * them.
 */
import { z } from 'zod'
import { MAX_KIND_BYTES, MAX_NAME_BYTES, MAX_POD_UID_BYTES, MAX_REF_BYTES, MAX_UID_BYTES } from './bounds.ts'
import { countSchema, RUNQ_COUNTS, shapeOf } from './reading.ts'

const name = (maxBytes: number) => z.string().min(1).max(maxBytes).describe(`Not blank, at most ${maxBytes} bytes.`)
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
  count: countSchema(),
  wait_ns: countSchema(),
})

const runq = z.object({
  ...shapeOf(RUNQ_COUNTS),
  hist: z
    .array(z.number())
    .optional()
    .describe('24 buckets: the one at b counts waits from 2^b microseconds on, the last is overflow.'),
})

/** Returns the JSON schema of a container with the given CPU and memory blocks and the description of `blame`. */
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
