import { Hono } from 'hono'
import type { Metrics } from './metrics.ts'

/**
 * The admin port: `/livez`, `/readyz` (503 once the process is stopping) and `/metrics`. None of them calls the broker.
 */
export function createAdmin({ metrics, draining }: { metrics: Metrics; draining: () => boolean }): Hono {
  return new Hono()
    .get('/livez', (c) => c.text('ok'))
    .get('/readyz', (c) => (draining() ? c.text('draining', 503) : c.text('ok')))
    .get('/metrics', async (c) =>
      c.body(await metrics.registry.metrics(), 200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }),
    )
}
