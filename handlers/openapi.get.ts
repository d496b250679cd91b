import { z } from 'zod'
import { access } from '../lib/http/access.ts'
import { NoParameters, query } from '../lib/http/request/validate.ts'
import { sendJson } from '../lib/http/response/respond.ts'
import { route } from '../lib/http/route.ts'

const answer = z.looseObject({ openapi: z.string().regex(/^3\.1\./), paths: z.record(z.string(), z.unknown()) })

/** GET /openapi.json: the OpenAPI 3.1 document, built once from the declarations of the routes. */
export default route({ summary: 'Get the OpenAPI document', answer, database: false }).get(
  '/openapi.json',
  access('read'),
  query(NoParameters, { unknown: 'ignored' }),
  (c) => sendJson(c, c.get('deps').openApi()),
)
