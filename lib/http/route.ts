import type { HttpBindings } from '@hono/node-server'
import type { Context as HonoContext, MiddlewareHandler } from 'hono'
import { Hono } from 'hono'
import type { z } from 'zod'
import type { AppDeps } from '../app/deps.ts'
import type { Share } from '../limits/memory-budget.ts'
import { document, type RouteDoc } from '../openapi/declare.ts'

/**
 * The context of a request: the dependencies of the process, its id, the bytes of its answer for the access log, and
 * its share of the read budget.
 */
export type Env = {
  Bindings: Partial<HttpBindings>
  Variables: { deps: AppDeps; requestId: string; bytes: number; share?: Share; hasCodedErrors?: true }
}

export type { Deps } from '../app/deps.ts'
export type Context = HonoContext<Env>

/** A middleware that validates a part of the request: `c.req.valid(Target)` is the output of the schema. */
export type Validated<Target extends string, S extends z.ZodType> = MiddlewareHandler<
  Env,
  string,
  { in: { [K in Target]: z.input<S> }; out: { [K in Target]: z.output<S> } }
>

/** A standalone app for the one route of a handler file; `doc` is its part of the OpenAPI document. */
export function route(doc?: RouteDoc): Hono<Env> {
  const one = new Hono<Env>()
  return doc ? document(one, doc) : one
}

/** A request header. For a request from a socket it avoids building the whole web `Headers`. */
export function header(c: Context, name: string): string | undefined {
  const incoming = c.env?.incoming
  if (!incoming) return c.req.header(name)
  const value = incoming.headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}
