/** Checks answers against the OpenAPI document: an answer that the document does not describe is a failure. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { Hono } from 'hono'
import { z } from 'zod'
import { routes } from '../../handlers/router.ts'
import type { Env } from '../../lib/http/route.ts'
import { GZIP_MIN_BYTES } from '../../lib/limits/limits.ts'
import { openApi } from '../../lib/openapi/index.ts'
import { VERSION } from '../../lib/version.ts'

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
type Json = any

interface Answered {
  description: string
  headers?: Record<string, { required?: boolean }>
  content?: Record<string, { schema: Json }>
}

export const document = shared('openapi.json', () => openApi(routes, VERSION))
const { schemas, responses } = document.components as unknown as {
  schemas: Record<string, Json>
  responses: Record<string, Answered>
}

/** Makes a value once for all processes of a run, because building the document takes a fifth of a second. */
function shared<T>(name: string, make: () => T): T {
  const folder = process.env.BROKER_TEST_FOLDER
  if (!folder) return make()
  const path = join(folder, name)
  if (existsSync(path)) return JSON.parse(readFileSync(path, 'utf8'))
  const made = make()
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, JSON.stringify(made))
  renameSync(draft, path)
  return made
}

const COMPONENTS = '#/components/schemas/'
const DEFINITIONS = '#/$defs/'
/** JSON.parse gives a double anyway, and zod allows only safe integers for int64. */
const INT64 = '"type":"integer","format":"int64"'
const NUMBER = '"type":"number"'
const validators = new Map<object, z.ZodType>()

/** A validator made only from the JSON of the document, so that it is independent of the zod schema behind it. */
export function validator(schema: Json): z.ZodType {
  const known = validators.get(schema)
  if (known) return known
  const text = forZod(schema)
  const definitions = [...referredTo(text)].map((name) => `${JSON.stringify(name)}:${forZod(schemas[name])}`)
  const whole = { ...JSON.parse(text), $defs: JSON.parse(`{${definitions.join()}}`) }
  const made = z.fromJSONSchema(whole, { registry: z.registry() })
  validators.set(schema, made)
  return made
}

const forZod = (schema: Json) => JSON.stringify(schema).replaceAll(COMPONENTS, DEFINITIONS).replaceAll(INT64, NUMBER)

/** The names of the components that a schema needs, directly or through others. Zod copies all that it is given. */
function referredTo(text: string, found = new Set<string>()): Set<string> {
  for (const [, name] of text.matchAll(/"#\/\$defs\/([^"]+)"/g)) {
    if (found.has(name!)) continue
    found.add(name!)
    referredTo(forZod(schemas[name!]), found)
  }
  return found
}

/** Throws for a value that the schema does not allow, and for records with keys in another order. */
export function assertAllowed(schema: Json, value: unknown, what: string): void {
  const result = validator(schema).safeParse(value)
  if (!result.success) assert.fail(`${what}: ${z.prettifyError(result.error)}`)
  assertOrder(schema, value, what)
}

function assertOrder(schema: Json, value: Json, what: string): void {
  if (typeof value !== 'object' || value === null) return
  const { $ref, anyOf, items, properties } = schema
  if ($ref) assertOrder(schemas[$ref.slice(COMPONENTS.length)], value, what)
  else if (anyOf)
    assertOrder(
      anyOf.find((one: Json) => validator(one).safeParse(value).success),
      value,
      what,
    )
  else if (Array.isArray(value) && items) for (const one of value) assertOrder(items, one, what)
  else if (properties) {
    const told = Object.keys(properties).filter((key) => key in value)
    const sent = Object.keys(value).filter((key) => key in properties)
    assert.equal(sent.join(), told.join(), `${what}: the order of keys`)
    for (const key of sent) assertOrder(properties[key], value[key], what)
  }
}

/** The operation that the router of the app chooses for a request, or undefined. */
function operationOf(app: Hono<Env>, method: string, path: string) {
  const routed = method === 'HEAD' ? 'GET' : method
  const [matches] = app.router.match(routed, app.getPath(new Request(new URL(path, 'http://localhost'))))
  const entries = matches.map(([[, entry]]) => entry).filter((entry) => entry.method === routed)
  const template = entries.at(-1)?.path.replace(/:(\w+)(\{[^}]*\})?/g, '{$1}')
  return template === undefined
    ? undefined
    : { name: `${routed} ${template}`, operation: document.paths[template]?.[routed.toLowerCase()] }
}

/**
 * Fails when the status, content type, body or a missing header of an answer is not what the document says for its
 * operation. `bytes` is the body as sent.
 */
export async function assertContract(
  app: Hono<Env>,
  method: string,
  path: string,
  answer: Response,
  bytes: Buffer,
): Promise<void> {
  if (method === 'OPTIONS') return
  const routed = operationOf(app, method, path)
  const { status, headers } = answer
  if (!routed) {
    assert.deepEqual([status, bytes.length], [404, 0], `${method} ${path} is no route`)
    return
  }
  const what = `${routed.name} ${status}`
  const answers = (routed.operation?.responses ?? {}) as Record<string, Answered & { $ref?: string }>
  const said = answers[status]
  if (!said) assert.fail(`${what} is not in the OpenAPI document: ${bytes.toString().slice(0, 200)}`)
  assertAnswer(
    said.$ref ? responses[said.$ref.split('/').at(-1)!]! : said,
    what,
    headers,
    method === 'HEAD' ? null : unpacked(headers, bytes),
  )
}

function assertAnswer(said: Answered, what: string, headers: Headers, body: string | null): void {
  if (headers.get('content-encoding') === 'gzip') {
    assert.match(what, / 200$/, 'only an answer of 200 may be compressed')
    assert.ok(body === null || Buffer.byteLength(body) >= GZIP_MIN_BYTES, `${what}: compressed although it is short`)
    assert.match(
      headers.get('content-type') ?? '',
      /^(application\/(json$|yaml$|x-ndjson$|\S+\+json)|text\/csv)/,
      `${what}: compressed although it is no list`,
    )
  }
  for (const [name, { required }] of Object.entries(said.headers ?? {}))
    assert.ok(!required || headers.has(name), `${what}: no ${name}`)
  if (!said.content) {
    // A 304 has no length, since it would be that of the omitted body (RFC 9110, 8.6).
    const length = what.endsWith(' 304') ? null : '0'
    assert.deepEqual(
      [headers.get('content-type'), headers.get('content-length'), body || ''],
      [null, length, ''],
      `${what}: not empty`,
    )
    return
  }
  const type = headers.get('content-type')?.split(';')[0] ?? ''
  const media = said.content[type]
  if (!media) assert.fail(`${what}: the content type ${type} is not in the OpenAPI document`)
  if (body === null) return
  const isText = type.startsWith('text/') || type === 'application/yaml'
  if (type === 'application/x-ndjson')
    for (const line of linesOf(body)) assertAllowed(media.schema, JSON.parse(line), what)
  else assertAllowed(media.schema, isText ? body : JSON.parse(body), what)
}

const linesOf = (body: string): string[] => body.split('\n').filter((line) => line !== '')

const unpacked = (headers: Headers, bytes: Buffer): string =>
  (headers.get('content-encoding') === 'gzip' ? gunzipSync(bytes) : bytes).toString()
