import { allKeys, type Entry, suppressingKeys } from './batch.ts'

/** What the table holds of a flow. */
export interface StoredState {
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

/** The outcome of storing the flows one after the other in their order, by what the table held of each before. */
export function settle<T extends Entry>(
  entries: readonly T[],
  stateOf: (entry: T) => StoredState | undefined,
): Settlement<T> {
  const outcome: Settlement<T> = { known: [], taken: [], suppressed: [], accepted: [] }
  const byUuid = new Map<string, T>()
  /** Without null, which equals nothing. */
  const byKey = new Map<string | null, T>()
  for (const entry of entries) {
    const state = stateOf(entry)
    if (state?.isKnown) {
      outcome.known.push(entry)
      continue
    }
    const match = suppressingKeys(entry)
      .map((key) => byKey.get(key))
      .find((other) => other !== undefined)
    const by = match ?? byUuid.get(entry.flow.uuid)
    if (state?.isTaken) outcome.taken.push(entry)
    else if (by) outcome.suppressed.push({ entry, by, isMatch: match !== undefined })
    else {
      outcome.accepted.push(entry)
      byUuid.set(entry.flow.uuid, entry)
      for (const key of allKeys(entry)) if (key !== null) byKey.set(key, entry)
    }
  }
  return outcome
}
