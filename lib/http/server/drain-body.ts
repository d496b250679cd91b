import type { IncomingMessage, ServerResponse } from 'node:http'

/** For how long and how much of a body is read that was answered before all of it had come. */
export interface DrainLimits {
  maxMs: number
  maxBytes: number
}

/** A sender of 2 MiB at 256 KiB/s is done in time; a process that stood still for a second has cut nobody. */
export const DRAIN_LIMITS: DrainLimits = { maxMs: 10_000, maxBytes: 64 * 1024 * 1024 }

const LOOK_EVERY_MS = 100

/**
 * Once an answer has been written, what still comes of the body of its request is read and dropped, and the connection serves the next one, or
 * ends with that body where it was to end with the answer; over the limits it is closed. Who is cut while it sends may never see the answer
 * (RFC 9112, 9.6): the adapter reads on for 500 ms by the clock, in which a busy process may not have read at all, and Node not a byte where
 * the connection is to end.
 */
export function drainRequestBody(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { maxMs, maxBytes }: DrainLimits,
): void {
  outgoing.prependOnceListener('finish', () => {
    if (incoming.complete || incoming.destroyed) return
    const { socket } = incoming
    const maxBytesRead = socket.bytesRead + maxBytes
    const end = performance.now() + maxMs
    let isLast = false
    // Node calls it next where the connection is to end: it ends for writing first.
    socket.destroySoon = () => {
      isLast = true
      socket.end()
    }
    // By the bytes of the connection: of a body that nobody began to read, Node drops what comes unseen.
    const looking = setInterval(() => {
      const isOver = !incoming.complete && (socket.bytesRead > maxBytesRead || performance.now() > end)
      if (!isOver && !incoming.complete && !socket.destroyed) return
      clearInterval(looking)
      Reflect.deleteProperty(socket, 'destroySoon')
      if (isOver || isLast) socket.destroySoon()
    }, LOOK_EVERY_MS).unref()
    incoming.resume()
  })
}
