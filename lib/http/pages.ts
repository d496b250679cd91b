import type { Page } from '../records/page.ts'
import type { Context } from './context.ts'
import { sendJson, sendStream } from './respond.ts'

const OPEN = Buffer.from('[')
const COMMA = Buffer.from(',')
const CLOSE = Buffer.from(']')

/** The array of one page. */
export const asArray = ({ json, array }: Page<unknown>) => array ?? Buffer.concat([OPEN, json, CLOSE], json.length + 2)

/**
 * A list of unknown length: as it is when its first page is all of it, else page by page. `pageKib` of the read budget are charged for
 * each page; the first was charged by the route. When a page cannot be read the connection is cut, since its list is not whole.
 */
export function sendPages<Place>(
  c: Context,
  first: Page<Place>,
  isWhole: boolean,
  next: (after: Place) => Promise<Page<Place>>,
  pageKib: number,
): Response | Promise<Response> {
  if (isWhole) return sendJson(c, asArray(first))
  const cut = (error: Error) => {
    const code = (error as { code?: string }).code
    c.get('deps').log.warn({ requestId: c.get('requestId'), code }, 'a list was cut: the next page could not be read')
    c.env?.outgoing?.destroy()
  }
  return sendStream(c, streamPages(first, next, cut), pageKib)
}

/**
 * An array of unknown length in bounded memory: the first page at once, each other when the reader has taken the one before.
 * Pages are keyset, so a slow reader holds no connection and no snapshot, and every row that was there at the start is sent once.
 * `onError` must cut the connection: a list that ends early must not look whole.
 */
export function streamPages<Place>(
  first: Page<Place>,
  next: (after: Place) => Promise<Page<Place>>,
  onError: (error: Error) => void,
): ReadableStream<Uint8Array> {
  // Not a moment longer than until it was sent.
  let page: Page<Place> | null = first
  let last = first.last
  let opened = false
  let isGone = false
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          page ??= await next(last!)
          if (isGone) return
          const parts: Buffer[] = opened ? [] : [OPEN]
          if (page.count > 0) parts.push(...(opened ? [COMMA] : []), page.json)
          if (page.last === null) parts.push(CLOSE)
          last = page.last
          page = null
          opened = true
          controller.enqueue(Buffer.concat(parts))
          if (last === null) controller.close()
        } catch (error) {
          if (isGone) return
          onError(error as Error)
          controller.error(error)
        }
      },
      cancel() {
        isGone = true
      },
    },
    { highWaterMark: 0 },
  )
}
