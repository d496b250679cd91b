import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { driftOf } from '../../lib/seccomp/drift.ts'

const names = fc.uniqueArray(
  fc.constantFrom('a', 'aa', 'ab', 'b', 'ba', 'bb', 'c', 'ca', 'openat', 'openat2', 'open'),
  { maxLength: 9 },
)
const joined = (list: readonly string[]) => [...list].sort().join(',')

test('drift lists the names that are in one list only, in the order of the lists', () => {
  fc.assert(
    fc.property(names, names, (observed, allowed) => {
      const missing = observed.filter((name) => !allowed.includes(name)).sort()
      const extra = allowed.filter((name) => !observed.includes(name)).sort()
      assert.deepEqual(driftOf(joined(observed), joined(allowed)), { missing, extra, inSync: missing.length === 0 })
    }),
    { numRuns: 5_000 },
  )
})
