import { z } from 'zod'
import { documentedAs } from '../../openapi/declare.ts'
import { columnKinds } from '../../records/column-kinds.ts'
import { parseNaive, parseRfc3339 } from '../../time/timestamp.ts'

/**
 * Characters a field may have, one of four bytes in UTF-8 counts as two. Indexed text must stay below a third of a page
 * (2,704 bytes) whichever way it is combined; 253 is the longest name in Kubernetes.
 */
export const MAX_NAME_CHARS = 253
export const MAX_ADDRESS_CHARS = 128
export const MAX_WORD_CHARS = 64
export const MAX_ID_CHARS = 128

/** Text that PostgreSQL can store and compare. */
export const NO_NULL_PATTERN = '^[^\\u0000]*$'
/** Such text that is not blank. */
export const NOT_BLANK_PATTERN = '^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$'

const stored = (maxChars: number) =>
  z
    .string()
    .max(maxChars)
    // zod counts a character of four bytes once
    .check(({ value, issues }) => {
      if (value.length > maxChars)
        issues.push({ code: 'too_big', origin: 'string', maximum: maxChars, inclusive: true, input: value })
    })
    .meta({ pattern: NO_NULL_PATTERN })

export const name = stored(MAX_NAME_CHARS)
export const address = stored(MAX_ADDRESS_CHARS)
export const word = stored(MAX_WORD_CHARS)
export const id = stored(MAX_ID_CHARS)

export const NAIVE_TIME_RULE = 'expected YYYY-MM-DDTHH:MM:SS with up to nine fraction digits and no zone'

const DATE_AND_TIME = '\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])T([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d'

/** Days of the calendar, with leap years. */
const LEAP_YEAR = '(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)'
const DAY_OF_YEAR =
  '(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))'
const YEAR = '(?:[1-9]\\d{3}|\\d[1-9]\\d{2}|\\d{2}[1-9]\\d|\\d{3}[1-9])'
const TIME_OF_DAY = '(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,9})?'
const CALENDAR_TIME = `(?:${YEAR}-${DAY_OF_YEAR}|${LEAP_YEAR}-02-29)T${TIME_OF_DAY}`
/** The zones that are accepted. */
const ZONE = '(?:Z|[+-](?:0\\d|1[0-4]):[0-5]\\d)'
/** Patterns of query parameters that are a time, or blank: with a zone, and with one or without. */
const ZONED_TIME_OR_BLANK = `^\\s*$|^${CALENDAR_TIME}${ZONE}$`
export const ANY_TIME_OR_BLANK = `^\\s*$|^${CALENDAR_TIME}${ZONE}?$`
/** A time of RFC 3339 with a zone. */
export const ZONED_TIME_PATTERN = `^${CALENDAR_TIME}${ZONE}$`

/** The text of a naive UTC time as agents write it; `parseNaive` validates it. */
export const naiveTimeText = documentedAs(z.string(), {
  type: 'string',
  pattern: `^${CALENDAR_TIME}$`,
  description: 'Naive UTC, a date of the calendar, without a zone. Digits beyond microseconds are cut.',
  examples: ['2026-01-01T09:00:00.123456789'],
}).meta({ id: 'PostedTime' })

/**
 * A naive UTC time as every answer writes it: a fraction of 0, 3 or 6 digits, as few as hold it
 * (docs/contract.md#addresses-and-times).
 */
export const wireTime = z
  .string()
  .regex(new RegExp(`^${DATE_AND_TIME}(\\.\\d{3}(\\d{3})?)?$`))
  .meta({
    id: 'NaiveTime',
    description: 'Naive UTC; a fraction of 0, 3 or 6 digits, as few as hold it.',
    examples: ['2026-01-01T09:00:00.123456'],
  })
  .register(columnKinds, { kind: 'time' })

/** A time with a zone, for the answers that have one. */
export const zonedTime = documentedAs(z.string().regex(/Z$/), {
  type: 'string',
  format: 'date-time',
  description: 'RFC 3339, UTC, with `Z`.',
}).register(columnKinds, { kind: 'zonedTime' })

/**
 * A naive UTC time as agents write it, in its canonical form with at most microseconds
 * (docs/contract.md#addresses-and-times).
 */
export const naiveTime = naiveTimeText.transform((text, c) => {
  const time = parseNaive(text)
  if (time !== null) return time
  c.addIssue({ code: 'custom', message: NAIVE_TIME_RULE })
  return z.NEVER
})

/** A query parameter that is any integer, clamped to 1..`max`; `what` describes it. */
export const clamped = (usual: number, max: number, what: string) =>
  documentedAs(
    z
      .string()
      .regex(/^[+-]?\d+$/, 'expected an integer')
      .transform((text) => Math.min(Math.max(Number(text), 1), max))
      .default(usual),
    { type: 'integer', default: usual, description: `${what}; values outside 1..${max} are clamped.` },
  )

/** A query parameter `limit`. */
export const pageLimit = (rows: number, max: number) => clamped(rows, max, 'Rows at most')

/** A query parameter that is compared with stored text: any text without U+0000. */
export const text = documentedAs(
  z.string().refine((value) => !value.includes('\0'), 'U+0000 is not allowed'),
  { type: 'string', pattern: NO_NULL_PATTERN },
)

/** A query parameter that is a filter: null where it is missing or blank. */
export const filterText = text.transform((value) => (value.trim() === '' ? null : value)).default(null)

/** The words `true` and `false`. */
export const flag = (byDefault: boolean, description: string) =>
  documentedAs(
    z
      .enum(['true', 'false'])
      .transform((value) => value === 'true')
      .default(byDefault),
    { type: 'boolean', default: byDefault, description },
  )

/** A filter that takes any text; `what` describes the rows that pass. */
export const filter = (what: string) =>
  documentedAs(filterText, { type: 'string', pattern: NO_NULL_PATTERN, description: `${what}; blank is no filter.` })

/** A filter by a time with a zone (RFC 3339), as naive UTC; null without the parameter and where it is blank. */
export const zonedTimeFilter = (what: string) =>
  documentedAs(
    filterText.transform((text, c) => {
      const time = text === null ? null : parseRfc3339(text)
      if (text === null || time !== null) return time
      c.addIssue({ code: 'custom', message: 'expected a time as in RFC 3339, with a zone' })
      return z.NEVER
    }),
    {
      type: 'string',
      pattern: ZONED_TIME_OR_BLANK,
      description: `${what}: RFC 3339 with a zone; blank is no filter.`,
    },
  )

/** A query parameter `after` that `cursor` reads; `first` stands for the first page, where it is missing or blank. */
export const orFirstPage = <S extends z.ZodType<unknown, string>, F>(cursor: S, first: F) =>
  z
    .string()
    .optional()
    .transform((sent, c): z.output<S> | F => {
      if (sent === undefined || sent.trim() === '') return first
      const { data, error } = cursor.safeParse(sent)
      if (!error) return data as z.output<S>
      c.addIssue({ code: 'custom', message: error.issues[0]!.message })
      return z.NEVER
    })

const YES = ['true', '1', 'yes', 'on']

/** Whether a text is `true`, `1`, `yes` or `on`, in any case. */
export const saysYes = (word: string): boolean => YES.includes(word.toLowerCase())

/** A path parameter: any text without U+0000, which no stored text can hold. */
export const pathText = documentedAs(
  z.string().refine((text) => !text.includes('\0'), 'U+0000 is not allowed'),
  { type: 'string', minLength: 1, pattern: '^[^\\u0000]+$' },
)
