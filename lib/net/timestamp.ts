/** Length of `YYYY-MM-DDTHH:MM:SS`, and where a fraction or an offset starts. */
const secondsEnd = 19
const maxFractionDigits = 9
/** PostgreSQL keeps microseconds; finer digits are cut so that what is echoed equals what is stored. */
const keptFractionDigits = 6
const minutesPerDay = 1440
const maxYear = 9999

const dash = 0x2d
const dot = 0x2e
const colon = 0x3a
const plus = 0x2b
const separatorT = 0x54

/**
 * A naive UTC time `YYYY-MM-DDTHH:MM:SS`, optionally with a fraction of 1 to 9 digits, in its canonical form: cut to
 * microseconds, fraction of 0, 3 or 6 digits, as few as hold it. Null for anything else: a zone, another separator, a date
 * that is not in the calendar of years 0001 to 9999, a leap second. (interop-core 1.0)
 */
export function parseNaive(text: string): string | null {
  if (!isDateTime(text) || text.charCodeAt(10) !== separatorT) return null
  const end = fractionEnd(text)
  if (end !== text.length) return null
  const kept = keptEnd(text, end)
  if (kept === end) return text
  return kept < end ? text.slice(0, kept) : text.padEnd(kept, '0')
}

/**
 * An RFC 3339 time (`T`, `t` or a space; `Z`, `z` or `±hh:mm`; fraction of 1 to 9 digits) as naive UTC in the canonical form of
 * `parseNaive`. Null for anything else, for a leap second, and when its UTC year leaves 0001 to 9999.
 */
export function parseRfc3339(text: string): string | null {
  if (!isDateTime(text)) return null
  const separator = text.charCodeAt(10)
  if ((separator | 0x20) !== 0x74 && separator !== 0x20) return null
  const end = fractionEnd(text)
  if (end < 0) return null
  const offsetMinutes = readOffset(text, end)
  if (offsetMinutes === null) return null
  const kept = keptEnd(text, end)
  const fraction = kept <= end ? text.slice(secondsEnd, kept) : text.slice(secondsEnd, end).padEnd(kept - secondsEnd, '0')
  if (offsetMinutes === 0) return `${text.slice(0, 10)}T${text.slice(11, secondsEnd)}${fraction}`

  const minutes = twoDigits(text, 11) * 60 + twoDigits(text, 14) - offsetMinutes
  const date = minutes < 0 ? dayBefore(text) : minutes >= minutesPerDay ? dayAfter(text) : text.slice(0, 10)
  if (date === null) return null
  const inDay = (minutes + minutesPerDay) % minutesPerDay
  return `${date}T${padded(Math.floor(inDay / 60), 2)}:${padded(inDay % 60, 2)}${text.slice(16, secondsEnd)}${fraction}`
}

/** A point in time as a query may give it: naive UTC or RFC 3339. Canonical naive UTC, or null. */
export function parseInstant(text: string): string | null {
  return parseNaive(text) ?? parseRfc3339(text)
}

/** Whether the first 19 characters are a real date and time of day, whatever separates the two. */
function isDateTime(text: string): boolean {
  if (text.length < secondsEnd) return false
  const year = yearOf(text)
  const month = twoDigits(text, 5)
  const day = twoDigits(text, 8)
  const hour = twoDigits(text, 11)
  const minute = twoDigits(text, 14)
  const second = twoDigits(text, 17)
  return (
    text.charCodeAt(4) === dash &&
    text.charCodeAt(7) === dash &&
    text.charCodeAt(13) === colon &&
    text.charCodeAt(16) === colon &&
    year >= 1 &&
    month >= 1 &&
    month <= 12 &&
    day >= 1 &&
    (day <= 28 || day <= daysInMonth(year, month)) &&
    hour >= 0 &&
    hour <= 23 &&
    minute >= 0 &&
    minute <= 59 &&
    second >= 0 &&
    second <= 59
  )
}

/** Where the fraction after the seconds ends: 19 without one, -1 when its digits are none or more than nine. */
function fractionEnd(text: string): number {
  if (text.length === secondsEnd || text.charCodeAt(secondsEnd) !== dot) return secondsEnd
  let end = secondsEnd + 1
  while (end < text.length && isDigit(text.charCodeAt(end))) end++
  const digits = end - secondsEnd - 1
  return digits >= 1 && digits <= maxFractionDigits ? end : -1
}

/** Where the canonical fraction ends: after 0, 3 or 6 digits. Beyond `end` when zeros are to be added. */
function keptEnd(text: string, end: number): number {
  let last = Math.min(end, secondsEnd + 1 + keptFractionDigits) - 1
  while (last > secondsEnd && text.charCodeAt(last) === 0x30) last--
  const digits = last - secondsEnd
  if (digits <= 0) return secondsEnd
  return secondsEnd + 1 + (digits <= 3 ? 3 : 6)
}

/** Minutes east of UTC of the offset that must fill the text from `at` to its end; null when it is not one. */
function readOffset(text: string, at: number): number | null {
  const sign = text.charCodeAt(at)
  if (text.length === at + 1) return (sign | 0x20) === 0x7a ? 0 : null
  if (text.length !== at + 6 || (sign !== plus && sign !== dash) || text.charCodeAt(at + 3) !== colon) return null
  const hours = twoDigits(text, at + 1)
  const minutes = twoDigits(text, at + 4)
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return null
  return (sign === plus ? 1 : -1) * (hours * 60 + minutes)
}

function dayBefore(text: string): string | null {
  const year = yearOf(text)
  const month = twoDigits(text, 5)
  const day = twoDigits(text, 8)
  if (day > 1) return dateText(year, month, day - 1)
  if (month > 1) return dateText(year, month - 1, daysInMonth(year, month - 1))
  return year > 1 ? dateText(year - 1, 12, 31) : null
}

function dayAfter(text: string): string | null {
  const year = yearOf(text)
  const month = twoDigits(text, 5)
  const day = twoDigits(text, 8)
  if (day < daysInMonth(year, month)) return dateText(year, month, day + 1)
  if (month < 12) return dateText(year, month + 1, 1)
  return year < maxYear ? dateText(year + 1, 1, 1) : null
}

function dateText(year: number, month: number, day: number): string {
  return `${padded(year, 4)}-${padded(month, 2)}-${padded(day, 2)}`
}

function padded(value: number, digits: number): string {
  return String(value).padStart(digits, '0')
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/** The year in the first four characters, negative when they are not four digits. */
function yearOf(text: string): number {
  const century = twoDigits(text, 0)
  const rest = twoDigits(text, 2)
  return century < 0 || rest < 0 ? -1 : century * 100 + rest
}

/** The value of two digits at `at`, which must lie inside the text; -1 when they are not digits. */
function twoDigits(text: string, at: number): number {
  const tens = text.charCodeAt(at)
  const ones = text.charCodeAt(at + 1)
  return isDigit(tens) && isDigit(ones) ? (tens - 0x30) * 10 + (ones - 0x30) : -1
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}
