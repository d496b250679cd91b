import { z } from 'zod'
import type { Deps } from '../../app/deps.ts'
import { fixed } from '../../db/index.ts'
import type { Dropped } from '../../entries/index.ts'
import { listOf } from '../../http/request/first-fault.ts'
import { documentedAs } from '../../openapi/declare.ts'
import { type Accepted, accepted } from '../accepted.ts'
import { type Heartbeat, HeartbeatEntry } from './entry.ts'

const ROUTE = '/runtime/coverage'
export const MAX_HEARTBEATS_BYTES = 4 * 1024 * 1024
/** More than twice what an agent sends at once. */
const MAX_HEARTBEATS = 5_000
/** Agents send one heartbeat of a container in a post. Each is applied in a step of its own, after the one before. */
const MAX_OF_CONTAINER = 100

/** Only the length of the list is checked here: entries are parsed one by one. */
export const Heartbeats = listOf(
  documentedAs(z.unknown(), {
    ...HeartbeatEntry.json,
    description: `An entry that cannot be stored is dropped, and so are those of one container beyond ${MAX_OF_CONTAINER}; the others are stored. Heartbeats of one container are applied in the order of their times.`,
  }),
  MAX_HEARTBEATS,
)

const store = fixed<[{ written: number }]>('select store_heartbeats($1::text::json) as written')

/**
 * Stores heartbeats in one transaction; dropped entries are counted and logged. The attempt can be repeated: a stored
 * heartbeat is not newer than itself.
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

/** The good entries of a post, each container and time once: a second one is not newer than the first. */
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
