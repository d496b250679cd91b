import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { Context } from './context.ts'
import { header } from './context.ts'
import { HttpError } from './errors.ts'

/** 2 MiB: the limit of every core route (interop-core 1.0), of the body as sent and as unpacked. */
export const MAX_CORE_BODY_BYTES = 2 * 1024 * 1024

const gunzipAsync = promisify(gunzip)

const tooLarge = (maxBytes: number) => new HttpError(413, `body is larger than ${maxBytes} bytes`)

/**
 * The bytes of a JSON request body, proven to be UTF-8. 400 for another content type or text that is not UTF-8, 413 over `maxBytes` (by
 * Content-Length before a byte is read, then counted), 415 for an unknown coding, 400 for a broken gzip.
 */
export async function readBody(c: Context, maxBytes: number): Promise<Buffer> {
  const type = header(c, 'content-type')
  if (!type || !/^\s*application\/([\w.+-]+\+)?json\s*(;|$)/i.test(type)) {
    throw new HttpError(400, 'Content type error: expected application/json')
  }
  const coding = (header(c, 'content-encoding') ?? 'identity').trim().toLowerCase()
  if (coding !== 'identity' && coding !== 'gzip') {
    throw new HttpError(415, `content-encoding ${coding.slice(0, 40)} is not known: expected identity or gzip`, {
      'accept-encoding': 'gzip, identity',
    })
  }
  if (Number(header(c, 'content-length') ?? 0) > maxBytes) throw tooLarge(maxBytes)
  const incoming = c.env?.incoming
  const sent = incoming ? await readIncoming(incoming as IncomingMessage, maxBytes) : Buffer.from(await c.req.arrayBuffer())
  if (sent.length > maxBytes) throw tooLarge(maxBytes)
  const bytes = coding === 'gzip' ? await unpack(sent, maxBytes) : sent
  if (!isUtf8(bytes)) throw new HttpError(400, 'Json deserialize error: the body is not UTF-8')
  return bytes
}

// The adapter would make a whole web Request of it first, at half the rate.
function readIncoming(incoming: IncomingMessage, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    const done = () => {
      incoming.off('data', onData).off('end', onEnd).off('error', onCut).off('close', onCut)
    }
    const onData = (chunk: Buffer) => {
      length += chunk.length
      if (length <= maxBytes) {
        chunks.push(chunk)
        return
      }
      done()
      incoming.resume()
      reject(tooLarge(maxBytes))
    }
    const onEnd = () => {
      done()
      resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, length))
    }
    const onCut = () => {
      done()
      reject(new HttpError(400, 'the body ended before its announced length'))
    }
    if (incoming.destroyed && !incoming.complete) onCut()
    else incoming.on('data', onData).on('end', onEnd).on('error', onCut).on('close', onCut)
  })
}

async function unpack(packed: Buffer, maxBytes: number): Promise<Buffer> {
  try {
    return await gunzipAsync(packed, { maxOutputLength: maxBytes })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(maxBytes)
    throw new HttpError(400, 'the body is not valid gzip')
  }
}
