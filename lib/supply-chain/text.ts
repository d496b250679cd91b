/**
 * Cleans text of scanners: it is never refused, but characters that could break a line, a terminal or the encoding do
 * not reach the database.
 */

import { truncateToBytes } from '../text/utf8.ts'

/** Control characters, the line separators U+2028 and U+2029, and halves of surrogate pairs. */
const DROPPED = /[\p{Cc}\p{Cs}\u2028\u2029]/gu
const HAS_DROPPED = new RegExp(DROPPED.source, 'u')

/**
 * Removes unwanted characters and outer blanks, and cuts to `maxBytes` between characters. Undefined if nothing is
 * left.
 */
export function clean(text: string | null | undefined, maxBytes: number): string | undefined {
  if (!text) return undefined
  const cleaned = (HAS_DROPPED.test(text) ? text.replace(DROPPED, '') : text).trim()
  return truncateToBytes(cleaned, maxBytes).trimEnd() || undefined
}

/** Cleans the first `max` texts; empty ones are left out. */
export function cleanList(texts: readonly string[] | null | undefined, max: number, maxBytes: number): string[] {
  const cleaned: string[] = []
  for (const text of texts?.slice(0, max) ?? []) {
    const one = clean(text, maxBytes)
    if (one !== undefined) cleaned.push(one)
  }
  return cleaned
}

/**
 * The first `max` members of an object by their cleaned keys, without those that are not `wanted`. Of members whose
 * keys become the same the first counts.
 */
export function cleanKeys<V, W extends V>(
  members: Readonly<Record<string, V>> | null | undefined,
  max: number,
  maxBytes: number,
  wanted: (value: V) => value is W,
): Record<string, W> {
  const byKey = new Map<string, W>()
  for (const [key, value] of Object.entries(members ?? {}).slice(0, max)) {
    const name = clean(key, maxBytes)
    if (name !== undefined && wanted(value) && !byKey.has(name)) byKey.set(name, value)
  }
  return Object.fromEntries(byKey)
}

/** As `cleanList`, without repeats. */
export const cleanDistinct = (texts: readonly string[] | null | undefined, max: number, maxBytes: number): string[] => [
  ...new Set(cleanList(texts, max, maxBytes)),
]
