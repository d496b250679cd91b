/** Heartbeats of watched containers, as agents post them (interop-profiling 2.4, P11, P29, P34; workload-profiling, Runtime coverage and heartbeat). */
import { z } from 'zod'
import { naiveTimeText } from '../../http/request/fields.ts'
import { DIGEST_PATTERN, isDigest } from '../../images/index.ts'
import { isLongerThan } from '../../text/utf8.ts'
import { parseNaive } from '../../time/timestamp.ts'

const MODES = ['exec', 'full'] as const
const START_MODES = ['start', 'backfill'] as const
/** The longest name in Kubernetes. */
const MAX_NAME_BYTES = 253
const MAX_WORKLOAD_KIND_BYTES = 63
const MAX_CONTAINER_ID_CHARS = 128
const CONTAINER_ID = /^[A-Za-z0-9]+$/
const MAX_HEARTBEAT_SECS = 86_400
/** What is more counts as so many, in an entry and in what is stored: sums of it fit a double. */
export const MAX_COUNT = 1_000_000_000_000
const MAX_TIME_CHARS = 64

const name = (maxBytes = MAX_NAME_BYTES) =>
  z.string().min(1).max(maxBytes).describe(`At most ${maxBytes} bytes, without white space around it.`)
const count = (what: string) =>
  z.int().min(0).nullish().describe(`${what} What is more than ${MAX_COUNT} counts as that.`)

/** An entry as the OpenAPI document tells of it; `judgeHeartbeat` reads it. */
const HeartbeatEntry = z.object({
  pod_namespace: name(),
  pod_name: name(),
  workload_kind: name(MAX_WORKLOAD_KIND_BYTES)
    .nullish()
    .describe(
      'With `workload_name` or not at all: without both the workload is the pod, until a later heartbeat names one.',
    ),
  workload_name: name().nullish(),
  container_name: name(),
  image_digest: z
    .string()
    .regex(new RegExp(`^$|${DIGEST_PATTERN}`))
    .nullish()
    .describe('Empty, or absent, where it is not resolved; a later heartbeat may name it.'),
  container_id: z
    .string()
    .max(MAX_CONTAINER_ID_CHARS)
    .regex(CONTAINER_ID)
    .describe('By which heartbeats belong together.'),
  node_name: name(),
  mode: z.enum(MODES),
  exec_probe: z.boolean(),
  lib_probe: z.boolean(),
  start_mode: z.enum(START_MODES).describe('Whether it is watched from its start on.'),
  tracking_since: naiveTimeText.describe('Where it is after the heartbeat before, nobody watched in between.'),
  probe_attached_at: naiveTimeText.nullish(),
  events_dropped: count('Events lost since the heartbeat before.'),
  unsent: count('Entries that wait to be sent.'),
  incomplete: z.boolean().nullish(),
  ended: z.boolean().nullish().describe('Whether the container has ended: no heartbeat after that changes anything.'),
  heartbeat_at: naiveTimeText.describe('Where it is in the future, the time of the broker.'),
  heartbeat_secs: z.int().min(1).max(MAX_HEARTBEAT_SECS).describe('Seconds to the next one.'),
})

/** The same as a JSON schema. */
export const {
  $schema: _,
  $defs: __,
  ...shownEntry
} = z.toJSONSchema(HeartbeatEntry, { io: 'input', reused: 'inline' })

/** A heartbeat that is to be stored. Times are naive UTC; an image that is not known is empty. */
export interface Heartbeat {
  readonly container_id: string
  readonly pod_namespace: string
  readonly workload_kind: string
  readonly workload_name: string
  readonly container_name: string
  readonly image_digest: string
  readonly pod_name: string
  readonly node_name: string
  readonly mode: (typeof MODES)[number]
  readonly exec_probe: boolean
  readonly lib_probe: boolean
  readonly start_mode: (typeof START_MODES)[number]
  readonly tracking_since: string
  readonly probe_attached_at: string | null
  readonly heartbeat_at: string
  readonly heartbeat_secs: number
  readonly events_dropped: number
  readonly unsent: number
  readonly incomplete: boolean
  readonly ended: boolean
}

/** Why an entry is dropped: the field that is at fault, or the entry, which is no object. */
export type Fault = keyof z.input<typeof HeartbeatEntry> | 'entry'

