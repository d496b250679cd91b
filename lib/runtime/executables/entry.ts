/** Files that ran or were loaded, as agents post them (interop-profiling 2.3; workload-profiling, Runtime inventory). */
import { z } from 'zod'
import { naiveTimeText } from '../../http/request/fields.ts'
import { DIGEST_PATTERN, isDigest } from '../../images/index.ts'
import { isLongerThan } from '../../text/utf8.ts'
import { parseNaive } from '../../time/timestamp.ts'

/** What ran: executed, or mapped executable. */
export const KINDS = ['exec', 'lib'] as const
const SOURCES = ['ebpf', 'backfill'] as const
/** Where a file was when it ran, the least suspicious first. */
export const ORIGINS = ['unknown', 'image', 'otherFs', 'deleted', 'writableLayer', 'memfd'] as const

export type Kind = (typeof KINDS)[number]
export type Source = (typeof SOURCES)[number]
export type Origin = (typeof ORIGINS)[number]

/** What `/proc` tells by the path alone; of other origins it knows nothing. */
const KNOWN_TO_BACKFILL: readonly Origin[] = ['deleted', 'memfd']

/** The longest name in Kubernetes. */
const MAX_NAME_BYTES = 253
const MAX_WORKLOAD_KIND_BYTES = 63
const MAX_WORD_BYTES = 16
const MAX_TIME_BYTES = 64
/** PATH_MAX of Linux. */
const MAX_PATH_BYTES = 4096

const name = (maxBytes: number, what = '') => z.string().max(maxBytes).describe(`At most ${maxBytes} bytes.${what}`)
const required = (maxBytes: number) => z.string().min(1).max(maxBytes).describe(`Not blank, at most ${maxBytes} bytes.`)
const word = (words: readonly string[]) =>
  z
    .string()
    .max(MAX_WORD_BYTES)
    .describe(`\`${words.join('` or `')}\`, in whatever case.`)

/** An entry as the OpenAPI document tells of it; `judgeExecutable` reads it. */
const ExecutableEntry = z.object({
  pod_namespace: required(MAX_NAME_BYTES),
  pod_name: name(MAX_NAME_BYTES, ' Required where there is no workload.').nullish(),
  workload_kind: name(
    MAX_WORKLOAD_KIND_BYTES,
    ' With `workload_name` or not at all: without both the workload is the pod.',
  ).nullish(),
  workload_name: name(MAX_NAME_BYTES).nullish(),
  container_name: required(MAX_NAME_BYTES),
  image_digest: z
    .string()
    .regex(new RegExp(`^$|${DIGEST_PATTERN}`))
    .nullish()
    .describe('Empty, or absent, where it is not resolved.'),
  kind: word(KINDS),
  path: z.string().min(1).max(MAX_PATH_BYTES).describe(`At most ${MAX_PATH_BYTES} bytes, kept as it is.`),
  path_complete: z.boolean().nullish().describe('False where only the end of the path is known. Without it, true.'),
  source: word(SOURCES),
  origin: z
    .string()
    .nullish()
    .describe(
      `\`${ORIGINS.join('`, `')}\`; any other is \`unknown\`, and so is that of a backfill but for \`${KNOWN_TO_BACKFILL.join('` and `')}\`.`,
    ),
  first_seen: naiveTimeText,
  last_seen: naiveTimeText.describe('Where it is in the future, the time of the broker.'),
})

/** The same as a JSON schema. */
export const {
  $schema: _,
  $defs: __,
  ...shownEntry
} = z.toJSONSchema(ExecutableEntry, { io: 'input', reused: 'inline' })

/** Whose file it is. An image that is not known is empty. */
export interface Owner {
  readonly namespace: string
  readonly workloadKind: string
  readonly workloadName: string
  readonly container: string
  readonly image: string
}

/** What was seen of a file. Times are naive UTC, in order. */
export interface Sighting {
  readonly kind: Kind
  readonly path: string
  readonly isComplete: boolean
  readonly source: Source
  readonly origin: Origin
  readonly pod: string | null
  readonly first: string
  readonly last: string
}

/** An entry that is to be stored. */
export interface Executable {
  readonly owner: Owner
  readonly sighting: Sighting
}

