import { z } from 'zod'

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
  const [seen, permitted] = [listOf(observed), listOf(allowed)]
  const missing = without(seen, permitted)
  return { missing, extra: without(permitted, seen), inSync: missing.length === 0 }
}

const listOf = (joined: string) => (joined === '' ? [] : joined.split(','))

function without(names: readonly string[], others: readonly string[]): string[] {
  const left = new Set(others)
  return names.filter((name) => !left.has(name))
}
