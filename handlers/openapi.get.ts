import { z } from 'zod'
import { access, NoParameters, query, route, sendJson } from '../lib/http/index.ts'

const answer = z.looseObject({ openapi: z.string().regex(/^3\.1\./), paths: z.record(z.string(), z.unknown()) })

/** GET /openapi.json: the OpenAPI 3.1 document, built once from the declarations of the routes. */
export default route({ summary: 'Get the OpenAPI document', answer, database: false }).get(
  '/openapi.json',
  access('read'),
  query(NoParameters, { unknown: 'ignored' }),
  (c) => sendJson(c, c.get('deps').openApi()),
)