/** Why an entry is dropped: the field that is at fault, or the entry, which is no object. */
export type Fault = keyof z.input<typeof ExecutableEntry> | 'entry'

type Fields = Readonly<Partial<Record<Fault, unknown>>>

/**
 * An entry, or why it is dropped. Agents count what is dropped as lost, which uncovers containers: what may be absent is null or blank as well, and an
 * origin that nobody knows is none. What is of another type, too long, or text that no database can hold (P26) drops it in any field.
 */
export function judgeExecutable(entry: unknown): Executable | Fault {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return 'entry'
  const fields: Fields = entry
  if (!isName(fields.pod_namespace)) return 'pod_namespace'
  if (!isName(fields.container_name)) return 'container_name'
  const image = fields.image_digest ?? ''
  if (image !== '' && !isDigest(image)) return 'image_digest'
  const pod = optional(fields.pod_name, MAX_NAME_BYTES)
  if (pod === undefined) return 'pod_name'
  const workload = workloadOf(fields, pod)
  if (typeof workload === 'string') return workload
  const sighting = sightingOf(fields, pod)
  if (typeof sighting === 'string') return sighting
  return {
    owner: { namespace: fields.pod_namespace, ...workload, container: fields.container_name, image },
    sighting,
  }
}

function workloadOf(
  { workload_kind, workload_name }: Fields,
  pod: string | null,
): Pick<Owner, 'workloadKind' | 'workloadName'> | Fault {
  const workloadKind = optional(workload_kind, MAX_WORKLOAD_KIND_BYTES)
  if (workloadKind === undefined) return 'workload_kind'
  const workloadName = optional(workload_name, MAX_NAME_BYTES)
  if (workloadName === undefined) return 'workload_name'
  if (workloadKind !== null && workloadName !== null) return { workloadKind, workloadName }
  if (workloadKind !== null) return 'workload_name'
  if (workloadName !== null) return 'workload_kind'
  return pod === null ? 'pod_name' : { workloadKind: 'Pod', workloadName: pod }
}

function sightingOf(fields: Fields, pod: string | null): Sighting | Fault {
  const kind = wordOf(KINDS, fields.kind)
  if (kind === undefined) return 'kind'
  const { path } = fields
  if (typeof path !== 'string' || path === '' || isLongerThan(path, MAX_PATH_BYTES) || !isStorable(path)) return 'path'
  const isComplete = fields.path_complete ?? true
  if (typeof isComplete !== 'boolean') return 'path_complete'
  const source = wordOf(SOURCES, fields.source)
  if (source === undefined) return 'source'
  const told = fields.origin ?? ''
  if (typeof told !== 'string' || !isStorable(told)) return 'origin'
  const from = timeOf(fields.first_seen)
  if (from === null) return 'first_seen'
  const to = timeOf(fields.last_seen)
  if (to === null) return 'last_seen'
  const [first, last] = from <= to ? [from, to] : [to, from]
  return { kind, path, isComplete, source, origin: originOf(told, source), pod, first, last }
}

function originOf(told: string, source: Source): Origin {
  const origin = ORIGINS.find((one) => one === told) ?? 'unknown'
  return source === 'ebpf' || KNOWN_TO_BACKFILL.includes(origin) ? origin : 'unknown'
}

const wordOf = <W extends string>(words: readonly W[], value: unknown): W | undefined => {
  if (typeof value !== 'string' || isLongerThan(value, MAX_WORD_BYTES)) return undefined
  const word = value.trim().toLowerCase()
  return words.find((one) => one === word)
}

/** Null where there is nothing in it, undefined where the value is none. */
function optional(value: unknown, maxBytes: number): string | null | undefined {
  if (value === undefined || value === null) return null
  if (typeof value !== 'string' || isLongerThan(value, maxBytes) || !isStorable(value)) return undefined
  return value.trim() === '' ? null : value
}

const isName = (value: unknown): value is string => typeof optional(value, MAX_NAME_BYTES) === 'string'

const isStorable = (text: string): boolean => !text.includes('\0') && text.isWellFormed()

const timeOf = (value: unknown): string | null =>
  typeof value === 'string' && value.length <= MAX_TIME_BYTES ? parseNaive(value) : null
