import { createBatcher, type Database, fixed, perDatabase } from '../db/index.ts'
import { type Capture, type CaptureRow, captureOf } from './capture.ts'
import { namesOf, type Workload } from './names.ts'
import { noProfile } from './profile.ts'

/** The observed syscalls of a workload. */
export interface Observed {
  /** Sorted by bytes, each once. */
  readonly names: readonly string[]
  /** As agents report them, sorted by bytes. */
  readonly arches: readonly string[]
  /** FNV-1a of both, 16 hexadecimal digits (docs/contract.md#seccomp-profiles). */
  readonly hash: string
  readonly capture: Capture
  /** The time of the last reset in UTC with a zone, or null. */
  readonly resetAt: string | null
}

interface Row extends CaptureRow {
  readonly n: number
  readonly syscalls: string
  readonly arches: string[]
  readonly hash: string
  readonly reset_at: string | null
}

// The driver leaves PostgreSQL arrays as text and parses JSON.
const statement = fixed<Row[]>(`
  select k.n::integer as n, w.syscalls, to_json(w.arches) as arches, w.hash,
         to_char(w.reset_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as reset_at,
         c.worst, c.pods, c.incomplete, to_json(c.names) as names, to_json(c.ranks) as ranks
  from rows from (json_to_recordset($1::text::json) as (namespace text, kind text, name text))
       with ordinality k(namespace, kind, name, n)
  join workload_syscalls w on w.pod_namespace = k.namespace and w.workload_kind = k.kind and w.workload_name = k.name
  cross join lateral workload_capture(k.namespace, k.kind, k.name) c`)

const lookup = perDatabase((db) =>
  createBatcher<Workload, Observed | null>({
    run: async (workloads) => {
      const rows = await db.read((sql) => statement(sql, JSON.stringify(workloads)))
      const found = new Map(rows.map((row) => [row.n, row]))
      return workloads.map((_, i) => {
        const row = found.get(i + 1)
        if (row === undefined) return null
        return {
          names: namesOf(row.syscalls),
          arches: row.arches,
          hash: row.hash,
          capture: captureOf(row),
          resetAt: row.reset_at,
        }
      })
    },
  }),
)

/** Reads the observed syscalls of a workload. @throws HttpError 404 if there are none */
export async function readObserved(db: Database, workload: Workload): Promise<Observed> {
  const observed = await lookup(db)(workload)
  if (observed === null) throw noProfile()
  if (observed.names.length === 0 && observed.resetAt !== null) throw noProfile(observed.resetAt)
  return observed
}
