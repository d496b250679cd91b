/** The JSON of a result, bounded before it is parsed: 256 KiB of short values would take many times that as objects. */
import { isUtf8 } from 'node:buffer'
import { HttpError } from '../errors.ts'
import { describeIssue } from '../http/request/issues.ts'
import { exactJson, exactly, isExactInteger, noteSource } from '../json/exact-integers.ts'
import { deserializeError } from '../json/parse.ts'
import { countKeys, repeatedKey, repeatedKeyText } from '../json/repeated-keys.ts'
import { COLON, COMMA, END, JsonScanner, OPEN_ARRAY, OPEN_OBJECT } from '../json/scanner.ts'
import { MAX_PAYLOAD_DEPTH, MAX_RESULT_DIGITS, MAX_RESULT_PARTS } from '../limits/limits.ts'
import { parsed } from '../supply-chain/index.ts'
import { MAX_ATTESTATIONS, MAX_SIGNATURES, PostedResult } from './posted.ts'

const LISTS = { signatures: MAX_SIGNATURES, attestations: MAX_ATTESTATIONS }

const MIN_INT64 = -(2n ** 63n)
const MAX_INT64 = 2n ** 63n - 1n
/** A double may round integers above this one, so their digits are kept as they were sent. */
const LARGEST_NUMBER = 2 ** 53

const TOO_MANY_DIGITS = new RegExp(`\\d{${MAX_RESULT_DIGITS + 1}}`)

/**
 * Parses a posted result. `tlog_index` is the text of the digits where a double may round it; `exactJson` writes them.
 * @throws HttpError 400 for a text that is not JSON in UTF-8, has a key twice, or has a field of the wrong type (the
 * first one is named); 413 for too many list entries or parts, before any of them is validated
 */
export function parseResult(bytes: Buffer): PostedResult {
  if (!isUtf8(bytes)) throw deserializeError('the body is not UTF-8')
  const keys = countSpelledKeys(bytes)
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

/** Counts the keys in the text. 400 for too deep nesting and for numbers that are too long, 413 for too many parts. */
function countSpelledKeys(bytes: Buffer): number {
  const scanner = new JsonScanner(bytes)
  let keys = 0
  let values = 1
  let token: number
  do {
    const previousAt = scanner.at
    token = scanner.next()
    if (token === COLON) keys++
    else if (token === COMMA || token === OPEN_ARRAY || token === OPEN_OBJECT) values++
    if (scanner.depth > MAX_PAYLOAD_DEPTH) throw deserializeError(`nested deeper than ${MAX_PAYLOAD_DEPTH} levels`)
    // A number is between two tokens, the second of which may be a string.
    const to = scanner.textFrom > previousAt ? scanner.textFrom - 1 : scanner.at
    if (to - previousAt > MAX_RESULT_DIGITS && TOO_MANY_DIGITS.test(bytes.toString('latin1', previousAt + 1, to)))
      throw deserializeError(`a number of more than ${MAX_RESULT_DIGITS} digits`)
    if (keys + values > MAX_RESULT_PARTS)
      throw new HttpError(413, `body has more than ${MAX_RESULT_PARTS} keys and values`)
  } while (token !== END)
  return keys
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
