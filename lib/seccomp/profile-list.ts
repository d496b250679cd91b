/** All profiles of the cluster as one body (docs/contract.md#seccomp-profiles). */
import type { Config } from '../config/index.ts'
import { type Database, fixed } from '../db/index.ts'
import { Slice } from '../event-loop/slices.ts'
import { type CachedBody, cacheBody } from '../http/response/cached-body.ts'
import { KIB, type MemoryBudget } from '../limits/memory-budget.ts'
import type { RateLimitedLog } from '../observability/rate-limited-log.ts'
import { type EntryRow, openEntry } from './entry.ts'
import type { Workload } from './names.ts'
import { type RollupRow, UNKNOWN } from './rollup.ts'

/**
 * Memory charged for a build: for each workload, for the names of each workload with a custom resource, and for all
 * denials.
 */
const WORKLOAD_BYTES = 4_096
const NAMES_BYTES = 12_288
const DENIALS_BYTES = 10_000 * 512 + 1_001 * 768
/**
 * If observed and allowed names differ, the list holds them as rows, as text of the answer and as its bytes. That
 * exceeds `NAMES_BYTES` if they are many or long.
 */
const BYTES_PER_NAME_BYTE = 3

/** The text is converted to bytes in pieces of this many characters. */
const PIECE_CHARS = 64 * 1024

const counts = fixed<{ workloads: number; withResource: number; nameBytes: number }[]>(`
  select (select count(*) from workload_syscalls)::float8 as workloads, r.*
  from (select count(*)::float8 as "withResource",
               coalesce(sum(c.bytes + octet_length(w.syscalls)), 0)::float8 as "nameBytes"
        from (select c.namespace, c.workload_kind, c.workload_name, sum(octet_length(c.syscalls)) as bytes
              from seccomp_cr c
              group by c.namespace, c.workload_kind, c.workload_name) c
        join workload_syscalls w
          on w.pod_namespace = c.namespace and w.workload_kind = c.workload_kind
         and w.workload_name = c.workload_name) r`)

const entries = fixed<EntryRow[]>('select * from seccomp_profiles($1, $2)')

interface ListedRollup extends RollupRow, Workload {
  readonly is_shortened: boolean
}
const rollups = fixed<ListedRollup[]>('select * from seccomp_rollups($1)')

export interface ListSources {
  readonly db: Database
  readonly config: Config
  readonly lines: RateLimitedLog
  readonly budget: MemoryBudget
}

/**
 * Reads the list. Its worst case in memory is charged to the read budget for the whole build.
 * @throws HttpError 503 if the budget has no room in time
 */
export async function buildProfileList({ db, config, lines, budget }: ListSources): Promise<CachedBody> {
  const [count] = await db.read((sql) => counts(sql))
  const { workloads, withResource, nameBytes } = count!
  const namesBytes = Math.max(withResource * NAMES_BYTES, nameBytes * BYTES_PER_NAME_BYTE)
  const release = await budget.acquire((workloads * WORKLOAD_BYTES + namesBytes + DENIALS_BYTES) / KIB)
  try {
    // In parallel: the two queries are independent and take about the same time.
    const [found, denied] = await Promise.all([
      db.read((sql) => entries(sql, config.seccompProfileDir, config.seccompNodeStaleSecs)),
      db.read((sql) => rollups(sql, config.seccompDenialsRetentionDays)),
    ])
    if (denied.some((row) => row.is_shortened))
      lines.note('names of seccomp denials were left out of the list of profiles: there are too many', { lists: 1 })
    const denials = new Map(denied.map((row) => [keyOf(row), row]))
    return await cacheBody(await writtenList(found, denials, config.seccompProfileDir))
  } finally {
    release()
  }
}

/** No name contains U+0000. */
const keyOf = ({ namespace, kind, name }: Workload) => `${namespace}\0${kind}\0${name}`

/**
 * The rows as one JSON array, in slices of the event loop. A workload that is newer than `denials` gets the rollup
 * `UNKNOWN`.
 */
export async function writtenList(
  found: readonly EntryRow[],
  denials: ReadonlyMap<string, RollupRow>,
  directory: string,
): Promise<Buffer> {
  const slice = new Slice()
  const pieces: Buffer[] = []
  let text = '['
  for (const [i, row] of found.entries()) {
    text += `${i === 0 ? '' : ','}${openEntry(row, denials.get(keyOf(row)) ?? UNKNOWN, directory)}}`
    if (text.length >= PIECE_CHARS) {
      pieces.push(Buffer.from(text))
      text = ''
    }
    if (slice.isOver) await slice.next()
  }
  pieces.push(Buffer.from(`${text}]`))
  return Buffer.concat(pieces)
}
