/** Length of `YYYY-MM-DDTHH:MM:SS`, and where a fraction starts. */
const SECONDS_END = 19
const MILLISECOND_DIGITS = 3
/** PostgreSQL keeps microseconds; finer digits are cut so that what is echoed equals what is stored. */
const MICROSECOND_DIGITS = 6
const ZERO = 0x30

/** The calendar of years 0001 to 9999, but for leap years: each February has 29 days here. */
const NAIVE =
  /^(?!0000)\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|[12]\d))T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?$/
/** Date, time with its fraction, and the offset, which `Z` does not give; `NAIVE` judges the first two. */
const ZONED = /^(.{10})[Tt ]([\d:.]+)(?:[Zz]|([+-](?:[01]\d|2[0-3]):[0-5]\d))$/

/**
 * A naive UTC time `YYYY-MM-DDTHH:MM:SS`, optionally with a fraction of 1 to 9 digits, in its canonical form: cut to
 * microseconds, fraction of 0, 3 or 6 digits, as few as hold it. Null for anything else: a zone, another separator, a date
 * that is not in the calendar of years 0001 to 9999, a leap second. (interop-core 1.0)
 */
export function parseNaive(text: string): string | null {
  if (!NAIVE.test(text) || (text.startsWith('02-29', 5) && !isLeap(Number(text.slice(0, 4))))) return null
  const kept = keptEnd(text)
  if (kept === text.length) return text
  return kept < text.length ? text.slice(0, kept) : text.padEnd(kept, '0')
}

/**
 * An RFC 3339 time (`T`, `t` or a space; `Z`, `z` or `±hh:mm`; fraction of 1 to 9 digits) as naive UTC in the canonical form of
 * `parseNaive`. Null for anything else, for a leap second, and when its UTC year leaves 0001 to 9999.
 */
export function parseRfc3339(text: string): string | null {
  const [, date, time, offset] = ZONED.exec(text) ?? []
  const local = date === undefined ? null : parseNaive(`${date}T${time}`)
  if (local === null || offset === undefined) return local
  const utc = new Date(`${local.slice(0, SECONDS_END)}${offset}`).toISOString()
  // A year before 0001 or after 9999 is not naive: the one is 0000, the other begins with a sign.
  return parseNaive(utc.slice(0, SECONDS_END) + local.slice(SECONDS_END))
}

/** A point in time as a query may give it: naive UTC or RFC 3339. Canonical naive UTC, or null. */
export function parseInstant(text: string): string | null {
  return parseNaive(text) ?? parseRfc3339(text)
}

const isLeap = (year: number) => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)

/** Where the canonical fraction ends: after 0, 3 or 6 digits. Beyond the text when zeros are to be added. */
function keptEnd(text: string): number {
  let last = Math.min(text.length, SECONDS_END + 1 + MICROSECOND_DIGITS) - 1
  while (last > SECONDS_END && text.charCodeAt(last) === ZERO) last--
  if (last <= SECONDS_END) return SECONDS_END
  return SECONDS_END + 1 + (last - SECONDS_END <= MILLISECOND_DIGITS ? MILLISECOND_DIGITS : MICROSECOND_DIGITS)
}
