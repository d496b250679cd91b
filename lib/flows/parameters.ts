import { z } from 'zod'
import { cursorOf, cursorText, writeCursor } from '../http/request/cursor.ts'
import { ANY_TIME_OR_BLANK, flag } from '../http/request/fields.ts'
import { documentedAs } from '../openapi/declare.ts'
import { fromPostgres, parseInstant, parseNaive } from '../time/timestamp.ts'
import { filterParameters } from './filter-parameters.ts'
import { ITEM_FIELDS, type ItemField } from './item.ts'
import type { Moment } from './range.ts'
import type { Place } from './read.ts'
import { resumeParameter } from './resume.ts'

const DEFAULT_ITEMS = 1_000
export const MAX_ITEMS = 20_000

const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 }
/** A century: further back than any flow. */
const MAX_SECS = 3_155_760_000

const MOMENT_PATTERN = `${ANY_TIME_OR_BLANK}|^\\d{1,10}[smhdw]$`
const MOMENT_RULE = 'expected a time such as 2026-01-31T09:00:00Z, or a distance from now such as 15m or 7d'

export const moment = (what: string) =>
  documentedAs(
    z
      .string()
      .transform((sent, c): Moment | null => {
        if (sent.trim() === '') return null
        const [, count, unit] = /^(\d{1,10})([smhdw])$/.exec(sent) ?? []
        if (count !== undefined) return { secsAgo: Math.min(Number(count) * UNITS[unit!]!, MAX_SECS) }
        const time = parseInstant(sent)
        if (time !== null) return { time }
        c.addIssue({ code: 'custom', message: MOMENT_RULE })
        return z.NEVER
      })
      .nullable()
      .default(null),
    {
      type: 'string',
      pattern: MOMENT_PATTERN,
      description: `${what}: RFC 3339, naive UTC, or a distance from now in s, m, h, d or w.`,
    },
  )

const NewestAfter = z.tuple([
  z.literal(['newest', 'oldest']),
  cursorText.refine((time) => parseNaive(time) === time),
  cursorText,
])

/** The `nextAfter` of a page. */
export const writeAfter = (order: 'newest' | 'oldest', { time, uuid }: Place): string =>
  writeCursor([order, fromPostgres(time), uuid])

const fields = documentedAs(
  z
    .string()
    .transform((sent, c): readonly ItemField[] => {
      const names = sent.split(',')
      const unknown = names.find((name) => !ITEM_FIELDS.includes(name as ItemField))
      if (unknown === undefined) return names as ItemField[]
      c.addIssue({ code: 'custom', message: `an unknown field: the fields are ${ITEM_FIELDS.join(', ')}` })
      return z.NEVER
    })
    .default(ITEM_FIELDS),
  {
    ...{ type: 'string', pattern: `^(?:${ITEM_FIELDS.join('|')})(?:,(?:${ITEM_FIELDS.join('|')}))*$` },
    description: 'The fields wanted, separated by commas; all by default.',
  },
)

export const limit = documentedAs(
  z
    .string()
    .regex(/^\d+$/, `expected 1 to ${MAX_ITEMS}`)
    .transform(Number)
    .refine((rows) => rows >= 1 && rows <= MAX_ITEMS, `expected 1 to ${MAX_ITEMS}`)
    .nullable()
    .default(null),
  {
    ...{ type: 'integer', minimum: 1, maximum: MAX_ITEMS },
    description: `Items at most. A page has ${DEFAULT_ITEMS} by default; a stream has no limit by default.`,
  },
)

/** The query of `GET /flows` (docs/contract.md#flow-queries). */
export const FlowParameters = z
  .object({
    ...filterParameters,
    since: moment('From this time on'),
    until: moment('Before this time'),
    order: z.enum(['newest', 'oldest']).default('newest').describe('By time, then by uuid.'),
    limit,
    after: documentedAs(
      cursorOf(NewestAfter, (sent) => JSON.parse(Buffer.from(sent, 'base64url').toString()), writeCursor),
      { type: 'string', 'x-opaque': true, description: 'The `nextAfter` of the page before; blank is the first page.' },
    ),
    fields,
    follow: flag(false, 'Whether the answer is a stream that goes on with each flow that is stored.'),
    resume: resumeParameter,
  })
  .superRefine(({ order, after, follow, resume, since, until, limit }, c) => {
    const refuse = (name: string, message: string) => c.addIssue({ code: 'custom', path: [name], message })
    if (after !== null && after[0] !== order) refuse('after', 'the cursor is of the other order')
    if (!follow && resume !== null) refuse('resume', 'it needs follow=true')
    if (!follow) return
    for (const [name, isSent] of Object.entries({
      until: until !== null,
      after: after !== null,
      limit: limit !== null,
    }))
      if (isSent) refuse(name, 'a followed stream has none')
    if (order !== 'newest') refuse('order', 'a followed stream has its own order')
    if (since !== null && resume !== null) refuse('since', 'the token of resume has its own')
  })
export type FlowParameters = z.output<typeof FlowParameters>

/** Items of a page, and the place behind which it begins. */
export const itemsOfPage = ({ limit }: { limit: number | null }): number => limit ?? DEFAULT_ITEMS
export const placeAfter = ({ after }: Pick<FlowParameters, 'after'>): Place | null =>
  after === null ? null : { time: after[1], uuid: after[2] }
