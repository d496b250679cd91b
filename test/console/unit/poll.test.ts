import assert from 'node:assert/strict'
import test from 'node:test'
import { ApiError } from '../../../wrangler-free-deploy/console/api/error.ts'
import { isRetried, pollOf, retryDelayMs } from '../../../wrangler-free-deploy/console/api/poll.ts'

const POLL_MS = 30_000
const NOW_MS = 1_800_000_000_000
const lost = new ApiError(0, 'The broker cannot be reached.')
const busyFor = (ms: number) => new ApiError(503, 'busy', ms)

const answered = {
  ...{ status: 'success', error: null, data: {}, dataUpdatedAt: NOW_MS },
  ...{ errorUpdateCount: 0, errorUpdatedAt: 0 },
}
const failed = (error: ApiError, count: number) => ({
  ...{ status: 'error', error, data: undefined, dataUpdatedAt: 0, errorUpdateCount: count, errorUpdatedAt: NOW_MS },
})
/** Age of the answer at the failure. */
const stale = (ageMs: number, count = 1, error = lost) => ({
  ...answered,
  ...{ status: 'error', error, errorUpdateCount: count, errorUpdatedAt: NOW_MS + ageMs },
})

test('an answer is polled, except one that never changes and a list that was read far down', () => {
  assert.equal(pollOf(POLL_MS)({ state: answered }), POLL_MS)
  assert.equal(pollOf(0)({ state: answered }), false)
  assert.equal(pollOf(POLL_MS)({ state: { ...answered, data: { pages: [1, 2] } } }), POLL_MS)
  assert.equal(pollOf(POLL_MS)({ state: { ...answered, data: { pages: [1, 2, 3] } } }), false)
})

test('with an answer to show, the delay grows with its age, and not with failures before it', () => {
  const poll = pollOf(POLL_MS)
  assert.equal(poll({ state: stale(33_000) }), 33_000)
  assert.equal(poll({ state: stale(5_000) }), POLL_MS)
  assert.equal(poll({ state: stale(33_000, 40) }), 33_000)
  assert.equal(poll({ state: stale(3_600_000) }), 300_000)
  assert.equal(pollOf(0)({ state: stale(33_000) }), false)
})

test('without an answer, reads of an absent or busy broker are repeated with growing delays, polled or not', () => {
  for (const poll of [pollOf(POLL_MS), pollOf(0)]) {
    const waits = [1, 2, 3, 9].map((count) => poll({ state: failed(lost, count) }))
    assert.deepEqual(waits, [10_000, 20_000, 40_000, 300_000])
    for (const status of [502, 503, 504]) assert.equal(poll({ state: failed(new ApiError(status, ''), 1) }), 10_000)
    assert.equal(poll({ state: failed(busyFor(45_000), 1) }), 45_000)
    assert.equal(poll({ state: failed(busyFor(3_600_000), 1) }), 300_000)
  }
  const absent = failed(new ApiError(404, 'not found'), 1)
  assert.equal(pollOf(POLL_MS)({ state: absent }), POLL_MS)
  assert.equal(pollOf(0)({ state: absent }), false)
})

test('a transient failure is retried twice, unless the broker asks for a long wait', () => {
  assert.deepEqual(
    [0, 1, 2].map((failures) => isRetried(failures, lost)),
    [true, true, false],
  )
  for (const status of [400, 401, 403, 404, 410, 500]) assert.equal(isRetried(0, new ApiError(status, '')), false)
  assert.equal(isRetried(0, new TypeError('a fault of ours')), false)
  assert.deepEqual([isRetried(0, busyFor(5_000)), isRetried(0, busyFor(6_000))], [true, false])
  assert.deepEqual(
    [retryDelayMs(0, lost), retryDelayMs(1, lost), retryDelayMs(0, busyFor(3_000))],
    [1_000, 2_000, 3_000],
  )
})
