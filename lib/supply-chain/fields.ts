/** Field types that the schemas of payloads share. Their outputs are the stored values. */
import { z } from 'zod'
import { ZONED_TIME_PATTERN } from '../http/request/fields.ts'
import { documentedAs } from '../openapi/declare.ts'
import { parseRfc3339 } from '../time/timestamp.ts'
import { clean } from './text.ts'

export const SCHEMA_VERSION = 1

/** Longest stored texts, in bytes. */
export const MAX_NAME_BYTES = 256
export const MAX_VERSION_BYTES = 128
export const MAX_WORD_BYTES = 64
export const MAX_URL_BYTES = 1024

export const schemaVersion = documentedAs(z.int(), {
  type: 'integer',
  const: SCHEMA_VERSION,
  description: `${SCHEMA_VERSION}; any other is refused with 422.`,
})

const cleaned = (maxBytes: number) =>
  `Control characters and blanks around it are removed, then it is cut to ${maxBytes} bytes; empty is absent.`

/** At least one character that is neither a control character nor blank. */
const REQUIRED_PATTERN = '[^\\s\\u0000-\\u001f\\u007f-\\u009f]'

/** Optional text, cleaned. */
export const optionalText = (maxBytes: number) =>
  z
    .string()
    .nullish()
    .transform((text) => clean(text, maxBytes))
    .describe(cleaned(maxBytes))

/** Required text, cleaned. Undefined if nothing is left, for which the payload is refused with 422. */
export const requiredText = (maxBytes: number) =>
  documentedAs(
    z.string().transform((text) => clean(text, maxBytes)),
    { type: 'string', pattern: REQUIRED_PATTERN, description: cleaned(maxBytes) },
  )

/**
 * RFC 3339 with a zone, converted to canonical naive UTC with at most microseconds
 * (docs/contract.md#addresses-and-times).
 */
export const instant = documentedAs(
  z.string().transform((text, c) => {
    const time = parseRfc3339(text)
    if (time !== null) return time
    c.addIssue({
      code: 'custom',
      message: 'expected RFC 3339: YYYY-MM-DDTHH:MM:SS, up to nine fraction digits and a zone',
    })
    return z.NEVER
  }),
  {
    type: 'string',
    format: 'date-time',
    pattern: ZONED_TIME_PATTERN,
    description: 'RFC 3339 with a zone. Digits beyond microseconds are cut.',
    examples: ['2026-01-01T09:00:00.123456789Z'],
  },
)

/**
 * An optional field of any type. An empty text counts as absent, since many senders write it for a value that they do
 * not have.
 */
export const optional = <S extends z.ZodType>(schema: S) =>
  z.preprocess((value) => (typeof value === 'string' && value.trim() === '' ? undefined : value), schema.nullish())

/** Marks a time that was sent and cannot be read; no valid time is empty. */
export const UNREADABLE = ''

/** The zero value of a time in Go. */
const GO_ZERO_TIME = '0001-01-01T00:00:00'

/**
 * An optional `instant`: null if it is empty or the zero time of Go, `UNREADABLE` if it is no time. A bad date must not
 * refuse a whole report.
 */
export const optionalInstant = documentedAs(
  z.string().transform((sent) => {
    const text = sent.trim()
    const time = text === '' ? null : (parseRfc3339(text) ?? UNREADABLE)
    return time === GO_ZERO_TIME ? null : time
  }),
  {
    type: 'string',
    description:
      'RFC 3339 with a zone. Digits beyond microseconds are cut. A text that is no time is stored as absent and ' +
      'counted.',
    examples: ['2026-01-01T09:00:00.123456789Z'],
  },
)
  .meta({ id: 'PostedInstant' })
  .nullish()

/** Counts the times that were sent and cannot be read. */
export const countUnreadable = (...times: (string | null | undefined)[]): number =>
  times.filter((time) => time === UNREADABLE).length

/** Any number that JSON can write, also one outside the range of a double. */
const number = documentedAs(
  z.custom<number>((value) => typeof value === 'number', 'Invalid input: expected number'),
  { type: 'number' },
)

const optionalNumber = optional(number)
export const optionalFlag = optional(z.boolean())

/** A number that a double can hold. */
export const optionalFinite = optionalNumber.transform((value) => (Number.isFinite(value) ? value! : undefined))
/** A number that a `real` column can hold. */
export const optionalReal = optionalNumber.transform(real)
/** Such a number from 0 to 1. */
export const optionalShare = optionalNumber
  .transform((value) => (typeof value === 'number' && value >= 0 && value <= 1 ? real(value) : undefined))
  .describe('A number outside 0 to 1 is absent.')

/** A list of which the first `max` entries are stored. */
export const firstOf = <E extends z.ZodType>(element: E, max: number) =>
  optional(z.array(element)).describe(`The first ${max} are kept.`)

function real(value: number | null | undefined): number | undefined {
  if (value === null || value === undefined) return undefined
  const single = Math.fround(value)
  if (!Number.isFinite(single)) return undefined
  // PostgreSQL refuses a number that is too small for `real`.
  return single === 0 ? 0 : value
}
