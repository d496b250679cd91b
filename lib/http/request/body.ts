import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { HttpError, tooLarge } from '../../errors.ts'
import { ALWAYS_ACCEPTED_BYTES, PAYLOAD_DEADLINE_MS } from '../../limits/limits.ts'
import { kib } from '../charge.ts'
import type { Context } from '../route.ts'
import { header } from '../route.ts'
import { freeBuffer, freeBuffers, MIN_BODY_BYTES } from './free-buffer.ts'
import { gunzipChunkBytes } from './gunzip-chunk.ts'
import type { IncomingBody } from './incoming-bodies.ts'

/**
 * Memory for a whole large body is taken when an eighth of it has arrived: of many at once most are refused by then,
 * and V8 collects garbage for each that was taken.
 */
const PREALLOCATE_AFTER_PART = 8
const MS_PER_SECOND = 1_000

const JSON_TYPE = /^\s*application\/([\w.-]+\+)?json\s*(;|$)/i
const notJson = () => new HttpError(400, 'Content type error: expected application/json')

const gunzipAsync = promisify(gunzip)

/** The bytes of a body. They count as held until `release` is called, and must not be read afterwards. */
export interface ReceivedBody {
  readonly bytes: Buffer
  readonly release: () => void
}

interface Reading {
  readonly maxBytes: number
  /** For the whole body, from now on. Without it only the server's own timeout holds. */
  readonly deadlineMs?: number
  /** Whether the memory of a large body is freed as soon as it was read; `free-buffer.ts` names the cost. */
  readonly isFreed?: boolean
}

/**
 * The bytes of a JSON request body, checked to be UTF-8. 400 for another content type, text that is not UTF-8 or a
 * broken gzip; 413 over `maxBytes`, as sent or unpacked; 415 for an unknown coding; 503 when too many bodies arrive at
 * once. A body that `isOptional` may be empty, whatever its content type is then.
 */
export async function readJsonBody(c: Context, maxBytes: number, isOptional = false): Promise<ReceivedBody> {
  const isJson = JSON_TYPE.test(header(c, 'content-type') ?? '')
  if (!isJson && !isOptional) throw notJson()
  const coding = codingOf(c, ['identity', 'gzip'])
  const { bytes: sent, release: releaseSent } = await readRawBody(c, { maxBytes, isFreed: true })
  if (isOptional && sent.length === 0) return { bytes: sent, release: releaseSent }
  if (!isJson) {
    releaseSent()
    throw notJson()
  }
  let bytes: Buffer | null = coding === 'gzip' ? null : sent
  let releaseUnpacked = () => {}
  const release = () => {
    if (bytes) freeBuffers(bytes.length, [bytes])
    releaseSent()
    releaseUnpacked()
  }
  try {
    if (bytes === null) {
      // While waiting, the body stays compressed.
      releaseUnpacked = await c.get('deps').unpacked.acquire(kib(maxBytes))
      bytes = await unpack(sent, maxBytes)
      freeBuffers(sent.length, [sent])
    }
    if (!isUtf8(bytes)) throw new HttpError(400, 'Json deserialize error: the body is not UTF-8')
    return { bytes, release }
  } catch (error) {
    release()
    throw error
  }
}

/** The content coding of a body, one of `known`; an empty header is `identity`. 415 for any other. */
function codingOf<Coding extends string>(c: Context, known: readonly ('identity' | Coding)[]): 'identity' | Coding {
  const coding = (header(c, 'content-encoding') ?? '').trim().toLowerCase() || 'identity'
  const found = known.find((one) => one === coding)
  if (found !== undefined) return found
  throw new HttpError(415, `content-encoding ${coding.slice(0, 40)} is not known: expected ${known.join(' or ')}`, {
    'accept-encoding': [...known].reverse().join(', '),
  })
}

/**
 * Reads a payload, whatever its content type, hands it to `work` as it was sent, and frees it afterwards. `codings` are
 * those that it may have. 415 for another, 413 over `maxBytes`, 408 after `PAYLOAD_DEADLINE_MS`, 503 when too many
 * bodies arrive at once.
 */
export async function withPayload<Coding extends string, T>(
  c: Context,
  { maxBytes, codings }: { maxBytes: number; codings: readonly ('identity' | Coding)[] },
  work: (bytes: Buffer, coding: 'identity' | Coding) => Promise<T>,
): Promise<T> {
  const coding = codingOf(c, codings)
  const { bytes, release } = await readRawBody(c, { maxBytes, deadlineMs: PAYLOAD_DEADLINE_MS })
  try {
    return await work(bytes, coding)
  } finally {
    release()
  }
}

