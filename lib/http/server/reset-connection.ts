import type { ServerResponse } from 'node:http'

/** Ends the connection of an answer so that its reader sees that it is not whole. To HTTP/1.0 an orderly end is that of a list: a reset tells. */
export function cut(outgoing: ServerResponse): void {
  if (outgoing.socket) outgoing.socket.resetAndDestroy()
  else outgoing.destroy()
}
