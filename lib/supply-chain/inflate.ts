import { type Gzip, gunzipSync } from 'node:zlib'
import { HttpError } from '../errors.ts'
import { gunzipChunkBytes } from '../http/request/gunzip-chunk.ts'

const broken = (what: string) => new HttpError(400, `the body is not valid gzip: ${what}`)

/**
 * Unpacks gzip with any number of members (RFC 1952, 2.2); blocks its thread meanwhile. 413 over `maxBytes`, at the
 * first byte too many; 400 for data that is damaged, ends early, or continues after the last member, even with zeros.
 */
export function inflate(sent: Buffer, maxBytes: number): Buffer {
  const { buffer, engine } = unpacked(sent, maxBytes)
  // Node ignores trailing zeros.
  if (engine.bytesWritten < sent.length) throw broken(`${sent.length - engine.bytesWritten} bytes follow its end`)
  return buffer
}

/** The result of Node with `info: true`, which its types do not declare. */
interface Unpacked {
  readonly buffer: Buffer
  readonly engine: Gzip
}

function unpacked(sent: Buffer, maxBytes: number): Unpacked {
  const chunkSize = gunzipChunkBytes(sent, maxBytes)
  try {
    return gunzipSync(sent, { maxOutputLength: maxBytes, chunkSize, info: true }) as unknown as Unpacked
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ERR_BUFFER_TOO_LARGE') throw new HttpError(413, `the body inflates to more than ${maxBytes} bytes`)
    throw broken(code === 'Z_BUF_ERROR' ? 'it ends early' : 'it is damaged')
  }
}
