/**
 * Lists the files of an image that ran in any of its workloads, in pages (docs/contract.md#executables).
 *
 * An entry combines the rows of all containers and workloads that ran the path, so the number of entries does not bound
 * the cost of a page. A page ends once it has read enough rows, however few entries it has; the next page continues
 * there, so the whole list takes no longer.
 */
import { fixed, type Gate } from '../../db/index.ts'
import { plainColumns, plainRow, plainRows, type RawRow } from '../../records/index.ts'
import { KINDS, ORIGINS } from '../executables/index.ts'
import { type Place, writeCursor } from './query.ts'
import { ImageCoverage, ImageEntry } from './record.ts'

/**
 * Rows read for a page, about 8 ms; at least one for each entry asked for and one more. A first entry that needs more
 * rows gets them.
 */
export const MAX_ROWS_READ = 3_000
/** If the rows do not suffice for one entry, the page is read again with this many times as many. */
const GROWTH = 16
/** Bytes of the paths before the last one of a page; a path may have 4 096. */
export const MAX_PAGE_BYTES = 1_048_576

interface ImageQuestion {
  readonly digest: string
  /** Null for both. */
  readonly kind: string | null
  /** Null for the first page. */
  readonly after: Place | null
  readonly limit: number
  readonly windowHours: number
  /** Days that files are kept after they were last seen; 0 keeps them for ever. */
  readonly retentionDays: number
}

const columns = (alias: string, names: readonly string[]) => names.map((name) => `${alias}.${name}`).join(', ')
/** The order of the list, and the order of the index, which also keeps the rows of a path together. */
const [ORDER, INDEXED] = [
  ['kind', 'path_start', 'path'],
  ['kind', 'path_start', 'path_hash'],
]

// Names may contain any character, so their lengths are needed to keep two different workloads apart.
const WORKLOAD = (e: string) =>
  `chr(1 + octet_length(${e}.pod_namespace)) || chr(1 + octet_length(${e}.workload_kind))
    || ${e}.pod_namespace || ${e}.workload_kind || ${e}.workload_name`
const RANK = `case e.origin ${ORIGINS.map((origin, rank) => `when '${origin}' then ${rank + 1}`).join(' ')} end`

/**
 * Rows after the cursor. Rows whose path begins like the cursor's are selected separately: the index has only the hash
 * of the whole path, so it cannot order them.
 */
const those = (place: string) => `(
              select e.* from runtime_executable e
              where e.image_digest = a.digest and e.image_digest <> '' and e.last_seen >= a.retention_start and ${place}
              order by ${columns('e', INDEXED)})`

const COVERAGE = plainColumns(ImageCoverage.omit({ windowHours: true }), 'c')
const COVERAGE_COLUMNS = Object.keys(ImageCoverage.shape).length - 1
const ENTRY_COLUMNS = Object.keys(ImageEntry.shape).length

// Each step streams its rows, so that no more are read than the page needs. Where the row limit ends the page, rows
// with the path_start of the last row may be missing: rows_read counts all rows of a path_start, so such entries are
// left to the next page.
const PAGE = fixed(`
  with asked as materialized (
    select a.*, left(a.path, 256) as path_start, retention_start(a.retention_days) as retention_start
    from (select $1::text as digest, $2::text as last_kind, $3::text as kind, $4::text as path, $5::integer as max,
                 $6::integer as max_rows, $7::integer as window_hours, $8::integer as retention_days) a)
  select 'coverage', ${COVERAGE}${', null'.repeat(ENTRY_COLUMNS - COVERAGE_COLUMNS)}
  from (
    select count(distinct (${WORKLOAD('e')}) collate "C") as workloads, count(*) as instances,
           max(e.last_heartbeat) as last_heartbeat,
           coalesce(bool_and(e.lib_probe and e.mode = 'full'), false) as libraries_tracked,
           count(*) filter (where e.last_drop_at >= s.since) as instances_with_drops
    from asked a
    cross join lateral (select now() at time zone 'utc' - make_interval(hours => a.window_hours) as since) s
    join runtime_coverage e on e.image_digest = a.digest and e.image_digest <> '' and e.last_heartbeat >= s.since) c
  union all
  (select case
           when e.place <= a.max and e.rows_read < a.max_rows and e.bytes_before < ${MAX_PAGE_BYTES} then 'entry'
           else 'more'
         end,
         ${plainColumns(ImageEntry, 'e')}
  from asked a
  cross join lateral (
    select g.*, ('{${ORIGINS}}'::text[])[g.rank] as origin, row_number() over in_order as place,
           sum(octet_length(g.path)) over in_order - octet_length(g.path) as bytes_before,
           sum(g.rows) over (order by g.kind, g.path_start range unbounded preceding) as rows_read,
           case
             when g.rows = 1 then 1
             else (select count(distinct w collate "C") from unnest(g.all_workloads) w)
           end as workloads
    from (
      select ${columns('e', INDEXED)}, min(e.path) as path, bool_or(e.path_complete) as path_complete,
             max(${RANK}) as rank, min(e.first_seen) as first_seen, max(e.last_seen) as last_seen,
             array_agg(${WORKLOAD('e')}) as all_workloads, count(*) as rows
      from (
        select s.*
        from (${those(`e.kind = a.kind and e.path_start = a.path_start and e.path > a.path`)}
              union all
              ${those(`(e.kind, e.path_start) > (a.kind, a.path_start) and e.kind <= a.last_kind`)}) s
        order by ${columns('s', INDEXED)}
        limit a.max_rows) e
      group by ${columns('e', INDEXED)}) g
    window in_order as (order by ${columns('g', ORDER)} rows unbounded preceding)
    order by ${columns('g', ORDER)}
    limit a.max + 1) e
  order by e.place)`)

/** The columns of a record begin behind the first, which is the kind of row. */
const RECORD = 1
const [PATH, KIND] = [1, 2]

interface ImagePage {
  /** Entries as JSON objects joined with commas. */
  readonly entries: Buffer
  readonly nextCursor: string | null
  readonly coverage: Buffer
}

/** Reads a page of the files of an image that ran, and the coverage of the image. `maxRows` limits the rows read. */
export async function readImage(gate: Gate, question: ImageQuestion, maxRows?: number): Promise<ImagePage> {
  const { digest, kind, after, limit, windowHours, retentionDays } = question
  const rowsRead = maxRows ?? Math.max(MAX_ROWS_READ, limit + 1)
  const [first, last] = [kind ?? KINDS[0], kind ?? KINDS.at(-1)!]
  // A cursor before the requested kind means the start of that kind.
  const place = after === null || after.kind < first ? { kind: first, path: '' } : after
  const rows: RawRow[] = await gate((sql) =>
    PAGE(sql, digest, last, place.kind, place.path, limit, rowsRead, windowHours, retentionDays).raw(),
  )
  const of = (what: string) => rows.filter((row) => String(row[0]) === what)
  const [entries, more] = [of('entry'), of('more')]
  const end = entries.at(-1)
  if (!end && more.length > 0) return readImage(gate, question, rowsRead * GROWTH)
  const coverage = of('coverage')[0]!.slice(0, RECORD + COVERAGE_COLUMNS)
  return {
    entries: plainRows(ImageEntry, entries, RECORD),
    nextCursor: end && more.length > 0 ? writeCursor({ kind: String(end[KIND]), path: String(end[PATH]) }) : null,
    coverage: plainRow(ImageCoverage, [...coverage, Buffer.from(String(windowHours))], RECORD),
  }
}
