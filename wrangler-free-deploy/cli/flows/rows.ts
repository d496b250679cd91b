/** Whole rows of a stream, so that they can be shown, counted and cut. */

/** No flow is as long. */
const MAX_ROW_BYTES = 16 * 1024 * 1024
const LINE_FEED = 0x0a
const QUOTE = 0x22

export interface Rows {
  /** Each with its end. */
  readonly bytes: Buffer
  readonly count: number
}

/** Finds the end of the row that begins at a place; -1 if it is not there yet. */
export type EndOfRow = (bytes: Buffer, from: number) => number

export const endOfLine: EndOfRow = (bytes, from) => bytes.indexOf(LINE_FEED, from)

/** A cell of CSV may have line feeds between quotes (RFC 4180). */
export const endOfRecord: EndOfRow = (bytes, from) => {
  let isQuoted = false
  for (let at = from; at < bytes.length; at++) {
    if (bytes[at] === QUOTE) isQuoted = !isQuoted
    else if (bytes[at] === LINE_FEED && !isQuoted) return at
  }
  return -1
}

/**
 * At most `limit` rows, as they come.
 * @throws Error where the parts end within a row
 */
export async function* wholeRows(parts: AsyncIterable<Buffer>, endOf: EndOfRow, limit: number): AsyncGenerator<Rows> {
  let begun: Buffer = Buffer.alloc(0)
  let left = limit
  for await (const part of parts) {
    const bytes = begun.length === 0 ? part : Buffer.concat([begun, part])
    let [length, count] = [0, 0]
    for (let end = endOf(bytes, 0); end !== -1 && count < left; end = endOf(bytes, length)) {
      length = end + 1
      count++
    }
    if (count > 0) yield { bytes: bytes.subarray(0, length), count }
    left -= count
    if (left === 0) return
    begun = bytes.subarray(length)
    if (begun.length > MAX_ROW_BYTES) throw new Error(`a row is longer than ${MAX_ROW_BYTES} bytes`)
  }
  if (begun.length > 0) throw new Error('it ends within a row')
}
