import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import type { Context } from '../route.ts'

/** Calls `left` once, when the answer was sent or its connection has ended. */
export function onAnswerEnd(socket: Socket, outgoing: Writable & { socket: unknown }, left: () => void): void {
  // A pipelined answer gets the socket only after the one before, and has no event for its end until then.
  const isBehind = outgoing.socket === null
  const once = () => {
    outgoing.off('close', once)
    if (isBehind) socket.off('close', once)
    left()
  }
  outgoing.once('close', once)
  if (isBehind) socket.setMaxListeners(0).once('close', once)
}

/** Aborts when the client has left. Undefined where there is no socket. */
export function clientLeft(c: Context): AbortSignal | undefined {
  const { incoming, outgoing } = c.env ?? {}
  if (!incoming || !outgoing) return undefined
  const controller = new AbortController()
  if (incoming.socket.destroyed) controller.abort()
  else onAnswerEnd(incoming.socket, outgoing, () => controller.abort())
  return controller.signal
}
