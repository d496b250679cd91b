/** Parts that the schemas of payloads share, and how their values are kept. */
import { z } from 'zod'
import { ZONED_TIME_PATTERN } from '../http/request/fields.ts'
import { documentedAs } from '../openapi/declare.ts'
import { parseRfc3339 } from '../time/timestamp.ts'

const cleaned = (maxBytes: number) =>
  `Control characters and blanks around it are removed, then it is cut to ${maxBytes} bytes; empty is absent.`

/** Something that is neither a control character nor blank. */
const REQUIRED_PATTERN = '[^\\s\\u0000-\\u001f\\u007f-\\u009f]'

/** Text that need not be there. What is kept of it `clean` decides, with the same number of bytes. */
export const optionalText = (maxBytes: number) => z.string().nullish().describe(cleaned(maxBytes))

/** The same, without which the payload is refused. */
export const requiredText = (maxBytes: number) =>
  documentedAs(z.string(), { type: 'string', pattern: REQUIRED_PATTERN, description: cleaned(maxBytes) })

/** RFC 3339 with a zone, as naive UTC in its canonical form with at most microseconds. */
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
 * A field that may be missing, of any type: an empty text in its place says as little as null does, and is what many senders write for a
 * value that they do not have.
 */
export const optional = <S extends z.ZodType>(schema: S) =>
  z.preprocess((value) => (typeof value === 'string' && value.trim() === '' ? undefined : value), schema.nullish())

/** A time that was sent and cannot be read; no time is empty. */
export const UNREADABLE = ''

/** How Go writes a time that is not set. */
const GO_ZERO_TIME = '0001-01-01T00:00:00'

/**
 * RFC 3339 with a zone, as `instant` has it, that need not be there: null where it is empty or Go's zero time, `UNREADABLE` where it is no
 * time. A report is not worth less for the date of one finding.
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
      'RFC 3339 with a zone. Digits beyond microseconds are cut. A text that is no time is absent, and counted.',
    examples: ['2026-01-01T09:00:00.123456789Z'],
  },
)
  .meta({ id: 'PostedInstant' })
  .nullish()

/** How many of the times were sent and cannot be read. */
export const countUnreadable = (...times: (string | null | undefined)[]): number =>
  times.filter((time) => time === UNREADABLE).length

/** Any number that JSON can spell, those beyond every double too. */
const number = documentedAs(
  z.custom<number>((value) => typeof value === 'number', 'Invalid input: expected number'),
  { type: 'number' },
)

export const optionalNumber = optional(number)
export const optionalFlag = optional(z.boolean())

/** A list of which the first entries are kept. */
export const firstOf = <E extends z.ZodType>(element: E, max: number) =>
  optional(z.array(element)).describe(`The first ${max} are kept.`)

/** A number that a `real` column holds; undefined for one beyond its range, and for what is none. */
export function real(value: number | null | undefined): number | undefined {
  if (value === null || value === undefined) return undefined
  const single = Math.fround(value)
  if (!Number.isFinite(single)) return undefined
  // PostgreSQL refuses what is too small for it.
  return single === 0 ? 0 : value
}

/** A share of 1, likewise. */
export function share(value: number | null | undefined): number | undefined {
  return value === null || value === undefined || !(value >= 0 && value <= 1) ? undefined : real(value)
}
