import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { ProfileCache } from '../../lib/seccomp/profile-cache.ts'

const TTL_MS = 10_000

/** A cache whose builds end when the test says so, on a clock that the test moves. */
function scene(ttlMs = TTL_MS) {
  const builds: { end: () => void; fail: (error: Error) => void }[] = []
  const state = { nowMs: 0, hits: 0, misses: 0 }
  const cache = new ProfileCache({
    ttlMs,
    now: () => state.nowMs,
    onHit: () => state.hits++,
    onMiss: () => state.misses++,
    build: () => {
      const body = { plain: Buffer.from(`${builds.length}`), packed: Buffer.from(''), tag: `W/"${builds.length}"` }
      return new Promise((resolve, reject) => builds.push({ end: () => resolve(body), fail: reject }))
    },
  })
  /** The number of the build that answers; -1 for an error. */
  const read = () =>
    cache.read().then(
      ({ plain }) => Number(plain),
      () => -1,
    )
  return { cache, builds, state, read }
}

test('a body is fresh for as long as it is told, from the start of its build', async () => {
  const { builds, state, read } = scene()
  const first = read()
  state.nowMs = 4_000
  builds[0]!.end()
  assert.equal(await first, 0)
  state.nowMs = TTL_MS - 1
  assert.equal(await read(), 0)
  state.nowMs = TTL_MS
  const second = read()
  assert.equal(builds.length, 2)
  builds[1]!.end()
  assert.equal(await second, 1)
})

test('without a time each read has it made, but for those that come meanwhile', async () => {
  const { builds, state, read } = scene(0)
  const crowd = [read(), read(), read()]
  assert.equal(builds.length, 1)
  builds[0]!.end()
  assert.deepEqual(await Promise.all(crowd), [0, 0, 0])
  assert.deepEqual([state.misses, state.hits], [1, 2])
  const later = read()
  builds[1]!.end()
  assert.equal(await later, 1)
  assert.deepEqual([state.misses, state.hits], [2, 2])
})

test('who waits for a build that takes longer than a body is fresh gets its body, who comes later another', async () => {
  const { builds, state, read } = scene()
  const first = read()
  state.nowMs = TTL_MS * 2
  const waiter = read()
  builds[0]!.end()
  assert.deepEqual(await Promise.all([first, waiter]), [0, 0])
  const later = read()
  builds[1]!.end()
  assert.equal(await later, 1)
})

test('when a build fails everybody hears of it who waited, and the next read has another made', async () => {
  const { builds, state, read } = scene()
  const crowd = [read(), read()]
  builds[0]!.fail(new Error('shed'))
  assert.deepEqual(await Promise.all(crowd), [-1, -1])
  assert.deepEqual([state.misses, state.hits], [1, 0])
  const later = [read(), read()]
  builds[1]!.end()
  assert.deepEqual(await Promise.all(later), [1, 1])
})

test('a build that fails leaves what was made before, and does not make it fresh', async () => {
  const { cache, builds, state, read } = scene()
  const first = read()
  builds[0]!.end()
  await first
  state.nowMs = TTL_MS
  const second = read()
  builds[1]!.fail(new Error('shed'))
  assert.equal(await second, -1)
  assert.equal(cache.latest.plain.toString(), '0')
  const third = read()
  builds[2]!.end()
  assert.equal(await third, 2)
  assert.equal(cache.latest.plain.toString(), '2')
})

test('what is forgotten is made anew, even when its build began before', async () => {
  const { cache, builds, read } = scene()
  const first = read()
  cache.forget()
  builds[0]!.end()
  assert.equal(await first, 0)
  const second = read()
  builds[1]!.end()
  assert.equal(await second, 1)
  assert.equal(await read(), 1)
  cache.forget()
  const third = read()
  builds[2]!.end()
  assert.equal(await third, 2)
})

test('nothing is there before it was read', () => {
  assert.throws(() => scene().cache.latest, TypeError)
})

test('of any course of events: one build at a time, nobody gets what was too old when asking, and every read is a hit or a miss or failed', async () => {
  const step = fc.oneof(
    fc.constant('read' as const),
    fc.constant('end' as const),
    fc.constant('fail' as const),
    fc.constant('forget' as const),
    fc.nat(6_000),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.constantFrom(0, TTL_MS), async (steps, ttlMs) => {
      const { cache, builds, state, read } = scene(ttlMs)
      const began: number[] = []
      const endedAt: number[] = []
      let open: number | null = null
      let forgottenAt = -1
      const reads: { answer: Promise<number>; atStep: number; atMs: number }[] = []
      const close = async (how: 'end' | 'fail', at: number) => {
        if (open === null) return
        if (how === 'end') {
          builds[open]!.end()
          endedAt[open] = at
        } else builds[open]!.fail(new Error('lost'))
        open = null
        await new Promise(setImmediate)
      }
      for (const [at, one] of steps.entries()) {
        if (one === 'read') {
          reads.push({ answer: read(), atStep: at, atMs: state.nowMs })
          assert.ok(builds.length - began.length <= (open === null ? 1 : 0), 'two builds at once')
          if (builds.length > began.length) {
            open = began.length
            began.push(state.nowMs)
          }
        } else if (one === 'end' || one === 'fail') await close(one, at)
        else if (one === 'forget') {
          cache.forget()
          forgottenAt = at
        } else state.nowMs += one
      }
      await close('end', steps.length)
      const answers = await Promise.all(reads.map(({ answer }) => answer))
      for (const [i, { atStep, atMs }] of reads.entries()) {
        const build = answers[i]!
        if (build === -1) continue
        const isWaiter = endedAt[build]! > atStep
        assert.ok(isWaiter || atMs < began[build]! + ttlMs, `a body that was ${atMs - began[build]!} ms old`)
        assert.ok(
          isWaiter || forgottenAt < 0 || endedAt[build]! > forgottenAt || atStep < forgottenAt,
          'a body that was forgotten',
        )
      }
      const failed = answers.filter((one) => one === -1).length
      assert.equal(state.misses, began.length)
      assert.ok(state.hits + state.misses <= reads.length && state.hits + state.misses + failed >= reads.length)
    }),
    { numRuns: 300 },
  )
})
