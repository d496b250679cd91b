import { randomUUID } from 'node:crypto'
import { HttpError } from '../http/errors.ts'
import { Slice } from '../process/event-loop.ts'
import { decode } from './decode.ts'
import { parseJson, type Tolerated } from './parse.ts'
import type { Listed } from './prescan.ts'

/**
 * What `parseJson` makes of a list, or how it refuses it, in slices: 2 MiB of short texts take 50 ms at once. `cuts` are the places of commas
 * between elements of the outermost array, as `prescanJson` found them. Where each piece by itself is a list with elements, all of them
 * together are the list; whatever else it may be, the whole text tells.
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
 * What `parseJson` makes of an object with a long list in it, or how it refuses it, in the same way: the object without the elements of the list,
 * and then those. Nobody can ask `exactly` for what it holds.
 */
export async function parseListed(bytes: Buffer, { from, to, cuts }: Listed, tolerated: Tolerated): Promise<unknown> {
  const whole = async () => parseJson(await decode(bytes), tolerated, false)
  const rest = objectOfText(`${bytes.toString('utf8', 0, from)}"${PLACE}"${bytes.toString('utf8', to)}`, tolerated)
  const [key, list] =
    Object.entries(rest ?? {}).find(([, value]) => Array.isArray(value) && value.length === 1 && value[0] === PLACE) ??
    []
  // Of two lists of one key the last counts.
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

/** Stands for the elements of a list; no client knows it. */
const PLACE = randomUUID()

function objectOfText(text: string, tolerated: Tolerated): object | null {
  const value = valueOfText(text, tolerated, false)
  return typeof value === 'object' ? value : null
}

function listOfText(text: string, tolerated: Tolerated, isNoted = true): unknown[] | null {
  const value = valueOfText(text, tolerated, isNoted)
  return Array.isArray(value) && value.length > 0 ? value : null
}

/** Undefined for what `parseJson` refuses. */
function valueOfText(text: string, tolerated: Tolerated, isNoted: boolean): unknown {
  try {
    return parseJson(text, tolerated, isNoted)
  } catch (error) {
    if (error instanceof HttpError) return undefined
    throw error
  }
}
