import { zValidator } from '@hono/zod-validator'
import type { MiddlewareHandler } from 'hono'
import type { z } from 'zod'
import { MAX_CORE_BODY_BYTES, readBody } from './body.ts'
import type { Context, Env } from './context.ts'
import { HttpError } from './errors.ts'
import { deserializeError, parseJson } from './json-text.ts'

type Validated<Target extends string, S extends z.ZodType> = MiddlewareHandler<
  Env,
  string,
  { in: { [K in Target]: z.input<S> }; out: { [K in Target]: z.output<S> } }
>

/** Validates a JSON body read under a limit; `c.req.valid('json')` is what the schema made of it. 400 names field and rule. */
export function body<S extends z.ZodType>(schema: S, maxBytes = MAX_CORE_BODY_BYTES): Validated<'json', S> {
  return async (c, next) => {
    const value = parseJson(await readBody(c as Context, maxBytes))
    const result = schema.safeParse(value)
    if (!result.success) throw deserializeError(describe(result.error.issues[0]!))
    c.req.addValidatedData('json', result.data as object)
    await next()
  }
}

/** Validates path parameters; 400 names the parameter. */
export function params<S extends z.ZodType>(schema: S) {
  return zValidator('param', schema, (result) => {
    if (!result.success) throw new HttpError(400, `Path deserialize error: ${describe(result.error.issues[0] as Issue)}`)
  }) as unknown as Validated<'param', S>
}

/** Validates the query; 400 names the parameter. Unknown parameters are ignored. */
export function query<S extends z.ZodType>(schema: S) {
  return zValidator('query', schema, (result) => {
    if (!result.success) throw new HttpError(400, `Query deserialize error: ${describe(result.error.issues[0] as Issue)}`)
  }) as unknown as Validated<'query', S>
}

type Issue = Pick<z.core.$ZodIssue, 'path' | 'message'>

/** `[37].decision: Invalid input: expected string, received number` */
function describe({ path, message }: Issue): string {
  const where = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('')
  return where ? `${where.replace(/^\./, '')}: ${message}` : message
}
