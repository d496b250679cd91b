/** All profiles of the cluster as one body (workload-profiling, GET /seccomp/profiles). */
import { promisify } from 'node:util'
import { constants, gzip } from 'node:zlib'
import type { Config } from '../config.ts'
import { type Database, fixed } from '../db/index.ts'
import { KIB, type ReadBudget } from '../http/budget.ts'
import type { Kept } from '../http/kept.ts'
import { Slice } from '../turns.ts'
import type { MinuteLines } from './denials/minute-lines.ts'
import { type EntryRow, openEntry } from './entry.ts'

/** What a build may hold of each: a workload, the names of one with a custom resource, denials (interop-profiling 1.10). */
const WORKLOAD_BYTES = 4_096
const NAMES_BYTES = 12_288
const DENIALS_BYTES = 10_000 * 512 + 1_001 * 768
/** Names that differ are held as read, as text of the answer and as its bytes: more than that where they are many or long. */
const HELD_PER_NAME_BYTE = 3

/** Entries become bytes when they come to so many characters. */
const PIECE_CHARS = 64 * 1024

const gzipAsync = promisify(gzip)

const counts = fixed<{ workloads: number; withResource: number; nameBytes: number }[]>(`
  select (select count(*) from workload_syscalls)::float8 as workloads, r.*
  from (select count(*)::float8 as "withResource", coalesce(sum(c.bytes + octet_length(w.syscalls)), 0)::float8 as "nameBytes"
        from (select c.namespace, c.workload_kind, c.workload_name, sum(octet_length(c.syscalls)) as bytes
              from seccomp_cr c
              group by c.namespace, c.workload_kind, c.workload_name) c
        join workload_syscalls w
          on w.pod_namespace = c.namespace and w.workload_kind = c.workload_kind and w.workload_name = c.workload_name) r`)

/** A row of the database function `seccomp_profiles`. */
export interface Row extends EntryRow {
  readonly is_shortened: boolean
}
const rows = fixed<Row[]>('select * from seccomp_profiles($1, $2)')

export interface ListSources {
  readonly db: Database
  readonly config: Config
  readonly lines: MinuteLines
  readonly budget: ReadBudget
}

/**
 * Reads the list. What that may hold is charged to the read budget before, for as long as it takes: 503 when it is not to be had in time.
 */
export async function buildProfileList({ db, config, lines, budget }: ListSources): Promise<Kept> {
  const [count] = await db.read((sql) => counts(sql))
  const { workloads, withResource, nameBytes } = count!
  const namesBytes = Math.max(withResource * NAMES_BYTES, nameBytes * HELD_PER_NAME_BYTE)
  const release = await budget.acquire((workloads * WORKLOAD_BYTES + namesBytes + DENIALS_BYTES) / KIB)
  try {
    const found = await db.read((sql) => rows(sql, config.seccompProfileDir, config.seccompNodeStaleSecs))
    if (found.some((row) => row.is_shortened))
      lines.note('names of seccomp denials were left out of the list of profiles: there are too many', { lists: 1 })
    const plain = await writtenList(found, config.seccompProfileDir)
    return { plain, packed: await gzipAsync(plain, { level: constants.Z_BEST_SPEED }) }
  } finally {
    release()
  }
}

/** The rows as one array, in slices of the event loop. */
export async function writtenList(found: readonly Row[], directory: string): Promise<Buffer> {
  const slice = new Slice()
  const pieces: Buffer[] = []
  let text = '['
  for (const [i, row] of found.entries()) {
    text += `${i === 0 ? '' : ','}${openEntry(row, directory)}}`
    if (text.length >= PIECE_CHARS) {
      pieces.push(Buffer.from(text))
      text = ''
    }
    if (slice.isOver) await slice.next()
  }
  pieces.push(Buffer.from(`${text}]`))
  return Buffer.concat(pieces)
}
