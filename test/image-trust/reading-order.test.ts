import assert from 'node:assert/strict'
import test from 'node:test'
import { ReadingOrder } from '../../lib/image-trust/reading-order.ts'
import { turnsOf } from '../support/turns.ts'

test('the reader that joined first goes first whenever it is ready', async () => {
  const line = new ReadingOrder()
  const [a, b, c] = [line.join(), line.join(), line.join()]
  const went: string[] = []
  const go = async (name: string, turn: () => Promise<void>, times: number) => {
    for (let i = 0; i < times; i++) {
      await turn()
      went.push(name)
    }
  }
  await Promise.all([go('c', c, 2), go('b', b, 2), go('a', a, 3)])
  assert.equal(went.join(''), 'aaabbcc')
  await go('b', b, 1)
  assert.equal(went.at(-1), 'b', 'when nobody else waits')
})

test('one reader goes in each turn of the event loop', async () => {
  const line = new ReadingOrder()
  const all = Array.from({ length: 50 }, () => line.join())
  const turns = await turnsOf(Promise.all(all.map((turn) => turn())))
  assert.ok(turns >= all.length - 1, `${turns} turns`)
})
