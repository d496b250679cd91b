import { zValidator } from '@hono/zod-validator'
import type { Context as HonoContext } from 'hono'
import { z } from 'zod'
import { markLongIntegers } from '../../json/long-integers.ts'
import { parseJson, type Tolerated } from '../../json/parse.ts'
import { countObjects, prescanJson, tooMany } from '../../json/prescan.ts'
import { decode, parseList, parseListed } from '../../json/sliced.ts'
import { MIN_PRESCAN_BYTES } from '../../limits/limits.ts'
import { type Declared, declare } from '../../openapi/declare.ts'
import { isSliceUsedUp, yieldToEventLoop } from '../../process/event-loop.ts'
import { kib } from '../charge.ts'
import { HttpError } from '../errors.ts'
import type { Context, Env, Validated } from '../route.ts'
import { MAX_CORE_BODY_BYTES, readJsonBody } from './body.ts'
import { maxItemsOf } from './first-fault.ts'
import { describeIssue, type Issue } from './issues.ts'
import { validateParameters } from './unknown-parameters.ts'

/** What a byte comes to in memory: as text, as a short value or its key, as a parameter of its statement, and in the answer. */
const HELD_PER_BYTE = 6
/** Of bodies from here on each step is a turn of its own. */
const MIN_SHARED_BYTES = 1024 * 1024
/** What a container comes to beside that: as parsed, as judged, and as a flow in line with the keys that it is known by. */
const HELD_PER_CONTAINER = 600

/**
 * Validates a JSON body read under a limit; `c.req.valid('json')` is what the schema made of it. 400 names field and rule, 413 what there
 * is too much of: bytes, values, keys, or elements of a `listOf`. Bodies share a budget while they are judged and written, by what they really
 * hold: an announced length costs nothing to send. Who waits does so as bytes, outside the heap. `tolerated` is where text may be such that
 * no database can hold it; `maxListed` bounds the elements of a large array that is a member of the body, before it is parsed.
 * Where the body `isOptional` an empty one is `{}`. `longIntegersOf` is a key whose integers are to be exact up to 2^64, for `longInteger`.
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
  const judge = validator('json', 'Json', schema, maxElements === null ? atOnce : inSlicesIfLarge)
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
      return await judge(c, next)
    } finally {
      release()
    }
  }
  return declare(read, { body: { schema, maxBytes, isOptional } })
}

interface Bounds {
  readonly maxBytes: number
  readonly maxElements: number
  readonly maxListed: number
  readonly tolerated: Tolerated
  readonly isOptional: boolean
  readonly longIntegersOf: string | null
}

/** Hands the parsed body to the validator. Resolves to what gives back its memory. */
async function receive(
  c: Context,
  { maxBytes, maxElements, maxListed, tolerated, isOptional, longIntegersOf }: Bounds,
): Promise<() => void> {
  const { bytes, release: forget } = await readJsonBody(c, maxBytes, isOptional)
  let release = () => {}
  try {
    const isLarge = bytes.length >= MIN_PRESCAN_BYTES
    if (isLarge) await yieldToEventLoop()
    const { containers, cuts, listed } = isLarge
      ? prescanJson(bytes, maxElements, maxListed)
      : { containers: countObjects(bytes), cuts: [], listed: null }
    const granted = c.get('deps').bodies.acquire(kib(bytes.length * HELD_PER_BYTE + containers * HELD_PER_CONTAINER))
    release = typeof granted === 'function' ? granted : await granted
    if (isLarge) await yieldToEventLoop()
    if (longIntegersOf !== null) await markLongIntegers(bytes, longIntegersOf)
    if (isLarge) await yieldToEventLoop()
    const isExact = longIntegersOf === null
    let value: unknown
    if (cuts.length > 0) value = await parseList(bytes, cuts, tolerated)
    else if (listed !== null && !isExact) value = await parseListed(bytes, listed, tolerated)
    else value = await parseText(bytes, isOptional, tolerated, isExact)
    if (Array.isArray(value) && value.length > maxElements) throw tooMany(maxElements, 'elements')
    if (isLarge) await yieldToEventLoop()
    if (isLarge && Array.isArray(value)) largeLists.add(value)
    handOver(c, value)
    return release
  } catch (error) {
    release()
    throw error
  } finally {
    forget()
  }
}

