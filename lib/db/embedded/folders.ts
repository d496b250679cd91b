import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
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

/** Removes old drafts of `path`, which are named `<path>.new-*`. */
export function removeAbandonedDrafts(path: string): void {
  const parent = dirname(path)
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(`${basename(path)}.new-`)) continue
    const draft = join(parent, name)
    const madeAt = statSync(draft, { throwIfNoEntry: false })?.birthtimeMs ?? Number.POSITIVE_INFINITY
    if (Date.now() - madeAt > DRAFT_ABANDONED_MS) rmSync(draft, { recursive: true, force: true })
  }
}

const DIGEST_DIGITS = 16

/** Hex digits of a SHA-256: a short name that every process computes alike for a path. */
export const shortDigest = (text: string): string =>
  createHash('sha256').update(text).digest('hex').slice(0, DIGEST_DIGITS)
