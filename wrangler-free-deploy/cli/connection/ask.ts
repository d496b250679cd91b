/** Requests to the broker. */
import http from 'node:http'
import https from 'node:https'
import { setTimeout as delay } from 'node:timers/promises'
import type { Query } from '../api/parameters.ts'
import type { CliContext } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'
import { type ConnectionFlags, printedServerOf, serverOf, tokenOf, trustedOf } from './place.ts'

const MAX_RETRIES = 3
const DEFAULT_RETRY_SECS = 5
/** A wait that a person still takes for one. */
const MAX_RETRY_SECS = 60
const MS_PER_SECOND = 1_000
/** Longer than the broker lets its statements run. */
const SILENCE_MS = 120_000
const ANY_TYPE = '*/*'
const MAX_ANSWER_BYTES = 64 * 1024 * 1024

/** The type of streams of rows. */
export const STREAM = 'application/x-ndjson'

export interface Ask {
  readonly method: 'GET' | 'POST'
  /** Its segments, not encoded. */
  readonly path: readonly string[]
  readonly query: Query
  readonly body?: { readonly contentType: string; readonly text: string }
  /** The content type of the answer; null for any. */
  readonly expects: string | null
  /** Ends the request, and the wait before another. */
  readonly signal?: AbortSignal
}

/**
 * The bytes of an answer of 200.
 * @throws Failure as `open`
 */
export async function ask(context: CliContext, flags: ConnectionFlags, question: Ask): Promise<Buffer> {
  return bytesOf(await open(context, flags, question))
}

/**
 * An answer of 200 of the expected type, of which nothing has been read. 503 is asked again, as often as MAX_RETRIES.
 * @throws Failure with the text and the exit code of any other answer
 */
export async function open(context: CliContext, flags: ConnectionFlags, question: Ask): Promise<http.IncomingMessage> {
  const token = await tokenOf(context, flags)
  const ca = await trustedOf(flags)
  const server = await serverOf(context, flags, question.signal)
  const send = senderOf(server, token, ca, question)
  for (let retries = 0; ; retries++) {
    const answer = await send()
    // From here on those who read it wait: a reader of theirs that is slow is no silence of the broker.
    answer.socket.setTimeout(0)
    const { statusCode: status, headers } = answer
    if (status === 200 && (question.expects ?? typeOf(headers)) === typeOf(headers)) return answer
    const words = textOf(headers, await bytesOf(answer))
    // A proxy may repeat the head of the request.
    const text = token === null ? words : words.replaceAll(token, '<token>')
    if (status !== 503 || retries === MAX_RETRIES) throw failureOf(server, status!, text, token !== null)
    const seconds = waitOf(headers['retry-after'])
    context.say(`${text || 'the broker is busy'}: asked again in ${seconds} s (${retries + 1} of ${MAX_RETRIES})`)
    await delay(seconds * MS_PER_SECOND, undefined, { ...(question.signal && { signal: question.signal }) })
  }
}

function senderOf(
  server: URL,
  token: string | null,
  ca: string | undefined,
  { method, path, query, body, expects, signal }: Ask,
) {
  const url = urlOf(server, path, query)
  const options: https.RequestOptions = {
    method,
    ...(ca === undefined ? {} : { ca }),
    ...(signal === undefined ? {} : { signal }),
    headers: {
      accept: expects ?? ANY_TYPE,
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined
        ? {}
        : { 'content-type': body.contentType, 'content-length': Buffer.byteLength(body.text) }),
    },
  }
  return () =>
    new Promise<http.IncomingMessage>((resolve, reject) => {
      const request = (url.protocol === 'https:' ? https : http).request(url, options, resolve)
      request.once('error', (error) => reject(notReachable(server, error)))
      request.setTimeout(SILENCE_MS, () => request.destroy(new Error(`silent for ${SILENCE_MS / MS_PER_SECOND} s`)))
      request.end(body?.text)
    })
}

function urlOf(server: URL, path: readonly string[], query: Query): URL {
  const url = new URL(server.origin)
  url.pathname = `${server.pathname.replace(/\/+$/, '')}/${path.map(segmentOf).join('/')}`
  for (const [name, values] of Object.entries(query))
    for (const value of [values ?? []].flat()) url.searchParams.append(name, value)
  return url
}

