/**
 * The elements of one long list in a JSON object, while its bytes arrive: the whole of them would be 16 MiB, and parsed at once ten times as
 * much. Of the bytes only the element is held that is not complete yet, and what is outside the list. `JSON.parse` judges every byte but the
 * commas between the elements, so that what is taken and what is refused is the same.
 */
import { isUtf8 } from 'node:buffer'
import { BACKSLASH, CLOSE_ARRAY, CLOSE_OBJECT, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from '../json/bytes.ts'
import { BadAnswer } from './unavailable.ts'

/** Twice what a result may come to: names in Kubernetes have 253 characters at most, the reference of an image some 800. */
export const MAX_ELEMENT_BYTES = 4 * 1024
/** Of what is outside the list. */
export const MAX_OTHER_BYTES = 64 * 1024

/** Of the containers, the outermost object and the list. */
const IN_BODY = 1
const IN_LIST = 2

export class ListScan {
  readonly #listKey: string
  readonly #take: (element: unknown) => void
  #depth = 0
  #isInList = false
  #isInString = false
  #isEscaped = false
  #elements = 0
  /** What is outside the list, with its brackets. */
  readonly #other = Buffer.allocUnsafe(MAX_OTHER_BYTES)
  #otherBytes = 0
  /** The part of an element that came with earlier chunks. */
  readonly #begun = Buffer.allocUnsafe(MAX_ELEMENT_BYTES)
  #begunBytes = 0
  #isObject = false
  #isKeyDue = false
  /** Where in `#other` the outermost key starts that is being read; -1 outside of one. */
  #keyFrom = -1
  #key: string | null = null
  #hasListKey = false

  /** `take` is given each element of the list under `listKey` of the outermost object. What it throws, `push` throws. */
  constructor(listKey: string, take: (element: unknown) => void) {
    this.#listKey = listKey
    this.#take = take
  }

  /** The next bytes. @throws BadAnswer for what is not JSON, not UTF-8, or longer than it may be; then there must be no further call */
  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) at = this.#isInList ? this.#readList(chunk, at) : this.#readOther(chunk, at)
  }

  /** The outermost value, with an empty list where the list was. @throws BadAnswer when it is not JSON */
  end(): unknown {
    return this.#parseOther(0, 'the answer')
  }

  /** Returns where it stopped: at the end, or behind the bracket that opens the list. */
  #readOther(chunk: Buffer, from: number): number {
    for (let i = from; i < chunk.length; i++) {
      const byte = chunk[i]!
      this.#keep(byte)
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false
        else if (byte === BACKSLASH) this.#isEscaped = true
        else if (byte === QUOTE) this.#endString()
        continue
      }
      switch (byte) {
        case QUOTE:
          this.#isInString = true
          if (this.#depth === IN_BODY && this.#isKeyDue) this.#keyFrom = this.#otherBytes - 1
          break
        case COMMA:
          if (this.#depth !== IN_BODY) break
          this.#isKeyDue = this.#isObject
          this.#key = null
          break
        case OPEN_ARRAY:
        case OPEN_OBJECT:
          if (++this.#depth === IN_BODY) this.#isKeyDue = this.#isObject = byte === OPEN_OBJECT
          else if (this.#depth === IN_LIST && this.#key === this.#listKey && byte === OPEN_ARRAY) {
            this.#isInList = true
            return i + 1
          }
          break
        case CLOSE_ARRAY:
        case CLOSE_OBJECT:
          this.#depth--
          break
      }
    }
    return chunk.length
  }

  #keep(byte: number): void {
    if (this.#otherBytes === MAX_OTHER_BYTES)
      throw new BadAnswer(`more than ${MAX_OTHER_BYTES} bytes outside ${this.#listKey}`)
    this.#other[this.#otherBytes++] = byte
  }

  #parseOther(from: number, what: string): unknown {
    const bytes = this.#other.subarray(from, this.#otherBytes)
    return parsed(bytes.toString(), () => bytes, what)
  }

  #endString(): void {
    this.#isInString = false
    if (this.#keyFrom < 0) return
    this.#key = this.#parseOther(this.#keyFrom, 'a key') as string
    this.#keyFrom = -1
    this.#isKeyDue = false
    if (this.#key !== this.#listKey) return
    // Of two lists, one would be lost.
    if (this.#hasListKey) throw new BadAnswer(`${this.#listKey} is there twice`)
    this.#hasListKey = true
  }

  /** Returns where it stopped: at the end, or behind the bracket that closes the list. */
  #readList(chunk: Buffer, from: number): number {
    let elementFrom = from
    /** The elements that are whole in this chunk are parsed together, which takes half the time. */
    let runFrom = this.#begunBytes > 0 ? -1 : from
    let isInString = this.#isInString
    let isEscaped = this.#isEscaped
    for (let i = from; i < chunk.length; i++) {
      const byte = chunk[i]!
      if (isInString) {
        if (isEscaped) isEscaped = false
        else if (byte === BACKSLASH) isEscaped = true
        else if (byte === QUOTE) isInString = false
        continue
      }
      switch (byte) {
        case QUOTE:
          isInString = true
          break
        case COMMA:
          if (this.#depth !== IN_LIST) break
          if (runFrom < 0) {
            this.#begin(chunk, elementFrom, i)
            this.#endBegun()
            runFrom = i + 1
          } else if (i - elementFrom > MAX_ELEMENT_BYTES) throw this.#tooLong()
          elementFrom = i + 1
          break
        case OPEN_ARRAY:
        case OPEN_OBJECT:
          this.#depth++
          break
        case CLOSE_ARRAY:
        case CLOSE_OBJECT:
          if (this.#depth-- > IN_LIST) break
          if (byte === CLOSE_OBJECT) throw new BadAnswer('the list is closed as an object')
          this.#endRun(chunk, runFrom, elementFrom - 1)
          this.#endList(chunk, elementFrom, i)
          return i + 1
      }
    }
    this.#isInString = isInString
    this.#isEscaped = isEscaped
    this.#endRun(chunk, runFrom, elementFrom - 1)
    this.#begin(chunk, elementFrom, chunk.length)
    return chunk.length
  }

  /** Keeps a part of an element. */
  #begin(chunk: Buffer, from: number, to: number): void {
    if (this.#begunBytes + to - from > MAX_ELEMENT_BYTES) throw this.#tooLong()
    this.#begunBytes += chunk.copy(this.#begun, this.#begunBytes, from, to)
  }

  #endBegun(): void {
    this.#takeAll(this.#begun.toString('utf8', 0, this.#begunBytes), () => this.#begun.subarray(0, this.#begunBytes))
    this.#begunBytes = 0
  }

  /** Elements with commas between them, up to a comma at `to`; none where that is before `from`. */
  #endRun(chunk: Buffer, from: number, to: number): void {
    if (from >= 0 && to >= from) this.#takeAll(chunk.toString('utf8', from, to), () => chunk.subarray(from, to))
  }

  #takeAll(text: string, bytes: () => Buffer): void {
    const elements = parsed(`[${text}]`, bytes, `${this.#listKey}, from element ${this.#elements} on,`) as unknown[]
    // Between two commas, or before the first.
    if (elements.length === 0) throw new BadAnswer(`${this.#listKey} has an element that is empty`)
    for (const element of elements) this.#take(element)
    this.#elements += elements.length
  }

  #endList(chunk: Buffer, from: number, to: number): void {
    this.#begin(chunk, from, to)
    const isBlank = /^[ \t\n\r]*$/.test(this.#begun.toString('latin1', 0, this.#begunBytes))
    if (this.#elements > 0 || !isBlank) this.#endBegun()
    this.#begunBytes = 0
    this.#isInList = false
    this.#isInString = false
    this.#isEscaped = false
    this.#keep(CLOSE_ARRAY)
  }

  #tooLong(): BadAnswer {
    return new BadAnswer(`more than ${MAX_ELEMENT_BYTES} bytes in an element of ${this.#listKey}`)
  }
}

/** What stands for bytes that are not UTF-8. */
const REPLACEMENT = '\uFFFD'

/** `text` is what `bytes` hold, between brackets or not. */
function parsed(text: string, bytes: () => Buffer, what: string): unknown {
  if (text.includes(REPLACEMENT) && !isUtf8(bytes())) throw new BadAnswer(`${what} is not UTF-8`)
  try {
    return JSON.parse(text)
  } catch {
    // The message of Node quotes the text.
    throw new BadAnswer(`${what} is not JSON`)
  }
}