/**
 * The bytes of a request body as they were sent, whatever their type and coding. 413 over `maxBytes` (by Content-Length
 * before a byte is read, then counted), 408 when the body is not complete by the deadline, 503 when too many bodies
 * arrive at once.
 */
async function readRawBody(c: Context, reading: Reading): Promise<ReceivedBody> {
  const { maxBytes, deadlineMs } = reading
  const announced = Number(header(c, 'content-length') ?? 0)
  if (announced > maxBytes) throw tooLarge(maxBytes)
  const incoming = c.env?.incoming as IncomingMessage | undefined
  const refusal: Refusal = {}
  const counted = c.get('deps').incomingBodies.open((error) => refusal.refuse?.(error))
  const deadline =
    deadlineMs === undefined ? undefined : setTimeout(() => refusal.refuse?.(lateBody(deadlineMs)), deadlineMs)
  try {
    const bytes = incoming
      ? await readIncoming(incoming, { ...reading, announced }, counted, refusal)
      : await readWebBody(c, counted)
    counted.complete()
    if (bytes.length > maxBytes) throw tooLarge(maxBytes)
    return { bytes, release: counted.end }
  } catch (error) {
    counted.end()
    throw error
  } finally {
    clearTimeout(deadline)
  }
}

// The rest of the body would still come on this connection, so it is closed.
const lateBody = (deadlineMs: number) =>
  new HttpError(408, `the body did not arrive within ${deadlineMs / MS_PER_SECOND} seconds`, { connection: 'close' })

/** Set while a body is being read and may be refused. */
interface Refusal {
  refuse?: (error: HttpError) => void
}

async function readWebBody(c: Context, counted: IncomingBody): Promise<Buffer> {
  const sent = Buffer.from(await c.req.arrayBuffer())
  counted.add(sent.length)
  return sent
}

// From the socket: the adapter would first build a whole web Request, at half the rate.
function readIncoming(
  incoming: IncomingMessage,
  { maxBytes, announced, isFreed = false }: Reading & { readonly announced: number },
  counted: IncomingBody,
  refusal: Refusal,
): Promise<Buffer> {
  const free = isFreed ? freeBuffer : () => {}
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = []
    /** The whole body, where it is large and its length is known. */
    let whole: Buffer | null = null
    let length = 0
    const stop = () => {
      incoming.off('data', onData).off('end', onEnd).off('error', onLost).off('close', onLost)
    }
    const drop = () => {
      stop()
      if (isFreed) freeBuffers(length, whole ? [whole] : chunks)
    }
    const refuse = (error: HttpError) => {
      drop()
      // The rest is read, or the client would not see the answer.
      incoming.on('data', free)
      reject(error)
    }
    const onData = (chunk: Buffer) => {
      const { length: bytes } = chunk
      if (length + bytes > maxBytes) {
        free(chunk)
        return refuse(tooLarge(maxBytes))
      }
      if (whole) move(chunk, whole, length, free)
      else chunks.push(chunk)
      length += bytes
      if (
        !whole &&
        length > Math.max(ALWAYS_ACCEPTED_BYTES, announced / PREALLOCATE_AFTER_PART) &&
        announced > length &&
        announced >= MIN_BODY_BYTES
      ) {
        whole = Buffer.allocUnsafeSlow(announced)
        let at = 0
        for (const one of chunks) at += move(one, whole, at, free)
        chunks = []
      }
      counted.add(bytes)
    }
    const onEnd = () => {
      stop()
      resolve(whole ?? joined(chunks, length, isFreed))
    }
    const onLost = () => {
      drop()
      reject(new HttpError(400, 'the body ended before its announced length'))
    }
    refusal.refuse = refuse
    if (incoming.destroyed && !incoming.complete) onLost()
    else incoming.on('data', onData).on('end', onEnd).on('error', onLost).on('close', onLost)
  })
}

function joined(chunks: Buffer[], length: number, isFreed: boolean): Buffer {
  if (chunks.length === 1) return chunks[0]!
  const whole = Buffer.concat(chunks, length)
  if (isFreed) freeBuffers(length, chunks)
  return whole
}

function move(from: Buffer, to: Buffer, at: number, free: (bytes: Buffer) => void): number {
  const bytes = from.copy(to, at)
  free(from)
  return bytes
}

async function unpack(sent: Buffer, maxBytes: number): Promise<Buffer> {
  try {
    return await gunzipAsync(sent, { maxOutputLength: maxBytes, chunkSize: gunzipChunkBytes(sent, maxBytes) })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(maxBytes)
    throw new HttpError(400, 'the body is not valid gzip')
  }
}
