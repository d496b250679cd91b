/**
 * JSON with one long list in it, taken apart before it is parsed: parsed at once, 8 MiB of short values come to hundreds of megabytes of
 * objects. The text is read once for where the elements of the list are; then they are parsed one by one, each gone before the next, and
 * the text without them is parsed by itself. `JSON.parse` judges every byte but the commas between the elements, so that what is taken and
 * what is refused is the same.
 */
import { isUtf8 } from 'node:buffer'
import { HttpError } from '../http/errors.ts'
import { BACKSLASH, CLOSE_ARRAY, CLOSE_OBJECT, COLON, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from '../json/bytes.ts'
import { deserializeError } from '../json/parse.ts'
import { countKeys, repeatedKey, repeatedKeyText } from '../json/repeated-keys.ts'

/** Payloads nest to 6. What nobody reads may go deeper. */
export const MAX_DEPTH = 64
/** Values, keys and containers of one element: a finding has some forty, and a file path or a license more for each. */
export const MAX_ELEMENT_MEMBERS = 10_000
/** The same of all that is outside the list: 64 platforms and 64 workloads are read of it. */
export const MAX_OTHER_MEMBERS = 20_000
/** Of all elements, beside as many as one may have: `"epss":0,` takes nine bytes for a key and a value. What is denser is no payload. */
export const MIN_BYTES_PER_MEMBER = 4

/** Of the containers, the outermost object and the list. */
const IN_BODY = 1
const IN_LIST = 2

export interface Parts {
  /** The outermost value, with an empty list where the list is. */
  readonly rest: unknown
  /** Elements of the list. */
  readonly length: number
  /** Element number `i`, parsed anew whenever it is asked for. 400 for what is not JSON or has a key twice, naming the element. */
  element(i: number): unknown
}

/**
 * The parts of a body whose key `listKey` holds the list. 400 for what is not JSON or not UTF-8, for a key that any object has twice, and for
 * what is nested too deep; 413 for more than `maxElements` or too many values, told at the one that is too much.
 */
export function partsOf(bytes: Buffer, listKey: string, maxElements: number): Parts {
  if (!isUtf8(bytes)) throw deserializeError('the body is not UTF-8')
  const list = findList(bytes, listKey, maxElements)
  const text = (from: number, to: number) => bytes.toString('utf8', from, to)
  const head = text(0, list.from)
  return {
    rest: parsedOnce(head + text(list.to, bytes.length), list.otherKeys, '', (position) =>
      position < head.length ? position : position + list.to - list.from,
    ),
    length: list.places.length / 2,
    element: (i) => {
      const from = list.places[2 * i]!
      return parsedOnce(
        text(from, list.places[2 * i + 1]!),
        list.keys[i]!,
        `${listKey}[${i}]: `,
        (position) => position + from,
      )
    },
  }
}

/** `placed` tells where in the body a position of the text is; exact where all before it is ASCII. */
function parsed(text: string, where: string, placed: (position: number) => number): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw deserializeError(`${where}invalid JSON${placeOf((error as Error).message, placed)}`)
  }
}

/** The same of a text that spells so many keys, of which no object may have one twice. */
function parsedOnce(text: string, keys: number, where: string, placed: (position: number) => number): unknown {
  const value = parsed(text, where, placed)
  if (countKeys(value) === keys) return value
  throw deserializeError(where + repeatedKeyText(repeatedKey(text) ?? ''))
}

/** Of Node's own messages, which quote the body, the place alone; some tell none. */
function placeOf(message: string, placed: (position: number) => number): string {
  if (message.startsWith('Unexpected end')) return ': unexpected end'
  const [, position] = /at position (\d+)/.exec(message) ?? []
  return position === undefined ? '' : `: at position ${placed(Number(position))}`
}

interface List {
  /** Behind its opening bracket, and its closing one; both 0 without a list. */
  from: number
  to: number
  /** Where each element starts and ends. */
  readonly places: number[]
  /** How many keys each element spells, and what is not in the list. */
  readonly keys: number[]
  otherKeys: number
}

function findList(bytes: Buffer, listKey: string, maxElements: number): List {
  const list: List = { from: 0, to: 0, places: [], keys: [], otherKeys: 0 }
  const keys = new Set<string>()
  /** The outermost key whose value is next; null where a key is due, and between. */
  let key: string | null = null
  let isKeyDue = false
  let isObject = false
  let depth = 0
  let isInList = false
  let elementFrom = 0
  let members = 0
  const maxMembers = MAX_ELEMENT_MEMBERS + Math.floor(bytes.length / MIN_BYTES_PER_MEMBER)
  let elementMembers = 0
  let elementKeys = 0
  let otherMembers = 0

  const count = () => {
    if (!isInList) {
      if (++otherMembers > MAX_OTHER_MEMBERS) throw tooMany(MAX_OTHER_MEMBERS, `values outside ${listKey}`)
      return
    }
    if (++elementMembers > MAX_ELEMENT_MEMBERS)
      throw tooMany(MAX_ELEMENT_MEMBERS, `values in ${listKey}[${list.places.length / 2}]`)
    if (++members > maxMembers) throw tooMany(maxMembers, `values in ${listKey}`)
  }
  const endElement = (at: number) => {
    if (list.places.length === 2 * maxElements) throw tooMany(maxElements, listKey)
    list.places.push(elementFrom, at)
    list.keys.push(elementKeys)
    elementFrom = at + 1
    elementMembers = 0
    elementKeys = 0
  }

  for (let i = 0; i < bytes.length; i++) {
    switch (bytes[i]) {
      case QUOTE: {
        const start = i
        for (i++; i < bytes.length && bytes[i] !== QUOTE; i++) if (bytes[i] === BACKSLASH) i++
        if (depth !== IN_BODY || !isKeyDue) break
        isKeyDue = false
        key = parsed(bytes.toString('utf8', start, i + 1), '', (position) => position + start) as string
        if (keys.has(key)) throw deserializeError(repeatedKeyText(key))
        keys.add(key)
        break
      }
      case COLON:
        count()
        if (isInList) elementKeys++
        else list.otherKeys++
        break
      case COMMA:
        if (isInList && depth === IN_LIST) endElement(i)
        else count()
        if (depth === IN_BODY) {
          isKeyDue = isObject
          key = null
        }
        break
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        count()
        if (++depth > MAX_DEPTH) throw deserializeError(`nested deeper than ${MAX_DEPTH} levels`)
        if (depth === IN_BODY) isKeyDue = isObject = bytes[i] === OPEN_OBJECT
        else if (depth === IN_LIST && key === listKey && bytes[i] === OPEN_ARRAY) {
          isInList = true
          list.from = elementFrom = i + 1
        }
        break
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        if (isInList && depth === IN_LIST) {
          if (bytes[i] === CLOSE_OBJECT) throw deserializeError(`invalid JSON: at position ${i}`)
          if (list.places.length > 0 || !isBlank(bytes, elementFrom, i)) endElement(i)
          list.to = i
          isInList = false
        }
        depth--
        break
    }
  }
  if (isInList) throw deserializeError('invalid JSON: unexpected end')
  return list
}

/** White space of JSON (RFC 8259, 2). */
const BLANKS = new Set([0x20, 0x09, 0x0a, 0x0d])

function isBlank(bytes: Buffer, from: number, to: number): boolean {
  for (let i = from; i < to; i++) if (!BLANKS.has(bytes[i]!)) return false
  return true
}

const tooMany = (max: number, what: string) => new HttpError(413, `body has more than ${max} ${what}`)
