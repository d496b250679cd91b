import { z } from 'zod'
import type { AnswerHeaders, Body, RouteDoc } from './declare.ts'
import type { Json, SchemaBook } from './schemas.ts'

/**
 * Answers of every operation other than 200, by the name of their component (docs/contract.md#errors, #authentication
 * and #limits).
 */
const SHARED: Readonly<Record<number, readonly [name: string, answer: Json]>> = {
  400: [
    'BadRequest',
    {
      description: 'A parameter or the body breaks a rule. The text names the field and the rule; nothing was written.',
    },
  ],
  401: [
    'Unauthorized',
    {
      description: 'No token, or an unknown one: `missing or invalid bearer token`.',
      headers: textHeader('WWW-Authenticate', 'Always `Bearer`.'),
    },
  ],
  403: ['Forbidden', { description: 'The token lacks the scope, which the text names.' }],
  404: ['NoData', { description: 'Nothing matches: `No data found`.' }],
  408: ['TooLate', { description: 'The body did not arrive in time.' }],
  413: [
    'TooLarge',
    {
      description:
        'The body, as sent or as unpacked, is longer than the limit, or has more values or elements than it may; ' +
        'the text names the limit.',
    },
  ],
  415: [
    'UnknownCoding',
    {
      description: 'The body has a content coding other than `gzip` and `identity`.',
      headers: textHeader('Accept-Encoding', 'The codings that are known.'),
    },
  ],
  431: ['HeadTooLarge', { description: 'The line and the header fields of the request are larger than 16 KiB.' }],
  500: [
    'InternalError',
    { description: 'A fault of the broker. The text names the request, under which the log has the reason.' },
  ],
  503: [
    'Unavailable',
    {
      description:
        'Too much is held at once, or the database cancelled the statement or is away. Retry: that is safe for ' +
        'writes too, whether or not this one happened.',
      headers: {
        'Retry-After': { description: 'Seconds to wait.', required: true, schema: { type: 'integer', minimum: 1 } },
      },
    },
  ],
}

const PLAIN: Json = { 'text/plain': { schema: { type: 'string' } } }

/** The declarations of a route that decide its statuses. */
export interface Facts {
  readonly isOpen: boolean
  readonly hasInput: boolean
  readonly hasBody: boolean
  readonly isCharged: boolean
}

/** The answers of an operation, by status in ascending order. */
export function answersOf(doc: RouteDoc | undefined, facts: Facts, book: SchemaBook): Json {
  const statuses = [
    ...(facts.hasInput || facts.hasBody ? [400] : []),
    ...(facts.isOpen ? [] : [401, 403]),
    ...(facts.hasBody ? [408, 413, 415] : []),
    ...[431, 500],
    ...(facts.hasBody || facts.isCharged || doc?.database !== false ? [503] : []),
  ]
  const answers: Record<number, Json> = Object.fromEntries(statuses.map((status) => [status, shared(status)]))
  if (doc)
    answers[200] = { description: 'Success.', ...headersOf({}, doc.headers, book), ...contentOf(doc.answer, book) }
  for (const [status, said] of Object.entries(doc?.also ?? {}))
    answers[Number(status)] = ownAnswer(Number(status), said, book)
  // Integer keys are always in ascending order, in whatever order they were set.
  return answers as unknown as Json
}

/** The answers that operations refer to as components. */
export function sharedAnswers(): Json {
  const named = Object.values(SHARED).map(([name, answer]) => [name, { ...answer, content: PLAIN }] as const)
  return Object.fromEntries(named.sort(([a], [b]) => (a < b ? -1 : 1)))
}

const shared = (status: number): Json => ({ $ref: `#/components/responses/${SHARED[status]![0]}` })

function ownAnswer(status: number, said: NonNullable<RouteDoc['also']>[number], book: SchemaBook): Json {
  if (said === 'No data found') return shared(status)
  const { headers } = (SHARED[status]?.[1] ?? {}) as { headers?: Json }
  if (typeof said === 'string') return { description: said, ...headersOf(headers, {}, book), content: PLAIN }
  return { description: said.description, ...headersOf(headers, said.headers, book), ...contentOf(said.answer, book) }
}

/** `headers` of an answer; nothing if it has no headers of its own. */
function headersOf(usual: Json = {}, own: AnswerHeaders = {}, book: SchemaBook): Json {
  const told = Object.entries(own).map(([name, one]) => {
    const { description, ...schema } = book.add(one, 'output')
    return [name, { description, required: true, schema }] as const
  })
  const headers = { ...usual, ...Object.fromEntries(told) }
  return Object.keys(headers).length > 0 ? { headers } : {}
}

const isOneOfSeveral = (body: Body): body is Extract<Body, readonly unknown[]> => Array.isArray(body)

/** `content` of an answer; nothing if it has no body. */
function contentOf(body: Body, book: SchemaBook): Json {
  if (body === null) return {}
  if (isOneOfSeveral(body)) return { content: Object.assign({}, ...body.map((one) => contentOf(one, book).content)) }
  if (body instanceof z.ZodType) return { content: { 'application/json': { schema: book.add(body, 'output') } } }
  return { content: { [body.contentType]: { schema: book.add(body.schema, 'output') } } }
}

function textHeader(name: string, description: string): Json {
  return { [name]: { description, required: true, schema: { type: 'string' } } }
}
