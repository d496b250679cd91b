import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { SeenFlows } from '../../lib/traffic/index.ts'

const GENERATION_MS = 1_000

/** A set whose clock the test moves. */
function make(maxKeys: number) {
  const clock = { now: 5_000 }
  const seen = new SeenFlows({ maxKeys, generationMs: GENERATION_MS, now: () => clock.now })
  const later = (ms: number) => {
    clock.now += ms
    seen.expire()
  }
  return { seen, clock, later }
}

test('what was added is there, what was not is not', () => {
  const { seen } = make(10)
  seen.add('a')
  assert.equal(seen.has('a'), true)
  assert.equal(seen.has('b'), false)
  assert.equal(seen.size, 1)
})

test('a key outlives its generation, and no second one', () => {
  const { seen, later } = make(10)
  later(999)
  seen.add('a')
  later(1)
  assert.equal(seen.has('a'), true)
  later(999)
  assert.equal(seen.has('a'), true)
  later(1)
  assert.equal(seen.has('a'), false)
  assert.equal(seen.size, 0)
})

test('what was asked before a clear is not taken after it', () => {
  const { seen } = make(10)
  const { epoch } = seen
  seen.add('a', epoch)
  assert.equal(seen.has('a'), true)
  seen.clear()
  seen.add('a', epoch)
  assert.equal(seen.has('a'), false)
  seen.add('a', seen.epoch)
  assert.equal(seen.has('a'), true)
})

test('a key that is found is not renewed, one that is added again is', () => {
  const { seen, later } = make(10)
  seen.add('found')
  seen.add('added')
  later(GENERATION_MS)
  assert.equal(seen.has('found'), true)
  seen.add('added')
  later(GENERATION_MS)
  assert.equal(seen.has('found'), false)
  assert.equal(seen.has('added'), true)
})

test('after a silence of two generations nothing is left', () => {
  const { seen, later } = make(10)
  seen.add('a')
  later(2 * GENERATION_MS)
  assert.equal(seen.has('a'), false)
  assert.equal(seen.size, 0)
})

test('after a silence of less than two generations the young ones are left', () => {
  const { seen, later } = make(10)
  seen.add('a')
  later(2 * GENERATION_MS - 1)
  assert.equal(seen.has('a'), true)
})

test('never more than two generations of the given size, the newest of all', () => {
  const { seen } = make(3)
  for (let i = 1; i <= 100; i++) {
    seen.add(`${i}`)
    assert.ok(seen.size <= 6)
    assert.equal(seen.has(`${i}`), true)
  }
  assert.deepEqual(
    Array.from({ length: 100 }, (_, i) => `${i + 1}`).filter((key) => seen.has(key)),
    ['97', '98', '99', '100'],
  )
})

test('clear forgets all, and what is added then lasts as ever', () => {
  const { seen, later } = make(3)
  for (const key of ['a', 'b', 'c', 'd']) seen.add(key)
  seen.clear()
  assert.equal(seen.size, 0)
  assert.equal(seen.has('a') || seen.has('d'), false)
  seen.add('a')
  later(GENERATION_MS)
  assert.equal(seen.has('a'), true)
})

type Step = { add: number } | { wait: number } | 'clear'
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ add: fc.nat(12) }) },
  { weight: 4, arbitrary: fc.record({ wait: fc.nat(2_500) }) },
  { weight: 1, arbitrary: fc.constant('clear' as const) },
)

test('in any history: bounded, nothing older than two generations, nothing that was not added', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), fc.integer({ min: 1, max: 5 }), (steps, maxKeys) => {
      const { seen, clock, later } = make(maxKeys)
      const addedAt = new Map<string, number>()
      for (const one of steps) {
        if (one === 'clear') {
          seen.clear()
          addedAt.clear()
        } else if ('wait' in one) {
          later(one.wait)
        } else {
          seen.add(String(one.add))
          addedAt.set(String(one.add), clock.now)
          assert.ok(seen.has(String(one.add)))
        }
        assert.ok(seen.size <= 2 * maxKeys)
        for (let key = 0; key <= 12; key++) {
          if (!seen.has(String(key))) continue
          const at = addedAt.get(String(key))
          assert.ok(at !== undefined && clock.now - at < 2 * GENERATION_MS, `${key} of ${at} at ${clock.now}`)
        }
      }
    }),
    { numRuns: 2_000 },
  )
})

test('with room for all, a key stays for a whole generation', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const { seen, clock, later } = make(1_000)
      const addedAt = new Map<string, number>()
      for (const one of steps) {
        if (one === 'clear') {
          seen.clear()
          addedAt.clear()
        } else if ('wait' in one) later(one.wait)
        else {
          seen.add(String(one.add))
          addedAt.set(String(one.add), clock.now)
        }
        for (const [key, at] of addedAt)
          assert.ok(clock.now - at >= GENERATION_MS || seen.has(key), `${key} of ${at} at ${clock.now}`)
      }
    }),
    { numRuns: 2_000 },
  )
})
