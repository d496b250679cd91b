import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { sortInSlices } from '../../lib/event-loop/sort-in-slices.ts'

test('sorts like Array.sort, and is stable', async () => {
  for (const n of [0, 1, 2, 4_095, 4_096, 4_097, 12_289, 50_000]) {
    const items = fc.sample(fc.tuple(fc.nat(n), fc.nat(1)), { numRuns: n || 1, seed: n }).slice(0, n)
    const before = (a: [number, number], b: [number, number]) => a[0] < b[0]
    assert.deepEqual(
      await sortInSlices(items, before),
      [...items].sort((a, b) => a[0] - b[0]),
    )
  }
})
