/**
 * Integers that a double cannot hold, in JSON that is stored as it is. RFC 8259 (section 6) bounds no number, and agents send int64.
 *
 * `JSON.parse` rounds them, and Node 20 has no way to see their digits. So the text of a body with such integers is parsed a second
 * time, with each of them as a marked string, and the mark is taken off when the value is written. A parser of its own would be
 * slower by far, and those there are for this lose `__proto__`, recurse without a bound, or take an object of the client's for a
 * number. Bodies without a long integer, and keys that nobody asks about, cost nothing more.
 */
import { randomBytes } from 'node:crypto'
import { HttpError } from '../http/errors.ts'

/** No client knows it. */
const MARK = `~${randomBytes(12).toString('base64url')}~`
const MARKED = new RegExp(`"${MARK}(-?[1-9]\\d*)"`, 'g')

/** The shortest integer beyond 2^53 has 16 digits. What only looks like one, in a string for instance, costs a second look. */
const MIN_DIGITS = 16
const LARGEST_EXACT = '9007199254740992'
/** In a body. A Kubernetes object has none or a few, and each costs as much as a hundred characters. */
const MAX_EXACT_INTEGERS = 10_000
const LONG_NUMBER = new RegExp(`[:[,\\s-]\\d{${MIN_DIGITS}}`)

const tooMany = () => new HttpError(400, `Json deserialize error: more than ${MAX_EXACT_INTEGERS} integers beyond 2^53`)

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Where the value of a key of a parsed body came from. */
const sources = new WeakMap<object, { text: string; key: string }>()

/** Notes the text of a parsed body, for `exactly`. */
export function noteSource(text: string, parsed: unknown): void {
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed) || !LONG_NUMBER.test(text)) return
  for (const [key, value] of Object.entries(parsed))
    if (typeof value === 'object' && value !== null) sources.set(value, { text, key })
}

/**
 * An object or array that stood under a key of the outermost object of a body, with every integer to the digit: those that a
 * number may change are marked strings in it, for `exactJson` to write.
 * @throws HttpError 400 when the body has too many of them
 */
export function exactly<T>(value: T): T {
  const source = typeof value === 'object' && value !== null ? sources.get(value) : undefined
  return source === undefined ? value : JSON.parse(withMarks(source.text))[source.key]
}

/** Whether a string of such a value is an integer. */
export const isExactInteger = (text: string): boolean => text.startsWith(MARK)

/** `JSON.stringify` for what may hold values of `exactly`. */
export function exactJson(value: unknown): string {
  const text = JSON.stringify(value)
  return text.includes(MARK) ? text.replace(MARKED, '$1') : text
}

/** The text, which must be JSON, with every integer that a number may change as a marked string. */
function withMarks(text: string): string {
  const pieces: string[] = []
  let copied = 0
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at)
    if (code === QUOTE) {
      at = afterString(text, at)
    } else if (isOfNumber(code)) {
      const start = at
      while (isOfNumber(text.charCodeAt(at))) at++
      if (at - start < MIN_DIGITS) continue
      const token = text.slice(start, at)
      if (!isInexact(token)) continue
      if (pieces.length >= 2 * MAX_EXACT_INTEGERS) throw tooMany()
      pieces.push(text.slice(copied, start), `"${MARK}${token}"`)
      copied = at
    } else {
      at++
    }
  }
  return pieces.join('') + text.slice(copied)
}

function afterString(text: string, quote: number): number {
  let end = quote
  let escapes: number
  do {
    end = text.indexOf('"', end + 1)
    escapes = 0
    while (text.charCodeAt(end - 1 - escapes) === BACKSLASH) escapes++
  } while (escapes % 2 === 1)
  return end + 1
}

/** `0` to `9`, `-`, `+`, `.`, `e` and `E`: outside a string, and beside the words true and false, numbers alone have them. */
const isOfNumber = (code: number) =>
  (code >= 0x30 && code <= 0x39) || code === 0x2d || code === 0x2b || code === 0x2e || (code | 0x20) === 0x65

/** An integer that a double may not hold, in either sign. One beyond every double stays what it is. */
function isInexact(token: string): boolean {
  const digits = token.length - (token.startsWith('-') ? 1 : 0)
  if (digits < MIN_DIGITS || !/^-?\d+$/.test(token) || !Number.isFinite(Number(token))) return false
  return digits > MIN_DIGITS || token.slice(-MIN_DIGITS) > LARGEST_EXACT
}
