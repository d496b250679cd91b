import { fixed, type Gate } from '../db/index.ts'
import type { Page } from '../http/pages.ts'

/** Rows of a page at most. */
export const POD_PAGE_ROWS = 1_000
/** What a page may come to: no row is added to one that has reached it, so that manifests of megabytes make short pages. */
const PAGE_BYTES = 2 * 1024 * 1024

/** Where a page of pods ended, and how many rows to ask for next. */
export interface PodPlace {
  namespace: string | null
  name: string
  rows: number
}

// Null namespaces come last (interop-core D19), where no comparison of rows reaches them: they are a range of their own.
const RANGES = {
  start: { where: [], values: 0 },
  named: { where: ['(p.pod_namespace, p.pod_name) > ($1, $2)'], values: 2 },
  nameless: { where: ['p.pod_namespace is null', 'p.pod_name > $1'], values: 1 },
} as const
type Range = keyof typeof RANGES

/**
 * A page of pods by namespace and name, in order of an index. Of the rows that were asked for those count that begin within the bytes of
 * a page, the first always.
 */
function pageOf(range: Range, isAlive: boolean) {
  const where = [...RANGES[range].where, ...(isAlive ? ['not p.is_dead'] : [])]
  return fixed(`
    select count(*)::text, count(*) filter (where fits)::text, coalesce(string_agg(pod, ',') filter (where fits), ''),
           (array_agg(pod_namespace) filter (where fits))[count(*) filter (where fits)],
           (array_agg(pod_name) filter (where fits))[count(*) filter (where fits)]
    from (select *, sum(octet_length(pod)) over (order by pod_namespace, pod_name rows unbounded preceding)
                    - octet_length(pod) < ${PAGE_BYTES} as fits
          from (select pod_record(p)::text as pod, p.pod_namespace, p.pod_name
                from pod p
                ${where.length > 0 ? `where ${where.join(' and ')}` : ''}
                order by p.pod_namespace, p.pod_name
                limit $${RANGES[range].values + 1}) r) w`)
}

const statements = Object.fromEntries(
  (Object.keys(RANGES) as Range[]).map((range) => [range, { all: pageOf(range, false), alive: pageOf(range, true) }]),
) as Record<Range, Record<'all' | 'alive', ReturnType<typeof pageOf>>>

async function read(gate: Gate, range: Range, isAlive: boolean, rows: number, ...after: string[]): Promise<Page<PodPlace>> {
  const page = statements[range][isAlive ? 'alive' : 'all']
  const [row] = await gate((sql) => page(sql, ...after, rows).raw())
  const [found, fitting, json, namespace, name] = row as [Buffer, Buffer, Buffer, Buffer | null, Buffer | null]
  const count = Number(fitting)
  const isCut = count < Number(found)
  // Of rows that are as long as these, many more than fit would be read in vain.
  const next = Math.min(POD_PAGE_ROWS, 2 * (isCut ? count : rows))
  if (isCut || count === rows) {
    return { json, count, last: { namespace: namespace && String(namespace), name: String(name), rows: next } }
  }
  return { json, count, last: range === 'named' ? { namespace: null, name: '', rows: next } : null }
}

/** The first page of all pods, or of those that are alive: by namespace and name in byte order. */
export const readFirstPods = (gate: Gate, isAlive: boolean): Promise<Page<PodPlace>> => read(gate, 'start', isAlive, POD_PAGE_ROWS)

/** The page that follows. A pod that is posted under another namespace meanwhile may be on both sides of a place, or on neither. */
export async function readNextPods(gate: Gate, isAlive: boolean, { namespace, name, rows }: PodPlace): Promise<Page<PodPlace>> {
  if (namespace === null) return read(gate, 'nameless', isAlive, rows, name)
  const page = await read(gate, 'named', isAlive, rows, namespace, name)
  return page.count > 0 || page.last === null ? page : readNextPods(gate, isAlive, page.last)
}
