/** The broker as a place to ask: its address, and connections that are kept for the next question. */
import http, { type Agent, type ClientRequest } from 'node:http'
import https from 'node:https'
import type { Duplex } from 'node:stream'

/** Beside these, questions wait for a connection that becomes free. */
const MAX_SOCKETS = 256
/** Shorter than the broker keeps them (75 s), so that it is not the one who ends them. */
const KEEP_IDLE_MS = 30_000
/** After this a connection is not kept on: replicas that are new get their share of the questions only on new ones. */
const MAX_KEPT_MS = 60_000

export interface Question {
  method: string
  /** Path and query. */
  path: string
  /** Names and values in turn, without `Host`. */
  fields: readonly string[]
  /** On a connection of its own, which cannot have been ended by the broker before. */
  isAlone: boolean
}

export interface Upstream {
  /** Asks; nothing has left before the question is written to or ended. */
  ask(question: Question): ClientRequest
  /** The event of a socket that says that it is there to be written to. */
  readonly connected: 'connect' | 'secureConnect'
  /** Ends the connections on which nothing is under way. */
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
  // Not `Connection: close`: who answers before the whole question has come would end it before the answer is read.
  const alone = renewed(new Agent({ keepAlive: true }), 0)
  const place = { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? null : port }
  return {
    ask: ({ method, path, fields, isAlone }) =>
      request({ ...place, method, path, headers: ['host', host, ...fields], agent: isAlone ? alone : agent }),
    connected: isTls ? 'secureConnect' : 'connect',
    end: () => agent.destroy(),
  }
}

/** The agent, which from now on gives up a connection after so long. Node asks it whether to keep one each time that one becomes free. */
function renewed<A extends Agent>(agent: A, maxKeptMs: number): A {
  const keptSince = new WeakMap<Duplex, number>()
  // Its type hides that it answers.
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
