import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { Hono } from 'hono'
import type { Logger } from 'pino'
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
  /** True from the first SIGTERM on: answers then carry `Connection: close`. */
  draining: () => boolean
}

/**
 * The proxy, as `listen` takes it: `before` judges every request, `fetch` answers `/healthz` and passes everything else on to the broker.
 */
export function createEdge({ config, log, metrics, upstream, draining }: EdgeDeps) {
  const exchanges = new Exchanges({ metrics, log })
  const { basePath, token, connectTimeoutMs, firstByteTimeoutMs, idleTimeoutMs } = config
  const authorization = token === null ? null : `Bearer ${token.value}`
  const relay = createRelay({ upstream, metrics, authorization, connectTimeoutMs, firstByteTimeoutMs, idleTimeoutMs, draining })

  const app = new Hono<{ Bindings: HttpBindings }>()
    .get('/healthz', (c) => {
      const headers: Record<string, string> = { 'x-request-id': exchanges.of(c.env.outgoing).requestId }
      if (draining()) headers.connection = 'close'
      return c.text('ok', 200, headers)
    })
    .all('*', (c) => {
      const exchange = exchanges.of(c.env.outgoing)
      exchange.isRelayed = true
      relay(exchange)
      return RESPONSE_ALREADY_SENT
    })

  // To a HEAD Hono makes an answer of its own out of that, which would be sent.
  const fetch: typeof app.fetch = (request, env) => {
    const answer = app.fetch(request, env)
    return exchanges.of((env as HttpBindings).outgoing).isRelayed ? RESPONSE_ALREADY_SENT : answer
  }
  return { before: createGate({ exchanges, basePath, draining }), fetch }
}
