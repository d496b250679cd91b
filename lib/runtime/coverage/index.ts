import type { Deps } from '../../app/deps.ts'
import { fixed } from '../../db/index.ts'
import { fold } from './fold.ts'

export { Heartbeats, MAX_HEARTBEATS_BYTES } from './body.ts'

const ROUTE = '/runtime/coverage'

const store = fixed<[{ written: number }]>('select store_heartbeats($1::text::json) as written')

/** What became of the entries of a post. */
export interface Taken {
  /** Entries that were taken: all but the dropped, several of one container too. */
  readonly accepted: number
  /** Entries that were dropped. */
  readonly dropped: number
  /** Rows that were new or changed. */
  readonly written: number
}

/**
 * Stores heartbeats in one transaction. What is wrong with entries is counted and told of. A heartbeat that is stored is not newer than itself, so
 * that an attempt more counts nothing twice.
 */
export async function takeHeartbeats(
  { db, rejections }: Pick<Deps, 'db' | 'rejections'>,
  entries: readonly unknown[],
): Promise<Taken> {
  const { heartbeats, dropped: faults } = await fold(entries)
  const written = heartbeats.length === 0 ? 0 : await storeAll(db, JSON.stringify(heartbeats))
  rejections.note(ROUTE, faults, 'heartbeats were dropped, counted by the field at fault')
  const dropped = Object.values(faults).reduce((sum, count) => sum + count, 0)
  return { accepted: entries.length - dropped, dropped, written }
}

async function storeAll(db: Deps['db'], document: string): Promise<number> {
  const [row] = await db.ingest((sql) => store(sql, document))
  return row!.written
}
