import { Hono } from 'hono'
import { cors } from 'hono/cors'
import { routePath } from 'hono/route'
import type { ConsoleFiles } from '../console/files.ts'
import { consoleRoute } from '../console/route.ts'
import { DatabaseBusy, DatabaseUnavailable } from '../db/index.ts'
import { HttpError } from '../errors.ts'
import { access, declaredRoutes } from '../http/access.ts'
import { requestId } from '../http/request/request-id.ts'
import { allowOrigin } from '../http/response/cors.ts'
import { respond } from '../http/response/respond.ts'
import { type Context, type Env, header } from '../http/route.ts'
import { openApi } from '../openapi/index.ts'
import { VERSION } from '../version.ts'
import type { AppDeps, Deps } from './deps.ts'

const CORS_MAX_AGE_SECONDS = 3600
const MS_PER_SECOND = 1_000
const US_PER_MS = 1_000

/**
 * The frame around all routes: request id, access log, metrics, CORS preflights, errors, and an empty 404 for unknown
 * paths. Throws when a route declares no scope. The console is served if its files are given.
 */
export function createApp(
  given: Deps,
  routes: readonly Hono<Env>[],
  consoleFiles: ConsoleFiles | null = null,
): Hono<Env> {
  let json: Buffer | undefined
  const deps: AppDeps = {
    ...given,
    openApi: () => (json ??= Buffer.from(JSON.stringify(openApi(routes, VERSION)))),
    hasConsole: consoleFiles !== null,
  }
  const app = new Hono<Env>()
  app.use(async (c, next) => {
    const startedAt = performance.now()
    c.set('deps', deps)
    c.set('requestId', requestId(header(c, 'x-request-id')))
    // For answers that handlers build themselves.
    if (deps.draining()) c.header('connection', 'close')
    await next()
    observe(c, deps, performance.now() - startedAt)
  })
  const { corsOrigins } = deps.config
  if (corsOrigins.length > 0)
    app.options(
      '*',
      access('open'),
      (c, next) => {
        c.header('x-request-id', c.get('requestId'))
        return next()
      },
      cors({ origin: corsOrigins[0] === '*' ? '*' : [...corsOrigins], maxAge: CORS_MAX_AGE_SECONDS }),
    )
  for (const one of routes) app.route('/', one)
  if (consoleFiles !== null) app.route('/', consoleRoute(consoleFiles))
  app.notFound(
    (c) =>
      new Response(null, {
        status: 404,
        headers: allowOrigin(c, {
          'content-length': '0',
          'x-request-id': c.get('requestId'),
          ...(deps.draining() ? { connection: 'close' } : {}),
        }),
      }),
  )
  app.onError(onError)
  declaredRoutes(app.routes)
  return app
}

function observe(c: Context, { log, metrics }: Deps, ms: number): void {
  const { method } = c.req
  const { status } = c.res
  const pattern = routePath(c, -1)
  const route = pattern === '/*' || pattern === '*' ? 'unmatched' : pattern
  metrics.requests
    .labels(KNOWN_METHODS.has(method) ? method : 'other', route, String(status))
    .observe(ms / MS_PER_SECOND)
  log.info(
    {
      requestId: c.get('requestId'),
      method,
      route,
      status,
      ms: Math.round(ms * US_PER_MS) / US_PER_MS,
      bytes: c.get('bytes'),
    },
    'request',
  )
}

// Clients must not choose the value of a label.
const KNOWN_METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])

function refusal(c: Context, { status, message, headers, code, facts }: HttpError): Response {
  const error = code ?? (status === 400 && c.get('hasCodedErrors') ? 'bad_request' : undefined)
  if (error === undefined) return respond(c, status, message, headers)
  return respond(c, status, JSON.stringify({ error, message, ...facts }), {
    ...headers,
    'content-type': 'application/json',
  })
}

/** Renders the errors of all routes: typed errors with their status and text, unknown ones with a fixed text. */
function onError(error: Error, c: Context): Response {
  if (error instanceof HttpError) return refusal(c, error)
  if (error instanceof DatabaseBusy) {
    const seconds = error.retryAfterSeconds
    return respond(c, 503, `${error.message}; retry in ${seconds} seconds`, { 'retry-after': String(seconds) })
  }
  if (error instanceof DatabaseUnavailable) {
    return respond(c, 503, 'database unavailable; retry in a moment', {
      'retry-after': String(error.retryAfterSeconds),
    })
  }
  const requestId = c.get('requestId')
  // The log's serializer of `err` leaves out values of rows and parameters.
  c.get('deps').log.error({ requestId, err: error }, 'request failed')
  return respond(c, 500, `internal error, request ${requestId}`)
}
