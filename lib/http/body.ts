import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { tooLarge } from './body-limit.ts'
import type { Context } from './context.ts'
import { header } from './context.ts'
import { HttpError } from './errors.ts'
import { type Arrival, NEVER_CUT_BYTES } from './inbox.ts'
import { letGo, letGoOf, MIN_BODY_BYTES } from './let-go.ts'
import { kib } from './read-budget.ts'

export { MAX_CORE_BODY_BYTES } from './body-limit.ts'

const MIN_GZIP_BYTES = 18
const MIN_CHUNK_BYTES = 1_024

const gunzipAsync = promisify(gunzip)

/** A body as it came, and what lets go of it: the bytes count as held until then, and are gone afterwards. */
export interface Sent {
  readonly bytes: Buffer
  readonly release: () => void
}

/**
 * The bytes of a JSON request body, proven to be UTF-8. 400 for another content type or text that is not UTF-8, 413 over `maxBytes` (by
 * Content-Length before a byte is read, then counted), 415 for an unknown coding, 400 for a broken gzip, 503 when too much has come at once.
 */
export async function readBody(c: Context, maxBytes: number): Promise<Sent> {
  const type = header(c, 'content-type')
  if (!type || !/^\s*application\/([\w.-]+\+)?json\s*(;|$)/i.test(type)) {
    throw new HttpError(400, 'Content type error: expected application/json')
  }
  const coding = (header(c, 'content-encoding') ?? 'identity').trim().toLowerCase()
  if (coding !== 'identity' && coding !== 'gzip') {
    throw new HttpError(415, `content-encoding ${coding.slice(0, 40)} is not known: expected identity or gzip`, {
      'accept-encoding': 'gzip, identity',
    })
  }
  const announced = Number(header(c, 'content-length') ?? 0)
  if (announced > maxBytes) throw tooLarge(maxBytes)
  const incoming = c.env?.incoming as IncomingMessage | undefined
  const { inbox, unpacked } = c.get('deps')
  const body: { refuse?: (error: HttpError) => void } = {}
  const arrival = inbox.open((error) => body.refuse?.(error))
  let release = arrival.end
  let bytes: Buffer | null = null
  const forget = () => {
    if (bytes) letGoOf(bytes.length, [bytes])
    release()
  }
  try {
    const sent = incoming ? await readIncoming(incoming, { maxBytes, announced }, arrival, body) : await readWeb(c, arrival)
    arrival.complete()
    if (sent.length > maxBytes) throw tooLarge(maxBytes)
    if (coding === 'gzip') {
      // Who waits for this does so packed.
      const room = await unpacked.acquire(kib(maxBytes))
      release = () => {
        arrival.end()
        room()
      }
      bytes = await unpack(sent, maxBytes)
      letGoOf(sent.length, [sent])
    } else bytes = sent
    if (!isUtf8(bytes)) throw new HttpError(400, 'Json deserialize error: the body is not UTF-8')
    return { bytes, release: forget }
  } catch (error) {
    forget()
    throw error
  }
}

async function readWeb(c: Context, arrival: Arrival): Promise<Buffer> {
  const sent = Buffer.from(await c.req.arrayBuffer())
  arrival.add(sent.length)
  return sent
}

// The adapter would make a whole web Request of it first, at half the rate.
function readIncoming(
  incoming: IncomingMessage,
  { maxBytes, announced }: { maxBytes: number; announced: number },
  arrival: Arrival,
  body: { refuse?: (error: HttpError) => void },
): Promise<Buffer> {
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
      letGoOf(length, whole ? [whole] : chunks)
    }
    const refuse = (error: HttpError) => {
      drop()
      // What still comes is read, or the client would not see the answer.
      incoming.on('data', letGo)
      reject(error)
    }
    const onData = (chunk: Buffer) => {
      const { length: bytes } = chunk
      if (length + bytes > maxBytes) {
        letGo(chunk)
        return refuse(tooLarge(maxBytes))
      }
      if (whole) move(chunk, whole, length)
      else chunks.push(chunk)
      length += bytes
      if (!whole && length > NEVER_CUT_BYTES && announced > length && announced >= MIN_BODY_BYTES) {
        whole = Buffer.allocUnsafeSlow(announced)
        let at = 0
        for (const one of chunks) at += move(one, whole, at)
        chunks = []
      }
      arrival.add(bytes)
    }
    const onEnd = () => {
      done()
      resolve(whole ?? joined(chunks, length))
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

function joined(chunks: Buffer[], length: number): Buffer {
  if (chunks.length === 1) return chunks[0]!
  const whole = Buffer.concat(chunks, length)
  letGoOf(length, chunks)
  return whole
}

function move(from: Buffer, to: Buffer, at: number): number {
  const bytes = from.copy(to, at)
  letGo(from)
  return bytes
}

/** The length that the end of a gzip tells is a hint only (RFC 1952, 2.3.1), but where it is right there is nothing to put together. */
async function unpack(sent: Buffer, maxBytes: number): Promise<Buffer> {
  const told = sent.length >= MIN_GZIP_BYTES ? sent.readUInt32LE(sent.length - 4) : 0
  try {
    return await gunzipAsync(sent, { maxOutputLength: maxBytes, chunkSize: Math.min(Math.max(told, MIN_CHUNK_BYTES), maxBytes) + 1 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(maxBytes)
    throw new HttpError(400, 'the body is not valid gzip')
  }
}
