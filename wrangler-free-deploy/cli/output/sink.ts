/** Where a command writes: stdout, or a file that appears whole or not at all. */

import { closeSync, openSync, renameSync, writeFileSync } from 'node:fs'
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
  const attempt = <T>(action: () => T): T => {
    try {
      return action()
    } catch (error) {
      throw new Failure(`--out ${file}: ${reasonOf(error as NodeJS.ErrnoException)}`, EXIT.usage)
    }
  }
  const descriptor = attempt(() => openSync(partial, 'w'))
  return {
    columns: null,
    // At once: a stream would hold pieces in memory while the disk is slow.
    write: async (data) => attempt(() => writeFileSync(descriptor, data)),
    end: async () =>
      attempt(() => {
        closeSync(descriptor)
        renameSync(partial, file)
      }),
  }
}
