import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

/**
 * Makes a folder and its parents. `mkdirSync` with `recursive` of Node 20 never returns where a folder exists and
 * refuses new entries with ENOENT, as /proc does.
 */
export function makeFolder(path: string): void {
  const parent = dirname(resolve(path))
  if (!existsSync(parent)) makeFolder(parent)
  try {
    mkdirSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !statSync(path).isDirectory()) throw error
  }
}

// A draft is finished long before; an older one belongs to a process that was killed.
const DRAFT_ABANDONED_MS = 10 * 60_000

/**
 * Makes the folder `path` unless `mark` exists. It is filled under another name and renamed when it is whole: a crash
 * leaves no half of it, and of two processes that start at once the slower one uses the folder of the other.
 */
export async function makeWhole(path: string, mark: string, fill: (draft: string) => unknown): Promise<void> {
  if (existsSync(mark)) return
  const parent = dirname(path)
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(`${basename(path)}.new-`)) continue
    const old = join(parent, name)
    const madeAt = statSync(old, { throwIfNoEntry: false })?.birthtimeMs ?? Number.POSITIVE_INFINITY
    if (Date.now() - madeAt > DRAFT_ABANDONED_MS) rmSync(old, { recursive: true, force: true })
  }
  const draft = mkdtempSync(`${path}.new-`)
  try {
    await fill(draft)
    renameSync(draft, path)
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    if (!existsSync(mark)) throw error
  }
}

const DIGEST_DIGITS = 16

/** Hex digits of a SHA-256: a short name that every process computes alike for a path. */
export const shortDigest = (text: string): string =>
  createHash('sha256').update(text).digest('hex').slice(0, DIGEST_DIGITS)
