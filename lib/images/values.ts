/** Reading values that may be anything: what is not as it should be is left out, never refused (interop-core 1.1). */

export type Json = Record<string, unknown>

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Text that a database can hold and that is more than blanks; null for anything else. */
export function textOf(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' && !value.includes('\0') && value.isWellFormed()
    ? value
    : null
}

/** The same of at most `maxChars`, else null. */
export function shortText(value: unknown, maxChars: number): string | null {
  const text = textOf(value)
  return text !== null && text.length <= maxChars ? text : null
}

/** The text, cut after `maxChars` where it is longer, but never inside a character. */
export function cutText(value: unknown, maxChars: number): string | null {
  const text = textOf(value)?.slice(0, maxChars) ?? null
  return text === null || text.isWellFormed() ? text : text.slice(0, -1)
}

// U+2028 and U+2029 end a line to some who read logs.
const CONTROL = /[\p{Cc}\u2028\u2029]/u

/** Whether a reference or a part of one holds what none may: control characters, line ends, half a surrogate pair. */
export const isMangled = (text: string) => CONTROL.test(text) || !text.isWellFormed()
