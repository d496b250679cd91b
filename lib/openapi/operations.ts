import type { z } from 'zod'
import { answersOf } from './answers.ts'
import { type Declared, declarationOf, type RouteDoc } from './declare.ts'
import { operationId, tagOf, template } from './names.ts'
import type { Json, SchemaBook } from './schemas.ts'

/** An entry of the route table of an app. */
export interface Entry {
  readonly method: string
  readonly path: string
  readonly handler: object
}

/** One operation of the document, from the declarations of its route and its middleware. */
export function operationOf(entries: readonly Entry[], doc: RouteDoc | undefined, book: SchemaBook): Json {
  const { method, path } = entries[0]!
  const said: Declared = Object.assign({}, ...entries.map((entry) => declarationOf(entry.handler)))
  const scope = said.scope ?? 'open'
  const isOpen = scope === 'open'
  const answers = answersOf(
    doc,
    { isOpen, hasInput: !!said.params || isQueryJudged(said), hasBody: !!said.body, isCharged: !!said.isCharged },
    book,
  )
  const parameters = [
    ...pathParameters(path, said.params, book),
    ...(said.query ? parametersOf('query', said.query, book) : []),
  ]
  const needs = isOpen ? 'Open: needs no token.' : `Needs the scope \`${scope}\`.`
  return {
    operationId: operationId(method.toLowerCase(), template(path)),
    ...(doc ? { summary: doc.summary } : {}),
    description: doc?.description ? `${doc.description}\n\n${needs}` : needs,
    tags: [doc?.tag ?? tagOf(path)],
    security: isOpen ? [] : [{ bearer: [] }],
    'x-required-scope': scope,
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(said.body ? { requestBody: requestBody(said.body, book) } : {}),
    responses: answers,
  }
}

/** Whether the operation refuses some queries. */
const isQueryJudged = ({ query, unknownParameters }: Declared) =>
  query !== undefined && (unknownParameters !== 'ignored' || Object.keys(query.shape).length > 0)

/** The parameters in the order of the path, including those without a schema. */
function pathParameters(path: string, schema: z.ZodType | undefined, book: SchemaBook): Json[] {
  const told = new Map(schema ? parametersOf('path', schema, book).map((one) => [one.name as string, one]) : [])
  const names = [...template(path).matchAll(/\{(\w+)\}/g)].map(([, name]) => name!)
  return names.map((name) => told.get(name) ?? { name, in: 'path', required: true, schema: { type: 'string' } })
}

function parametersOf(place: 'path' | 'query', schema: z.ZodType, book: SchemaBook): Json[] {
  const { properties = {}, required = [] } = book.add(schema, 'input') as {
    properties?: Record<string, Json>
    required?: string[]
  }
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: place,
    ...(description ? { description } : {}),
    ...(place === 'path' || required.includes(name) ? { required: true } : {}),
    schema: rest,
  }))
}

function requestBody(
  {
    schema,
    maxBytes,
    description,
    isOptional = false,
    contentTypes = ['application/json'],
  }: NonNullable<Declared['body']>,
  book: SchemaBook,
): Json {
  const content = { schema: book.add(schema, 'input') }
  return {
    description:
      description ??
      `At most ${maxBytes} bytes, as sent and as unpacked; \`Content-Encoding: gzip\` is accepted. Unknown keys ` +
        'are ignored.',
    required: !isOptional,
    'x-max-bytes': maxBytes,
    content: Object.fromEntries(contentTypes.map((type) => [type, content])),
  }
}