/** A segment of a path. A colon, as in digests, stands for itself: the edge proxy refuses `%` in paths. */
const segmentOf = (text: string): string => encodeURIComponent(text).replaceAll('%3A', ':')

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** The question as a call of curl, for a shell that has the token in CTB_TOKEN. */
export function requestText(context: CliContext, flags: ConnectionFlags, question: Ask): string {
  const { method, path, query, body, expects } = question
  // A stream is shown as it comes.
  const words = ['curl', expects === STREAM ? '-sSN' : '-sS', ...(method === 'GET' ? [] : ['-X', method])]
  words.push('-H', quoted(`Accept: ${expects ?? ANY_TYPE}`), '-H', '"Authorization: Bearer $CTB_TOKEN"')
  if (body !== undefined) words.push('-H', quoted(`Content-Type: ${body.contentType}`), '--data-binary', '@-')
  if (flags.ca !== undefined) words.push('--cacert', quoted(flags.ca))
  return `${words.join(' ')} ${quoted(urlOf(printedServerOf(context, flags), path, query).href)}\n`
}

/** The names of a host may have several addresses, and their errors have no message in common. */
function notReachable({ origin }: URL, { message, code }: NodeJS.ErrnoException): Failure {
  return new Failure(`${origin} cannot be reached (--server, CTB_SERVER): ${message || code}`, EXIT.notReachable)
}

/**
 * The parts of an answer as they come.
 * @throws Error where the connection breaks before the end, or the broker is silent for so long
 */
export async function* partsOf(answer: http.IncomingMessage, silenceMs = SILENCE_MS): AsyncGenerator<Buffer> {
  const parts = answer[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  try {
    for (;;) {
      const timer = setTimeout(() => answer.destroy(new Error(`silent for ${silenceMs / MS_PER_SECOND} s`)), silenceMs)
      const { done, value } = await parts.next().finally(() => clearTimeout(timer))
      if (done) return
      yield value
    }
  } finally {
    answer.destroy()
  }
}

async function bytesOf(answer: http.IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = []
  let bytes = 0
  try {
    for await (const part of partsOf(answer)) {
      bytes += part.length
      if (bytes > MAX_ANSWER_BYTES) throw new Error(`longer than ${MAX_ANSWER_BYTES} bytes`)
      parts.push(part)
    }
  } catch (error) {
    throw new Failure(`the answer did not arrive whole: ${(error as Error).message}`, EXIT.notReachable)
  }
  return Buffer.concat(parts)
}

const typeOf = (headers: http.IncomingHttpHeaders): string =>
  (headers['content-type'] ?? '').split(';')[0]!.trim().toLowerCase()

/** The words of the broker are plain text, or a `message`; those of a proxy may be a page, which says nothing here. */
function textOf(headers: http.IncomingHttpHeaders, bytes: Buffer): string {
  const type = typeOf(headers)
  if (type === 'text/plain') return bytes.toString().trim()
  if (type !== 'application/json') return ''
  try {
    const { message } = JSON.parse(bytes.toString()) as { message?: unknown }
    return typeof message === 'string' ? message : ''
  } catch {
    return ''
  }
}

function waitOf(retryAfter: string | undefined): number {
  const seconds = /^\d+$/.test(retryAfter ?? '') ? Number(retryAfter) : DEFAULT_RETRY_SECS
  return Math.min(seconds, MAX_RETRY_SECS)
}

const EXIT_BY_STATUS: Readonly<Record<number, number>> = {
  400: EXIT.usage,
  401: EXIT.token,
  403: EXIT.token,
  404: EXIT.notFound,
  409: EXIT.partial,
  410: EXIT.endedEarly,
  413: EXIT.usage,
}

function failureOf({ origin }: URL, status: number, text: string, hasToken: boolean): Failure {
  const message =
    status === 200 ? `${origin} answered, but not as the broker does` : text || `${origin} answered ${status}`
  const hint = status === 401 && !hasToken ? '\nno token was sent: set CTB_TOKEN or --token-file' : ''
  return new Failure(`${message}${hint}`, EXIT_BY_STATUS[status] ?? EXIT.notReachable)
}
