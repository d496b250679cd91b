/** The JSON of a result, bounded before it is parsed: 256 KiB of the densest would come to many times that. */
import { isUtf8 } from 'node:buffer'
import { HttpError } from '../http/errors.ts'
import { describeIssue } from '../http/request/issues.ts'
import { BACKSLASH, CLOSE_ARRAY, CLOSE_OBJECT, COLON, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE } from '../json/bytes.ts'
import { exactJson, exactly, isExactInteger, noteSource } from '../json/exact-integers.ts'
import { deserializeError } from '../json/parse.ts'
import { countKeys, repeatedKey, repeatedKeyText } from '../json/repeated-keys.ts'
import { MAX_ATTESTATIONS, MAX_SIGNATURES, PostedResult } from './posted.ts'

/** Results nest to 4. */
const MAX_DEPTH = 64
/** Keys and values; the fullest result has 4 500. */
const MAX_PARTS = 16_384
/** Of a number; a hundred thousand take 20 ms to read. */
const MAX_DIGITS = 1_000

const ZERO = 0x30
const NINE = 0x39

const LISTS = { signatures: MAX_SIGNATURES, attestations: MAX_ATTESTATIONS }

const MIN_INT64 = -(2n ** 63n)
const MAX_INT64 = 2n ** 63n - 1n
/** A number that is spelled with more digits than a double has comes as its digits, beginning with the next one. */
const LARGEST_NUMBER = 2 ** 53

/**
 * A posted result. `tlog_index` is the digits that were sent where a number may not hold them, for `exactJson` to write.
 * @throws HttpError 400 for what is not JSON in UTF-8, has a key twice, or is of another type, naming the first field that is; 413 for more
 * entries than a list may have, or more parts than any result has, before any is judged
 */
export function parseResult(bytes: Buffer): PostedResult {
  if (!isUtf8(bytes)) throw deserializeError('the body is not UTF-8')
  const keys = spelledKeys(bytes)
  const text = bytes.toString()
  const sent = parsed(text)
  if (typeof sent !== 'object' || sent === null || Array.isArray(sent)) throw deserializeError('expected an object')
  const raw = sent as Record<string, unknown>
  for (const [list, max] of Object.entries(LISTS)) {
    const entries = raw[list]
    if (Array.isArray(entries) && entries.length > max) throw new HttpError(413, `body has more than ${max} ${list}`)
  }
  if (countKeys(raw) !== keys) throw deserializeError(repeatedKeyText(repeatedKey(text) ?? ''))
  const { data, error } = PostedResult.safeParse(raw)
  if (error) throw deserializeError(describeIssue(error.issues[0]!))
  noteSource(text, raw)
  for (const list of ['signatures', 'attestations'] as const) keepDigits(data[list] ?? [], raw[list], list)
  return data
}

/** The keys of a body, none of which is inside of a string; 400 for what is nested too deep and for numbers that are too long, 413 for too many parts. */
function spelledKeys(bytes: Buffer): number {
  let depth = 0
  let keys = 0
  let values = 1
  let digits = 0
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!
    digits = byte >= ZERO && byte <= NINE ? digits + 1 : 0
    switch (byte) {
      case QUOTE:
        for (i++; i < bytes.length && bytes[i] !== QUOTE; i++) if (bytes[i] === BACKSLASH) i++
        break
      case COLON:
        keys++
        break
      case COMMA:
        values++
        break
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        values++
        if (++depth > MAX_DEPTH) throw deserializeError(`nested deeper than ${MAX_DEPTH} levels`)
        break
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        depth--
        break
    }
    if (digits > MAX_DIGITS) throw deserializeError(`a number of more than ${MAX_DIGITS} digits`)
    if (keys + values > MAX_PARTS) throw new HttpError(413, `body has more than ${MAX_PARTS} keys and values`)
  }
  return keys
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    // Node's own message quotes the body; of some not even a place can be told.
    const [place] = /Unexpected end|at position \d+/.exec((error as Error).message) ?? []
    throw deserializeError(`invalid JSON${place === undefined ? '' : `: ${place.toLowerCase()}`}`)
  }
}

type Indexed = { tlog_index?: number | string | null | undefined }

function keepDigits(entries: Indexed[], raw: unknown, list: string): void {
  const exact = exactly(raw) as readonly Indexed[]
  for (const [i, entry] of entries.entries()) {
    const index = entry.tlog_index
    if (typeof index !== 'number') continue
    const digits = exact[i]!.tlog_index
    if (typeof digits === 'string' ? !isInt64(digits) : Math.abs(index) > LARGEST_NUMBER)
      throw deserializeError(`${list}[${i}].tlog_index: Invalid input: expected int64`)
    if (typeof digits === 'string') entry.tlog_index = digits
  }
}

function isInt64(digits: string): boolean {
  if (!isExactInteger(digits)) return false
  const index = BigInt(exactJson(digits))
  return index >= MIN_INT64 && index <= MAX_INT64
}
