/**
 * The host names that a server answers to. A web page can point a name of its own at an address of ours (DNS
 * rebinding): to a browser both are the same origin then, so no rule about origins helps, but `Host` holds the foreign
 * name.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { HttpError } from '../../errors.ts'

const MISDIRECTED = 421
/** Names of this machine that need no configuration. */
const LOOPBACK = /^(?:localhost|[\w-]+\.localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/**
 * Returns a check for `Host` values, with a port or without: names of this machine and `names` pass; `*` allows all. A
 * request without `Host` passes, since no browser sends one.
 */
export function createHosts(names: readonly string[]): (host: string | undefined) => boolean {
  const known = new Set(names.map((name) => name.toLowerCase()))
  return (host) => {
    if (host === undefined || known.has('*')) return true
    const name = host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '')
    return LOOPBACK.test(name) || known.has(name)
  }
}

/** The refusal of a `Host`; `remedy` says how to allow it. */
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
