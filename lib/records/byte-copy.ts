/**
 * Bytes copied several at a time, through a `DataView`: reading or writing one byte of a typed array costs V8 a check
 * of its bounds and, once any buffer of the process was transferred, one whether this is gone, too.
 */

const HEAD_BYTES = 8

/**
 * ASCII text in words of eight bytes, the last padded with spaces. Doubles: no eight ASCII bytes are a NaN, whose bits
 * need not survive.
 */
export function wordsOf(ascii: Buffer): Float64Array {
  const padded = Buffer.alloc(Math.ceil(ascii.length / HEAD_BYTES) * HEAD_BYTES, ' ')
  ascii.copy(padded)
  return Float64Array.from({ length: padded.length / HEAD_BYTES }, (_, i) => padded.readDoubleLE(i * HEAD_BYTES))
}

/** Writes all words with their padding. False, and nothing is written, where they do not fit. */
export function writeWords(out: DataView, end: number, words: Float64Array): boolean {
  if (end + words.length * HEAD_BYTES > out.byteLength) return false
  for (let i = 0, to = end; i < words.length; i++, to += HEAD_BYTES) out.setFloat64(to, words[i]!, true)
  return true
}

/**
 * Copies four bytes at a time, as long as they fit and none of them is below `#`, or a backslash. Returns how many
 * bytes that were.
 */
export function copyPlain(out: DataView, end: number, bytes: DataView, from: number): number {
  const last = Math.min(bytes.byteLength, from + out.byteLength - end) - 4
  let at = from
  for (let to = end; at <= last; at += 4, to += 4) {
    const word = bytes.getInt32(at, true)
    const backslashes = word ^ 0x5c5c5c5c
    // The top bit of each byte that is below 0x23, and of each that is zero after the exclusive or; of those above only
    // to the left of one.
    if ((((word - 0x23232323) & ~word) | ((backslashes - 0x01010101) & ~backslashes)) & 0x80808080) break
    out.setInt32(to, word, true)
  }
  return at - from
}
