import type { Database, Gate } from '../../lib/db/database.ts'
import { queryWithTimeout } from '../../lib/db/database.ts'
import { isNoConnection } from '../../lib/db/errors.ts'
import { within } from '../../lib/time/within.ts'
import { schemaVersion } from './files.ts'

/** `unreachable`: no answer within `maxWaitMs`. `outdated`: the database answers but lacks a migration of this release. */
export type SchemaState = 'ready' | 'outdated' | 'unreachable'

const UNDEFINED_TABLE = '42P01'
/** A question lives so long at least, though who asked it may have gone: others may have come who wait longer. */
const MIN_QUESTION_MS = 500

interface Question {
  readonly askedAt: number
  /** Never rejects; undefined where the database took too long. */
  readonly answer: Promise<SchemaState | undefined>
}

const underWay = new WeakMap<Database, Question>()

/**
 * What a request would meet. Probes and scrapes that come while the question is under way share it; one that was asked before they
 * came and failed is asked once more, for it may have been stuck from the start.
 */
export async function schemaState(db: Database, maxWaitMs: number): Promise<SchemaState> {
  const cameAt = performance.now()
  for (;;) {
    const leftMs = cameAt + maxWaitMs - performance.now()
    const { askedAt, answer } = underWay.get(db) ?? put(db, maxWaitMs)
    const state = (await within(answer, leftMs)) ?? 'unreachable'
    if (state !== 'unreachable' || askedAt >= cameAt || performance.now() - cameAt >= maxWaitMs) return state
  }
}

function put(db: Database, maxWaitMs: number): Question {
  const ms = Math.max(MIN_QUESTION_MS, maxWaitMs)
  const question = { askedAt: performance.now(), answer: within(ask(db, ms), ms).finally(() => underWay.delete(db)) }
  underWay.set(db, question)
  return question
}

async function ask(db: Database, ms: number): Promise<SchemaState> {
  // The probe's connection may stand where requests find none any more.
  const cutOff = [db.ingest, db.read].filter((gate) => gate.stats.isCutOff)
  try {
    const [version] = await Promise.all([
      askVersion(db, ms),
      ...cutOff.map((gate) => gate.once(ms, (sql) => sql`select`)),
    ])
    return version >= newest() ? 'ready' : 'outdated'
  } catch (error) {
    return (error as { code?: string }).code === UNDEFINED_TABLE ? 'outdated' : 'unreachable'
  }
}

/** The version of the schema, by the probe's connection; where there is none to be had, by one of those that serve requests. */
async function askVersion({ ingest, read, probe }: Database, ms: number): Promise<number> {
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
