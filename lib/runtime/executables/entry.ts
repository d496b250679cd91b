/** An executed or mapped file as agents post it (docs/contract.md#executables). */
import { z } from 'zod'
import {
  EntrySchema,
  field,
  flag,
  isStorable,
  MAX_NAME_BYTES,
  naiveTime,
  notBlank,
  notEmpty,
  text,
} from '../../entries/index.ts'
import { isLongerThan } from '../../text/utf8.ts'
import { digestOrEmpty } from '../digest-field.ts'

/** Executed, or mapped executable. */
export const KINDS = ['exec', 'lib'] as const
const SOURCES = ['ebpf', 'backfill'] as const
/** The place of a file when it ran, the least suspicious first. */
export const ORIGINS = ['unknown', 'image', 'otherFs', 'deleted', 'writableLayer', 'memfd'] as const

type Source = (typeof SOURCES)[number]
type Origin = (typeof ORIGINS)[number]

/** A backfill reads paths in `/proc`, which show no other origin. */
const KNOWN_TO_BACKFILL: readonly Origin[] = ['deleted', 'memfd']

const MAX_WORKLOAD_KIND_BYTES = 63
const MAX_WORD_BYTES = 16
/** PATH_MAX of Linux. */
const MAX_PATH_BYTES = 4096

/** Accepts one of `words`, in any case and with white space around it. */
const word = <W extends string>(words: readonly W[]) =>
  field(
    { type: 'string', maxLength: MAX_WORD_BYTES, description: `\`${words.join('` or `')}\`, in any case.` },
    (value) => {
      if (typeof value !== 'string' || isLongerThan(value, MAX_WORD_BYTES)) return undefined
      const lower = value.trim().toLowerCase()
      return words.find((one) => one === lower)
    },
  )

/** Accepts any text, because an unknown origin is stored as `unknown`. */
const origin = field({ type: 'string' }, (value) =>
  typeof value === 'string' && isStorable(value) ? value : undefined,
)

/**
 * Agents count dropped entries as lost events, which makes coverage incomplete: an optional field may be null or blank
 * as well as absent, and an origin may be unknown. Any field of another type or too long drops the entry.
 */
export const ExecutableEntry = new EntrySchema(
  z
    .object({
      pod_namespace: notBlank(),
      pod_name: text(MAX_NAME_BYTES).nullish().describe('Required where there is no workload.'),
      workload_kind: text(MAX_WORKLOAD_KIND_BYTES)
        .nullish()
        .describe('With `workload_name` or not at all: without both the workload is the pod.'),
      workload_name: text(MAX_NAME_BYTES).nullish(),
      container_name: notBlank(),
      image_digest: digestOrEmpty.nullish().describe('Empty or absent where it is not resolved.'),
      kind: word(KINDS),
      path: notEmpty(MAX_PATH_BYTES).describe(`At most ${MAX_PATH_BYTES} bytes, stored unchanged.`),
      path_complete: flag.nullish().describe('False where only the end of the path is known. Without it, true.'),
      source: word(SOURCES),
      origin: origin
        .nullish()
        .describe(
          `\`${ORIGINS.join('`, `')}\`; any other is \`unknown\`, and so is that of a backfill except ` +
            `\`${KNOWN_TO_BACKFILL.join('` and `')}\`.`,
        ),
      first_seen: naiveTime,
      last_seen: naiveTime.describe('Where it is in the future, the time of the broker.'),
    })
    .transform((entry, c) => {
      const pod = filled(entry.pod_name)
      const [kind, name] = [filled(entry.workload_kind), filled(entry.workload_name)]
      const isPod = kind === null && name === null
      const missing = isPod
        ? pod === null && 'pod_name'
        : kind === null
          ? 'workload_kind'
          : name === null && 'workload_name'
      if (missing) c.issues.push({ code: 'custom', input: entry, path: [missing] })
      const { first_seen: from, last_seen: to } = entry
      const [first, last] = from <= to ? [from, to] : [to, from]
      return {
        owner: {
          namespace: entry.pod_namespace,
          workloadKind: kind ?? 'Pod',
          workloadName: name ?? pod!,
          container: entry.container_name,
          image: entry.image_digest ?? '',
        },
        sighting: {
          kind: entry.kind,
          path: entry.path,
          isComplete: entry.path_complete ?? true,
          source: entry.source,
          origin: originOf(entry.origin, entry.source),
          pod,
          first,
          last,
        },
      }
    }),
)

/** An entry to be stored. */
type Executable = z.output<typeof ExecutableEntry.schema>
/** The container that a file belongs to. An unknown image is empty. */
export type Owner = Readonly<Executable['owner']>
/** A sighting of a file. Times are naive UTC, `first` is not after `last`. */
export type Sighting = Readonly<Executable['sighting']>

const filled = (value: string | null | undefined): string | null =>
  value === undefined || value === null || value.trim() === '' ? null : value

function originOf(sent: string | null | undefined, source: Source): Origin {
  const origin = ORIGINS.find((one) => one === sent) ?? 'unknown'
  return source === 'ebpf' || KNOWN_TO_BACKFILL.includes(origin) ? origin : 'unknown'
}
