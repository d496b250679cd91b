import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { kib } from '../charge.ts'
import { HttpError } from '../errors.ts'
import type { Context } from '../route.ts'
import { header } from '../route.ts'
import { tooLarge } from './body-limit.ts'
import { freeBuffer, freeBuffers, MIN_BODY_BYTES } from './free-buffer.ts'
import { type IncomingBody, NEVER_CUT_BYTES } from './incoming-bodies.ts'

export { MAX_CORE_BODY_BYTES } from './body-limit.ts'

const MIN_GZIP_BYTES = 18
const MIN_CHUNK_BYTES = 1_024
/** An eighth of a body has come before memory for all of it is taken: of many at once most are cut by then, and V8 collects for each that was taken. */
const SOME_OF_IT = 8
const MS_PER_SECOND = 1_000

const JSON_TYPE = /^\s*application\/([\w.-]+\+)?json\s*(;|$)/i
const notJson = () => new HttpError(400, 'Content type error: expected application/json')

const gunzipAsync = promisify(gunzip)

/** A body as it came, and what lets go of it: the bytes count as held until then, and are gone afterwards. */
export interface ReceivedBody {
  readonly bytes: Buffer
  readonly release: () => void
}

interface Reading {
  readonly maxBytes: number
  /** Of the whole body, from now on; without it there is none but that of the server. */
  readonly deadlineMs?: number
  /** Whether the memory behind a large body is freed as soon as it is read: `let-go.ts` tells what that costs all others for good. */
  readonly letsGo?: boolean
}

/**
 * The bytes of a JSON request body, proven to be UTF-8. 400 for another content type or text that is not UTF-8, 413 over `maxBytes` (by
 * Content-Length before a byte is read, then counted), 415 for an unknown coding, 400 for a broken gzip, 503 when too much has come at once.
 * None at all where it `isOptional` and nothing was sent, whatever the headers say of nothing.
 */
