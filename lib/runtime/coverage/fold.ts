import { Slice } from '../../process/event-loop.ts'
import { type Fault, type Heartbeat, judgeHeartbeat } from './heartbeat.ts'

/** Heartbeats of one container in a post, of which agents send one: each is judged by what came of the one before, in a step of its own. */
export const MAX_OF_CONTAINER = 100

/** What is left of the entries of a post. */
export interface Folded {
  /** Each container and time once. */
  readonly heartbeats: readonly Heartbeat[]
  /** How many entries were dropped, by why. */
  readonly dropped: Readonly<Partial<Record<Fault, number>>>
}

/** Judges entries one by one, in slices. Of two of one container and time the second is not newer than the first, and says nothing. */
export async function fold(entries: readonly unknown[]): Promise<Folded> {
  const heartbeats: Heartbeat[] = []
  const times = new Map<string, Set<string>>()
  const dropped: Partial<Record<Fault, number>> = {}
  const drop = (fault: Fault) => {
    dropped[fault] = (dropped[fault] ?? 0) + 1
  }
  const slice = new Slice()
  for (const entry of entries) {
    const heartbeat = judgeHeartbeat(entry)
    if (typeof heartbeat === 'string') drop(heartbeat)
    else {
      const known = times.get(heartbeat.container_id) ?? new Set()
      if (known.size >= MAX_OF_CONTAINER) drop('container_id')
      else if (!known.has(heartbeat.heartbeat_at)) heartbeats.push(heartbeat)
      if (known.size < MAX_OF_CONTAINER) times.set(heartbeat.container_id, known.add(heartbeat.heartbeat_at))
    }
    if (slice.isOver) await slice.next()
  }
  return { heartbeats, dropped }
}
