/**
 * Where a command writes: stdout, or a file that appears whole or not at all. A link stays one, and a device or a pipe
 * gets the bytes as they come.
 */

import { closeSync, fchmodSync, openSync, realpathSync, renameSync, statSync, writeFileSync } from 'node:fs'
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
  const attempt = <T>(action: () => T, exitCode: number): T => {
    try {
      return action()
    } catch (error) {
      throw new Failure(`--out ${file}: ${reasonOf(error as NodeJS.ErrnoException)}`, exitCode)
    }
  }
  const known = statSync(file, { throwIfNoEntry: false })
  if (known?.isDirectory()) throw new Failure(`--out ${file}: expected a file, this is a folder`, EXIT.usage)
  const isWhole = known === undefined || known.isFile()
  const target = known?.isFile() ? realpathSync(file) : file
  const partial = isWhole ? `${target}.partial` : target
  const descriptor = attempt(() => openSync(partial, 'w'), EXIT.usage)
  if (known?.isFile()) fchmodSync(descriptor, known.mode)
  return {
    columns: null,
    // At once: a stream would hold pieces in memory while the disk is slow.
    write: async (data) => attempt(() => writeFileSync(descriptor, data), EXIT.endedEarly),
    end: async () =>
      attempt(() => {
        closeSync(descriptor)
        if (isWhole) renameSync(partial, target)
      }, EXIT.endedEarly),
  }
}
