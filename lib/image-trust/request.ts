import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { REASON, Unavailable } from './unavailable.ts'

const INFLATED_CHUNK_BYTES = 64 * 1024

interface TrustRequest {
  /** The base URL of the evaluator, with or without slashes at the end. */
  readonly url: string
  /** Filters for the evaluator; null leaves one out. */
  readonly namespace: string | null
  readonly verdict: string | null
  /** Sent as `Authorization: Bearer`. */
  readonly token: string | null
  /** From the start to the last byte of the answer. */
  readonly timeoutMs: number
  /** Limit of the body as sent, and again as unpacked. */
  readonly maxBytes: number
  /** Ends the request. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Requests the results and yields the body as it arrives, unpacked if it is gzip, which some proxies send unasked. Each
 * request has a connection of its own: requests are few, and an idle connection might be closed by the other end just
 * as it is used again. Redirects are not followed, since the token is for the evaluator alone.
 * @throws Unavailable for anything but a complete answer with status 200 (docs/contract.md#image-trust)
 */
export async function* requestResults(request: TrustRequest): AsyncGenerator<Buffer, void, undefined> {
  const { url, token, timeoutMs, maxBytes, signal } = request
  /** The reason to give if something fails now. */
  let reason: string = REASON.requestFailed
  let reasonIfLate = REASON.noAnswer(timeoutMs)
  let isLate = false
  const stop = new AbortController()
  const end = () => stop.abort()
  signal?.addEventListener('abort', end)
  if (signal?.aborted) end()
  const timer = setTimeout(() => {
    isLate = true
    end()
  }, timeoutMs)
  try {
    const isTls = /^https:/i.test(url)
    const headers = {
      accept: 'application/json',
      'accept-encoding': 'identity',
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    }
    const outgoing = (isTls ? https : http).request(addressOf(request), { agent: false, headers, signal: stop.signal })
    reason = REASON.notConnected
    outgoing.once('socket', (socket) => {
      socket.once(isTls ? 'secureConnect' : 'connect', () => {
        reason = REASON.requestFailed
      })
    })
    const incoming = await answerTo(outgoing)
    reason = REASON.unreadable
    reasonIfLate = REASON.late(timeoutMs)
    refuseStatus(incoming.statusCode!)
    // An announced size above the limit is refused before any byte is read.
    if (Number(incoming.headers['content-length']) > maxBytes) throw tooLarge(maxBytes)
    yield* unpacked(incoming, maxBytes)
    stop.signal.throwIfAborted()
  } catch (error) {
    if (isLate) throw new Unavailable(reasonIfLate)
    if (error instanceof Unavailable) throw error
    throw new Unavailable(reason, { cause: error })
  } finally {
    clearTimeout(timer)
    end()
  }
}

function addressOf({ url, namespace, verdict }: TrustRequest): string {
  const query = new URLSearchParams()
  if (namespace !== null) query.set('namespace', namespace)
  if (verdict !== null) query.set('verdict', verdict)
  return `${url.replace(/\/+$/, '')}/image-trust${query.size > 0 ? `?${query}` : ''}`
}

function answerTo(outgoing: http.ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    outgoing.on('response', resolve)
    outgoing.on('error', reject)
    // An upgrade to another protocol, for example, raises neither event.
    outgoing.on('close', () => reject(new Error('the connection ended without an answer')))
    outgoing.end()
  })
}

function refuseStatus(status: number): void {
  if (status === 404) throw new Unavailable(REASON.off)
  if (status === 401 || status === 403)
    throw new Unavailable(REASON.tokenRefused, { cause: new Error(`status ${status}`) })
  if (status !== 200) throw new Unavailable(REASON.status(status))
}

function unpacked(incoming: IncomingMessage, maxBytes: number): AsyncIterable<Buffer> {
  const sent = bounded(incoming, maxBytes)
  const coding = incoming.headers['content-encoding']?.trim().toLowerCase() || 'identity'
  if (coding === 'identity') return sent
  if (coding !== 'gzip' && coding !== 'x-gzip') throw new Error(`content-encoding: ${coding.slice(0, 60)}`)
  // Errors in the stream are thrown where it is read.
  return bounded(
    pipeline(sent, createGunzip({ chunkSize: INFLATED_CHUNK_BYTES }), () => {}),
    maxBytes,
  )
}

async function* bounded(chunks: AsyncIterable<Buffer>, maxBytes: number): AsyncGenerator<Buffer, void, undefined> {
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.length
    if (bytes > maxBytes) throw tooLarge(maxBytes)
    yield chunk
  }
}

const tooLarge = (maxBytes: number) => new Unavailable(REASON.tooLarge(maxBytes))
