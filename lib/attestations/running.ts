/**
 * The feed of running containers, each with the result of its image (docs/contract.md#signatures-and-attestations).
 *
 * A page is read in two steps: first its containers and the sizes of their results, which are short rows, then the
 * results in pieces of a few MiB. The longest page has 100 MiB; one statement would hold it in memory several times.
 */
import { z } from 'zod'
import { fixed, type Gate } from '../db/index.ts'
import { wireTime } from '../http/request/fields.ts'
import { digestText } from '../images/index.ts'
import { storedJson } from '../records/column-kinds.ts'
import { plainColumns, plainRows, type RawRow } from '../records/index.ts'
import type { Page } from '../records/page.ts'
import { toWireFormats, type WireNames } from '../wire-names/index.ts'
import { type ContainerCursor, START, writeContainerCursor } from './container-cursor.ts'
import { Attestation, Signature, verdict } from './entry.ts'
import { reason } from './stored-result.ts'

const VerifiedSignature = Signature.omit({ error: true, detail: true }).meta({ id: 'VerifiedSignature' })
const VerifiedStatement = Attestation.omit({ error: true, detail: true, payloadSha256: true }).meta({
  id: 'VerifiedStatement',
})

/** Fields of the container and fields of its image. */
const FeedContainer = z.strictObject({
  namespace: z.string(),
  workloadKind: z.string(),
  workloadName: z.string(),
  container: z.string(),
  digest: digestText,
  imageRef: z.string(),
})
const FeedImage = z.strictObject({
  repository: z.string().nullable().describe('The repository in the inventory.'),
  verdict: verdict.nullable().describe('Null for an image that was never checked; not the same as unsigned.'),
  reason,
  checkedAt: wireTime.nullable(),
  signers: storedJson(z.array(VerifiedSignature).describe('The signatures that verified.')),
  attestations: storedJson(z.array(VerifiedStatement).describe('The attestations that verified.')),
})
const RunningContainer = FeedContainer.extend(FeedImage.shape).meta({ id: 'RunningContainer' })

/** A page of GET /attestations/running. */
export const RunningPage = z
  .strictObject({
    items: z.array(RunningContainer),
    nextAfter: z
      .string()
      .nullable()
      .describe(
        'The `after` of the next page; null on the last one. A page may have fewer items than `limit`, even none, ' +
          'and not be the last.',
      ),
  })
  .meta({ id: 'RunningPage' })

/** Rows that a page examines, of running and other containers. The page ends there, however few it has found. */
export const MAX_SCANNED = 50_000
/**
 * Bytes of results in a piece after the first result, so that rendering a piece does not block the event loop for long.
 */
export const PIECE_BYTES = 2 * 1_024 * 1_024

const CURSOR_COLUMNS = [
  'cluster_id',
  'pod_namespace',
  'workload_kind',
  'workload_name',
  'container_name',
  'image_digest',
]
const columns = (alias: string, names = CURSOR_COLUMNS) => names.map((name) => `${alias}.${name}`).join(', ')

const PARAMS = `
  params (${CURSOR_COLUMNS.join(', ')}, namespace, is_past, window_secs, max) as materialized (
    select ${CURSOR_COLUMNS.map((_key, n) => `$${n + 1}::text collate "C"`).join(', ')},
           $7::text, $8::boolean, $9::integer, $10::integer)`

/** Containers in the order of the feed, after the cursor. */
const anywhere = (selected: string) => `
  select ${selected}
  from params cross join lateral (
    select w.* from workload_container w where (${columns('w')}) > (${columns('params')}) order by ${columns('w')}) w`

// The order has the cluster before the namespace. There are few clusters, so each is searched in turn.
const CLUSTERS = `
  cluster (${CURSOR_COLUMNS.join(', ')}, is_past) as (
    select ${columns('params')}, params.is_past from params
    union all
    select (select w.cluster_id from workload_container w where w.cluster_id > c.cluster_id
            order by w.cluster_id limit 1),
           '', '', '', '', '', false
    from cluster c
    where c.cluster_id is not null)`
const WITHIN = CURSOR_COLUMNS.slice(2)
const inNamespace = (selected: string) => `
  select ${selected}
  from cluster c cross join lateral (
    select w.* from workload_container w
    where w.cluster_id = c.cluster_id and w.pod_namespace = (select namespace from params) and not c.is_past
      and (${columns('w', WITHIN)}) > (${columns('c', WITHIN)})
    order by ${columns('w', WITHIN)}) w`

const IS_RUNNING = 'is_running(w, (select window_secs from params))'

/**
 * The running containers of a page, and one more. If there are fewer, a last row without an image reference names the
 * last container that was examined, if more follow. Both come from one statement, so that they see the same rows.
 */
const containers = (rows: (selected: string) => string, cluster = '') =>
  fixed(`
  with recursive ${PARAMS}, ${cluster}
  found as materialized (
    select ${columns('s')}, s.image_ref
    from (${rows(`${columns('w')}, w.image_ref, ${IS_RUNNING} as is_running`)} limit ${MAX_SCANNED}) s
    where s.is_running
    limit (select max from params))
  select ${columns('f')}, f.image_ref,
         coalesce(octet_length(a.verified_signatures) + octet_length(a.verified_attestations), 0)::text
  from found f
  left join image_attestation a on a.digest = f.image_digest
  union all
  select ${columns('e')}, null, null
  from (${rows(columns('w'))} offset ${MAX_SCANNED - 1} limit 1) e
  where (select count(*) from found) < (select max from params)`)

