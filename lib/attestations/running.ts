/**
 * The feed of running containers, each with the result of its image (supply-chain, Running feed item; interop-supply-chain 3.7).
 *
 * A page is read in two steps: which containers it has and how long the result of each is, which are short rows; then the results, in
 * pieces of a few MiB. At its longest a page comes to 100 MiB, and read by one statement it would be held several times over.
 */
import { z } from 'zod'
import { fixed, type Gate } from '../db/index.ts'
import { wireTime } from '../http/request/fields.ts'
import { digestText } from '../images/index.ts'
import { storedJson } from '../records/column-kinds.ts'
import { plainColumns, plainRows, type RawRow } from '../records/index.ts'
import type { Page } from '../records/page.ts'
import { toWireFormats, type WireNames } from '../supply-chain/index.ts'
import { type ContainerCursor, START, writeContainerCursor } from './container-cursor.ts'
import { Signature, Statement, verdict } from './entry.ts'
import { reason } from './stored-result.ts'

const VerifiedSignature = Signature.omit({ error: true, detail: true }).meta({ id: 'VerifiedSignature' })
const VerifiedStatement = Statement.omit({ error: true, detail: true, payloadSha256: true }).meta({
  id: 'VerifiedStatement',
})

/** What is read of a container, and what of its image. */
const Container = z.strictObject({
  namespace: z.string(),
  workloadKind: z.string(),
  workloadName: z.string(),
  container: z.string(),
  digest: digestText,
  imageRef: z.string(),
})
const Image = z.strictObject({
  repository: z.string().nullable().describe('Of the inventory.'),
  verdict: verdict.nullable().describe('Null for an image that was never checked, which is not the same as unsigned.'),
  reason,
  checkedAt: wireTime.nullable(),
  signers: storedJson(z.array(VerifiedSignature).describe('The signatures that verified.')),
  attestations: storedJson(z.array(VerifiedStatement).describe('The attestations that verified.')),
})
const RunningContainer = Container.extend(Image.shape).meta({ id: 'RunningContainer' })

/** A page of GET /attestations/running. */
export const RunningPage = z
  .strictObject({
    items: z.array(RunningContainer),
    nextAfter: z
      .string()
      .nullable()
      .describe(
        'The `after` of the next page; null on the last one. A page may have fewer items than `limit`, even none, and not be the last.',
      ),
  })
  .meta({ id: 'RunningPage' })

/** Rows that a page looks at, of containers that run and that do not: it ends there, however few it has found. */
export const MAX_SCANNED = 50_000
/** Bytes of results in a piece, beyond the first: what a piece takes to render holds nobody up. */
export const PIECE_BYTES = 2 * 1_024 * 1_024

const PLACE = ['cluster_id', 'pod_namespace', 'workload_kind', 'workload_name', 'container_name', 'image_digest']
const columns = (alias: string, names = PLACE) => names.map((name) => `${alias}.${name}`).join(', ')

const ASKED = `
  asked (${PLACE.join(', ')}, namespace, is_past, window_secs, max) as materialized (
    select ${PLACE.map((_key, n) => `$${n + 1}::text collate "C"`).join(', ')}, $7::text, $8::boolean, $9::integer, $10::integer)`

/** Containers in the order of the feed, from a place on. */
const anywhere = (selected: string) => `
  select ${selected}
  from asked cross join lateral (
    select w.* from workload_container w where (${columns('w')}) > (${columns('asked')}) order by ${columns('w')}) w`

// From cluster to cluster, of which there are few: their order comes before that of namespaces.
const CLUSTERS = `
  cluster (${PLACE.join(', ')}, is_past) as (
    select ${columns('asked')}, asked.is_past from asked
    union all
    select (select w.cluster_id from workload_container w where w.cluster_id > c.cluster_id order by w.cluster_id limit 1), '', '', '', '', '', false
    from cluster c
    where c.cluster_id is not null)`
const WITHIN = PLACE.slice(2)
const inNamespace = (selected: string) => `
  select ${selected}
  from cluster c cross join lateral (
    select w.* from workload_container w
    where w.cluster_id = c.cluster_id and w.pod_namespace = (select namespace from asked) and not c.is_past
      and (${columns('w', WITHIN)}) > (${columns('c', WITHIN)})
    order by ${columns('w', WITHIN)}) w`

/**
 * The containers of a page that run, and one more; where these are fewer, also the last one that was looked at, without an image reference,
 * if there are more. Both are of one moment, so that nothing can come between them.
 */
