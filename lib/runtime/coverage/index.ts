import { z } from 'zod'
import { fixed } from '../../db/index.ts'
import type { Dropped } from '../../entries/index.ts'
import { listOf } from '../../http/request/first-fault.ts'
import type { Deps } from '../../http/route.ts'
import { documentedAs } from '../../openapi/declare.ts'
import { type Accepted, accepted } from '../accepted.ts'
import { type Heartbeat, HeartbeatEntry } from './entry.ts'

const ROUTE = '/runtime/coverage'
/** More than twice the number an agent sends. */
const MAX_HEARTBEATS = 5_000
/**
 * Agents send one heartbeat per container and post. The limit exists because heartbeats of one container are applied
 * one after another.
 */
const MAX_OF_CONTAINER = 100

/** Checks only the length of the list; entries are parsed later, one by one. */
export const Heartbeats = listOf(
  documentedAs(z.unknown(), {
    ...HeartbeatEntry.json,
    description:
      'An entry that cannot be stored is dropped, and so are those of one container beyond ' +
      `${MAX_OF_CONTAINER}; the others are stored. Heartbeats of one container are applied in the order of their ` +
      'times.',
  }),
  MAX_HEARTBEATS,
)

const store = fixed<[{ written: number }]>('select store_heartbeats($1::text::json) as written')

/**
 * Stores heartbeats in one transaction; dropped entries are counted and logged. A retry is safe: only a heartbeat that
 * is newer than the stored one changes anything.
 */
export async function takeHeartbeats(
  { db, rejections }: Pick<Deps, 'db' | 'rejections'>,
  entries: readonly unknown[],
): Promise<Accepted> {
  const { heartbeats, dropped } = await parseHeartbeats(entries)
  const written = heartbeats.length === 0 ? 0 : await storeAll(db, JSON.stringify(heartbeats))
  rejections.note(ROUTE, dropped, 'heartbeats were dropped, counted by the field at fault')
  return accepted(entries.length, dropped, written)
}

/**
 * Returns the valid entries of a post, one for each container and time: a second one would not be newer and would
 * change nothing.
 */
export async function parseHeartbeats(
  entries: Iterable<unknown>,
): Promise<{ heartbeats: readonly Heartbeat[]; dropped: Dropped }> {
  const heartbeats: Heartbeat[] = []
  const times = new Map<string, Set<string>>()
  const dropped = await HeartbeatEntry.parseAll(entries, (heartbeat) => {
    const known = times.get(heartbeat.container_id) ?? new Set()
    if (known.size >= MAX_OF_CONTAINER) return 'container_id'
    if (!known.has(heartbeat.heartbeat_at)) heartbeats.push(heartbeat)
    times.set(heartbeat.container_id, known.add(heartbeat.heartbeat_at))
    return undefined
  })
  return { heartbeats, dropped }
}

async function storeAll(db: Deps['db'], document: string): Promise<number> {
  const [row] = await db.ingest((sql) => store(sql, document))
  return row!.written
}
