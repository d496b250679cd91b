import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { noteUnavailable } from '../../lib/db/database.ts'
import { DatabaseRefused, DatabaseUnavailable } from '../../lib/db/errors.ts'
import { RateLimitedLog } from '../../lib/observability/rate-limited-log.ts'
import { stopClock } from '../support/clock.ts'
import { logTo } from '../support/log.ts'

const MINUTE_MS = 60_000

function start(t: TestContext) {
  const { tick: pass } = stopClock(t)
  const written: [subject: string, fields: object][] = []
  const log = new RateLimitedLog(
    logTo((_level, subject, fields) => void written.push([subject, { ...(fields as object) }])),
  )
  return { log, pass, written: () => written.splice(0) }
}

test('the first event of a subject is logged at once, later ones of the minute in one line at its end', (t) => {
  const { log, pass, written } = start(t)
  log.note('a', { x: 1, y: 2 })
  log.note('a', { x: 3 })
  pass(MINUTE_MS - 1)
  log.note('a', { x: 4, z: 5 })
  assert.deepEqual(written(), [['a', { x: 1, y: 2 }]])
  pass(1)
  assert.deepEqual(written(), [['a', { x: 7, z: 5 }]])
  log.note('a', { x: 1 })
  pass(MINUTE_MS - 1)
  assert.deepEqual(written(), [])
  pass(1)
  assert.deepEqual(written(), [['a', { x: 1 }]])
})

test('each subject has its own lines', (t) => {
  const { log, pass, written } = start(t)
  for (const subject of ['a', 'b', 'a', 'b', 'b']) log.note(subject, { n: 1 })
  assert.deepEqual(written(), [
    ['a', { n: 1 }],
    ['b', { n: 1 }],
  ])
  pass(MINUTE_MS)
  assert.deepEqual(written(), [
    ['a', { n: 1 }],
    ['b', { n: 2 }],
  ])
})

test('a minute without events logs nothing, and the next event is logged at once', (t) => {
  const { log, pass, written } = start(t)
  log.note('a', { x: 1 })
  pass(MINUTE_MS)
  assert.equal(written().length, 1)
  log.note('a', { x: 2 })
  assert.deepEqual(written(), [['a', { x: 2 }]])
})

test('the number of subjects is limited', (t) => {
  const { log, written } = start(t)
  for (let i = 0; i < 1_000; i++) log.note(`subject ${i}`, { n: 1 })
  assert.equal(written().length, 100)
})

test('no line is logged after the end', (t) => {
  const { log, pass, written } = start(t)
  log.note('a', { n: 1 })
  log.note('a', { n: 1 })
  log.end()
  pass(2 * MINUTE_MS)
  assert.equal(written().length, 1)
})

test('failed statements are counted for each cause, with its code and remedy', (t) => {
  const { log, pass, written } = start(t)
  const full = new DatabaseRefused('53100')
  const gone = new DatabaseUnavailable('connect ECONNREFUSED 10.0.0.1:5432', 'ECONNREFUSED')
  for (const error of [full, gone, full, gone, gone]) noteUnavailable(log, error)
  const [refused, unavailable] = written()
  assert.deepEqual(refused, [
    'database refuses: no space left on device (53100); make room on the disks of the server',
    { code: '53100', statements: 1 },
  ])
  assert.match(
    unavailable![0],
    /^database unavailable: the server cannot be reached \(ECONNREFUSED\); see that it runs/,
  )
  pass(MINUTE_MS)
  assert.deepEqual(
    written().map(([, fields]) => fields),
    [
      { code: '53100', statements: 1 },
      { code: 'ECONNREFUSED', statements: 2 },
    ],
  )
})
