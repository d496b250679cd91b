/** What the kernel denied, as agents post it (interop-profiling 1.9, P7; workload-profiling, Denial ingest rules). */
import { z } from 'zod'
import { isLongerThan } from '../../text/utf8.ts'
import { parseRfc3339 } from '../../time/timestamp.ts'
import { foldedArchitecture } from '../names.ts'

const MAX_POD_UID_BYTES = 128
/** The longest name in Kubernetes. */
const MAX_NAME_BYTES = 253
const MAX_SYSCALL_BYTES = 128
const MAX_ACTION_BYTES = 64
const MAX_ARCH_BYTES = 64
/** Of an entry, and of what is stored: sums of it fit a double. */
export const MAX_COUNT = 1_000_000_000_000
/** Far more than a time in RFC 3339 has. */
const MAX_TIME_CHARS = 64

const nonBlank = (maxBytes: number) => z.string().min(1).max(maxBytes).describe(`Not blank, at most ${maxBytes} bytes.`)
const time = z.string().meta({ format: 'date-time' }).nullish()

/** An entry as the OpenAPI document tells of it; `judgeDenial` reads it. */
const DenialEntry = z.object({
  podUid: nonBlank(MAX_POD_UID_BYTES),
  podName: nonBlank(MAX_NAME_BYTES),
  podNamespace: nonBlank(MAX_NAME_BYTES),
  syscall: nonBlank(MAX_SYSCALL_BYTES),
  syscallNr: z.int().nullish(),
  action: nonBlank(MAX_ACTION_BYTES),
  actionRaw: z.int().nullish(),
  arch: z.string().max(MAX_ARCH_BYTES).nullish().describe(`At most ${MAX_ARCH_BYTES} bytes.`),
  count: z.int().min(1).max(MAX_COUNT).describe('Events since the drain before.'),
  firstSeen: time.describe('With a zone. Without it, `lastSeen`.'),
  lastSeen: time.describe('With a zone. Without it, and where it is in the future, the time of the broker.'),
})

/** The same as a JSON schema. */
export const { $schema: _, ...shownEntry } = z.toJSONSchema(DenialEntry, { io: 'input' })

/** An entry that is to be stored. Times are naive UTC, in order where there are both; without one it was just now. */
export interface Denial {
  readonly pod_uid: string
  readonly pod_name: string
  readonly pod_namespace: string
  readonly syscall: string
  readonly syscall_nr: number | null
  readonly action: string
  readonly action_raw: number | null
  readonly arch: string | null
  readonly count: number
  readonly first_seen: string | null
  readonly last_seen: string | null
}

/** Why an entry is dropped: the field that is at fault, or the entry, which is no object. */
export type Fault = keyof z.input<typeof DenialEntry> | 'entry'

const IDENTITY = [
  ['podUid', MAX_POD_UID_BYTES],
  ['podName', MAX_NAME_BYTES],
  ['podNamespace', MAX_NAME_BYTES],
  ['syscall', MAX_SYSCALL_BYTES],
  ['action', MAX_ACTION_BYTES],
] as const satisfies (readonly [Fault, number])[]

type Fields = Readonly<Partial<Record<Fault, unknown>>>

/**
 * An entry, or why it is dropped: it does not identify itself, counts nothing or too much, or a text of it is too long or such that no database
 * can hold it (P26). Whatever else is wrong with a field that may be absent, it is as if it were.
 */
export function judgeDenial(entry: unknown): Denial | Fault {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return 'entry'
  const fields: Fields = entry
  for (const [field, maxBytes] of IDENTITY) if (!isIdentity(fields[field], maxBytes)) return field
  const { count, arch, firstSeen, lastSeen } = fields
  if (!isCount(count)) return 'count'
  if (!isStorable(arch)) return 'arch'
  if (!isStorable(firstSeen)) return 'firstSeen'
  if (!isStorable(lastSeen)) return 'lastSeen'
  const architecture = typeof arch === 'string' ? foldedArchitecture(arch) : ''
  if (isLongerThan(architecture, MAX_ARCH_BYTES)) return 'arch'
  const [first, last] = inOrder(timeOf(firstSeen), timeOf(lastSeen))
  return {
    pod_uid: fields.podUid as string,
    pod_name: fields.podName as string,
    pod_namespace: fields.podNamespace as string,
    syscall: fields.syscall as string,
    syscall_nr: integerOf(fields.syscallNr),
    action: fields.action as string,
    action_raw: integerOf(fields.actionRaw),
    arch: architecture === '' ? null : architecture,
    count,
    first_seen: first,
    last_seen: last,
  }
}

/** Two entries of one pod, syscall and action as one: the names are those of the first, and so are optional fields that it has. */
export function united(first: Denial, second: Denial): Denial {
  return {
    ...first,
    syscall_nr: first.syscall_nr ?? second.syscall_nr,
    action_raw: first.action_raw ?? second.action_raw,
    arch: first.arch ?? second.arch,
    count: Math.min(first.count + second.count, MAX_COUNT),
    // Nothing is later than now, which null stands for.
    first_seen: earlier(first.first_seen, second.first_seen),
    last_seen: first.last_seen === null || second.last_seen === null ? null : later(first.last_seen, second.last_seen),
  }
}

const isIdentity = (value: unknown, maxBytes: number): boolean =>
  typeof value === 'string' && !isLongerThan(value, maxBytes) && value.trim() !== '' && isStorable(value)

const isStorable = (value: unknown): boolean =>
  typeof value !== 'string' || (!value.includes('\0') && value.isWellFormed())

const isCount = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_COUNT

const integerOf = (value: unknown): number | null => (Number.isSafeInteger(value) ? (value as number) : null)

const timeOf = (value: unknown): string | null =>
  typeof value === 'string' && value.length <= MAX_TIME_CHARS ? parseRfc3339(value) : null

function inOrder(first: string | null, last: string | null): [string | null, string | null] {
  return first !== null && last !== null && first > last ? [last, first] : [first ?? last, last]
}

// In their canonical form the order of times is that of their texts.
const later = (a: string, b: string) => (a > b ? a : b)
const earlier = (a: string | null, b: string | null) => (a === null || b === null ? (a ?? b) : a < b ? a : b)