const containers = (rows: (selected: string) => string, cluster = '') =>
  fixed(`
  with recursive ${ASKED}, ${cluster}
  found as materialized (
    select ${columns('s')}, s.image_ref
    from (${rows(`${columns('w')}, w.image_ref, is_running(w, (select window_secs from asked)) as is_running`)} limit ${MAX_SCANNED}) s
    where s.is_running
    limit (select max from asked))
  select ${columns('f')}, f.image_ref,
         coalesce(octet_length(a.verified_signatures) + octet_length(a.verified_attestations), 0)::text
  from found f
  left join image_attestation a on a.digest = f.image_digest
  union all
  select ${columns('e')}, null, null
  from (${rows(columns('w'))} offset ${MAX_SCANNED - 1} limit 1) e
  where (select count(*) from found) < (select max from asked)`)

const ANYWHERE = containers(anywhere)
const IN_NAMESPACE = containers(inNamespace, `${CLUSTERS},`)

const IMAGES = fixed(`
  select ${plainColumns(Image, 'i')}
  from (select d.n, m.repository, a.verdict, a.reason, a.checked_at,
               coalesce(a.verified_signatures, '[]') as signers, coalesce(a.verified_attestations, '[]') as attestations
        from json_array_elements_text($1::text::json) with ordinality d(digest, n)
        left join image m on m.digest = d.digest
        left join image_attestation a on a.digest = d.digest and a.checked_at >= retention_start($2::integer)) i
  order by i.n`)

/** What of a container's row is shown of it, behind the cluster. */
const SHOWN = 1
const [DIGEST, IMAGE_REF, BYTES] = [PLACE.indexOf('image_digest'), PLACE.length, PLACE.length + 1]

export interface RunningFilter {
  /** Null for all. */
  readonly namespace: string | null
  /** For how many seconds a container that was reported runs. */
  readonly windowSecs: number
  /** Days that a result is kept after it was checked; 0 for ever. */
  readonly retentionDays: number
}

export interface RunningList {
  readonly first: Page<number>
  readonly next: (piece: number) => Promise<Page<number>>
  readonly nextAfter: string | null
}

/** A page of the feed, its items by pieces; `after` is where the one before ended. */
export async function readRunning(
  gate: Gate,
  { namespace, windowSecs, retentionDays }: RunningFilter,
  { limit, after }: { limit: number; after: ContainerCursor | null },
  names: WireNames,
): Promise<RunningList> {
  const from = namespace === null ? { place: after ?? START, isPast: false } : placeIn(namespace, after ?? START)
  const statement = namespace === null ? ANYWHERE : IN_NAMESPACE
  const rows: RawRow[] = await gate((sql) =>
    statement(sql, ...from.place, namespace, from.isPast, windowSecs, limit + 1).raw(),
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
    nextAfter: end ? writeContainerCursor(end.slice(0, PLACE.length).map(String) as unknown as ContainerCursor) : null,
  }
}

/** Where a walk through one namespace goes on from a place in any. */
function placeIn(namespace: string, after: ContainerCursor): { place: ContainerCursor; isPast: boolean } {
  const order = Buffer.compare(Buffer.from(after[1]), Buffer.from(namespace))
  return { place: order === 0 ? after : [after[0], '', '', '', '', ''], isPast: order > 0 }
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

/** The items of these containers, each with the result that its image has now. */
async function readItems(
  gate: Gate,
  containers: readonly RawRow[],
  retentionDays: number,
  names: WireNames,
): Promise<Buffer> {
  const digests = [...new Set(containers.map((row) => String(row[DIGEST])))]
  const images: RawRow[] = await gate((sql) => IMAGES(sql, JSON.stringify(digests), retentionDays).raw())
  const shown = new Map(digests.map((digest, n) => [digest, shownImage(images[n]!, names)]))
  return plainRows(
    RunningContainer,
    containers.map((row) => [...row.slice(SHOWN, IMAGE_REF + 1), ...shown.get(String(row[DIGEST]))!]),
  )
}

const LISTS = ['signers', 'attestations'].map((key) => Object.keys(Image.shape).indexOf(key))

function shownImage(image: RawRow, names: WireNames): RawRow {
  if (names === 'spec') return image
  return image.map((value, n) => (LISTS.includes(n) ? Buffer.from(toWireFormats(String(value), names)) : value))
}
