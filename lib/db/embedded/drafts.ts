import { readdirSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

// Making a draft takes far less, so an older one belongs to a process that was killed in the middle.
const DRAFT_ABANDONED_MS = 10 * 60_000

/** Removes `<path>.new-*` that nobody works on any more. */
export function removeAbandonedDrafts(path: string): void {
  const parent = dirname(path)
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(`${basename(path)}.new-`)) continue
    const draft = join(parent, name)
    const made = statSync(draft, { throwIfNoEntry: false })?.birthtimeMs ?? Number.POSITIVE_INFINITY
    if (Date.now() - made > DRAFT_ABANDONED_MS) rmSync(draft, { recursive: true, force: true })
  }
}
