/** The file in which a follow keeps its place, so that the next one goes on there. */
import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { EXIT, Failure } from '../failure.ts'
import { readFile, reasonOf } from '../input.ts'

/** Null where there is no file yet, or an empty one. @throws Failure for what is no token */
export async function readResume(file: string): Promise<string | null> {
  if (!existsSync(file)) return null
  const token = (await readFile(file)).trim()
  if (!/^[\w-]*$/.test(token)) throw new Failure(`--resume-file ${file}: expected what a follow wrote`, EXIT.usage)
  return token === '' ? null : token
}

/** Replaces the file, which is never half written. */
export function writeResume(file: string, token: string): void {
  try {
    writeFileSync(`${file}.partial`, `${token}\n`)
    renameSync(`${file}.partial`, file)
  } catch (error) {
    throw new Failure(`--resume-file ${file}: ${reasonOf(error as NodeJS.ErrnoException)}`, EXIT.usage)
  }
}