const ANYWHERE = containers(anywhere)
const IN_NAMESPACE = containers(inNamespace, `${CLUSTERS},`)

const IMAGES = fixed(`
  select ${plainColumns(FeedImage, 'i')}
  from (select d.n, m.repository, a.verdict, a.reason, a.checked_at,
               coalesce(a.verified_signatures, '[]') as signers, coalesce(a.verified_attestations, '[]') as attestations
        from json_array_elements_text($1::text::json) with ordinality d(digest, n)
        left join image m on m.digest = d.digest
        left join image_attestation a on a.digest = d.digest and a.checked_at >= retention_start($2::integer)) i
  order by i.n`)

/** The cluster precedes the columns that are shown. */
const FIRST_FIELD = 1
const [DIGEST, IMAGE_REF, BYTES] = [
  CURSOR_COLUMNS.indexOf('image_digest'),
  CURSOR_COLUMNS.length,
  CURSOR_COLUMNS.length + 1,
]

interface RunningFilter {
  /** Null for all. */
  readonly namespace: string | null
  /** Seconds for which a reported container counts as running. */
  readonly windowSecs: number
  /** Days that a result is kept after its check; 0 for ever. */
  readonly retentionDays: number
}

interface RunningList {
  readonly first: Page<number>
  readonly next: (piece: number) => Promise<Page<number>>
  readonly nextAfter: string | null
}

/** Returns a page of the feed, its items in pieces; `after` is the cursor of the previous page. */
export async function readRunning(
  gate: Gate,
  { namespace, windowSecs, retentionDays }: RunningFilter,
  { limit, after }: { limit: number; after: ContainerCursor | null },
  names: WireNames,
): Promise<RunningList> {
  const from = namespace === null ? { cursor: after ?? START, isPast: false } : cursorIn(namespace, after ?? START)
  const statement = namespace === null ? ANYWHERE : IN_NAMESPACE
  const rows: RawRow[] = await gate((sql) =>
    statement(sql, ...from.cursor, namespace, from.isPast, windowSecs, limit + 1).raw(),
  )
  const items = rows.slice(0, limit).filter((row) => row[IMAGE_REF] !== null)
  const end = rows.length > limit ? items.at(-1) : rows.find((row) => row[IMAGE_REF] === null)
  const pieces = inPieces(items)
  const next = async (piece: number): Promise<Page<number>> => ({
    json: await readItems(gate, pieces[piece]!, retentionDays, names),
    count: pieces[piece]!.length,
    last: piece + 1 < pieces.length ? piece + 1 : null,
  })
  return {
    first: pieces.length === 0 ? { json: Buffer.alloc(0), count: 0, last: null } : await next(0),
    next,
    nextAfter: end
      ? writeContainerCursor(end.slice(0, CURSOR_COLUMNS.length).map(String) as unknown as ContainerCursor)
      : null,
  }
}

/** Moves a cursor of the whole list to where the walk through one namespace continues. */
function cursorIn(namespace: string, after: ContainerCursor): { cursor: ContainerCursor; isPast: boolean } {
  const order = Buffer.compare(Buffer.from(after[1]), Buffer.from(namespace))
  return { cursor: order === 0 ? after : [after[0], '', '', '', '', ''], isPast: order > 0 }
}

function inPieces(items: readonly RawRow[]): RawRow[][] {
  const pieces: RawRow[][] = []
  let bytes = 0
  for (const item of items) {
    bytes += Number(item[BYTES])
    if (pieces.length === 0 || bytes > PIECE_BYTES) {
      pieces.push([])
      bytes = Number(item[BYTES])
    }
    pieces.at(-1)!.push(item)
  }
  return pieces
}

/** Renders the items of these containers, each with the current result of its image. */
async function readItems(
  gate: Gate,
  containers: readonly RawRow[],
  retentionDays: number,
  names: WireNames,
): Promise<Buffer> {
  const digests = [...new Set(containers.map((row) => String(row[DIGEST])))]
  const images: RawRow[] = await gate((sql) => IMAGES(sql, JSON.stringify(digests), retentionDays).raw())
  const wireImages = new Map(digests.map((digest, n) => [digest, toWireImage(images[n]!, names)]))
  return plainRows(
    RunningContainer,
    containers.map((row) => [...row.slice(FIRST_FIELD, IMAGE_REF + 1), ...wireImages.get(String(row[DIGEST]))!]),
  )
}

const LISTS = ['signers', 'attestations'].map((key) => Object.keys(FeedImage.shape).indexOf(key))

function toWireImage(image: RawRow, names: WireNames): RawRow {
  if (names === 'spec') return image
  return image.map((value, n) => (LISTS.includes(n) ? Buffer.from(toWireFormats(String(value), names)) : value))
}
