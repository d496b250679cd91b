import { allKeys, type Entry, suppressingKeys } from './batch.ts'
import { uuidOfDay } from './flow.ts'

/** Whether the table has a flow already. */
interface StoredState {
  /** A stored row matches it. */
  readonly isKnown: boolean
  /** A stored row of its day has its uuid. */
  readonly uuidExists: boolean
}

/** A flow that is a duplicate of an earlier one, if that one is stored. */
export interface Suppressed<T> {
  readonly entry: T
  readonly by: T
  /** True if its members match, not only its uuid: then its repeats are duplicates, too. */
  readonly isMatch: boolean
}

interface Resolution<T> {
  readonly known: T[]
  readonly uuidExists: T[]
  readonly suppressed: Suppressed<T>[]
  /** To store; without duplicates among them. */
  readonly accepted: T[]
}

/** Returns the result of storing the flows in order, given what the table had of each before. */
export function resolveDuplicates<T extends Entry>(
  entries: readonly T[],
  stateOf: (entry: T) => StoredState | undefined,
): Resolution<T> {
  const result: Resolution<T> = { known: [], uuidExists: [], suppressed: [], accepted: [] }
  const byUuid = new Map<string, T>()
  /** Without null, which equals nothing. */
  const byKey = new Map<string | null, T>()
  for (const entry of entries) {
    const state = stateOf(entry)
    if (state?.isKnown) {
      result.known.push(entry)
      continue
    }
    const match = suppressingKeys(entry)
      .map((key) => byKey.get(key))
      .find((other) => other !== undefined)
    const by = match ?? byUuid.get(uuidOfDay(entry.flow))
    if (state?.uuidExists) result.uuidExists.push(entry)
    else if (by) result.suppressed.push({ entry, by, isMatch: match !== undefined })
    else {
      result.accepted.push(entry)
      byUuid.set(uuidOfDay(entry.flow), entry)
      for (const key of allKeys(entry)) if (key !== null) byKey.set(key, entry)
    }
  }
  return result
}
