import { fixed, type Gate } from '../db/index.ts'
import { joinedColumns, joinedPage, type PageCursor, plainReader } from '../records/index.ts'
import type { Page } from '../records/page.ts'
import { PodRecord } from './record.ts'

/** Most rows of a page. */
export const POD_PAGE_ROWS = 1_000
/** No row is added to a page that has reached this size, so that large manifests make short pages. */
const PAGE_BYTES = 2 * 1024 * 1024
/** Approximate size of a record without its manifest. */
const BARE_RECORD_BYTES = 512

/** The end of a page of pods, and the number of rows to read next. */
export interface PodCursor {
  namespace: string | null
  name: string
  rows: number
}

const PLACE = ['pod_namespace', 'pod_name']

// Null namespaces come last; row comparisons never reach them, so they are a range of their own.
const RANGES = {
  start: { where: [], values: 0 },
  named: { where: ['(p.pod_namespace, p.pod_name) > ($1, $2)'], values: 2 },
  nameless: { where: ['p.pod_namespace is null', 'p.pod_name > $1'], values: 1 },
} as const
type Range = keyof typeof RANGES

/**
 * A page of pods in index order by namespace and name. It has the rows that begin within its size limit, at least one.
 */
function pageOf(range: Range, isAlive: boolean) {
  const where = [...RANGES[range].where, ...(isAlive ? ['not p.is_dead'] : [])]
  const rows = `
    select *, sum(bytes) over (order by pod_namespace,
                               pod_name rows unbounded preceding) - bytes < ${PAGE_BYTES} as fits
    from (select p.*, coalesce(octet_length(p.pod_obj::text), 0) + ${BARE_RECORD_BYTES} as bytes
          from pod p
          ${where.length > 0 ? `where ${where.join(' and ')}` : ''}
          order by p.pod_namespace, p.pod_name
          limit $${RANGES[range].values + 1}) r`
  return {
    joined: fixed(`select count(*)::text, ${joinedColumns(PodRecord, 'w', 'w.fits')} from (${rows}) w`),
    plain: plainReader(PodRecord, `select * from (${rows}) w where w.fits`, PLACE),
  }
}

const statements = Object.fromEntries(
  (Object.keys(RANGES) as Range[]).map((range) => [range, { all: pageOf(range, false), alive: pageOf(range, true) }]),
) as Record<Range, Record<'all' | 'alive', ReturnType<typeof pageOf>>>

async function read(
  gate: Gate,
  range: Range,
  isAlive: boolean,
  rows: number,
  ...after: string[]
): Promise<Page<PodCursor>> {
  const { joined, plain } = statements[range][isAlive ? 'alive' : 'all']
  const [row] = await gate((sql) => joined(sql, ...after, rows).raw())
  const found = Number(row![0])
  const page = joinedPage(PodRecord, row!, PLACE, 1) ?? (await plain(gate, ...after, rows))
  const isCut = page.count < found
  // If rows are this long, reading many more than fit would be wasted.
  const next = Math.min(POD_PAGE_ROWS, 2 * (isCut ? page.count : rows))
  return { ...page, last: isCut || found === rows ? cursorOf(page.last!, next) : endOf(range, next) }
}

const cursorOf = ([namespace, name]: PageCursor, rows: number): PodCursor => ({
  namespace: namespace!,
  name: name!,
  rows,
})

/** Pods without a namespace follow. */
const endOf = (range: Range, rows: number): PodCursor | null =>
  range === 'named' ? { namespace: null, name: '', rows } : null

/** The first page of all pods, or of those that are alive: by namespace and name in byte order. */
export const readFirstPods = (gate: Gate, isAlive: boolean): Promise<Page<PodCursor>> =>
  read(gate, 'start', isAlive, POD_PAGE_ROWS)

/** The next page. A pod that moves to another namespace meanwhile may appear twice or not at all. */
export async function readNextPods(
  gate: Gate,
  isAlive: boolean,
  { namespace, name, rows }: PodCursor,
): Promise<Page<PodCursor>> {
  if (namespace === null) return read(gate, 'nameless', isAlive, rows, name)
  const page = await read(gate, 'named', isAlive, rows, namespace, name)
  return page.count > 0 || page.last === null ? page : readNextPods(gate, isAlive, page.last)
}
