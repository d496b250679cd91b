import type { HttpBindings } from '@hono/node-server'
import type { Context as HonoContext } from 'hono'
import { Hono } from 'hono'
import type { AppDeps } from '../deps.ts'
import { document, type RouteDoc } from './declared.ts'

/** What a request carries: what the process was built with, its id, and what the access log wants to know. */
export type Env = {
  Bindings: Partial<HttpBindings>
  Variables: { deps: AppDeps; requestId: string; bytes: number }
}

export type Context = HonoContext<Env>

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
