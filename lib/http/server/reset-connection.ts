import type { ServerResponse } from 'node:http'

/**
 * Resets the connection of an answer, so that the client sees that it is incomplete: to HTTP/1.0 an orderly end would
 * complete it.
 */
export function cut(outgoing: ServerResponse): void {
  if (outgoing.socket) outgoing.socket.resetAndDestroy()
  else outgoing.destroy()
}
