/** The envelope that both posts of compute share (docs/contract.md#compute). */
import { z } from 'zod'
import { type Dropped, type EntrySchema, entryList, nodeName } from '../entries/index.ts'
import { ZONED_TIME_PATTERN } from '../http/request/fields.ts'
import { tooMany } from '../json/prescan.ts'
import { documentedAs } from '../openapi/declare.ts'
import { parseRfc3339 } from '../time/timestamp.ts'
import type { Blame } from './blame.ts'

/** Containers in a post: twenty times the number an agent sends. */
const MAX_CONTAINERS = 5_000
/** Every accepted RFC 3339 time is shorter. */
const MAX_TIME_CHARS = 64
/** A year. */
const MAX_INTERVAL_MS = 366 * 86_400_000

/** A time with a zone, as naive UTC. */
const ts = documentedAs(
  z.string().transform((text, c) => {
    const time = text.length <= MAX_TIME_CHARS ? parseRfc3339(text) : null
    if (time !== null) return time
    c.addIssue({ code: 'custom', message: 'expected a time of RFC 3339 with a zone' })
    return z.NEVER
  }),
  {
    type: 'string',
    format: 'date-time',
    pattern: ZONED_TIME_PATTERN,
    description: 'With a zone. More than 300 seconds ahead of the database, it is taken for now.',
  },
)

export const intervalMs = z.int().min(1).max(MAX_INTERVAL_MS).describe('Milliseconds that the deltas cover.')

/** The fields `node`, `ts` and `containers`. */
export const envelope = (container: EntrySchema<z.ZodType>) => ({
  node: nodeName,
  ts,
  containers: entryList(
    container,
    MAX_CONTAINERS,
    'One that cannot be stored is skipped; the others are stored all the same.',
  ),
})

/** Options of `body` for both posts. `longIntegersOf` keeps ids of 64 bits exact. */
export const COMPUTE_BODY = {
  tolerated: ['containers'],
  maxListed: MAX_CONTAINERS,
  longIntegersOf: 'cgroup_id',
} as const

/** Throws the error for 413 if there are more than `MAX_CONTAINERS` containers. */
export function checkContainers(containers: readonly unknown[]): void {
  if (containers.length > MAX_CONTAINERS) throw tooMany(MAX_CONTAINERS, 'containers')
}

type Container = z.ZodType<{ readonly container_uid: string; readonly blame: Blame }>

/**
 * Parses containers, each once: of those with one uid, the last wins. `add` stores one, from which its blame was taken,
 * at its place and returns the number of culprits that it left out. Returns the fields at fault of skipped containers,
 * and in `blame` the culprits left out.
 */
export async function parseContainers<C extends Container>(
  schema: EntrySchema<C>,
  containers: unknown[],
  add: (container: Omit<z.output<C>, 'blame'>, blame: Blame, place: number) => number,
): Promise<Dropped> {
  const places = new Map<string, number>()
  let left = 0
  const dropped = await schema.parseAll(takeContainers(containers), (container) => {
    const place = places.get(container.container_uid) ?? places.size
    places.set(container.container_uid, place)
    const { blame } = container
    // Faster than a copy without it.
    ;(container as { blame?: Blame | undefined }).blame = undefined
    left += add(container, blame, place)
    return undefined
  })
  return left === 0 ? dropped : { ...dropped, blame: left }
}

/** Yields each container and removes it from the list to free its memory, because a post may have 16 MiB. */
function* takeContainers(containers: unknown[]): Generator<unknown> {
  for (let i = 0; i < containers.length; i++) {
    const container = containers[i]
    containers[i] = null
    yield container
  }
}
