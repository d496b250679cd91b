import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createLanes } from '../../lib/db/lanes.ts'
import { stopClock } from '../support/clock.ts'

/** Lanes whose batches take up to `maxItems` of what waits and end by hand. */
function bench(max: number, maxItems = Number.POSITIVE_INFINITY, patienceMs = 0) {
  const waiting: string[] = []
  const sent: string[][] = []
  const lanes = createLanes<string[]>(
    max,
    () => (waiting.length === 0 ? null : waiting.splice(0, maxItems)),
    (batch) => sent.push(batch),
    patienceMs,
  )
  const arrive = (...items: string[]) => {
    for (const item of items) {
      waiting.push(item)
      lanes.start()
    }
  }
  return { waiting, sent, lanes, arrive, finish: (n: number) => lanes.finish(sent[n]!) }
}

describe('lanes', () => {
  test('what arrives when none is in flight is sent before start returns', () => {
    const { sent, lanes, arrive, finish } = bench(2)
    arrive('a')
    assert.deepEqual(sent, [['a']])
    assert.deepEqual([...lanes.inFlight], sent)
    finish(0)
    assert.equal(lanes.inFlight.size, 0)
    arrive('b')
    assert.deepEqual(sent, [['a'], ['b']])
  })

  test('what arrives in one turn while one is in flight shares a lane, and what arrives in the next turn another', async () => {
    const { sent, arrive } = bench(3)
    arrive('a', 'b', 'c')
    assert.deepEqual(sent, [['a']])
    await turn()
    assert.deepEqual(sent, [['a'], ['b', 'c']])
    arrive('d', 'e')
    assert.deepEqual(sent.length, 2)
    await turn()
    assert.deepEqual(sent, [['a'], ['b', 'c'], ['d', 'e']])
  })

  test('with all lanes busy what arrives waits, and is sent when one is free', async () => {
    const { sent, waiting, arrive, finish } = bench(2)
    arrive('a', 'b')
    await turn()
    arrive('c', 'd')
    await turn()
    assert.deepEqual(sent, [['a'], ['b']])
    assert.deepEqual(waiting, ['c', 'd'])
    finish(0)
    assert.deepEqual(sent, [['a'], ['b'], ['c', 'd']])
  })

  test('a lane that is free takes what waits, in as many batches as there are lanes, and gathering adds none to them', async () => {
    const { sent, waiting, lanes, arrive, finish } = bench(2, 1)
    arrive('a', 'b', 'c', 'd')
    finish(0)
    assert.deepEqual(sent, [['a'], ['b'], ['c']])
    await turn()
    assert.deepEqual(waiting, ['d'])
    finish(1)
    finish(2)
    assert.deepEqual(sent, [['a'], ['b'], ['c'], ['d']])
    finish(3)
    assert.equal(lanes.inFlight.size, 0)
  })

  test('gathering sends one batch, and none when nothing waits any more', async () => {
    const { sent, waiting, arrive } = bench(3, 1)
    arrive('a', 'b', 'c')
    await turn()
    assert.deepEqual(sent, [['a'], ['b']])
    assert.deepEqual(waiting.splice(0), ['c'])
    arrive('d')
    waiting.pop()
    await turn()
    assert.equal(sent.length, 2)
    arrive('e')
    await turn()
    assert.deepEqual(sent, [['a'], ['b'], ['e']])
  })

  test('with patience one lane is used as long as its batches end in time', async (t) => {
    const { tick } = stopClock(t)
    const { sent, waiting, arrive, finish } = bench(2, 2, 5)
    arrive('a', 'b', 'c')
    await turn()
    tick(4)
    assert.deepEqual(sent, [['a']])
    finish(0)
    assert.deepEqual(sent, [['a'], ['b', 'c']])
    arrive('d')
    tick(4)
    assert.deepEqual(waiting, ['d'])
    finish(1)
    assert.deepEqual(sent, [['a'], ['b', 'c'], ['d']])
    finish(2)
    tick(10)
    arrive('e')
    assert.deepEqual(sent.at(-1), ['e'])
  })

  test('with patience what waits behind a slow batch has the other lane in time, however it came to wait', async (t) => {
    const { tick } = stopClock(t)
    const { sent, waiting, arrive, finish, lanes } = bench(2, 1, 5)
    arrive('a', 'b', 'c', 'd')
    tick(5)
    assert.deepEqual(sent, [['a'], ['b']])
    tick(50)
    assert.deepEqual(waiting, ['c', 'd'])
    // A quick one ends beside a slow one.
    finish(1)
    assert.deepEqual(sent.length, 2)
    tick(5)
    assert.deepEqual(sent, [['a'], ['b'], ['c']])
    finish(0)
    finish(2)
    assert.deepEqual(sent, [['a'], ['b'], ['c'], ['d']])
    arrive('e')
    tick(5)
    assert.deepEqual(sent.at(-1), ['e'])
    finish(3)
    finish(4)
    tick(5)
    assert.equal(lanes.inFlight.size, 0)
  })
})
