import type { Context as HonoContext, MiddlewareHandler } from 'hono'
import type { z } from 'zod'
import { MAX_CORE_BODY_BYTES, readBody } from './body.ts'
import type { Context, Env } from './context.ts'
import { type Declared, declare } from './declared.ts'
import { HttpError } from './errors.ts'
import { deserializeError, parseJson } from './json-text.ts'
import { kib } from './read-budget.ts'

type Validated<Target extends string, S extends z.ZodType> = MiddlewareHandler<
  Env,
  string,
  { in: { [K in Target]: z.input<S> }; out: { [K in Target]: z.output<S> } }
>

/** What a byte of a body comes to in memory: as text, as values, as a parameter of its statement, and in the answer. */
const HELD_PER_BYTE = 4

/**
 * Validates a JSON body read under a limit; `c.req.valid('json')` is what the schema made of it. 400 names field and rule.
 * Bodies share a budget while they are judged and written, by what they really hold: an announced length costs nothing to send.
 * Who waits does so as bytes, outside the heap. `tolerated` are keys whose text may be such that no database can hold it.
 */
export function body<S extends z.ZodType>(
  schema: S,
  maxBytes = MAX_CORE_BODY_BYTES,
  { tolerated = [] }: { tolerated?: readonly string[] } = {},
): Validated<'json', S> {
  const read: Validated<'json', S> = async (c, next) => {
    const bytes = await readBody(c as Context, maxBytes)
    const held = c.get('deps').bodies.acquire(kib(bytes.length * HELD_PER_BYTE))
    const release = typeof held === 'function' ? held : await held
    try {
      const result = schema.safeParse(parseJson(bytes.toString(), tolerated))
      if (!result.success) throw deserializeError(describe(result.error.issues[0]!))
      c.req.addValidatedData('json', result.data as object)
      await next()
    } finally {
      release()
    }
  }
  return declare(read, { body: { schema, maxBytes } })
}

/** Validates path parameters; 400 names the parameter. */
export const params = <S extends z.ZodType>(schema: S) => validated('param', 'Path', schema, (c) => c.req.param(), { params: schema })

/** Validates the query; 400 names the parameter. Unknown parameters are ignored, of a repeated one the first counts. */
export const query = <S extends z.ZodType>(schema: S) => validated('query', 'Query', schema, (c) => c.req.query(), { query: schema })

// Synchronous, unlike the public validator: three promises a request are a tenth of a look-up.
function validated<T extends 'param' | 'query', S extends z.ZodType>(
  target: T,
  what: string,
  schema: S,
  read: (c: HonoContext<Env>) => unknown,
  declared: Declared,
): Validated<T, S> {
  const judge: Validated<T, S> = (c, next) => {
    const result = schema.safeParse(read(c))
    if (!result.success) throw new HttpError(400, `${what} deserialize error: ${describe(result.error.issues[0]!)}`)
    c.req.addValidatedData(target, result.data as object)
    return next()
  }
  return declare(judge, declared)
}

type Issue = Pick<z.core.$ZodIssue, 'path' | 'message'>

/** `[37].decision: Invalid input: expected string, received number` */
function describe({ path, message }: Issue): string {
  const where = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('')
  return where ? `${where.replace(/^\./, '')}: ${message}` : message
}
