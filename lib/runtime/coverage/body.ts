import { z } from 'zod'
import { listOf } from '../../http/request/first-fault.ts'
import { documentedAs } from '../../openapi/declare.ts'
import { MAX_OF_CONTAINER } from './fold.ts'
import { shownEntry } from './heartbeat.ts'

export const MAX_HEARTBEATS_BYTES = 4 * 1024 * 1024
/** More than twice what an agent sends at once. */
const MAX_HEARTBEATS = 5_000

/** Entries are judged one by one: of the list only its length is. */
export const Heartbeats = listOf(
  documentedAs(z.unknown(), {
    ...shownEntry,
    description: `An entry that cannot be stored is dropped, and what is more than ${MAX_OF_CONTAINER} of one container; the others are stored all the same. Several of one container are judged one after the other, by their times.`,
  }),
  MAX_HEARTBEATS,
)
