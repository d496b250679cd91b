/** Where a command writes: stdout, or a file that appears whole or not at all. */

import { once } from 'node:events'
import { createWriteStream, renameSync } from 'node:fs'
import type { CliContext } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'
import { reasonOf } from '../input.ts'

export interface Sink {
  /** The columns of the terminal; null if it is none. */
  readonly columns: number | null
  /** Resolves when more may be written. */
  write(data: string | Buffer): Promise<void>
  /** Everything is written, and a file has its name. */
  end(): Promise<void>
}

/** @throws Failure if the file cannot be written */
export async function sinkOf(context: CliContext, file: string | undefined): Promise<Sink> {
  if (file === undefined) return { columns: context.columns, write: (data) => context.write(data), end: async () => {} }
  const partial = `${file}.partial`
  const stream = createWriteStream(partial)
  let fault: NodeJS.ErrnoException | null = null
  stream.on('error', (error) => {
    fault = error
  })
  const check = () => {
    if (fault !== null) throw new Failure(`--out ${file}: ${reasonOf(fault)}`, EXIT.usage)
  }
  await Promise.race([once(stream, 'open'), once(stream, 'close')]).catch(() => {})
  check()
  return {
    columns: null,
    async write(data) {
      check()
      if (!stream.write(data)) await Promise.race([once(stream, 'drain'), once(stream, 'close')]).catch(() => {})
      check()
    },
    async end() {
      stream.end()
      await once(stream, 'close').catch(() => {})
      check()
      renameSync(partial, file)
    },
  }
}
