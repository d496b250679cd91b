import assert from 'node:assert/strict'
import test from 'node:test'
import { Semaphore } from '../../lib/limits/semaphore.ts'

const never = () => {}
const semaphoreFor = (maxBytes: number) => new Semaphore({ maxBytes, leastBytes: 2, retryAfterSeconds: 5 })

test('payloads are admitted one at a time, in the order of arrival', async () => {
  const semaphore = semaphoreFor(30)
  const order: number[] = []
  const first = await semaphore.acquire(10, never)
  const later = [1, 2, 3].map((i) => semaphore.acquire(10, never).then((end) => order.push(i) && end))
  assert.equal(semaphore.waiting, 3)
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(order, [])
  first()
  // Releasing twice does not admit two.
  first()
  for (const [i, one] of later.entries()) {
    const end = await one
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(order, [1, 2, 3].slice(0, i + 1))
    assert.equal(semaphore.waiting, 2 - i)
    if (typeof end === 'function') end()
  }
  ;(await semaphore.acquire(10, never))()
})

test('a payload without room is refused at once with Retry-After', async () => {
  const semaphore = semaphoreFor(10)
  const end = await semaphore.acquire(10, never)
  const waiting = semaphore.acquire(10, never)
  for (let i = 0; i < 2; i++)
    await assert.rejects(semaphore.acquire(10, never), {
      status: 503,
      message: '1 payloads are waiting to be stored; retry in 5 seconds',
      headers: { 'retry-after': '5' },
    })
  end()
  ;(await waiting)()
  ;(await semaphore.acquire(10, never))()
})

test('a waiting payload whose client disconnects frees its room and is skipped', async () => {
  const semaphore = semaphoreFor(20)
  const end = await semaphore.acquire(10, never)
  let leave = never
  const gone = semaphore.acquire(10, (given) => {
    leave = given
  })
  const second = semaphore.acquire(10, never)
  leave()
  await assert.rejects(gone, { status: 400 })
  const third = semaphore.acquire(10, never)
  assert.equal(semaphore.waiting, 2)
  end()
  ;(await second)()
  // A late disconnect has no effect.
  leave()
  ;(await third)()
  assert.equal(semaphore.waiting, 0)
})

test('room is counted in bytes, with a minimum for each payload: many small payloads may wait, or few large ones', async () => {
  const semaphore = semaphoreFor(20)
  const end = await semaphore.acquire(100, never)
  const waiting = [10, 1, 0, 2, 4].map((bytes) => semaphore.acquire(bytes, never))
  assert.equal(semaphore.waiting, 5)
  await assert.rejects(semaphore.acquire(1, never), {
    status: 503,
    message: '5 payloads are waiting to be stored; retry in 5 seconds',
  })
  end()
  ;(await waiting[0]!)()
  ;(await waiting[1]!)()
  for (const one of waiting.slice(2)) (await one)()
  const second = await semaphore.acquire(100, never)
  const large = semaphore.acquire(20, never)
  await assert.rejects(semaphore.acquire(1, never), { status: 503 })
  second()
  ;(await large)()
})
