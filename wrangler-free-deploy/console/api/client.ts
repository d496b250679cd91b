/** Calls of the broker, with types from openapi.json. */
import createClient from 'openapi-fetch'
import { encodeSegment } from '../place.ts'
import { ApiError } from './error.ts'
import type { paths } from './schema.d.ts'
import { currentToken, refused } from './session.ts'

export { ApiError } from './error.ts'

type Operation<P extends keyof paths, M extends 'get' | 'post'> = paths[P] extends Record<M, infer O> ? O : never
type Content<O> = O extends { responses: { 200: { content: infer C } } } ? C : never

export type ReadPath = { [P in keyof paths]: paths[P] extends { get: unknown } ? P : never }[keyof paths]
export type SendPath = { [P in keyof paths]: paths[P] extends { post: unknown } ? P : never }[keyof paths]
type JsonOf<O> = Content<O> extends { 'application/json': infer T } ? T : string
/** The answer of a route: its JSON, or text where the route answers text such as YAML. */
export type Answer<P extends ReadPath> = JsonOf<Operation<P, 'get'>>
export type Params<P extends ReadPath> = Operation<P, 'get'> extends { parameters: infer T } ? T : { query?: undefined }
export type Item<P extends ReadPath> = Answer<P> extends { items: (infer T)[] } ? T : never

const MS_PER_SECOND = 1_000

/** `fetch` with the token. With `no-cache` the browser revalidates its copy by `ETag` and uses it after a 304. */
export async function call(request: Request): Promise<Response> {
  const token = currentToken()
  if (token !== null) request.headers.set('authorization', `Bearer ${token}`)
  let response: Response
  try {
    response = await fetch(request, { cache: 'no-cache', credentials: 'omit', redirect: 'error' })
  } catch (error) {
    throw request.signal.aborted ? error : lost()
  }
  // A 401 for an older token says nothing about the token that was typed since.
  if (response.status === 401 && token === currentToken()) refused()
  return response
}

const lost = () => new ApiError(0, 'The broker cannot be reached.')

/** Reads the body. The connection may also break here; browsers report that as a TypeError. @throws ApiError */
function whole(answer: Promise<unknown>, signal?: AbortSignal): Promise<Raw> {
  return (answer as Promise<Raw>).catch((error: unknown) => {
    throw error instanceof TypeError && !signal?.aborted ? lost() : error
  })
}

const client = createClient<paths>({
  baseUrl: window.location.origin,
  fetch: call,
  pathSerializer: (pathname, values) =>
    pathname.replace(/\{(\w+)\}/g, (_, name: string) => encodeSegment(String(values[name]))),
})

interface Raw {
  readonly data?: unknown
  readonly error?: unknown
  readonly response: Response
}

/** @throws ApiError */
function unwrap({ data, error, response }: Raw): unknown {
  if (response.ok) return data
  throw errorOf(response, typeof error === 'string' ? error : JSON.stringify(error ?? ''))
}

/** @throws ApiError for every answer but 2xx; the message is the broker's. */
export function errorOf(response: Response, text: string): ApiError {
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  const retryAfterMs = Number.isFinite(seconds) ? seconds * MS_PER_SECOND : null
  return new ApiError(response.status, messageOf(text) || `The broker answered ${response.status}.`, retryAfterMs, text)
}

/** Refusals with a code are JSON with a `message`; all others are text. */
function messageOf(text: string): string {
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed === 'object' && parsed !== null && 'message' in parsed) return String(parsed.message)
    return typeof parsed === 'string' ? parsed : text
  } catch {
    return text
  }
}

/** Reads a route. @throws ApiError */
export async function read<P extends ReadPath>(path: P, params: Params<P>, signal?: AbortSignal): Promise<Answer<P>> {
  const init = { params, ...(signal && { signal }), headers: { accept: 'application/json, */*;q=0.5' } }
  const answer = await whole(client.GET(path as never, { ...init, parseAs: 'text' } as never), signal)
  return unwrap(parsed(answer)) as Answer<P>
}

/** Calls one of the POST routes that only read. @throws ApiError */
export async function send<P extends SendPath>(
  path: P,
  params: Operation<P, 'post'> extends { parameters: infer T } ? T : object,
  body: Operation<P, 'post'> extends { requestBody: { content: { 'application/json': infer B } } } ? B : unknown,
): Promise<JsonOf<Operation<P, 'post'>>> {
  const answer = await whole(client.POST(path as never, { params, body, parseAs: 'text' } as never))
  return unwrap(parsed(answer)) as JsonOf<Operation<P, 'post'>>
}

/** Some routes answer YAML or plain text, so the type of the answer decides. */
function parsed({ data, error, response }: Raw): Raw {
  const isJson = response.headers.get('content-type')?.startsWith('application/json') ?? false
  return { data: isJson && typeof data === 'string' ? JSON.parse(data) : data, error, response }
}

/** The address of a read, for a link or for `curl`. */
export function addressOf<P extends ReadPath>(path: P, params: Params<P>): string {
  const { path: values = {}, query = {} } = params as {
    path?: Record<string, string>
    query?: Record<string, unknown>
  }
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeSegment(values[name] ?? ''))
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== undefined && one !== null && one !== '') parameters.append(name, String(one))
  const text = parameters.toString()
  return `${window.location.origin}${filled}${text === '' ? '' : `?${text}`}`
}
