/** The address of the broker, and its kept connections. */
import http, { type Agent, type ClientRequest } from 'node:http'
import https from 'node:https'
import type { Duplex } from 'node:stream'

/** Most connections; further requests wait for a free one. */
const MAX_SOCKETS = 256
/** Shorter than the broker keeps them (75 s), so that the broker is not the side that closes. */
const KEEP_IDLE_MS = 30_000
/** A connection is not reused after this time: new replicas get their share of requests only on new connections. */
const MAX_KEPT_MS = 60_000

export interface Question {
  method: string
  /** Path and query. */
  path: string
  /** Names and values in turn, without `Host`. */
  fields: readonly string[]
  /** Use a new connection, which the broker cannot have closed before. */
  isAlone: boolean
}

export interface Upstream {
  /** Creates the request; nothing is sent before it is written to or ended. */
  ask(question: Question): ClientRequest
  /** The event after which a socket can be written to. */
  readonly connected: 'connect' | 'secureConnect'
  /** Closes idle connections. */
  end(): void
}

/** `maxKeptMs` is for tests. */
export function openUpstream(brokerUrl: string, maxKeptMs = MAX_KEPT_MS): Upstream {
  const { protocol, hostname, port, host } = new URL(brokerUrl)
  const isTls = protocol === 'https:'
  const { request, Agent } = isTls ? https : http
  const agent = renewed(
    new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS, maxFreeSockets: MAX_SOCKETS, timeout: KEEP_IDLE_MS }),
    maxKeptMs,
  )
  // Not `Connection: close`: a server that answers before the whole request has arrived would close before the answer
  // is read.
  const alone = renewed(new Agent({ keepAlive: true }), 0)
  const place = { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? null : port }
  return {
    ask: ({ method, path, fields, isAlone }) =>
      request({ ...place, method, path, headers: ['host', host, ...fields], agent: isAlone ? alone : agent }),
    connected: isTls ? 'secureConnect' : 'connect',
    end: () => agent.destroy(),
  }
}

/**
 * Returns an agent that drops connections after `maxKeptMs`. Node asks it whether to keep a connection each time that
 * one becomes free.
 */
function renewed<A extends Agent>(agent: A, maxKeptMs: number): A {
  const keptSince = new WeakMap<Duplex, number>()
  // The type of the method lacks its result.
  const keep = agent.keepSocketAlive.bind(agent) as (socket: Duplex) => boolean
  const keepYoung = (socket: Duplex): boolean => {
    const now = performance.now()
    const since = keptSince.get(socket)
    if (since === undefined) keptSince.set(socket, now)
    return now - (since ?? now) < maxKeptMs && keep(socket)
  }
  agent.keepSocketAlive = keepYoung
  return agent
}
