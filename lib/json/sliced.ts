/** Decoding and parsing large bodies in slices of the event loop. */
import { isAscii } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { StringDecoder } from 'node:string_decoder'
import { HttpError } from '../errors.ts'
import { Slice } from '../event-loop/slices.ts'
import { parseJson, type Tolerated } from './parse.ts'
import type { Listed } from './prescan.ts'

/** Bytes that are decoded at once: 6 ms in any script. */
const DECODED_BYTES = 1024 * 1024

/**
 * The text of a body that is known to be UTF-8. V8 decodes what is not ASCII at 5 ns a byte (16 MiB in 80 ms), six
 * times as slowly as ASCII.
 */
export async function decode(bytes: Buffer): Promise<string> {
  if (bytes.length <= DECODED_BYTES || isAscii(bytes)) return bytes.toString()
  const decoder = new StringDecoder('utf8')
  const slice = new Slice()
  let text = ''
  for (let at = 0; at < bytes.length; at += DECODED_BYTES) {
    if (slice.isOver) await slice.next()
    text += decoder.write(bytes.subarray(at, at + DECODED_BYTES))
  }
  return text
}

/**
 * Returns or throws as `parseJson` does for a list, in slices: 2 MiB of short texts take 50 ms at once. `cuts` are the
 * places of commas between elements of the outermost array, from `prescanJson`. Where one piece by itself is not a
 * list, the whole text is parsed at once.
 */
export async function parseList(bytes: Buffer, cuts: readonly number[], tolerated: Tolerated = []): Promise<unknown> {
  const list: unknown[] = []
  const slice = new Slice()
  for (let i = 0; i <= cuts.length; i++) {
    const head = i === 0 ? '' : '['
    const tail = i === cuts.length ? '' : ']'
    const text = bytes.toString('utf8', i === 0 ? 0 : cuts[i - 1]! + 1, cuts[i])
    const piece = listOfText(head + text + tail, tolerated)
    if (piece === null) return parseJson(bytes.toString(), tolerated)
    for (const one of piece) list.push(one)
    if (slice.isOver) await slice.next()
  }
  return list
}

/**
 * The same for an object with a long list in it: parses the object without the elements of the list, then the elements
 * in pieces. Its long integers are not noted for `exactly`.
 */
export async function parseListed(bytes: Buffer, { from, to, cuts }: Listed, tolerated: Tolerated): Promise<unknown> {
  const whole = async () => parseJson(await decode(bytes), tolerated, false)
  const rest = objectOfText(
    `${bytes.toString('utf8', 0, from)}"${PLACEHOLDER}"${bytes.toString('utf8', to)}`,
    tolerated,
  )
  const isPlaceholder = (value: unknown) => Array.isArray(value) && value.length === 1 && value[0] === PLACEHOLDER
  const [key, list] = Object.entries(rest ?? {}).find(([, value]) => isPlaceholder(value)) ?? []
  // Where two lists have the same key the last counts, and this may be the first.
  if (key === undefined) return whole()
  const elements = list as unknown[]
  elements.length = 0
  const toleratedInList = tolerated === 'all' || tolerated.includes(key) ? 'all' : []
  const slice = new Slice()
  for (let i = 0; i <= cuts.length; i++) {
    const text = bytes.toString('utf8', i === 0 ? from : cuts[i - 1]! + 1, cuts[i] ?? to)
    const piece = listOfText(`[${text}]`, toleratedInList, false)
    if (piece === null) return whole()
    for (const one of piece) elements.push(one)
    if (slice.isOver) await slice.next()
  }
  return rest
}

/** Stands for the elements of the list. Random, so that no body can hold it. */
const PLACEHOLDER = randomUUID()

function objectOfText(text: string, tolerated: Tolerated): object | null {
  const value = valueOfText(text, tolerated, false)
  return typeof value === 'object' ? value : null
}

function listOfText(text: string, tolerated: Tolerated, isNoted = true): unknown[] | null {
  const value = valueOfText(text, tolerated, isNoted)
  return Array.isArray(value) && value.length > 0 ? value : null
}

/** Undefined for text that `parseJson` refuses. */
function valueOfText(text: string, tolerated: Tolerated, isNoted: boolean): unknown {
  try {
    return parseJson(text, tolerated, isNoted)
  } catch (error) {
    if (error instanceof HttpError) return undefined
    throw error
  }
}
