import { z } from 'zod'
import { listOf } from '../../http/request/first-fault.ts'
import { documentedAs } from '../../openapi/declare.ts'
import { shownEntry } from './entry.ts'

export const MAX_EXECUTABLES_BYTES = 8 * 1024 * 1024
/** More than twice what an agent sends at once. */
export const MAX_EXECUTABLES = 5_000

/** Entries are judged one by one: of the list only its length is. */
export const Executables = listOf(
  documentedAs(z.unknown(), {
    ...shownEntry,
    description: 'An entry that cannot be stored is dropped; the others are stored all the same.',
  }),
  MAX_EXECUTABLES,
)
