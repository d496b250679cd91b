import { stoppers, type Traveller } from './departure.ts'

/** What the table says of a flow. */
export interface Standing {
  /** A stored row matches it. */
  readonly isKnown: boolean
  /** A stored row has its uuid. */
  readonly isTaken: boolean
}

/** A flow that is a duplicate of an earlier one, provided that one is stored. */
export interface Suppressed<T> {
  readonly entry: T
  readonly by: T
  /** By its members and not only by its uuid: its repeats are duplicates too. */
  readonly isMatch: boolean
}

export interface Settlement<T> {
  readonly known: T[]
  readonly taken: T[]
  readonly suppressed: Suppressed<T>[]
  /** To be stored; none of them is a duplicate of another one. */
  readonly accepted: T[]
}

/** The outcome of storing the flows one after the other in their order, by what the table had to say of each before. */
export function settle<T extends Traveller>(entries: readonly T[], standing: (entry: T) => Standing | undefined): Settlement<T> {
  const outcome: Settlement<T> = { known: [], taken: [], suppressed: [], accepted: [] }
  const byUuid = new Map<string, T>()
  const byKey = new Map<string, T>()
  for (const entry of entries) {
    const found = standing(entry)
    if (found?.isKnown) {
      outcome.known.push(entry)
      continue
    }
    const match = first(stoppers(entry), byKey)
    const by = match ?? byUuid.get(entry.flow.uuid)
    if (found?.isTaken) outcome.taken.push(entry)
    else if (by) outcome.suppressed.push({ entry, by, isMatch: match !== undefined })
    else {
      outcome.accepted.push(entry)
      byUuid.set(entry.flow.uuid, entry)
      for (const key of [entry.keys.all, entry.keys.podPort, entry.keys.peerPort]) if (key !== null) byKey.set(key, entry)
    }
  }
  return outcome
}

function first<T>(keys: readonly (string | null)[], found: ReadonlyMap<string, T>): T | undefined {
  for (const key of keys) {
    const entry = key === null ? undefined : found.get(key)
    if (entry) return entry
  }
  return undefined
}
