import { type Context, cutList, kib } from '../http/index.ts'
import type { Pieces } from '../http/response/stream.ts'
import type { FlowList } from './list.ts'

/** Flows of a piece. */
export const PIECE_ROWS = 2_500

interface Form {
  /** The next flows, at most `rows`. */
  readonly read: (rows: number) => Promise<Buffer>
  readonly head?: Buffer
  /** The end, after the last flow. */
  readonly tail?: () => string
}

/**
 * A list of flows, at most `limit`, as the pieces of an answer. Each piece is read when the one before was sent. The
 * first one is read at once, so that an error is still an answer; a later error resets the connection.
 */
export async function flowStream(
  c: Context,
  list: FlowList,
  { read, head = Buffer.alloc(0), tail = () => '' }: Form,
  limit: number | null,
  rowBytes: number,
): Promise<Pieces> {
  const rowsLeft = () => Math.min(PIECE_ROWS, (limit ?? Number.POSITIVE_INFINITY) - list.count)
  const isDone = () => list.isOver || rowsLeft() === 0
  const share = c.get('share')
  let first: Buffer | null = Buffer.concat([head, await read(rowsLeft())])
  let isEnded = false
  return {
    async next() {
      if (isEnded) return null
      if (first !== null) {
        const piece = first
        first = null
        return piece
      }
      if (isDone()) {
        isEnded = true
        return Buffer.from(tail())
      }
      try {
        await share?.renew(kib(PIECE_ROWS * rowBytes))
        return await read(rowsLeft())
      } catch (error) {
        if (!isEnded) cutList(c, error as Error)
        throw error
      }
    },
    cancel() {
      isEnded = true
    },
  }
}
