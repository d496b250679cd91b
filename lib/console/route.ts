/** The console as the broker serves it: outside of the OpenAPI document, since its files are not part of the API. */
import type { Hono } from 'hono'
import { access } from '../http/access.ts'
import { type Env, header, route } from '../http/route.ts'
import { answerConsole, CONSOLE_PATH } from './answer.ts'
import type { ConsoleFiles } from './files.ts'

/** GET /console and all paths below. No CORS headers: pages of other origins do not need it. */
export function consoleRoute(files: ConsoleFiles): Hono<Env> {
  // Hono also matches the path without the slash.
  return route().get(`${CONSOLE_PATH}/*`, access('open'), (c) => {
    const { status, headers, body } = answerConsole(files, {
      path: c.req.path,
      search: new URL(c.req.url).search,
      acceptEncoding: header(c, 'accept-encoding'),
      ifNoneMatch: header(c, 'if-none-match'),
    })
    c.set('bytes', body?.length ?? 0)
    headers['x-request-id'] = c.get('requestId')
    if (c.get('deps').draining()) headers.connection = 'close'
    return new Response(body as Uint8Array<ArrayBuffer> | null, { status, headers })
  })
}
