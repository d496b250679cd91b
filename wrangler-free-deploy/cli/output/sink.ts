/** Where a command writes: stdout, or a file that appears whole or not at all. */

import { closeSync, openSync, renameSync, statSync, writeFileSync } from 'node:fs'
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
  const attempt = <T>(action: () => T, exitCode: number): T => {
    try {
      return action()
    } catch (error) {
      throw new Failure(`--out ${file}: ${reasonOf(error as NodeJS.ErrnoException)}`, exitCode)
    }
  }
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory())
    throw new Failure(`--out ${file}: expected a file, this is a folder`, EXIT.usage)
  const descriptor = attempt(() => openSync(partial, 'w'), EXIT.usage)
  return {
    columns: null,
    // At once: a stream would hold pieces in memory while the disk is slow.
    write: async (data) => attempt(() => writeFileSync(descriptor, data), EXIT.endedEarly),
    end: async () =>
      attempt(() => {
        closeSync(descriptor)
        renameSync(partial, file)
      }, EXIT.endedEarly),
  }
}