export async function readJsonBody(c: Context, maxBytes: number, isOptional = false): Promise<ReceivedBody> {
  const isJson = JSON_TYPE.test(header(c, 'content-type') ?? '')
  if (!isJson && !isOptional) throw notJson()
  const coding = codingOf(c, ['identity', 'gzip'])
  const { bytes: sent, release: end } = await readRawBody(c, { maxBytes, letsGo: true })
  if (isOptional && sent.length === 0) return { bytes: sent, release: end }
  if (!isJson) {
    end()
    throw notJson()
  }
  let bytes: Buffer | null = coding === 'gzip' ? null : sent
  let room = () => {}
  const release = () => {
    if (bytes) freeBuffers(bytes.length, [bytes])
    end()
    room()
  }
  try {
    if (bytes === null) {
      // Who waits for this does so packed.
      room = await c.get('deps').unpacked.acquire(kib(maxBytes))
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

/** The content coding of a body, one of `known`; an empty one is none. 415 for any other. */
export function codingOf<Coding extends string>(
  c: Context,
  known: readonly ('identity' | Coding)[],
): 'identity' | Coding {
  const coding = (header(c, 'content-encoding') ?? '').trim().toLowerCase() || 'identity'
  const found = known.find((one) => one === coding)
  if (found !== undefined) return found
  throw new HttpError(415, `content-encoding ${coding.slice(0, 40)} is not known: expected ${known.join(' or ')}`, {
    'accept-encoding': [...known].reverse().join(', '),
  })
}

/**
 * The bytes of a request body as they were sent, whatever its type and coding. 413 over `maxBytes` (by Content-Length before a byte is read,
 * then counted), 408 when not all of it has come by the deadline, 503 when too much has come at once.
 */
export async function readRawBody(c: Context, reading: Reading): Promise<ReceivedBody> {
  const { maxBytes } = reading
  const announced = Number(header(c, 'content-length') ?? 0)
  if (announced > maxBytes) throw tooLarge(maxBytes)
  const incoming = c.env?.incoming as IncomingMessage | undefined
  const body: Body = {}
  const arrival = c.get('deps').incomingBodies.open((error) => body.refuse?.(error))
  const late = () => body.refuse?.(lateBody(reading.deadlineMs!))
  const deadline = reading.deadlineMs === undefined ? undefined : setTimeout(late, reading.deadlineMs)
  try {
    const bytes = incoming
      ? await readIncoming(incoming, { ...reading, announced }, arrival, body)
      : await readWeb(c, arrival)
    arrival.complete()
    if (bytes.length > maxBytes) throw tooLarge(maxBytes)
    return { bytes, release: arrival.end }
  } catch (error) {
    arrival.end()
    throw error
  } finally {
    clearTimeout(deadline)
  }
}

// What is still to come of it is of no use, so that the connection is not either.
const lateBody = (deadlineMs: number) =>
  new HttpError(408, `the body did not arrive within ${deadlineMs / MS_PER_SECOND} seconds`, { connection: 'close' })

/** A body that is being read, for as long as it may be refused. */
interface Body {
  refuse?: (error: HttpError) => void
}

async function readWeb(c: Context, arrival: IncomingBody): Promise<Buffer> {
  const sent = Buffer.from(await c.req.arrayBuffer())
  arrival.add(sent.length)
  return sent
}

// The adapter would make a whole web Request of it first, at half the rate.
function readIncoming(
  incoming: IncomingMessage,
  { maxBytes, announced, letsGo = false }: Reading & { readonly announced: number },
  arrival: IncomingBody,
  body: Body,
): Promise<Buffer> {
  const free = letsGo ? freeBuffer : () => {}
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = []
    /** A large body is put together as it comes, where its length is known and some of it has come. */
    let whole: Buffer | null = null
    let length = 0
    const done = () => {
      incoming.off('data', onData).off('end', onEnd).off('error', onLost).off('close', onLost)
    }
    const drop = () => {
      done()
      if (letsGo) freeBuffers(length, whole ? [whole] : chunks)
    }
    const refuse = (error: HttpError) => {
      drop()
      // What still comes is read, or the client would not see the answer.
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
        length > Math.max(NEVER_CUT_BYTES, announced / SOME_OF_IT) &&
        announced > length &&
        announced >= MIN_BODY_BYTES
      ) {
        whole = Buffer.allocUnsafeSlow(announced)
        let at = 0
        for (const one of chunks) at += move(one, whole, at, free)
        chunks = []
      }
      arrival.add(bytes)
    }
    const onEnd = () => {
      done()
      resolve(whole ?? joined(chunks, length, letsGo))
    }
    const onLost = () => {
      drop()
      reject(new HttpError(400, 'the body ended before its announced length'))
    }
    body.refuse = refuse
    if (incoming.destroyed && !incoming.complete) onLost()
    else incoming.on('data', onData).on('end', onEnd).on('error', onLost).on('close', onLost)
  })
}

function joined(chunks: Buffer[], length: number, letsGo: boolean): Buffer {
  if (chunks.length === 1) return chunks[0]!
  const whole = Buffer.concat(chunks, length)
  if (letsGo) freeBuffers(length, chunks)
  return whole
}

function move(from: Buffer, to: Buffer, at: number, free: (bytes: Buffer) => void): number {
  const bytes = from.copy(to, at)
  free(from)
  return bytes
}

/** The length that the end of a gzip tells is a hint only (RFC 1952, 2.3.1), but where it is right there is nothing to put together. */
async function unpack(sent: Buffer, maxBytes: number): Promise<Buffer> {
  const told = sent.length >= MIN_GZIP_BYTES ? sent.readUInt32LE(sent.length - 4) : 0
  try {
    return await gunzipAsync(sent, {
      maxOutputLength: maxBytes,
      chunkSize: Math.min(Math.max(told, MIN_CHUNK_BYTES), maxBytes) + 1,
    })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(maxBytes)
    throw new HttpError(400, 'the body is not valid gzip')
  }
}
