import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { ProfileCache } from '../../lib/seccomp/profile-cache.ts'

const TTL_MS = 10_000

/** A cache whose builds the test ends, with a clock that the test moves. */
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
  /** The number of the returned build; -1 for an error. */
  const read = () =>
    cache.read().then(
      ({ plain }) => Number(plain),
      () => -1,
    )
  return { cache, builds, state, read }
}

test('a body is fresh for the configured time, from the start of its build', async () => {
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

test('with a time of 0 each read starts a build, except reads during one', async () => {
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

test('a reader that waits for a slow build gets its body, a later one another', async () => {
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

test('a failed build fails all its waiting readers, and the next read starts another', async () => {
  const { builds, state, read } = scene()
  const crowd = [read(), read()]
  builds[0]!.fail(new Error('shed'))
  assert.deepEqual(await Promise.all(crowd), [-1, -1])
  assert.deepEqual([state.misses, state.hits], [1, 0])
  const later = [read(), read()]
  builds[1]!.end()
  assert.deepEqual(await Promise.all(later), [1, 1])
})

test('a failed build keeps the previous body, and does not make it fresh', async () => {
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

test('a forgotten body is built again, also if its build began before', async () => {
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

test('there is no body before the first read', () => {
  assert.throws(() => scene().cache.latest, TypeError)
})

test('in any history: one build at a time, no reader gets a body that was too old at its request, and every read is a hit, a miss or a failure', async () => {
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
