import { z } from 'zod'
import { access, NoParameters, query, route, sendJson } from '../lib/http/index.ts'

const answer = z.looseObject({ openapi: z.string().regex(/^3\.1\./), paths: z.record(z.string(), z.unknown()) })

/** GET /openapi.json: this API as an OpenAPI 3.1 document, made once from the declarations that the routes run on. */
export default route({ summary: 'This document', answer, database: false }).get(
  '/openapi.json',
  access('read'),
  query(NoParameters, { unknown: 'ignored' }),
  (c) => sendJson(c, c.get('deps').openApi()),
)
