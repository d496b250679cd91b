import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { MinuteLines } from '../../lib/observability/rate-limited-log.ts'
import { logTo } from '../support/log.ts'

const MINUTE_MS = 60_000

function start(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const said: [message: string, counts: object][] = []
  const lines = new MinuteLines(
    logTo((_level, message, fields) => void said.push([message, { ...(fields as object) }])),
  )
  return { said, lines, pass: (ms: number) => t.mock.timers.tick(ms) }
}

test('the first of a subject is told at once, what follows within the minute in one line when it is over', (t) => {
  const { said, lines, pass } = start(t)
  lines.note('a', { x: 1, y: 2 })
  lines.note('a', { x: 3 })
  pass(MINUTE_MS - 1)
  lines.note('a', { x: 4, z: 5 })
  assert.deepEqual(said, [['a', { x: 1, y: 2 }]])
  pass(1)
  assert.deepEqual(said.slice(1), [['a', { x: 7, z: 5 }]])
  lines.note('a', { x: 1 })
  pass(MINUTE_MS - 1)
  assert.equal(said.length, 2)
  pass(1)
  assert.deepEqual(said.slice(2), [['a', { x: 1 }]])
})

test('subjects are told apart', (t) => {
  const { said, lines } = start(t)
  lines.note('a', { x: 1 })
  lines.note('b', { x: 2 })
  assert.deepEqual(said, [
    ['a', { x: 1 }],
    ['b', { x: 2 }],
  ])
})

test('after a minute in which nothing came nothing is told, and the next at once', (t) => {
  const { said, lines, pass } = start(t)
  lines.note('a', { x: 1 })
  pass(MINUTE_MS)
  assert.equal(said.length, 1)
  lines.note('a', { x: 2 })
  assert.equal(said.length, 2)
})
