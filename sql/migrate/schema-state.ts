import type { Database, Gate } from '../../lib/db/database.ts'
import { queryWithTimeout } from '../../lib/db/database.ts'
import { isNoConnection } from '../../lib/db/errors.ts'
import { within } from '../../lib/time/within.ts'
import { schemaVersion } from './files.ts'

/** `unreachable`: no answer in time. `outdated`: the database lacks a migration of this release. */
export type SchemaState = 'ready' | 'outdated' | 'unreachable'

const UNDEFINED_TABLE = '42P01'
/** Shortest time of a query, even if its caller waits less: other callers that share it may wait longer. */
const MIN_QUERY_MS = 500

interface SharedQuery {
  readonly startedAt: number
  /** Never rejects; undefined where the database took too long. */
  readonly answer: Promise<SchemaState | undefined>
}

const inFlight = new WeakMap<Database, SharedQuery>()

/**
 * The state of the schema as a request would find it. Probes and scrapes share a query in flight; a query that began
 * before the call and failed is repeated once, because it may have been stuck from the start.
 */
export async function schemaState(db: Database, maxWaitMs: number): Promise<SchemaState> {
  const calledAt = performance.now()
  for (;;) {
    const leftMs = calledAt + maxWaitMs - performance.now()
    const { startedAt, answer } = inFlight.get(db) ?? startQuery(db, maxWaitMs)
    const state = (await within(answer, leftMs)) ?? 'unreachable'
    if (state !== 'unreachable' || startedAt >= calledAt || performance.now() - calledAt >= maxWaitMs) return state
  }
}

function startQuery(db: Database, maxWaitMs: number): SharedQuery {
  const ms = Math.max(MIN_QUERY_MS, maxWaitMs)
  const answer = within(queryState(db, ms), ms).finally(() => inFlight.delete(db))
  const query = { startedAt: performance.now(), answer }
  inFlight.set(db, query)
  return query
}

async function queryState(db: Database, ms: number): Promise<SchemaState> {
  // The probe's connection may stand while requests find none.
  const cutOff = [db.ingest, db.read].filter((gate) => gate.stats.isCutOff)
  try {
    const [version] = await Promise.all([
      queryVersion(db, ms),
      ...cutOff.map((gate) => gate.once(ms, (sql) => sql`select`)),
    ])
    return version >= newest() ? 'ready' : 'outdated'
  } catch (error) {
    return (error as { code?: string }).code === UNDEFINED_TABLE ? 'outdated' : 'unreachable'
  }
}

/** The version of the schema, over the probe's connection or, if there is none, over one that serves requests. */
async function queryVersion({ ingest, read, probe }: Database, ms: number): Promise<number> {
  const until = performance.now() + ms
  const [row] = await queryWithTimeout<{ version: number | null }>(probe.within, ms, VERSION).catch((error) => {
    const leftMs = until - performance.now()
    if (!isNoConnection(error) || leftMs <= 0 || !isStanding(ingest) || !isStanding(read)) throw error
    return queryWithTimeout<{ version: number | null }>(read.once, leftMs, VERSION)
  })
  return Number(row?.version ?? 0)
}

const VERSION = 'select max(version) as version from schema_migration'

const isStanding = ({ stats }: Gate) => stats.open > 0

let version: number | undefined
const newest = () => (version ??= schemaVersion())
