/**
 * Reads the elements of one long list in a JSON object while its bytes arrive. The answer may have 16 MiB, which would
 * take ten times that if parsed at once. Only the bytes of the incomplete element and those outside the list are held.
 * `JSON.parse` checks every byte except the commas between the elements, so exactly the same answers are accepted as by
 * parsing at once.
 */
import { isUtf8 } from 'node:buffer'
import { CLOSE_ARRAY, CLOSE_OBJECT, COMMA, END, JsonScanner, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from '../json/scanner.ts'
import { BadAnswer } from './unavailable.ts'

/** Twice the longest result: names in Kubernetes have at most 253 characters, the reference of an image about 800. */
export const MAX_ELEMENT_BYTES = 4 * 1024
/** Bytes outside the list. */
export const MAX_OTHER_BYTES = 64 * 1024

/** Nesting depth directly inside the outermost object, and directly inside the list. */
const IN_BODY = 1
const IN_LIST = 2

export class ListScan {
  readonly #listKey: string
  readonly #take: (element: unknown) => void
  readonly #scanner = new JsonScanner(Buffer.alloc(0))
  /** The bytes outside the list, including its brackets. */
  readonly #other = Buffer.allocUnsafe(MAX_OTHER_BYTES)
  #otherBytes = 0
  /** The start of an element, from earlier chunks. */
  readonly #begun = Buffer.allocUnsafe(MAX_ELEMENT_BYTES)
  #begunBytes = 0
  #isInList = false
  #elements = 0
  #isObject = false
  #isKeyDue = false
  /** The outermost key whose value comes next; null where a key comes next. */
  #key: string | null = null
  #hasListKey = false

  /**
   * Calls `take` with each element of the list under `listKey` of the outermost object; errors of `take` leave `push`.
   */
  constructor(listKey: string, take: (element: unknown) => void) {
    this.#listKey = listKey
    this.#take = take
  }

  /**
   * Takes the next bytes.
   * @throws BadAnswer for bytes that are not JSON or not UTF-8, and above a limit; no call may follow
   */
  push(chunk: Buffer): void {
    this.#scanner.feed(chunk)
    for (let at = 0; at < chunk.length; ) at = this.#isInList ? this.#readList(chunk, at) : this.#readOther(chunk, at)
  }

  /** Returns the outermost value, with an empty list instead of the elements. @throws BadAnswer when it is not JSON */
  end(): unknown {
    return this.#parseOther(0, 'the answer')
  }

  /** Returns the offset where it stopped: the end, or after the bracket that opens the list. */
  #readOther(chunk: Buffer, from: number): number {
    const scanner = this.#scanner
    let unkeptFrom = from
    for (let token = scanner.next(); token !== END; token = scanner.next()) {
      const { at, depth } = scanner
      switch (token) {
        case QUOTE:
          if (depth !== IN_BODY || !this.#isKeyDue) break
          this.#keep(chunk, unkeptFrom, at + 1)
          unkeptFrom = at + 1
          this.#readKey(at - scanner.textFrom + 2)
          break
        case COMMA:
          if (depth !== IN_BODY) break
          this.#isKeyDue = this.#isObject
          this.#key = null
          break
        case OPEN_ARRAY:
        case OPEN_OBJECT:
          if (depth === IN_BODY) this.#isKeyDue = this.#isObject = token === OPEN_OBJECT
          else if (depth === IN_LIST && this.#key === this.#listKey && token === OPEN_ARRAY) {
            this.#isInList = true
            this.#keep(chunk, unkeptFrom, at + 1)
            return at + 1
          }
          break
      }
    }
    this.#keep(chunk, unkeptFrom, chunk.length)
    return chunk.length
  }

  #keep(chunk: Buffer, from: number, to: number): void {
    if (this.#otherBytes + to - from > MAX_OTHER_BYTES)
      throw new BadAnswer(`more than ${MAX_OTHER_BYTES} bytes outside ${this.#listKey}`)
    this.#otherBytes += chunk.copy(this.#other, this.#otherBytes, from, to)
  }

  #parseOther(from: number, what: string): unknown {
    const bytes = this.#other.subarray(from, this.#otherBytes)
    return parsed(bytes.toString(), () => bytes, what)
  }

  /** Reads the key whose `length` bytes, including the quotes, were stored last. */
  #readKey(length: number): void {
    this.#key = this.#parseOther(this.#otherBytes - length, 'a key') as string
    this.#isKeyDue = false
    if (this.#key !== this.#listKey) return
    // A second list would replace the first.
    if (this.#hasListKey) throw new BadAnswer(`${this.#listKey} is there twice`)
    this.#hasListKey = true
  }

  /** Returns the offset where it stopped: the end, or after the bracket that closes the list. */
  #readList(chunk: Buffer, from: number): number {
    const scanner = this.#scanner
    let elementFrom = from
    /** Start of the run of complete elements in this chunk. Parsing them together takes half the time. */
    let runFrom = this.#begunBytes > 0 ? -1 : from
    for (let token = scanner.next(); token !== END; token = scanner.next()) {
      const { at, depth } = scanner
      if (token === COMMA && depth === IN_LIST) {
        if (runFrom < 0) {
          this.#begin(chunk, elementFrom, at)
          this.#endBegun()
          runFrom = at + 1
        } else if (at - elementFrom > MAX_ELEMENT_BYTES) throw this.#tooLong()
        elementFrom = at + 1
      } else if ((token === CLOSE_ARRAY || token === CLOSE_OBJECT) && depth === IN_BODY) {
        if (token === CLOSE_OBJECT) throw new BadAnswer('the list is closed as an object')
        this.#endRun(chunk, runFrom, elementFrom - 1)
        this.#endList(chunk, elementFrom, at)
        return at + 1
      }
    }
    this.#endRun(chunk, runFrom, elementFrom - 1)
    this.#begin(chunk, elementFrom, chunk.length)
    return chunk.length
  }

  /** Stores the start of an element. */
  #begin(chunk: Buffer, from: number, to: number): void {
    if (this.#begunBytes + to - from > MAX_ELEMENT_BYTES) throw this.#tooLong()
    this.#begunBytes += chunk.copy(this.#begun, this.#begunBytes, from, to)
  }

  #endBegun(): void {
    this.#takeAll(this.#begun.toString('utf8', 0, this.#begunBytes), () => this.#begun.subarray(0, this.#begunBytes))
    this.#begunBytes = 0
  }

  /** Parses the elements from `from` up to the comma at `to`; does nothing if `to` is before `from`. */
  #endRun(chunk: Buffer, from: number, to: number): void {
    if (from >= 0 && to >= from) this.#takeAll(chunk.toString('utf8', from, to), () => chunk.subarray(from, to))
  }

  #takeAll(text: string, bytes: () => Buffer): void {
    const elements = parsed(`[${text}]`, bytes, `${this.#listKey}, from element ${this.#elements} on,`) as unknown[]
    // Two commas in a row, or a comma before the first element.
    if (elements.length === 0) throw new BadAnswer(`${this.#listKey} has an element that is empty`)
    for (const element of elements) this.#take(element)
    this.#elements += elements.length
  }

  /** `at` is the offset of the bracket that closes the list. */
  #endList(chunk: Buffer, from: number, at: number): void {
    this.#begin(chunk, from, at)
    const isBlank = /^[ \t\n\r]*$/.test(this.#begun.toString('latin1', 0, this.#begunBytes))
    if (this.#elements > 0 || !isBlank) this.#endBegun()
    this.#begunBytes = 0
    this.#isInList = false
    this.#keep(chunk, at, at + 1)
  }

  #tooLong(): BadAnswer {
    return new BadAnswer(`more than ${MAX_ELEMENT_BYTES} bytes in an element of ${this.#listKey}`)
  }
}

/** The decoder puts it in place of bytes that are not UTF-8. */
const REPLACEMENT = '\uFFFD'

/** Parses `text`; `bytes` returns the bytes it was decoded from. */
function parsed(text: string, bytes: () => Buffer, what: string): unknown {
  if (text.includes(REPLACEMENT) && !isUtf8(bytes())) throw new BadAnswer(`${what} is not UTF-8`)
  try {
    return JSON.parse(text)
  } catch {
    // Node's own message quotes the text.
    throw new BadAnswer(`${what} is not JSON`)
  }
}
