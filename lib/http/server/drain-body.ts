import type { IncomingMessage, ServerResponse } from 'node:http'

/** How long, and how many bytes, a body is still read after its request was answered. */
export interface DrainLimits {
  maxMs: number
  maxBytes: number
}

/** Enough for 2 MiB at 256 KiB/s, also when the process was busy for a second. */
export const DRAIN_LIMITS: DrainLimits = { maxMs: 10_000, maxBytes: 64 * 1024 * 1024 }

const LOOK_EVERY_MS = 100

/**
 * After an answer was written, reads and drops the rest of the body of its request; then the connection serves the next
 * request, or ends if it was to end with the answer. Over the limits it is closed. A client that is disconnected while
 * it sends may never see the answer (RFC 9112, 9.6): the adapter reads on for only 500 ms, in which a busy process may
 * read nothing, and Node reads nothing where the connection is to end.
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
    // Node calls this next where the connection is to end. Only the writing side is ended for now.
    socket.destroySoon = () => {
      isLast = true
      socket.end()
    }
    // Counted on the connection: Node drops the bytes of a body that was never read without an event.
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
