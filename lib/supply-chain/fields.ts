/** What schemas of payloads are made of, and what is kept of their values (interop-supply-chain 1.0, 1.1). */
import { z } from 'zod'
import { shownAs } from '../http/declared.ts'
import { parseRfc3339 } from '../net/timestamp.ts'

const cleaned = (maxBytes: number) =>
  `Control characters and blanks around it are removed, then it is cut to ${maxBytes} bytes; empty is absent.`

/** Text that need not be there. What is kept of it `clean` decides, with the same number of bytes. */
export const optionalText = (maxBytes: number) => z.string().nullish().describe(cleaned(maxBytes))

/** The same, without which the payload is refused. */
export const requiredText = (maxBytes: number) => z.string().describe(cleaned(maxBytes))

/** RFC 3339 with a zone, as naive UTC in its canonical form with at most microseconds. */
export const instant = shownAs(
  z.string().transform((text, c) => {
    const time = parseRfc3339(text)
    if (time !== null) return time
    c.addIssue({ code: 'custom', message: 'expected RFC 3339: YYYY-MM-DDTHH:MM:SS, up to nine fraction digits and a zone' })
    return z.NEVER
  }),
  {
    type: 'string',
    format: 'date-time',
    description: 'RFC 3339 with a zone. Digits beyond microseconds are cut.',
    examples: ['2026-01-01T09:00:00.123456789Z'],
  },
).meta({ id: 'PostedInstant' })

export const optionalInstant = instant.nullish()

/** Any number that JSON can spell, those beyond every double too. */
const number = shownAs(
  z.custom<number>((value) => typeof value === 'number', 'Invalid input: expected number'),
  { type: 'number' },
)

export const optionalNumber = number.nullish()

/** A list of which the first entries are kept. */
export const firstOf = <E extends z.ZodType>(element: E, max: number) => z.array(element).nullish().describe(`The first ${max} are kept.`)

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
