import { type Gzip, gunzipSync } from 'node:zlib'
import { HttpError } from '../http/errors.ts'

/** A header and a trailer with nothing between them. */
const MIN_GZIP_BYTES = 18
const MIN_CHUNK_BYTES = 16 * 1024

const broken = (what: string) => new HttpError(400, `the body is not valid gzip: ${what}`)

/**
 * What gzip unpacks to, of any number of members (RFC 1952, 2.2). 413 over `maxBytes`, found at the first byte too many; 400 for what is
 * damaged, ends early, or goes on after the last member, with zeros too. It takes the thread for as long as it lasts.
 */
export function inflate(sent: Buffer, maxBytes: number): Buffer {
  // A hint only, but where it is right there is nothing to put together.
  const told = sent.length >= MIN_GZIP_BYTES ? sent.readUInt32LE(sent.length - 4) : 0
  const chunkSize = Math.min(Math.max(told, MIN_CHUNK_BYTES), maxBytes) + 1
  const { buffer, engine } = unpacked(sent, maxBytes, chunkSize)
  // Node leaves zeros at the end alone.
  if (engine.bytesWritten < sent.length) throw broken(`${sent.length - engine.bytesWritten} bytes follow its end`)
  return buffer
}

/** What Node gives with `info`, which its types do not tell. */
interface Unpacked {
  readonly buffer: Buffer
  readonly engine: Gzip
}

function unpacked(sent: Buffer, maxBytes: number, chunkSize: number): Unpacked {
  try {
    return gunzipSync(sent, { maxOutputLength: maxBytes, chunkSize, info: true }) as unknown as Unpacked
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ERR_BUFFER_TOO_LARGE') throw new HttpError(413, `the body inflates to more than ${maxBytes} bytes`)
    throw broken(code === 'Z_BUF_ERROR' ? 'it ends early' : 'it is damaged')
  }
}
