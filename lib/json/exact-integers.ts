/**
 * Integers that a double cannot hold, in JSON that is stored as it was sent. JSON bounds no number (RFC 8259, 6), and
 * agents send int64.
 *
 * `JSON.parse` rounds them, and Node 20 has no way to see their digits. So a body with such integers is parsed a second
 * time, with each of them as a marked string, and the mark is removed when the value is written. Parsers of JavaScript
 * are slower by far, and the published ones lose `__proto__`, recurse without a bound, or take an object of the client
 * for a number.
 */
import { randomBytes } from 'node:crypto'
import { HttpError } from '../errors.ts'
import { MAX_EXACT_INTEGERS } from '../limits/limits.ts'
import { BACKSLASH, QUOTE } from './scanner.ts'

/** Random, so that no client can send it. */
const MARK = `~${randomBytes(12).toString('base64url')}~`
const MARKED = new RegExp(`"${MARK}(-?[1-9]\\d*)"`, 'g')

/** The shortest integer beyond 2^53 has 16 digits. */
const MIN_DIGITS = 16
const LARGEST_EXACT = '9007199254740992'
const LONG_NUMBER = new RegExp(`[:[,\\s-]\\d{${MIN_DIGITS}}`)

const tooMany = () => new HttpError(400, `Json deserialize error: more than ${MAX_EXACT_INTEGERS} integers beyond 2^53`)

/** For a value of a parsed body: the text of the body, and the key of the value in its outermost object. */
const sources = new WeakMap<object, { text: string; key: string }>()

/** Remembers the text of a parsed body for `exactly`, if it may hold long integers. */
export function noteSource(text: string, parsed: unknown): void {
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed) || !LONG_NUMBER.test(text)) return
  for (const [key, value] of Object.entries(parsed))
    if (typeof value === 'object' && value !== null) sources.set(value, { text, key })
}

/**
 * The value of a key of the outermost object of a body, with every integer to the digit: those that a double may round
 * are marked strings, for `exactJson` to write.
 * @throws HttpError 400 when the body has too many of them
 */
export function exactly<T>(value: T): T {
  const source = typeof value === 'object' && value !== null ? sources.get(value) : undefined
  return source === undefined ? value : JSON.parse(withMarks(source.text))[source.key]
}

/** Whether a string in a value of `exactly` is an integer. */
export const isExactInteger = (text: string): boolean => text.startsWith(MARK)

/** `JSON.stringify` for values of `exactly`. */
export function exactJson(value: unknown): string {
  const text = JSON.stringify(value)
  return text.includes(MARK) ? text.replace(MARKED, '$1') : text
}

/** The text, which must be JSON, with every integer that a double may round as a marked string. */
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

/**
 * `0` to `9`, `-`, `+`, `.`, `e` and `E`: outside strings only numbers have them, but for the `e` of true and false.
 */
const isOfNumber = (code: number) =>
  (code >= 0x30 && code <= 0x39) || code === 0x2d || code === 0x2b || code === 0x2e || (code | 0x20) === 0x65

/** Whether a double may round the integer. One beyond every double stays as it is. */
function isInexact(token: string): boolean {
  const digits = token.length - (token.startsWith('-') ? 1 : 0)
  if (digits < MIN_DIGITS || !/^-?\d+$/.test(token) || !Number.isFinite(Number(token))) return false
  return digits > MIN_DIGITS || token.slice(-MIN_DIGITS) > LARGEST_EXACT
}
