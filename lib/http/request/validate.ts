import { zValidator } from '@hono/zod-validator'
import type { Context as HonoContext, MiddlewareHandler } from 'hono'
import { z } from 'zod'
import { HttpError } from '../../errors.ts'
import { isSliceUsedUp, yieldToEventLoop } from '../../event-loop/slices.ts'
import { markLongIntegers } from '../../json/long-integers.ts'
import { parseJson, type Tolerated } from '../../json/parse.ts'
import { countObjects, prescanJson, tooMany } from '../../json/prescan.ts'
import { decode, parseList } from '../../json/sliced.ts'
import { MAX_CORE_BODY_BYTES, MIN_PRESCAN_BYTES } from '../../limits/limits.ts'
import { type Declared, declare } from '../../openapi/declare.ts'
import { kib } from '../charge.ts'
import type { Context, Env, Validated } from '../route.ts'
import { readJsonBody } from './body.ts'
import { maxItemsOf } from './first-fault.ts'
import { describeIssue, type Issue } from './issues.ts'
import { validateParameters } from './unknown-parameters.ts'

/**
 * Memory that a byte of a body needs: as text, as a short value or its key, as a parameter of its statement, and in the
 * answer.
 */
const HELD_PER_BYTE = 6
/** Larger bodies yield to the event loop between decoding and parsing. */
const MIN_SHARED_BYTES = 1024 * 1024
/** Memory that a container needs beside that: parsed, validated, and as a queued flow with its deduplication keys. */
const HELD_PER_CONTAINER = 600

/**
 * Reads a JSON body of at most `maxBytes` and validates it; `c.req.valid('json')` is the output of the schema. 400
 * names field and rule, 413 the limit: bytes, values, keys, or elements of a `listOf`. Bodies share a memory budget
 * while they are validated and written, by their real size; while waiting for it they stay bytes, outside the heap.
 * Options: `tolerated`: keys whose texts are not checked for what PostgreSQL cannot store; `maxListed`: elements of a
 * large array that is a member of the body, counted before it is parsed; `isOptional`: an empty body is `{}`;
 * `longIntegersOf`: a key whose integers are exact up to 2^64, for `longInteger`.
 */
export function body<S extends z.ZodType>(
  schema: S,
  maxBytes = MAX_CORE_BODY_BYTES,
  {
    tolerated = [],
    maxListed = Number.POSITIVE_INFINITY,
    isOptional = false,
    longIntegersOf = null,
  }: { tolerated?: Tolerated; maxListed?: number; isOptional?: boolean; longIntegersOf?: string | null } = {},
): Validated<'json', S> {
  const maxElements = maxItemsOf(schema)
  const validate = validator('json', 'Json', schema, maxElements === null ? atOnce : inSlicesIfLarge)
  const read: Validated<'json', S> = async (c, next) => {
    const release = await receive(c as Context, {
      maxBytes,
      maxElements: maxElements ?? Number.POSITIVE_INFINITY,
      maxListed,
      tolerated,
      isOptional,
      longIntegersOf,
    })
    try {
      return await validate(c, next)
    } finally {
      release()
    }
  }
  return declare(read, { body: { schema, maxBytes, isOptional } })
}

/** Declares a body for the OpenAPI document; the handler reads it with `withPayload`. */
export const documentedBody = (body: NonNullable<Declared['body']>): MiddlewareHandler<Env> =>
  declare((_c, next) => next(), { body })

interface Bounds {
  readonly maxBytes: number
  readonly maxElements: number
  readonly maxListed: number
  readonly tolerated: Tolerated
  readonly isOptional: boolean
  readonly longIntegersOf: string | null
}

/** Hands the parsed body to the validator. Resolves to a function that gives back its memory. */
async function receive(
  c: Context,
  { maxBytes, maxElements, maxListed, tolerated, isOptional, longIntegersOf }: Bounds,
): Promise<() => void> {
  const { bytes, release: releaseBytes } = await readJsonBody(c, maxBytes, isOptional)
  let release = () => {}
  try {
    const isLarge = bytes.length >= MIN_PRESCAN_BYTES
    if (isLarge) await yieldToEventLoop()
    const { containers, list } = isLarge
      ? prescanJson(bytes, maxElements, maxListed)
      : { containers: countObjects(bytes), list: null }
    const granted = c.get('deps').bodies.acquire(kib(bytes.length * HELD_PER_BYTE + containers * HELD_PER_CONTAINER))
    release = typeof granted === 'function' ? granted : await granted
    if (isLarge) await yieldToEventLoop()
    if (longIntegersOf !== null) await markLongIntegers(bytes, longIntegersOf)
    if (isLarge) await yieldToEventLoop()
    const isExact = longIntegersOf === null
    const value =
      list !== null && (list.isOutermost || !isExact)
        ? await parseList(bytes, list, tolerated)
        : await parseText(bytes, isOptional, tolerated, isExact)
    if (Array.isArray(value) && value.length > maxElements) throw tooMany(maxElements, 'elements')
    if (isLarge) await yieldToEventLoop()
    if (isLarge && Array.isArray(value)) largeLists.add(value)
    handOver(c, value)
    return release
  } catch (error) {
    release()
    throw error
  } finally {
    releaseBytes()
  }
}

