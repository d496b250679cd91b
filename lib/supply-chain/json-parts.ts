/**
 * Splits JSON with one long list before it is parsed: 8 MiB of short values, parsed at once, would take hundreds of
 * megabytes of objects. One scan finds the elements of the list. Then they are parsed one at a time, each freed before
 * the next, and the text outside the list by itself. `JSON.parse` checks every byte except the commas between the
 * elements, so exactly the same bodies are accepted as by parsing at once.
 */
import { isUtf8 } from 'node:buffer'
import { HttpError } from '../errors.ts'
import { deserializeError } from '../json/parse.ts'
import { countKeys, repeatedKey, repeatedKeyText } from '../json/repeated-keys.ts'
import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  END,
  JsonScanner,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
} from '../json/scanner.ts'
import { MAX_ELEMENT_MEMBERS, MAX_OTHER_MEMBERS, MAX_PAYLOAD_DEPTH, MIN_BYTES_PER_MEMBER } from '../limits/limits.ts'

/** Nesting depth directly inside the outermost object, and directly inside the list. */
const IN_BODY = 1
const IN_LIST = 2

export interface Parts {
  /** The outermost value, with an empty list instead of the elements. */
  readonly rest: unknown
  /** Number of elements in the list. */
  readonly length: number
  /** Element number `i`, parsed anew by each call. 400, naming the element, if it is not JSON or has a key twice. */
  element(i: number): unknown
}

/**
 * The parts of a body whose key `listKey` holds the list. 400 for a body that is not JSON or not UTF-8, for an object
 * with a key twice, and for too deep nesting; 413 for more than `maxElements` or too many values, at the first one too
 * many.
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
    length: list.bounds.length / 2,
    element: (i) => {
      const from = list.bounds[2 * i]!
      return parsedOnce(
        text(from, list.bounds[2 * i + 1]!),
        list.keys[i]!,
        `${listKey}[${i}]: `,
        (position) => position + from,
      )
    },
  }
}

/**
 * Parses text of a body. 400 if it is not JSON. `inBody` maps a position in the text to one in the body; exact if
 * everything before it is ASCII.
 */
export function parsed(text: string, where = '', inBody = (position: number) => position): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw deserializeError(`${where}invalid JSON${positionText((error as Error).message, inBody)}`)
  }
}

/**
 * The same for a text in which the scan counted `keys` keys. 400 if an object has one twice: the parsed keys are then
 * fewer.
 */
function parsedOnce(text: string, keys: number, where: string, inBody: (position: number) => number): unknown {
  const value = parsed(text, where, inBody)
  if (countKeys(value) === keys) return value
  throw deserializeError(where + repeatedKeyText(repeatedKey(text) ?? ''))
}

/** Node's own messages quote the body, so only the position is shown, if there is one. */
function positionText(message: string, inBody: (position: number) => number): string {
  if (message.startsWith('Unexpected end')) return ': unexpected end'
  const [, position] = /at position (\d+)/.exec(message) ?? []
  return position === undefined ? '' : `: at position ${inBody(Number(position))}`
}

interface List {
  /** After the opening bracket of the list, and at its closing one; both 0 without a list. */
  from: number
  to: number
  /** Start and end of each element. */
  readonly bounds: number[]
  /** Number of keys in the text of each element, and in the text outside the list. */
  readonly keys: number[]
  otherKeys: number
}

function findList(bytes: Buffer, listKey: string, maxElements: number): List {
  const scanner = new JsonScanner(bytes)
  const list: List = { from: 0, to: 0, bounds: [], keys: [], otherKeys: 0 }
  const keys = new Set<string>()
  /** The outermost key whose value comes next; null where a key comes next. */
  let key: string | null = null
  let isKeyDue = false
  let isObject = false
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
      throw tooMany(MAX_ELEMENT_MEMBERS, `values in ${listKey}[${list.bounds.length / 2}]`)
    if (++members > maxMembers) throw tooMany(maxMembers, `values in ${listKey}`)
  }
  const endElement = (at: number) => {
    if (list.bounds.length === 2 * maxElements) throw tooMany(maxElements, listKey)
    list.bounds.push(elementFrom, at)
    list.keys.push(elementKeys)
    elementFrom = at + 1
    elementMembers = 0
    elementKeys = 0
  }

  for (let token = scanner.next(); token !== END; token = scanner.next()) {
    const { at, depth } = scanner
    switch (token) {
      case QUOTE: {
        if (depth !== IN_BODY || !isKeyDue) break
        isKeyDue = false
        const start = scanner.textFrom - 1
        key = parsed(bytes.toString('utf8', start, at + 1), '', (position) => position + start) as string
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
        if (isInList && depth === IN_LIST) endElement(at)
        else count()
        if (depth === IN_BODY) {
          isKeyDue = isObject
          key = null
        }
        break
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        count()
        if (depth > MAX_PAYLOAD_DEPTH) throw deserializeError(`nested deeper than ${MAX_PAYLOAD_DEPTH} levels`)
        if (depth === IN_BODY) isKeyDue = isObject = token === OPEN_OBJECT
        else if (depth === IN_LIST && key === listKey && token === OPEN_ARRAY) {
          isInList = true
          list.from = elementFrom = at + 1
        }
        break
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        if (!isInList || depth !== IN_BODY) break
        if (token === CLOSE_OBJECT) throw deserializeError(`invalid JSON: at position ${at}`)
        if (list.bounds.length > 0 || !isBlank(bytes, elementFrom, at)) endElement(at)
        list.to = at
        isInList = false
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
