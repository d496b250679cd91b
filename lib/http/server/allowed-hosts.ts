/**
 * By which names a server may be asked. A page can point a name of its own at an address of ours (DNS rebinding); to a browser it is then of
 * the same origin, and no rule about origins helps. The name in `Host` gives it away.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { HttpError } from '../errors.ts'

const MISDIRECTED = 421
/** Names that always mean this machine. */
const LOOPBACK = /^(?:localhost|[\w-]+\.localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/**
 * Tells for a `Host`, with its port or without, whether it is of this machine or one of `names`; `*` among these allows all. A request without
 * `Host` is no browser's.
 */
export function createHosts(names: readonly string[]): (host: string | undefined) => boolean {
  const known = new Set(names.map((name) => name.toLowerCase()))
  return (host) => {
    if (host === undefined || known.has('*')) return true
    const name = host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '')
    return LOOPBACK.test(name) || known.has(name)
  }
}

/** The refusal of a `Host`; `remedy` says how it would be let in. */
export const wrongHost = (remedy: string): HttpError =>
  new HttpError(MISDIRECTED, `host: not a name of this server; ${remedy}`)

/** For `listen`, as its `before`: answers 421 to requests by another name. */
export function refuseOtherHosts(isAllowed: (host: string | undefined) => boolean, remedy: string) {
  const { status, message } = wrongHost(remedy)
  return (incoming: IncomingMessage, outgoing: ServerResponse): boolean => {
    if (isAllowed(incoming.headers.host)) return false
    outgoing.writeHead(status, {
      'content-type': 'text/plain; charset=utf-8',
      'content-length': String(Buffer.byteLength(message)),
    })
    outgoing.end(message)
    return true
  }
}
