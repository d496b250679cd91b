import { z } from 'zod'
import { namesOf } from './names.ts'

const names = z.array(z.string())

/** What was observed of a workload against what its custom resource allows (workload-profiling, Observed workload entry). */
export const Drift = z
  .strictObject({
    missing: names.describe('Observed and not allowed, sorted.'),
    extra: names.describe('Allowed and never observed, sorted.'),
    inSync: z.boolean().describe('Whether nothing is missing.'),
  })
  .meta({ id: 'SeccompDrift' })
type Drift = z.output<typeof Drift>

/** The drift where the same is allowed that was observed. */
export const IN_SYNC: Drift = { missing: [], extra: [], inSync: true }

/** Of two lists of names, each sorted by bytes and comma-joined. */
export function driftOf(observed: string, allowed: string): Drift {
  // What is left of the one is extra, in its order.
  const left = new Set(namesOf(allowed))
  const missing = namesOf(observed).filter((name) => !left.delete(name))
  return { missing, extra: [...left], inSync: missing.length === 0 }
}
