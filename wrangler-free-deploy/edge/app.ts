import type { HttpBindings } from '@hono/node-server'
import { Hono } from 'hono'
import type { Logger } from 'pino'
import { createHosts } from '../../lib/http/server/allowed-hosts.ts'
import type { EdgeConfig } from './config.ts'
import { Exchanges } from './exchanges.ts'
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
}

const HEALTH = '/healthz'

/**
 * The proxy for `listen`: `before` refuses requests or forwards them to the broker, except those that `fetch` answers.
 */
export function createEdge({
  config,
  log,
  metrics,
  upstream,
  draining,
  token = () => config.token?.value ?? null,
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
  return { before: createGate({ exchanges, basePath, draining, relay, isOwn, isAllowedHost }), fetch: app.fetch }
}
