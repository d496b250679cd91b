/**
 * The one scanner of JSON text: it finds the bytes that give JSON its structure (RFC 8259, 2) and the texts between
 * quotes, without parsing anything. It does not check the text: `JSON.parse` does that afterwards.
 */
export const QUOTE = 0x22
export const BACKSLASH = 0x5c
export const COMMA = 0x2c
export const COLON = 0x3a
export const OPEN_ARRAY = 0x5b
export const CLOSE_ARRAY = 0x5d
export const OPEN_OBJECT = 0x7b
export const CLOSE_OBJECT = 0x7d
/** `next` returns this at the end of the bytes. */
export const END = 0

/** 1 for the bytes of a structure: looking up the others in a table costs a tenth of comparing them. */
const IS_TOKEN = new Uint8Array(256)
for (const byte of [QUOTE, COMMA, COLON, OPEN_ARRAY, OPEN_OBJECT, CLOSE_ARRAY, CLOSE_OBJECT]) IS_TOKEN[byte] = 1

/**
 * Most texts end within so many bytes; the end of longer ones is searched with `indexOf`, at a tenth of the time per
 * byte.
 */
const MAX_WALKED_BYTES = 32

/** `next` is called until it returns `END`; JSON that arrives in chunks is scanned by giving each to `feed` then. */
export class JsonScanner {
  #bytes: Buffer
  /** Index of the last token; of a text, of the quote that ends it. */
  at = -1
  /** Containers that are open after the last token. Closing more than were opened leaves it at 0. */
  depth = 0
  /** The last text lies from here to `textTo`, without its quotes; below 0 where it began in an earlier chunk. */
  textFrom = -1
  textTo = -1
  #isInText = false
  #isEscaped = false
  #nextQuote = -1
  #nextBackslash = -1

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** Goes on with the chunk that follows. */
  feed(bytes: Buffer): void {
    this.textFrom -= this.#bytes.length
    this.#bytes = bytes
    this.at = -1
    this.#nextQuote = -1
    this.#nextBackslash = -1
  }

  /** The next byte that belongs to the structure; `QUOTE` stands for a whole text. */
  next(): number {
    const bytes = this.#bytes
    if (this.#isInText) return this.#endText(this.#isEscaped ? 1 : 0)
    for (let i = this.at + 1; i < bytes.length; i++) {
      const byte = bytes[i]!
      if (IS_TOKEN[byte] === 0) continue
      if (byte === QUOTE) {
        this.textFrom = i + 1
        return this.#endText(i + 1)
      }
      this.at = i
      if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) this.depth++
      else if ((byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) && this.depth > 0) this.depth--
      return byte
    }
    this.at = bytes.length
    return END
  }

  #endText(from: number): number {
    const bytes = this.#bytes
    let walkedFrom = from
    let i = from
    for (; i < bytes.length; i++) {
      const byte = bytes[i]!
      if (byte === QUOTE) {
        this.at = i
        this.textTo = i
        this.#isInText = false
        return QUOTE
      }
      if (byte === BACKSLASH) walkedFrom = ++i
      else if (i - walkedFrom === MAX_WALKED_BYTES) {
        walkedFrom = this.#nextQuoteOrBackslash(i)
        i = walkedFrom - 1
      }
    }
    this.#isInText = true
    this.#isEscaped = i > bytes.length
    this.at = bytes.length
    this.textTo = bytes.length
    return END
  }

  /**
   * Searches from places further and further on, so that no byte is looked at twice. The length where there is none.
   */
  #nextQuoteOrBackslash(from: number): number {
    const bytes = this.#bytes
    if (this.#nextQuote < from) this.#nextQuote = indexOrLength(bytes, QUOTE, from)
    if (this.#nextBackslash < from) this.#nextBackslash = indexOrLength(bytes, BACKSLASH, from)
    return Math.min(this.#nextQuote, this.#nextBackslash)
  }
}

function indexOrLength(bytes: Buffer, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from)
  return at === -1 ? bytes.length : at
}
