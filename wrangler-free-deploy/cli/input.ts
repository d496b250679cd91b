/** Files that users name. */
import { isUtf8 } from 'node:buffer'
import { createReadStream } from 'node:fs'
import { EXIT, Failure } from './failure.ts'

/** More than any file that a command takes. */
const MAX_FILE_BYTES = 8 * 1024 * 1024

export const readFile = (path: string): Promise<string> => readText(path, createReadStream(path))

/** The text of a stream, without the byte order mark that some editors write. `name` is for errors. */
export async function readText(name: string, stream: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = []
  let bytes = 0
  try {
    for await (const part of stream) {
      bytes += part.length
      if (bytes > MAX_FILE_BYTES) throw new Error(`longer than ${MAX_FILE_BYTES} bytes`)
      parts.push(part)
    }
  } catch (error) {
    throw new Failure(`${name}: ${reasonOf(error as NodeJS.ErrnoException)}`, EXIT.usage)
  }
  const whole = Buffer.concat(parts)
  if (!isUtf8(whole)) throw new Failure(`${name}: expected UTF-8`, EXIT.usage)
  return whole.toString().replace(/^\ufeff/, '')
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'expected a file, this is a folder',
  EACCES: 'no permission',
}

export const reasonOf = ({ code, message }: NodeJS.ErrnoException): string => REASONS[code ?? ''] ?? message
