import type { HttpBindings } from '@hono/node-server'
import { Hono } from 'hono'
import type { Logger } from 'pino'
import type { ConsoleFiles } from '../../lib/console/files.ts'
import { createHosts } from '../../lib/http/server/allowed-hosts.ts'
import { answerFromConsole } from './answer.ts'
import type { EdgeConfig } from './config.ts'
import { type Exchange, Exchanges } from './exchanges.ts'
import { createGate } from './gate.ts'
import type { Metrics } from './metrics.ts'
import { createRelay } from './relay.ts'
import type { Upstream } from './upstream.ts'

export interface EdgeDeps {
  config: EdgeConfig
  log: Logger
  metrics: Metrics
  upstream: Upstream
  /** True from the first SIGTERM; answers then carry `Connection: close`. */
  draining: () => boolean
  /** The current read token; that of `config` unless given. */
  token?: () => string | null
  /** Null if the proxy serves no console. */
  consoleFiles?: ConsoleFiles | null
}

const HEALTH = '/healthz'

/**
 * The proxy for `listen`: `before` refuses requests, forwards them to the broker or answers them with the console,
 * except those that `fetch` answers.
 */
export function createEdge({
  config,
  log,
  metrics,
  upstream,
  draining,
  token = () => config.token?.value ?? null,
  consoleFiles = null,
}: EdgeDeps) {
  const exchanges = new Exchanges({ metrics, log })
  const { basePath, allowedHosts, connectTimeoutMs, firstByteTimeoutMs, idleTimeoutMs } = config
  const relay = createRelay({ upstream, metrics, token, connectTimeoutMs, firstByteTimeoutMs, idleTimeoutMs, draining })

  const app = new Hono<{ Bindings: HttpBindings }>().get(HEALTH, (c) => {
    const headers: Record<string, string> = { 'x-request-id': exchanges.of(c.env.outgoing).requestId }
    if (draining()) headers.connection = 'close'
    return c.text('ok', 200, headers)
  })
  const isOwn = (path: string) => path === HEALTH
  const isAllowedHost = createHosts(allowedHosts)
  const serveConsole = consoleFiles && ((exchange: Exchange) => answerFromConsole(exchange, consoleFiles, draining()))
  const before = createGate({ exchanges, basePath, draining, relay, serveConsole, isOwn, isAllowedHost })
  return { before, fetch: app.fetch }
}
