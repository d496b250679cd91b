/** When each name of an observed set was seen, and in which images. */
import { z } from 'zod'
import { wireTime } from '../http/request/fields.ts'
import { fromPostgres } from '../time/timestamp.ts'

/** Most images stored for a workload: those seen last (`record_syscall_times` in the database). */
const MAX_IMAGES = 8
/** Most names in a set (`grow_union` in the database). */
const MAX_NAMES = 1_024
/** Most bytes of a name with its times in JSON, and of a digest. */
const NAME_BYTES = 200
const DIGEST_BYTES = 80

/** Longest detail of one workload. */
export const MAX_DETAIL_BYTES = MAX_NAMES * (NAME_BYTES + MAX_IMAGES * DIGEST_BYTES)

const time = wireTime.nullable()

export const ProfileDetail = z
  .strictObject({
    resetAt: time.describe('Since when the set is observed, where it was reset.'),
    syscalls: z
      .array(
        z.strictObject({
          name: z.string(),
          firstSeen: time.describe('By the clock of the agent; null where it was seen before this was kept.'),
          lastSeen: time.describe('The same; it moves every five minutes at most.'),
          imageDigests: z
            .array(z.string())
            .max(MAX_IMAGES)
            .describe(
              'Images that ran in the pods that sent it, sorted: of the workload those that were seen last. Empty ' +
                'where none is known.',
            ),
        }),
      )
      .describe('All observed names, also those that no profile has, sorted by bytes.'),
  })
  .meta({ id: 'SeccompProfileDetail' })

/** Null arrays: no times were recorded. */
export interface DetailRow {
  readonly reset_at: string | null
  readonly seen_names: readonly string[] | null
  readonly first_seen: readonly (string | null)[] | null
  readonly last_seen: readonly (string | null)[] | null
  readonly images: readonly number[] | null
  readonly image_digests: readonly string[] | null
}

export function detailOf(names: readonly string[], row: DetailRow): z.output<typeof ProfileDetail> {
  const places = new Map((row.seen_names ?? []).map((name, i) => [name, i]))
  const digests = row.image_digests ?? []
  const syscalls = names.map((name) => {
    const i = places.get(name)
    if (i === undefined) return { name, firstSeen: null, lastSeen: null, imageDigests: [] }
    const mask = row.images![i]!
    return {
      name,
      firstSeen: timeOf(row.first_seen![i]!),
      lastSeen: timeOf(row.last_seen![i]!),
      imageDigests: digests.filter((_, place) => (mask >> place) & 1).sort(),
    }
  })
  return { resetAt: timeOf(row.reset_at), syscalls }
}

const timeOf = (printed: string | null): string | null => (printed === null ? null : fromPostgres(printed))
