import type { ServerResponse } from 'node:http'
import type { Page } from '../../records/page.ts'
import type { Context } from '../route.ts'
import { cut } from '../server/reset-connection.ts'
import { sendJson, sendPieces } from './respond.ts'
import type { Pieces } from './stream.ts'

const OPEN = Buffer.from('[')
const COMMA = Buffer.from(',')
const CLOSE = Buffer.from(']')

/** The array of one page. */
export const asArray = ({ json, array }: Page<unknown>) => array ?? Buffer.concat([OPEN, json, CLOSE], json.length + 2)

/**
 * Sends a list of unknown length: at once when its first page `isWhole`, else page by page. Each page charges `pageKib`
 * to the read budget; the first one was charged by the route. When a page cannot be read the connection is reset, so
 * that the list does not look complete.
 */
export function sendPages<Cursor>(
  c: Context,
  first: Page<Cursor>,
  isWhole: boolean,
  next: (after: Cursor) => Promise<Page<Cursor>>,
  pageKib: number,
): Response | Promise<Response> {
  return isWhole ? sendJson(c, asArray(first)) : sendPieces(c, pageByPage(c, first, next, pageKib))
}

/** The pieces of such a list. */
export function pageByPage<Cursor>(
  c: Context,
  first: Page<Cursor>,
  next: (after: Cursor) => Promise<Page<Cursor>>,
  pageKib: number,
): Pieces {
  const share = c.get('share')
  return piecesOf(
    first,
    next,
    (error) => cutList(c, error),
    async () => share?.renew(pageKib),
  )
}

/** Resets the connection of a list that cannot be read to its end, so that it does not look complete. */
export function cutList(c: Context, error: Error): void {
  const code = (error as { code?: string }).code
  c.get('deps').log.warn({ requestId: c.get('requestId'), code }, 'a list was cut: the next page could not be read')
  if (c.env?.outgoing) cut(c.env.outgoing as ServerResponse)
}

/** Pieces with bytes before and behind them; a `tail` that depends on the pieces is computed after the last. */
export function between(head: Buffer, pieces: Pieces, tail: Buffer | (() => Buffer)): Pieces {
  let state: 'before' | 'within' | 'behind' = 'before'
  return {
    async next() {
      if (state === 'behind') return null
      const piece = await pieces.next()
      if (piece === null) {
        state = 'behind'
        return typeof tail === 'function' ? tail() : tail
      }
      if (state === 'within') return piece
      state = 'within'
      return Buffer.concat([head, piece])
    },
    cancel: () => pieces.cancel(),
  }
}

/**
 * An array of unknown length in bounded memory: each page is read when the client has taken the one before. Pages are
 * keyset, so a slow client holds no database connection and no snapshot, and every row that was there at the start is
 * sent once. `ready` is awaited before each page but the first; `onError` must reset the connection: a list that ends
 * early must not look complete.
 */
export function piecesOf<Cursor>(
  first: Page<Cursor>,
  next: (after: Cursor) => Promise<Page<Cursor>>,
  onError: (error: Error) => void,
  ready = async () => {},
): Pieces {
  // Null as soon as it was sent, so that its memory can be freed.
  let page: Page<Cursor> | null = first
  let last = first.last
  let opened = false
  let isOver = false
  return {
    async next() {
      if (isOver) return null
      try {
        if (page === null) await ready()
        if (isOver) return null
        page ??= await next(last!)
        const parts: Buffer[] = opened ? [] : [OPEN]
        if (page.count > 0) parts.push(...(opened ? [COMMA] : []), page.json)
        last = page.last
        page = null
        opened = true
        isOver ||= last === null
        if (last === null) parts.push(CLOSE)
        return Buffer.concat(parts)
      } catch (error) {
        if (!isOver) onError(error as Error)
        throw error
      }
    },
    cancel() {
      isOver = true
    },
  }
}
