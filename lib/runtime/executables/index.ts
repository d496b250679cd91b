import { z } from 'zod'
import { listOf } from '../../http/request/first-fault.ts'
import type { Deps } from '../../http/route.ts'
import { documentedAs } from '../../openapi/declare.ts'
import { type Accepted, accepted } from '../accepted.ts'
import { ExecutableEntry } from './entry.ts'
import { mergeExecutables } from './merge.ts'
import { storeExecutables } from './store.ts'

export { KINDS, ORIGINS } from './entry.ts'

const ROUTE = '/runtime/executables'
/** More than twice the number an agent sends. */
const MAX_EXECUTABLES = 5_000

/** Checks only the length of the list; entries are parsed later, one by one. */
export const Executables = listOf(
  documentedAs(z.unknown(), {
    ...ExecutableEntry.json,
    description: 'An entry that cannot be stored is dropped; the others are stored.',
  }),
  MAX_EXECUTABLES,
)

/** Stores executables in one transaction; dropped entries are counted and logged. */
export async function takeExecutables(
  { db, rejections }: Pick<Deps, 'db' | 'rejections'>,
  entries: readonly unknown[],
): Promise<Accepted> {
  const merged = await mergeExecutables(entries)
  const written = await storeExecutables(db, merged)
  rejections.note(ROUTE, merged.dropped, 'executables were dropped, counted by the field at fault')
  return accepted(entries.length, merged.dropped, written)
}
