import type { MiddlewareHandler } from 'hono'
import { HttpError } from '../errors.ts'
import { declarationOf, declare, type Scope } from '../openapi/declare.ts'
import type { Env } from './route.ts'
import { header } from './route.ts'

/**
 * Declares the scope that a route needs and checks it: 401 without a known token, 403 without the scope
 * (docs/contract.md#authentication). It runs after routing, so an unknown path is 404 for everybody.
 */
export function access(scope: Scope): MiddlewareHandler<Env> {
  const check: MiddlewareHandler<Env> = (c, next) => {
    if (scope !== 'open') authorize(c.get('deps').authenticate(header(c, 'authorization')), scope)
    return next()
  }
  return declare(check, { scope })
}

function authorize(granted: ReadonlySet<Scope> | null, scope: Scope): void {
  if (!granted) throw new HttpError(401, 'missing or invalid bearer token', { 'www-authenticate': 'Bearer' })
  if (!granted.has(scope)) throw new HttpError(403, `token lacks the '${scope}' scope`)
}

/** The scope of every route. Throws for a route without one, so that the server does not start. */
export function declaredRoutes(
  routes: readonly { method: string; path: string; handler: object }[],
): Map<string, Scope> {
  const scopes = new Map<string, Scope | undefined>()
  for (const { method, path, handler } of routes) {
    if (method === 'ALL') continue
    const name = `${method} ${path}`
    scopes.set(name, scopes.get(name) ?? declarationOf(handler).scope)
  }
  for (const [name, scope] of scopes) if (!scope) throw new Error(`route has no declared scope: ${name}`)
  return scopes as Map<string, Scope>
}
