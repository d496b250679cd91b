/** Lists the files that ran and no image shipped, in pages (docs/contract.md#files-that-no-image-shipped). */
import { z } from 'zod'
import { fixed, type Gate } from '../../db/index.ts'
import { cursorText, writeCursor } from '../../http/request/cursor.ts'
import { zonedTime } from '../../http/request/fields.ts'
import { parseNaive } from '../../time/timestamp.ts'
import { imageDigest, kind, source, UNSHIPPED_ORIGINS } from './record.ts'

/** Files read for a page, about 50 ms: with filters that few files pass, a page is short and has a next one. */
const MAX_READ = 5_000

const count = z.int().min(0)
const REASONS = ['no_runtime_data', 'probes_missing', 'libraries_not_tracked', 'events_dropped', 'capture_gap'] as const

const UnshippedFile = z
  .strictObject({
    namespace: z.string(),
    workloadKind: z.string(),
    workloadName: z.string(),
    containerName: z.string(),
    imageDigest,
    path: z.string(),
    pathComplete: z.boolean().describe('False where `path` is the end of a path that was cut short.'),
    kind,
    origin: z.enum(UNSHIPPED_ORIGINS).describe('The most suspicious that was seen.'),
    source,
    firstSeen: zonedTime,
    lastSeen: zonedTime,
    lastPod: z.string().nullable().describe('The pod that ran it last, as far as it is known.'),
    imageRunning: z
      .boolean()
      .nullable()
      .describe('Whether the container runs the image now in which the file ran; null is unknown.'),
    imageRunningReason: z.enum(['no_digest', 'not_in_inventory']).nullable().describe('Why it is unknown.'),
    runningInstances: count.describe('Live pods that run the container.'),
    unwatchedInstances: count.describe('Those of them that are not watched now.'),
    watchReason: z.enum(REASONS).nullable().describe('Why, the first that holds for any; null where all are watched.'),
  })
  .meta({ id: 'UnshippedFile' })

/** GET /runtime/unshipped. */
export const UnshippedFiles = z
  .strictObject({
    items: z.array(UnshippedFile).describe('By `firstSeen`, the newest first.'),
    nextAfter: z
      .string()
      .nullable()
      .describe('The `after` of the next page; null on the last one. A filtered page may be shorter than `limit`.'),
    watch: z
      .strictObject({
        runningInstances: count.describe('Containers that run in live pods, one for each pod.'),
        unwatchedInstances: count.describe('Those that are not watched now: nothing is known of what they run.'),
        reasons: z.record(z.enum(REASONS), count).describe('Their number by reason.'),
        podsWithoutContainerList: count.describe('Live pods whose containers are not known; not counted above.'),
        silentPods: count.describe(
          'Pods that were watched when their agent fell silent in the last 24 hours, and of which nobody said that ' +
            'they ended: what they have run since is not known; not counted above.',
        ),
      })
      .describe('Of the namespace, or of the cluster.'),
  })
  .meta({ id: 'UnshippedFiles' })

/** The order of the list, which is the key of a file. */
export const UnshippedCursor = z.tuple([
  z.string().refine((time) => parseNaive(time) !== null),
  z.string().regex(/^[0-9a-f]{64}$/),
  ...[cursorText, cursorText, cursorText, cursorText, cursorText, cursorText],
] as const)
type Cursor = z.output<typeof UnshippedCursor>

/** Before all files. */
const START = ['infinity', '', '', '', '', '', '', ''] as const

interface Question {
  /** Null for the cluster. */
  readonly namespace: string | null
  /** Naive UTC; null for any time. */
  readonly since: string | null
  /** Null for any. */
  readonly running: boolean | null
  readonly limit: number
  /** Null for the first page. */
  readonly after: Cursor | null
  /** Days that files are kept after they were last seen; 0 keeps them for ever. */
  readonly retentionDays: number
  readonly runningWindowSecs: number
}

const READ = fixed<[{ items: string; next_key: Cursor | null; watch: string }]>(`
  select u.items, u.next_key, u.watch
  from unshipped_files($1::text, coalesce($2::text::timestamp, '-infinity'), $3::boolean, $4::text::timestamp,
                       $5::text, $6::text, $7::text, $8::text, $9::text, $10::text, $11::text, $12::integer,
                       $13::integer, $14::integer, $15::integer) u`)

/** The JSON of a page. */
export async function readUnshipped(gate: Gate, question: Question, maxRead = MAX_READ): Promise<string> {
  const { namespace, since, running, limit, after, retentionDays, runningWindowSecs } = question
  const place = after ?? START
  const [row] = await gate((sql) =>
    READ(
      sql,
      namespace,
      since,
      running,
      ...place,
      retentionDays,
      runningWindowSecs,
      limit,
      Math.max(maxRead, limit + 1),
    ),
  )
  const { items, next_key, watch } = row!
  const next = next_key === null ? null : writeCursor(next_key)
  return `{"items":${items},"nextAfter":${JSON.stringify(next)},"watch":${watch}}`
}
