import { Hono } from 'hono'
import { schemaState } from '../../sql/migrate/schema-state.ts'
import { scrape } from '../telemetry/scrape.ts'
import type { Deps } from './deps.ts'

const MAX_WAIT_MS = 500

/**
 * The admin port: `/livez` (never asks the database), `/readyz` (asks it) and `/metrics` (may have more labels than on
 * the API's port).
 */
export function createAdmin(deps: Deps): Hono {
  return new Hono()
    .get('/livez', (c) => c.text('ok'))
    .get('/readyz', async (c) => {
      if (deps.draining()) return c.text('draining', 503)
      const state = await schemaState(deps.db, MAX_WAIT_MS)
      return c.text(state === 'ready' ? 'ok' : `database ${state}`, state === 'ready' ? 200 : 503)
    })
    .get('/metrics', async (c) =>
      c.body((await scrape(deps, 'admin')) as Uint8Array<ArrayBuffer>, 200, {
        'content-type': 'text/plain; version=0.0.4; charset=utf-8',
      }),
    )
}