/** One turn does not decode a large body and parse it. Nor does one parse all the small bodies that came in it. */
async function parseText(bytes: Buffer, isOptional: boolean, tolerated: Tolerated, isExact: boolean): Promise<unknown> {
  if (isOptional && bytes.length === 0) return {}
  const text = bytes.length < MIN_SHARED_BYTES ? bytes.toString() : await decode(bytes)
  if (bytes.length >= MIN_SHARED_BYTES || isSliceUsedUp()) await yieldToEventLoop()
  return parseJson(text, tolerated, isExact)
}

/** Hands the value over once: what the schema drops must not live as long as the request. */
function handOver(c: Context, value: unknown): void {
  // The function is a constant first: V8 takes a literal that is assigned to a property for long-lived, and dead it would keep the body.
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

/** `ignored` for routes that old clients call, and for answers that are one document: everywhere else a filter that is dropped shows wrong rows. */
interface Asked {
  readonly unknown?: NonNullable<Declared['unknownParameters']>
}

/** Validates the query; 400 names the parameter. One that the schema does not know is 400, too, unless such are `ignored`. Of a repeated one the first counts. */
export function query<S extends z.ZodObject>(schema: S, { unknown = 'refused' }: Asked = {}): Validated<'query', S> {
  const names = validateParameters(Object.keys(schema.shape), unknown)
  const values = validator('query', 'Query', schema, firstOfEach)
  const judge: Validated<'query', S> = (c, next) => {
    names(c, Object.keys(c.req.query()))
    return values(c, next)
  }
  return declare(judge, { query: schema, unknownParameters: unknown })
}

/**
 * The same for point look-ups, without a promise: the public validator takes 6 us of the 45 to 65 us of processor time that a look-up
 * takes in all (9 % with 8 clients, 17 % with 64).
 */
export const lookup = {
  params: <S extends z.ZodType>(schema: S) => prompt('param', 'Path', schema, (c) => c.req.param(), { params: schema }),
  query<S extends z.ZodObject>(schema: S, { unknown = 'refused' }: Asked = {}): Validated<'query', S> {
    const names = validateParameters(Object.keys(schema.shape), unknown)
    const read = (c: HonoContext<Env>) => {
      const sent = c.req.query()
      names(c, Object.keys(sent))
      return sent
    }
    return prompt('query', 'Query', schema, read, { query: schema, unknownParameters: unknown })
  },
}

function prompt<T extends 'param' | 'query', S extends z.ZodType>(
  target: T,
  what: string,
  schema: S,
  read: (c: HonoContext<Env>) => unknown,
  declared: Declared,
): Validated<T, S> {
  const refuse = refusal(what)
  const judge: Validated<T, S> = (c, next) => {
    const result = schema.safeParse(read(c))
    if (!result.success) refuse(result)
    else c.req.addValidatedData(target, result.data as object)
    return next()
  }
  return declare(judge, declared)
}

type Judge = (schema: z.ZodType, value: never) => unknown

const atOnce: Judge = (schema, value) => schema.safeParse(value)

/** Bodies that take long to judge. */
const largeLists = new WeakSet<object>()

// zod is at full speed only where it need not wait.
const inSlicesIfLarge: Judge = (schema, value) =>
  largeLists.has(value) ? schema.safeParseAsync(value) : schema.safeParse(value)

const firstOfEach: Judge = (schema, sent: Record<string, string | string[]>) =>
  schema.safeParse(
    Object.fromEntries(Object.entries(sent).map(([name, value]) => [name, Array.isArray(value) ? value[0] : value])),
  )

/** The public validator with our error text. Its own types cannot be told of a schema that is a parameter. */
function validator<T extends 'json' | 'param' | 'query', S extends z.ZodType>(
  target: T,
  what: string,
  schema: S,
  judge: Judge,
) {
  return zValidator(target, schema as z.ZodType, refusal(what), { validationFunction: judge as never }) as Validated<
    T,
    S
  >
}

const refusal =
  (what: string) =>
  ({ error }: { success: boolean; error?: { issues: readonly Issue[] } | undefined }): void => {
    if (error) throw new HttpError(400, `${what} deserialize error: ${describeIssue(error.issues[0]!)}`)
  }
