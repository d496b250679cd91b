/** The envelope that both posts of compute share (docs/contract.md#compute). */
import { z } from 'zod'
import { NOT_BLANK_PATTERN, ZONED_TIME_PATTERN } from '../http/request/fields.ts'
import { tooMany } from '../json/prescan.ts'
import { documentedAs } from '../openapi/declare.ts'
import { isLongerThan } from '../text/utf8.ts'
import { parseRfc3339 } from '../time/timestamp.ts'

export const MAX_COMPUTE_BYTES = 16 * 1024 * 1024
/** Containers in a post: twenty times the number an agent sends. */
export const MAX_CONTAINERS = 5_000
const MAX_NODE_BYTES = 253
/** Every accepted RFC 3339 time is shorter. */
const MAX_TIME_CHARS = 64
/** A year. */
const MAX_INTERVAL_MS = 366 * 86_400_000

const node = documentedAs(
  z
    .string()
    .refine(
      (name) => name.trim() !== '' && !isLongerThan(name, MAX_NODE_BYTES),
      `expected 1 to ${MAX_NODE_BYTES} bytes, not blank`,
    ),
  {
    type: 'string',
    minLength: 1,
    maxLength: MAX_NODE_BYTES,
    pattern: NOT_BLANK_PATTERN,
    description: `Not blank, at most ${MAX_NODE_BYTES} bytes.`,
  },
)

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

/** An integer from 1 to `max`. */
export const positive = (max: number) => z.int().min(1).max(max)

export const intervalMs = positive(MAX_INTERVAL_MS).describe('Milliseconds that the deltas cover.')

/**
 * The fields `node`, `ts` and `containers`. `container` is the JSON schema of one container; containers are validated
 * later, one by one.
 */
export const envelope = (container: Readonly<Record<string, unknown>>) => ({
  node,
  ts,
  containers: documentedAs(z.custom<unknown[]>(Array.isArray, 'expected an array'), {
    type: 'array',
    maxItems: MAX_CONTAINERS,
    items: container,
    description: 'One that cannot be stored is skipped; the others are stored all the same.',
  }),
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
