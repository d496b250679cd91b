/** Lengths of texts in bytes of UTF-8. */

const MAX_UTF8_BYTES_OF_UNIT = 3
const encoder = new TextEncoder()
const scratch = new Uint8Array(4096)

/** The longest prefix of whole characters within `maxBytes` (at most 4096). */
export function truncateToBytes(text: string, maxBytes: number): string {
  if (text.length * MAX_UTF8_BYTES_OF_UNIT <= maxBytes) return text
  const { read } = encoder.encodeInto(text, scratch.subarray(0, maxBytes))
  return read < text.length ? text.slice(0, read) : text
}

/** Whether a text has more than `maxBytes`. */
export const isLongerThan = (text: string, maxBytes: number): boolean =>
  text.length * MAX_UTF8_BYTES_OF_UNIT > maxBytes && Buffer.byteLength(text) > maxBytes
