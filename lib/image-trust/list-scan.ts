/**
 * The elements of one long list in a JSON object, while its bytes arrive: the whole of them would be 16 MiB, and parsed at once ten times as
 * much. Of the bytes only the element is held that is not complete yet, and what is outside the list. `JSON.parse` judges every byte but the
 * commas between the elements, so that what is taken and what is refused is the same.
 */
import { isUtf8 } from 'node:buffer'
import { BACKSLASH, CLOSE_ARRAY, CLOSE_OBJECT, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from '../http/json-bytes.ts'
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
    if (this.#isInList) throw new BadAnswer('it ends within the list')
    return parsed(this.#other, 0, this.#otherBytes, 'the answer')
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
    if (this.#otherBytes === MAX_OTHER_BYTES) throw new BadAnswer(`more than ${MAX_OTHER_BYTES} bytes outside ${this.#listKey}`)
    this.#other[this.#otherBytes++] = byte
  }

  #endString(): void {
    this.#isInString = false
    if (this.#keyFrom < 0) return
    this.#key = parsed(this.#other, this.#keyFrom, this.#otherBytes, 'a key') as string
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
          this.#endElement(chunk, elementFrom, i)
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
          this.#endList(chunk, elementFrom, i)
          return i + 1
      }
    }
    this.#isInString = isInString
    this.#isEscaped = isEscaped
    this.#begin(chunk, elementFrom, chunk.length)
    return chunk.length
  }

  #begin(chunk: Buffer, from: number, to: number): void {
    if (this.#begunBytes + to - from > MAX_ELEMENT_BYTES)
      throw new BadAnswer(`more than ${MAX_ELEMENT_BYTES} bytes in ${this.#listKey}[${this.#elements}]`)
    this.#begunBytes += chunk.copy(this.#begun, this.#begunBytes, from, to)
  }

  #endElement(chunk: Buffer, from: number, to: number): void {
    if (this.#begunBytes === 0 && to - from <= MAX_ELEMENT_BYTES) {
      this.#take(parsed(chunk, from, to, this.#listKey, this.#elements))
    } else {
      this.#begin(chunk, from, to)
      this.#take(parsed(this.#begun, 0, this.#begunBytes, this.#listKey, this.#elements))
      this.#begunBytes = 0
    }
    this.#elements++
  }

  #endList(chunk: Buffer, from: number, to: number): void {
    this.#begin(chunk, from, to)
    const isEmpty = this.#elements === 0 && /^[ \t\n\r]*$/.test(this.#begun.toString('latin1', 0, this.#begunBytes))
    if (!isEmpty) this.#endElement(chunk, to, to)
    this.#isInList = false
    this.#isInString = false
    this.#keep(CLOSE_ARRAY)
  }
}

/** What stands for bytes that are not UTF-8. */
const REPLACEMENT = '\uFFFD'

function parsed(bytes: Buffer, from: number, to: number, what: string, index: number | null = null): unknown {
  const where = () => (index === null ? what : `${what}[${index}]`)
  const text = bytes.toString('utf8', from, to)
  if (text.includes(REPLACEMENT) && !isUtf8(bytes.subarray(from, to))) throw new BadAnswer(`${where()} is not UTF-8`)
  try {
    return JSON.parse(text)
  } catch {
    // The message of Node quotes the text.
    throw new BadAnswer(`${where()} is not JSON`)
  }
}
