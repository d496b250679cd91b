/** Reads a JSON document from a stranger. */
import { HttpError } from '../../errors.ts'
import type { Slice } from '../../event-loop/slices.ts'
import { parseJson } from '../../json/parse.ts'
import { prescanJson } from '../../json/prescan.ts'
import { countKeys, repeatedKey, repeatedKeyText } from '../../json/repeated-keys.ts'
import { COLON, END, JsonScanner } from '../../json/scanner.ts'

/** Policies nest to 20. */
const MAX_DEPTH = 64

/**
 * The value. 400 for text that is not JSON, nests deeper than 64 levels or has a key twice; 413, as for every body, for
 * more keys or values than the prescan allows.
 */
export async function parseJsonDocument(text: string, slice: Slice): Promise<unknown> {
  const bytes = Buffer.from(text)
  prescanJson(bytes)
  const keys = scan(bytes)
  if (slice.isOver) await slice.next()
  const value = parseJson(text, [], false)
  if (slice.isOver) await slice.next()
  if (countKeys(value) !== keys) throw new HttpError(400, `document 1: ${repeatedKeyText(repeatedKey(text) ?? '')}`)
  return value
}

/** The number of keys in the text. */
function scan(bytes: Buffer): number {
  const scanner = new JsonScanner(bytes)
  let keys = 0
  for (let token = scanner.next(); token !== END; token = scanner.next()) {
    if (token === COLON) keys++
    if (scanner.depth > MAX_DEPTH) throw new HttpError(400, `document 1: nested deeper than ${MAX_DEPTH} levels`)
  }
  return keys
}
