/**
 * Copies several bytes at a time through a `DataView`. Reading or writing a single byte of a typed array makes V8 check
 * its bounds and, once any buffer of the process was transferred, also whether this one was.
 */

const HEAD_BYTES = 8

/**
 * ASCII text in words of eight bytes, the last one padded with spaces. They are stored as doubles: eight ASCII bytes
 * are never a NaN, whose bits need not survive.
 */
export function wordsOf(ascii: Buffer): Float64Array {
  const padded = Buffer.alloc(Math.ceil(ascii.length / HEAD_BYTES) * HEAD_BYTES, ' ')
  ascii.copy(padded)
  return Float64Array.from({ length: padded.length / HEAD_BYTES }, (_, i) => padded.readDoubleLE(i * HEAD_BYTES))
}

/** Writes all words with their padding. Returns false, and writes nothing, if they do not fit. */
export function writeWords(out: DataView, end: number, words: Float64Array): boolean {
  if (end + words.length * HEAD_BYTES > out.byteLength) return false
  for (let i = 0, to = end; i < words.length; i++, to += HEAD_BYTES) out.setFloat64(to, words[i]!, true)
  return true
}

/**
 * Copies four bytes at a time while they fit and none of them is a backslash or below `#`. Returns the number of bytes
 * copied.
 */
export function copyPlain(out: DataView, end: number, bytes: DataView, from: number): number {
  const last = Math.min(bytes.byteLength, from + out.byteLength - end) - 4
  let at = from
  for (let to = end; at <= last; at += 4, to += 4) {
    const word = bytes.getInt32(at, true)
    const backslashes = word ^ 0x5c5c5c5c
    // In each byte below 0x23, and in each byte that is zero after the exclusive or, the top bit is set. A borrow may
    // also set it in the bytes to the left of such a one, and nowhere else.
    if ((((word - 0x23232323) & ~word) | ((backslashes - 0x01010101) & ~backslashes)) & 0x80808080) break
    out.setInt32(to, word, true)
  }
  return at - from
}
