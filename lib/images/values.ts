/**
 * Readers for values of any type. A value of the wrong form counts as absent, since a pod is never refused for its
 * containers.
 */

/** Returns text that is not blank and that PostgreSQL can store, else null. */
export function textOf(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' && !value.includes('\0') && value.isWellFormed()
    ? value
    : null
}

/** Returns such text of at most `maxChars`, else null. */
export function shortText(value: unknown, maxChars: number): string | null {
  const text = textOf(value)
  return text !== null && text.length <= maxChars ? text : null
}

/** Returns such text cut to `maxChars`, never inside a surrogate pair. */
export function cutText(value: unknown, maxChars: number): string | null {
  const text = textOf(value)?.slice(0, maxChars) ?? null
  return text === null || text.isWellFormed() ? text : text.slice(0, -1)
}

// Some log viewers treat U+2028 and U+2029 as line ends.
const CONTROL = /[\p{Cc}\u2028\u2029]/u

/** Whether a text has control characters, line separators or half a surrogate pair. */
export const isMangled = (text: string) => CONTROL.test(text) || !text.isWellFormed()
