/**
 * Lists the files that ran in the containers of a workload, and the coverage of each container
 * (docs/contract.md#executables).
 */
import { fixed, type Gate } from '../../db/index.ts'
import { plainColumns, plainRow, type RawRow } from '../../records/index.ts'
import type { Page } from '../../records/page.ts'
import { KINDS } from '../executables/index.ts'
import { MAX_COVERAGE, MAX_SILENT_PODS, WholeCoverage, WorkloadEntry } from './record.ts'

/**
 * Bytes of the paths before the last one of a piece. A path may have 4 096 bytes, and six times as many in escaped
 * JSON.
 */
export const PIECE_BYTES = 1_048_576

/** A workload and its filters; a filter that is null matches all. */
interface WorkloadQuestion {
  readonly namespace: string
  readonly kind: string
  readonly name: string
  readonly container: string | null
  readonly entryKind: string | null
  readonly origins: readonly string[] | null
  readonly windowHours: number
  /** Days that files are kept after they were last seen; 0 keeps them for ever. */
  readonly retentionDays: number
}

const ORDER = ['container_name', 'image_digest', 'kind', 'path_start', 'path']
/** The part of the order that the primary key has. */
const INDEXED = ORDER.slice(0, -1)
const columns = (alias: string, names = ORDER) => names.map((name) => `${alias}.${name}`).join(', ')

const ASKED = `
  asked as materialized (
    select a.*, left(a.path, 256) as path_start, retention_start(a.retention_days) as retention_start
    from (select $1::text as namespace, $2::text as workload_kind, $3::text as workload_name, $4::text as container,
                 $5::text[] as origins, $6::text as first_kind, $7::text as last_kind, $8::integer as window_hours,
                 $9::text as container_name, $10::text as image_digest, $11::text as kind, $12::text as path,
                 $13::integer as retention_days, $14::integer as max) a)`

const ENTRY = plainColumns(WorkloadEntry, 'e')

/**
 * Entries after the given one, in order, as many as fit a piece. Entries whose path begins like the given one are
 * selected separately: the key has only the start of the path in order, so it cannot tell which of them come later.
 */
const entries = (filter: string) => {
  const those = (place: string) => `(
          select e.* from runtime_executable e
          where e.pod_namespace = a.namespace and e.workload_kind = a.workload_kind
            and e.workload_name = a.workload_name
            and e.kind >= a.first_kind and e.kind <= a.last_kind
            and e.last_seen >= a.retention_start${filter} and ${place}
          order by ${columns('e')})`
  return `
    select e.container_name, e.image_digest, ${ENTRY}, null, null
    from asked a
    cross join lateral (
      select w.*,
             sum(octet_length(w.path)) over (order by ${columns('w')} rows unbounded preceding) - octet_length(w.path)
               as bytes_before
      from (
        select s.*
        from (${those(`(${columns('e', INDEXED)}) = (${columns('a', INDEXED)}) and e.path > a.path`)}
              union all
              ${those(`(${columns('e', INDEXED)}) > (${columns('a', INDEXED)})`)}) s
        order by ${columns('s')}
        limit a.max) w) e
    where e.bytes_before < ${PIECE_BYTES}
    order by ${columns('e')}`
}

/**
 * Pods of a container and image that were marked dead by the sweep after their last post, while the container has not
 * ended and its heartbeat is late. `offset 0` makes the planner look up each pod by index, whatever it estimates.
 */
const SILENT = `
      select count(*) as pods, (array_agg(s.pod_name order by s.pod_name))[1:${MAX_SILENT_PODS}] as names
      from (
        select distinct i.pod_name
        from runtime_coverage i
        cross join lateral (
          select from pod p
          where p.pod_name = i.pod_name and p.pod_namespace = i.pod_namespace and p.is_dead
            and p.swept_at >= p.time_stamp
          offset 0) p
        where i.pod_namespace = a.namespace and i.workload_kind = a.workload_kind and i.workload_name = a.workload_name
          and i.container_name = c.container_name and i.image_digest = c.image_digest
          and i.cluster_id = 'primary' and not i.ended
          and i.last_heartbeat < now() at time zone 'utc' - make_interval(secs => 3 * i.heartbeat_secs + 60)) s`

/** Rows of coverage and of entries have the same number of columns; container and digest come first. */
const COVERAGE_COLUMNS = plainColumns(WholeCoverage.omit({ windowHours: true }), 'c')
const COVERAGE = `
    select ${COVERAGE_COLUMNS},
           case when s.pods > 0 then concat('"silentPods":', to_json(s.names), ',"silentPodCount":', s.pods) end
    from asked a
    cross join lateral (
      select w.*, coverage_detail('primary', a.namespace, a.workload_kind, a.workload_name, w.container_name,
                                  w.image_digest, a.window_hours, w.reason) as reason_detail
      from runtime_coverage_of(
        'primary', a.namespace, a.workload_kind, a.workload_name, a.container, null, a.window_hours) w
      limit ${MAX_COVERAGE}) c
    cross join lateral (${SILENT}) s
    order by c.container_name collate "C", c.image_digest collate "C"`

const COVERAGE_ROW = 'coverage'
const statement = (filter: string) =>
  fixed(`
  with ${ASKED}
  select '${COVERAGE_ROW}', c.* from (${COVERAGE}) c where (select a.window_hours from asked a) is not null
  union all
  select 'entry', e.* from (${entries(filter)}) e`)