type Fields = Readonly<Partial<Record<Fault, unknown>>>

const NAMES = ['pod_namespace', 'pod_name', 'container_name', 'node_name'] as const satisfies Fault[]
const PROBES = ['exec_probe', 'lib_probe'] as const satisfies Fault[]
const FLAGS = ['incomplete', 'ended'] as const satisfies Fault[]
const COUNTS = ['events_dropped', 'unsent'] as const satisfies Fault[]

/** An entry, or why it is dropped. What may be absent may be null as well; of another type it drops the entry, as any other field does. */
export function judgeHeartbeat(entry: unknown): Heartbeat | Fault {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return 'entry'
  const fields: Fields = entry
  for (const field of NAMES) if (!isName(fields[field], MAX_NAME_BYTES)) return field
  for (const field of PROBES) if (typeof fields[field] !== 'boolean') return field
  for (const field of FLAGS) if (typeof (fields[field] ?? false) !== 'boolean') return field
  for (const field of COUNTS) if (!isCount(fields[field] ?? 0)) return field
  const workload = workloadOf(fields)
  if (typeof workload === 'string') return workload
  const { container_id, heartbeat_secs } = fields
  if (
    typeof container_id !== 'string' ||
    container_id.length > MAX_CONTAINER_ID_CHARS ||
    !CONTAINER_ID.test(container_id)
  )
    return 'container_id'
  const image_digest = fields.image_digest ?? ''
  if (image_digest !== '' && !isDigest(image_digest)) return 'image_digest'
  const mode = MODES.find((one) => one === fields.mode)
  if (mode === undefined) return 'mode'
  const start_mode = START_MODES.find((one) => one === fields.start_mode)
  if (start_mode === undefined) return 'start_mode'
  if (!isCadence(heartbeat_secs)) return 'heartbeat_secs'
  const tracking_since = timeOf(fields.tracking_since)
  if (tracking_since === null) return 'tracking_since'
  const heartbeat_at = timeOf(fields.heartbeat_at)
  if (heartbeat_at === null) return 'heartbeat_at'
  const attached = fields.probe_attached_at ?? null
  const probe_attached_at = attached === null ? null : timeOf(attached)
  if (probe_attached_at === null && attached !== null) return 'probe_attached_at'
  return {
    container_id,
    pod_namespace: fields.pod_namespace as string,
    ...workload,
    container_name: fields.container_name as string,
    image_digest,
    pod_name: fields.pod_name as string,
    node_name: fields.node_name as string,
    mode,
    exec_probe: fields.exec_probe as boolean,
    lib_probe: fields.lib_probe as boolean,
    start_mode,
    tracking_since,
    probe_attached_at,
    heartbeat_at,
    heartbeat_secs,
    events_dropped: Math.min((fields.events_dropped as number | undefined) ?? 0, MAX_COUNT),
    unsent: Math.min((fields.unsent as number | undefined) ?? 0, MAX_COUNT),
    incomplete: fields.incomplete === true,
    ended: fields.ended === true,
  }
}

/** A pod without an owner is its own; half an owner is none, but no pod either. */
function workloadOf({
  workload_kind,
  workload_name,
  pod_name,
}: Fields): Pick<Heartbeat, 'workload_kind' | 'workload_name'> | Fault {
  const [kind, name] = [workload_kind ?? null, workload_name ?? null]
  if (kind === null && name === null) return { workload_kind: 'Pod', workload_name: pod_name as string }
  if (!isName(kind, MAX_WORKLOAD_KIND_BYTES)) return 'workload_kind'
  if (!isName(name, MAX_NAME_BYTES)) return 'workload_name'
  return { workload_kind: kind, workload_name: name }
}

const isName = (value: unknown, maxBytes: number): value is string =>
  typeof value === 'string' &&
  value !== '' &&
  !isLongerThan(value, maxBytes) &&
  value.trim() === value &&
  !value.includes('\0') &&
  value.isWellFormed()

const isCount = (value: unknown): value is number => Number.isInteger(value) && (value as number) >= 0

const isCadence = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_HEARTBEAT_SECS

const timeOf = (value: unknown): string | null =>
  typeof value === 'string' && value.length <= MAX_TIME_CHARS ? parseNaive(value) : null
