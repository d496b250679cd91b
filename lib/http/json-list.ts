import { Slice } from '../turns.ts'
import { HttpError } from './errors.ts'
import { parseJson, type Tolerated } from './json-text.ts'

/**
 * What `parseJson` makes of a list, or how it refuses it, in slices: 2 MiB of short texts take 50 ms at once. `cuts` are the places of commas
 * between elements of the outermost array, as `weigh` found them. Where each piece by itself is a list with elements, all of them
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

function listOfText(text: string, tolerated: Tolerated): unknown[] | null {
  try {
    const value = parseJson(text, tolerated)
    return Array.isArray(value) && value.length > 0 ? value : null
  } catch (error) {
    if (error instanceof HttpError) return null
    throw error
  }
}
