import http, { type IncomingMessage } from 'node:http'
import https from 'node:https'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { Unavailable, WHY } from './unavailable.ts'

const INFLATED_CHUNK_BYTES = 64 * 1024

export interface Question {
  /** Of the evaluator, with or without slashes at the end. */
  readonly url: string
  /** What it is asked for; null is left out. */
  readonly namespace: string | null
  readonly verdict: string | null
  /** Sent as `Authorization: Bearer`. */
  readonly token: string | null
  /** From the start to the last byte of the answer. */
  readonly timeoutMs: number
  /** Of the body of the answer, as it comes and as it is unpacked. */
  readonly maxBytes: number
  /** Ends the request. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Asks the evaluator and yields the body of its answer as it comes, unpacked where it is gzip though nobody asked for it. Each question
 * has a connection of its own: they are few, and one that was kept might be closed at the other end just when it is used again. Redirects
 * are not followed: the token is for the evaluator alone.
 * @throws Unavailable for every answer but a whole one with status 200 (interop-supply-chain 3.8)
 */
export async function* ask(question: Question): AsyncGenerator<Buffer, void, undefined> {
  const { url, token, timeoutMs, maxBytes, signal } = question
  /** Why there is no answer, if something fails now. */
  let why: string = WHY.requestFailed
  let whyLate = WHY.noAnswer(timeoutMs)
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
    const outgoing = (isTls ? https : http).request(addressOf(question), { agent: false, headers, signal: stop.signal })
    why = WHY.notConnected
    outgoing.once('socket', (socket) => {
      socket.once(isTls ? 'secureConnect' : 'connect', () => {
        why = WHY.requestFailed
      })
    })
    const incoming = await answerTo(outgoing)
    why = WHY.unreadable
    whyLate = WHY.late(timeoutMs)
    refuseStatus(incoming.statusCode!)
    // What it announces, it need not send.
    if (Number(incoming.headers['content-length']) > maxBytes) throw tooLarge(maxBytes)
    yield* unpacked(incoming, maxBytes)
    stop.signal.throwIfAborted()
  } catch (error) {
    if (isLate) throw new Unavailable(whyLate)
    if (error instanceof Unavailable) throw error
    throw new Unavailable(why, { cause: error })
  } finally {
    clearTimeout(timer)
    end()
  }
}

function addressOf({ url, namespace, verdict }: Question): string {
  const asked = new URLSearchParams()
  if (namespace !== null) asked.set('namespace', namespace)
  if (verdict !== null) asked.set('verdict', verdict)
  return `${url.replace(/\/+$/, '')}/image-trust${asked.size > 0 ? `?${asked}` : ''}`
}

function answerTo(outgoing: http.ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    outgoing.on('response', resolve)
    outgoing.on('error', reject)
    // A change of protocol, for one, comes as neither.
    outgoing.on('close', () => reject(new Error('the connection ended without an answer')))
    outgoing.end()
  })
}

function refuseStatus(status: number): void {
  if (status === 404) throw new Unavailable(WHY.off)
  if (status === 401 || status === 403)
    throw new Unavailable(WHY.tokenRefused, { cause: new Error(`status ${status}`) })
  if (status !== 200) throw new Unavailable(WHY.status(status))
}

function unpacked(incoming: IncomingMessage, maxBytes: number): AsyncIterable<Buffer> {
  const sent = bounded(incoming, maxBytes)
  const coding = incoming.headers['content-encoding']?.trim().toLowerCase() || 'identity'
  if (coding === 'identity') return sent
  if (coding !== 'gzip' && coding !== 'x-gzip') throw new Error(`content-encoding: ${coding.slice(0, 60)}`)
  // What goes wrong in it is thrown where it is read.
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

const tooLarge = (maxBytes: number) => new Unavailable(WHY.tooLarge(maxBytes))
