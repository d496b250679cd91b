/** Length of `YYYY-MM-DDTHH:MM:SS`, where a fraction starts. */
const SECONDS_END = 19
const MILLISECOND_DIGITS = 3
/** PostgreSQL keeps microseconds. Finer digits are cut, so that answers equal the stored values. */
const MICROSECOND_DIGITS = 6
const ZERO = 0x30

/** The months of 31, of 30, and of 29 days with their days: February has 29 here in every year. */
const MONTH_AND_DAY = [
  String.raw`(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])`,
  String.raw`(?:0[469]|11)-(?:0[1-9]|[12]\d|30)`,
  String.raw`02-(?:0[1-9]|[12]\d)`,
].join('|')
const TIME_OF_DAY = String.raw`(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?`
/** The calendar of years 0001 to 9999, without the rule of leap years. */
const NAIVE = new RegExp(String.raw`^(?!0000)\d{4}-(?:${MONTH_AND_DAY})T${TIME_OF_DAY}$`)
/** Date, time with its fraction, and the offset, which is missing for `Z`. `NAIVE` checks date and time. */
const ZONED = /^(.{10})[Tt ]([\d:.]+)(?:[Zz]|([+-](?:[01]\d|2[0-3]):[0-5]\d))$/

/**
 * A naive UTC time `YYYY-MM-DDTHH:MM:SS`, optionally with a fraction of 1 to 9 digits, in its canonical form: cut to
 * microseconds, fraction of 0, 3 or 6 digits, as few as hold it. Null for anything else: a zone, another separator, a
 * date that is not in the calendar of years 0001 to 9999, a leap second. See
 * docs/contract.md#addresses-and-times.
 */
export function parseNaive(text: string): string | null {
  if (!NAIVE.test(text) || (text.startsWith('02-29', 5) && !isLeap(Number(text.slice(0, 4))))) return null
  const kept = keptEnd(text)
  if (kept === text.length) return text
  return kept < text.length ? text.slice(0, kept) : text.padEnd(kept, '0')
}

/**
 * An RFC 3339 time (`T`, `t` or a space; `Z`, `z` or `±hh:mm`; fraction of 1 to 9 digits) as naive UTC in the canonical
 * form of `parseNaive`. Null for anything else, for a leap second, and for a UTC year outside 0001 to 9999.
 */
export function parseRfc3339(text: string): string | null {
  const [, date, time, offset] = ZONED.exec(text) ?? []
  const local = date === undefined ? null : parseNaive(`${date}T${time}`)
  if (local === null || offset === undefined) return local
  const utc = new Date(`${local.slice(0, SECONDS_END)}${offset}`).toISOString()
  // A UTC year before 0001 is 0000, and one after 9999 begins with a sign: `parseNaive` refuses both.
  return parseNaive(utc.slice(0, SECONDS_END) + local.slice(SECONDS_END))
}

/** A point in time of a query, naive UTC or RFC 3339, as canonical naive UTC; null for anything else. */
export function parseInstant(text: string): string | null {
  return parseNaive(text) ?? parseRfc3339(text)
}

/** PostgreSQL's text of a `timestamp` of years 0001 to 9999 (`YYYY-MM-DD HH:MM:SS.ffffff`) as canonical naive UTC. */
export const fromPostgres = (text: string): string => parseNaive(text.replace(' ', 'T'))!

const isLeap = (year: number) => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)

/** The end of the canonical fraction, after 0, 3 or 6 digits; beyond the text when zeros must be added. */
function keptEnd(text: string): number {
  let last = Math.min(text.length, SECONDS_END + 1 + MICROSECOND_DIGITS) - 1
  while (last > SECONDS_END && text.charCodeAt(last) === ZERO) last--
  if (last <= SECONDS_END) return SECONDS_END
  return SECONDS_END + 1 + (last - SECONDS_END <= MILLISECOND_DIGITS ? MILLISECOND_DIGITS : MICROSECOND_DIGITS)
}
