import { z } from 'zod'
import { access, HttpError, NoParameters, query, respond, route } from '../lib/http/index.ts'
import { schemaState } from '../sql/migrate/schema-state.ts'

const MAX_WAIT_MS = 500

const plainWord = (...words: string[]) => ({ contentType: 'text/plain', schema: z.enum(words) })

/** GET /health: 200 while the database answers and its schema is current, else 503, as plain text. Needs no token. */
export default route({
  summary: 'Check whether the service can work',
  answer: plainWord('Healthy!'),
  also: {
    503: {
      description: 'The database does not answer, or lacks a migration of this release.',
      answer: plainWord('Database schema not up to date', 'Database unavailable'),
    },
  },
}).get('/health', access('open'), query(NoParameters, { unknown: 'ignored' }), async (c) => {
  const state = await schemaState(c.get('deps').db, MAX_WAIT_MS)
  if (state === 'ready') return respond(c, 200, 'Healthy!')
  throw new HttpError(503, state === 'outdated' ? 'Database schema not up to date' : 'Database unavailable', {
    'retry-after': '1',
  })
})
