import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { Context } from './context.ts'
import { header } from './context.ts'
import { HttpError } from './errors.ts'
import type { Arrival } from './inbox.ts'

/** 2 MiB: the limit of every core route (interop-core 1.0), of the body as sent and as unpacked. */
export const MAX_CORE_BODY_BYTES = 2 * 1024 * 1024

/** As many as Node has threads for it: more would hold what they unpack and be no faster. */
const MAX_UNPACKING = 4

const gunzipAsync = promisify(gunzip)

const tooLarge = (maxBytes: number) => new HttpError(413, `body is larger than ${maxBytes} bytes`)

/** A body as it came, and what lets go of it: the bytes count as held until then. */
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
  if (Number(header(c, 'content-length') ?? 0) > maxBytes) throw tooLarge(maxBytes)
  const incoming = c.env?.incoming as IncomingMessage | undefined
  const body: { refuse?: (error: HttpError) => void } = {}
  const arrival = c.get('deps').inbox.open((error) => body.refuse?.(error))
  try {
    const sent = incoming ? await readIncoming(incoming, maxBytes, arrival, body) : Buffer.from(await c.req.arrayBuffer())
    arrival.complete()
    if (sent.length > maxBytes) throw tooLarge(maxBytes)
    const bytes = coding === 'gzip' ? await unpack(sent, maxBytes, arrival) : sent
    if (!isUtf8(bytes)) throw new HttpError(400, 'Json deserialize error: the body is not UTF-8')
    return { bytes, release: arrival.end }
  } catch (error) {
    arrival.end()
    throw error
  }
}

// The adapter would make a whole web Request of it first, at half the rate.
function readIncoming(
  incoming: IncomingMessage,
  maxBytes: number,
  arrival: Arrival,
  body: { refuse?: (error: HttpError) => void },
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = []
    let length = 0
    const done = () => {
      incoming.off('data', onData).off('end', onEnd).off('error', onLost).off('close', onLost)
    }
    const refuse = (error: HttpError) => {
      done()
      chunks = []
      incoming.resume()
      reject(error)
    }
    const onData = (chunk: Buffer) => {
      length += chunk.length
      if (length > maxBytes) return refuse(tooLarge(maxBytes))
      chunks.push(chunk)
      arrival.add(chunk.length)
    }
    const onEnd = () => {
      done()
      resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length))
    }
    const onLost = () => {
      done()
      reject(new HttpError(400, 'the body ended before its announced length'))
    }
    body.refuse = refuse
    if (incoming.destroyed && !incoming.complete) onLost()
    else incoming.on('data', onData).on('end', onEnd).on('error', onLost).on('close', onLost)
  })
}

let unpacking = 0
const packed: (() => void)[] = []

/** What waits here does so packed. */
async function unpack(sent: Buffer, maxBytes: number, arrival: Arrival): Promise<Buffer> {
  if (unpacking >= MAX_UNPACKING) await new Promise<void>((resolve) => packed.push(resolve))
  else unpacking++
  try {
    const bytes = await gunzipAsync(sent, { maxOutputLength: maxBytes })
    arrival.add(bytes.length - sent.length)
    return bytes
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(maxBytes)
    throw new HttpError(400, 'the body is not valid gzip')
  } finally {
    const next = packed.shift()
    if (next) next()
    else unpacking--
  }
}