/**
 * Yields to the event loop between decoding a large body and parsing it, and when the small bodies of this turn have
 * used up a slice.
 */
async function parseText(bytes: Buffer, isOptional: boolean, tolerated: Tolerated, isExact: boolean): Promise<unknown> {
  if (isOptional && bytes.length === 0) return {}
  const text = bytes.length < MIN_SHARED_BYTES ? bytes.toString() : await decode(bytes)
  if (bytes.length >= MIN_SHARED_BYTES || isSliceUsedUp()) await yieldToEventLoop()
  return parseJson(text, tolerated, isExact)
}

/** Hands the value over once: parts that the schema drops must not live as long as the request. */
function handOver(c: Context, value: unknown): void {
  // A constant first: V8 allocates a function literal that is assigned to a property as long-lived, and it would keep
  // the body alive.
  const json = () => {
    Reflect.deleteProperty(c.req, 'json')
    return Promise.resolve(value as never)
  }
  c.req.json = json
}

/** Validates path parameters; 400 names the parameter. */
export const params = <S extends z.ZodType>(schema: S): Validated<'param', S> =>
  declare(validator('param', 'Path', schema, atOnce), { params: schema })

/** The query of a route that has no parameters. */
export const NoParameters = z.object({})

/**
 * `ignored` for routes that old clients call and for answers that are one document; elsewhere an ignored filter would
 * return wrong rows.
 */
interface Asked {
  readonly unknown?: NonNullable<Declared['unknownParameters']>
}

/**
 * Validates the query; 400 names the parameter. Unknown parameters are 400 unless `ignored`. The first of a repeated
 * one counts. With `repeated`, the parameters named there are lists of all their values, and any other one that is
 * repeated is 400.
 */
export function query<S extends z.ZodObject>(
  schema: S,
  { unknown = 'refused', repeated }: Asked & { readonly repeated?: readonly string[] } = {},
): Validated<'query', S> {
  const names = validateParameters(Object.keys(schema.shape), unknown)
  const values = validator('query', 'Query', schema, repeated ? allOfEach(repeated) : firstOfEach)
  const validate: Validated<'query', S> = (c, next) => {
    names(c, Object.keys(c.req.query()))
    return values(c, next)
  }
  return declare(validate, { query: schema, unknownParameters: unknown })
}

/**
 * `params` and `query` for point look-ups, without a promise: the public validator takes 6 of the 45 to 65 us of
 * processor time of a look-up (9 % with 8 clients, 17 % with 64).
 */
export const lookup = {
  params: <S extends z.ZodType>(schema: S) =>
    synchronous('param', 'Path', schema, (c) => c.req.param(), { params: schema }),
  query<S extends z.ZodObject>(schema: S, { unknown = 'refused' }: Asked = {}): Validated<'query', S> {
    const names = validateParameters(Object.keys(schema.shape), unknown)
    const read = (c: HonoContext<Env>) => {
      const sent = c.req.query()
      names(c, Object.keys(sent))
      return sent
    }
    return synchronous('query', 'Query', schema, read, { query: schema, unknownParameters: unknown })
  },
}

function synchronous<T extends 'param' | 'query', S extends z.ZodType>(
  target: T,
  what: string,
  schema: S,
  read: (c: HonoContext<Env>) => unknown,
  declared: Declared,
): Validated<T, S> {
  const refuse = refusal(what)
  const validate: Validated<T, S> = (c, next) => {
    const result = schema.safeParse(read(c))
    if (!result.success) refuse(result)
    else c.req.addValidatedData(target, result.data as object)
    return next()
  }
  return declare(validate, declared)
}

type Validate = (schema: z.ZodType, value: never) => unknown

const atOnce: Validate = (schema, value) => schema.safeParse(value)

/** Bodies that take long to validate. */
const largeLists = new WeakSet<object>()

// zod is at full speed only when synchronous.
const inSlicesIfLarge: Validate = (schema, value) =>
  largeLists.has(value) ? schema.safeParseAsync(value) : schema.safeParse(value)

const firstOfEach: Validate = (schema, sent: Record<string, string | string[]>) =>
  schema.safeParse(
    Object.fromEntries(Object.entries(sent).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value])),
  )

const allOfEach =
  (lists: readonly string[]): Validate =>
  (schema, sent: Record<string, string | string[]>) =>
    schema.safeParse(
      Object.fromEntries(
        Object.entries(sent).map(([name, value]) => [name, lists.includes(name) ? [value].flat() : value]),
      ),
    )

/** The public validator with our error text. Its types cannot express a schema that is a parameter. */
function validator<T extends 'json' | 'param' | 'query', S extends z.ZodType>(
  target: T,
  what: string,
  schema: S,
  validate: Validate,
) {
  return zValidator(target, schema as z.ZodType, refusal(what), { validationFunction: validate as never }) as Validated<
    T,
    S
  >
}

const refusal =
  (what: string) =>
  ({ error }: { success: boolean; error?: { issues: readonly Issue[] } | undefined }): void => {
    if (error) throw new HttpError(400, `${what} deserialize error: ${describeIssue(error.issues[0]!)}`)
  }
