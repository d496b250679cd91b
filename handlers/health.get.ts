import { schemaState } from '../lib/db/schema-state.ts'
import { access } from '../lib/http/access.ts'
import { route } from '../lib/http/context.ts'
import { HttpError } from '../lib/http/errors.ts'
import { sendJson } from '../lib/http/respond.ts'

const MAX_WAIT_MS = 500

/** GET /health: whether the service can work, in one word (interop-core 1.9). Open. */
export default route().get('/health', access('open'), async (c) => {
  const state = await schemaState(c.get('deps').db, MAX_WAIT_MS)
  if (state === 'ready') return sendJson(c, 'Healthy!')
  throw new HttpError(503, state === 'outdated' ? 'Database schema not up to date' : 'Database unavailable', {
    'content-type': 'application/json',
    'retry-after': '1',
  })
})
