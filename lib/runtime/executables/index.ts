import type { Deps } from '../../app/deps.ts'
import { merge } from './merge.ts'
import { storeExecutables } from './store.ts'

export { Executables, MAX_EXECUTABLES, MAX_EXECUTABLES_BYTES } from './body.ts'
export { KINDS, type Kind, ORIGINS, type Origin } from './entry.ts'

const ROUTE = '/runtime/executables'

/** What became of the entries of a post. */
export interface Taken {
  /** Entries that were taken: all but the dropped, several of one file too. */
  readonly accepted: number
  /** Entries that were dropped. */
  readonly dropped: number
  /** Rows that were new or changed. */
  readonly written: number
}

/** Stores what files ran, in one transaction. What is wrong with entries is counted and told of. */
export async function takeExecutables(
  { db, rejections }: Pick<Deps, 'db' | 'rejections'>,
  entries: readonly unknown[],
): Promise<Taken> {
  const merged = await merge(entries)
  const written = await storeExecutables(db, merged)
  rejections.note(ROUTE, merged.dropped, 'executables were dropped, counted by the field at fault')
  const dropped = Object.values(merged.dropped).reduce((sum, count) => sum + count, 0)
  return { accepted: entries.length - dropped, dropped, written }
}
