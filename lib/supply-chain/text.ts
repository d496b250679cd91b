/**
 * Text of scanners (interop-supply-chain 1.1): never refused for what it holds, but nothing of it reaches the database that could break
 * a line, a terminal or the encoding.
 */

import { truncateToBytes } from '../text/utf8.ts'

/** Control characters, the two line ends that only Unicode knows, and halves of surrogate pairs. */
const DROPPED = /[\p{Cc}\p{Cs}\u2028\u2029]/gu
const HAS_DROPPED = new RegExp(DROPPED.source, 'u')

/** The text without what is dropped and without blanks around it, cut to `maxBytes` between characters; undefined when nothing is left. */
export function clean(text: string | null | undefined, maxBytes: number): string | undefined {
  if (!text) return undefined
  const shown = (HAS_DROPPED.test(text) ? text.replace(DROPPED, '') : text).trim()
  return truncateToBytes(shown, maxBytes).trimEnd() || undefined
}

/** The first `max` texts, cleaned; what is empty then is left out. */
export function cleanList(texts: readonly string[] | null | undefined, max: number, maxBytes: number): string[] {
  const kept: string[] = []
  for (const text of texts?.slice(0, max) ?? []) {
    const one = clean(text, maxBytes)
    if (one !== undefined) kept.push(one)
  }
  return kept
}

/** The same, each once. */
export const cleanDistinct = (texts: readonly string[] | null | undefined, max: number, maxBytes: number): string[] => [
  ...new Set(cleanList(texts, max, maxBytes)),
]
