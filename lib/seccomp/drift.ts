import { z } from 'zod'
import { namesOf } from './names.ts'

const names = z.array(z.string())

/** Compares the observed syscalls of a workload with those that its custom resource allows (docs/contract.md#drift). */
export const Drift = z
  .strictObject({
    missing: names.describe('Observed and not allowed, sorted.'),
    extra: names.describe('Allowed and never observed, sorted.'),
    inSync: z.boolean().describe('Whether nothing is missing.'),
  })
  .meta({ id: 'SeccompDrift' })
type Drift = z.output<typeof Drift>

/** The drift if the allowed syscalls are exactly the observed ones. */
export const IN_SYNC: Drift = { missing: [], extra: [], inSync: true }

/** Compares two lists of names, each sorted by bytes and comma-joined. */
export function driftOf(observed: string, allowed: string): Drift {
  const start = commonStart(observed, allowed)
  const end = commonEnd(observed, allowed, Math.min(observed.length, allowed.length) - start)
  // The names left in the set are the extra ones, in order.
  const left = new Set(namesOf(allowed.slice(start, allowed.length - end)))
  const missing = namesOf(observed.slice(start, observed.length - end)).filter((name) => !left.delete(name))
  return { missing, extra: [...left], inSync: missing.length === 0 }
}

// Most names are on both lists, and comparing the texts is much cheaper than splitting them into names.

/** Length of the common start of both, in whole names with their commas. */
function commonStart(a: string, b: string): number {
  let start = 0
  for (let i = 0; i < a.length && a[i] === b[i]; i++) if (a[i] === ',') start = i + 1
  return start
}

/** Length of the common end of both, in whole names with the comma before each; at most `max`. */
function commonEnd(a: string, b: string, max: number): number {
  let end = 0
  for (let i = 1; i <= max && a[a.length - i] === b[b.length - i]; i++) if (a[a.length - i] === ',') end = i
  return end
}