// Each combination of filters has its own statement: an optional filter would be evaluated for every row of the index.
const [CONTAINER, ORIGIN] = [' and e.container_name = a.container', ' and e.origin = any (a.origins)']
const OF_ALL = statement('')
const OF_CONTAINER = statement(CONTAINER)
const OF_ORIGINS = statement(ORIGIN)
const OF_BOTH = statement(`${CONTAINER}${ORIGIN}`)

type Place = readonly [container: string, digest: string, kind: string, path: string]
const START: Place = ['', '', '', '']
/** The columns of a record begin behind the first, which is the kind of row. */
const [CONTAINER_NAME, DIGEST, PATH, KIND] = [1, 2, 3, 4]
const RECORD = 1

const [COMMA, CLOSE, NEXT] = [Buffer.from(','), Buffer.from(']}'), Buffer.from(']},')]

/**
 * The rest after a piece: its first entry, which is read already, whether that entry's container is open, and how many
 * entries may follow.
 */
interface Rest {
  readonly entry: RawRow
  readonly isOpen: boolean
  readonly left: number
}

interface WorkloadList {
  /** Pieces of the list of containers: a container may begin in one and end in another. */
  readonly first: Page<Rest>
  readonly next: (rest: Rest) => Promise<Page<Rest>>
  /** Whether there are more entries than `limit`; known once the last piece has been read. */
  readonly isTruncated: () => boolean
  /** The objects of coverage as JSON, joined with commas. */
  readonly coverage: Buffer
}

/** Reads the files that ran in a workload, at most `limit`, and the coverage of its containers. */
export async function readWorkload(gate: Gate, question: WorkloadQuestion, limit: number): Promise<WorkloadList> {
  const { namespace, kind, name, container, entryKind, origins, windowHours, retentionDays } = question
  const [withContainer, without] = origins === null ? [OF_CONTAINER, OF_ALL] : [OF_BOTH, OF_ORIGINS]
  const statement = container === null ? without : withContainer
  const asked = [
    namespace,
    kind,
    name,
    container,
    origins && `{${origins}}`,
    entryKind ?? KINDS[0],
    entryKind ?? KINDS.at(-1)!,
  ]
  const read = (place: Place, window: number | null, max: number): Promise<RawRow[]> =>
    gate((sql) => statement(sql, ...asked, window, ...place, retentionDays, max).raw())

  let isTruncated = false
  const pieceOf = (rows: readonly RawRow[], rest: Rest | null): Page<Rest> => {
    const left = rest?.left ?? limit
    const all = rest ? [rest.entry, ...rows] : rows
    isTruncated = all.length > left
    const isCut = !isTruncated && rows.reduce((bytes, row) => bytes + row[PATH]!.length, 0) >= PIECE_BYTES
    const following = isCut ? all.at(-1)! : null
    const some = following ? all.slice(0, -1) : all.slice(0, left)
    // The entry after the cut shows whether the last container continues.
    const isOpen = following !== null && isSameContainer(following, some.at(-1)!)
    return {
      json: inContainers(some, rest?.isOpen ?? false, isOpen),
      count: some.length,
      last: following && { entry: following, isOpen, left: left - some.length },
    }
  }

  const found = await read(START, windowHours, limit + 1)
  const [rows, coverage] = [found.filter(isEntry), found.filter((row) => !isEntry(row))]
  const hours = Buffer.from(String(windowHours))
  return {
    first: pieceOf(rows, null),
    next: async (rest) => pieceOf(await read(placeOf(rest.entry), null, rest.left), rest),
    isTruncated: () => isTruncated,
    coverage: Buffer.from(coverage.map((row) => inWindow(row, hours)).join()),
  }
}

/** Returns an object of coverage; the last column has its optional keys. */
function inWindow(row: RawRow, hours: Buffer): string {
  const whole = String(plainRow(WholeCoverage, [...row.slice(0, -1), hours], RECORD))
  const more = row.at(-1)
  return more ? `${whole.slice(0, -1)},${more}}` : whole
}

const isEntry = (row: RawRow) => String(row[0]) !== COVERAGE_ROW
const placeOf = (row: RawRow): Place => [
  String(row[CONTAINER_NAME]),
  String(row[DIGEST]),
  String(row[KIND]),
  String(row[PATH]),
]

const isSameContainer = (a: RawRow, b: RawRow) =>
  a[CONTAINER_NAME]!.equals(b[CONTAINER_NAME]!) && a[DIGEST]!.equals(b[DIGEST]!)

/**
 * Renders entries within their containers. The first container may be open already, and the last may continue in the
 * next piece.
 */
function inContainers(rows: readonly RawRow[], hasBegun: boolean, goesOn: boolean): Buffer {
  const parts: Buffer[] = []
  for (const [i, row] of rows.entries()) {
    const previous = rows[i - 1]
    const isFirst = previous ? !isSameContainer(row, previous) : !hasBegun
    if (previous) parts.push(isFirst ? NEXT : COMMA)
    if (isFirst) parts.push(headOf(row))
    parts.push(plainRow(WorkloadEntry, row, PATH))
  }
  if (rows.length > 0 && !goesOn) parts.push(CLOSE)
  return Buffer.concat(parts)
}

function headOf(row: RawRow): Buffer {
  const head = JSON.stringify({ containerName: String(row[CONTAINER_NAME]), imageDigest: String(row[DIGEST]) })
  return Buffer.from(`${head.slice(0, -1)},"entries":[`)
}
