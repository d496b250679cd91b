import type { HttpBindings } from '@hono/node-server'
import type { Context as HonoContext, MiddlewareHandler } from 'hono'
import { Hono } from 'hono'
import type { z } from 'zod'
import type { AppDeps } from '../app/deps.ts'
import type { Share } from '../limits/memory-budget.ts'
import { document, type RouteDoc } from '../openapi/declare.ts'

/** What a request carries: what the process was built with, its id, what the access log wants to know, and what it holds of
 * the read budget (on a route that charges). */
export type Env = {
  Bindings: Partial<HttpBindings>
  Variables: { deps: AppDeps; requestId: string; bytes: number; share?: Share }
}

export type Context = HonoContext<Env>

/** A middleware after which `c.req.valid(Target)` is what the schema made of that part of the request. */
export type Validated<Target extends string, S extends z.ZodType> = MiddlewareHandler<
  Env,
  string,
  { in: { [K in Target]: z.input<S> }; out: { [K in Target]: z.output<S> } }
>

/** A standalone app of one route, for a handler file to fill and for the router to mount; `doc` is its part of the OpenAPI document. */
export function route(doc?: RouteDoc): Hono<Env> {
  const one = new Hono<Env>()
  return doc ? document(one, doc) : one
}

/** A request header, without making the whole web `Headers` of a request that came over a socket. */
export function header(c: Context, name: string): string | undefined {
  const incoming = c.env?.incoming
  if (!incoming) return c.req.header(name)
  const value = incoming.headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}
