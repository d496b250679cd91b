import assert from 'node:assert/strict'
import test from 'node:test'
import { Turnstile } from '../../lib/supply-chain/turnstile.ts'

const never = () => {}

test('one at a time, in the order in which they came', async () => {
  const turnstile = new Turnstile(3, 5)
  const order: number[] = []
  const first = await turnstile.turn(never)
  const later = [1, 2, 3].map((i) => turnstile.turn(never).then((end) => order.push(i) && end))
  assert.equal(turnstile.waiting, 3)
  await new Promise((resolve) => setImmediate(resolve))
  assert.deepEqual(order, [])
  first()
  // Whoever ends twice lets nobody else in.
  first()
  for (const [i, one] of later.entries()) {
    const end = await one
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(order, [1, 2, 3].slice(0, i + 1))
    assert.equal(turnstile.waiting, 2 - i)
    if (typeof end === 'function') end()
  }
  ;(await turnstile.turn(never))()
})

test('who finds no room is told at once when to come again, and takes none', async () => {
  const turnstile = new Turnstile(1, 5)
  const end = await turnstile.turn(never)
  const waiting = turnstile.turn(never)
  for (let i = 0; i < 2; i++)
    await assert.rejects(turnstile.turn(never), {
      status: 503,
      message: '1 payloads are waiting to be stored; retry in 5 seconds',
      headers: { 'retry-after': '5' },
    })
  end()
  ;(await waiting)()
  ;(await turnstile.turn(never))()
})

test('who leaves makes room, and is passed over', async () => {
  const turnstile = new Turnstile(2, 5)
  const end = await turnstile.turn(never)
  let leave = never
  const gone = turnstile.turn((given) => {
    leave = given
  })
  const second = turnstile.turn(never)
  leave()
  await assert.rejects(gone, { status: 400 })
  const third = turnstile.turn(never)
  assert.equal(turnstile.waiting, 2)
  end()
  ;(await second)()
  // It has had its turn by now, or never gets it.
  leave()
  ;(await third)()
  assert.equal(turnstile.waiting, 0)
})
