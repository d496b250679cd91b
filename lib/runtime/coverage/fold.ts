import { Slice } from '../../turns.ts'
import { type Fault, type Heartbeat, judgeHeartbeat, united } from './heartbeat.ts'

/** What is left of the entries of a post. */
export interface Folded {
  /** Each container once. */
  readonly heartbeats: readonly Heartbeat[]
  /** How many entries were dropped, by why. */
  readonly dropped: Readonly<Partial<Record<Fault, number>>>
}

/** Judges entries one by one and unites those of one container, in slices. */
export async function fold(entries: readonly unknown[]): Promise<Folded> {
  const heartbeats = new Map<string, Heartbeat>()
  const dropped: Partial<Record<Fault, number>> = {}
  const slice = new Slice()
  for (const entry of entries) {
    const heartbeat = judgeHeartbeat(entry)
    if (typeof heartbeat === 'string') dropped[heartbeat] = (dropped[heartbeat] ?? 0) + 1
    else {
      const first = heartbeats.get(heartbeat.container_id)
      heartbeats.set(heartbeat.container_id, first === undefined ? heartbeat : united(first, heartbeat))
    }
    if (slice.isOver) await slice.next()
  }
  return { heartbeats: [...heartbeats.values()], dropped }
}
