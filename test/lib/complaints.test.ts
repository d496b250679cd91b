import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Complaints } from '../../lib/db/complaints.ts'
import { DatabaseRefused, DatabaseUnavailable } from '../../lib/db/errors.ts'
import { stopClock } from '../support/clock.ts'

function start(t: TestContext) {
  const clock = stopClock(t)
  const lines: { fields: { code?: string; statements?: number }; message: string }[] = []
  const complaints = new Complaints((fields, message) => lines.push({ fields, message }))
  return { clock, lines, complaints, told: () => lines.splice(0).map(({ fields }) => [fields.code, fields.statements]) }
}
const full = new DatabaseRefused('53100')
const gone = new DatabaseUnavailable('connect ECONNREFUSED 10.0.0.1:5432', 'ECONNREFUSED')

test('a cause is told of at once, and then once a minute with how many statements it cost since', (t) => {
  const { clock, complaints, told } = start(t)
  for (let i = 0; i < 5; i++) complaints.note(full)
  assert.deepEqual(told(), [['53100', 1]])
  clock.tick(59_999)
  for (let i = 0; i < 3; i++) complaints.note(full)
  assert.deepEqual(told(), [])
  clock.tick(1)
  assert.deepEqual(told(), [['53100', 7]])
  clock.tick(60_000)
  assert.deepEqual(told(), [], 'a minute without')
  complaints.note(full)
  assert.deepEqual(told(), [['53100', 1]])
  complaints.end()
  clock.tick(120_000)
  assert.deepEqual(told(), [])
})

test('causes are told apart', (t) => {
  const { clock, complaints, told } = start(t)
  for (const error of [full, gone, full, gone, gone]) complaints.note(error)
  assert.deepEqual(told(), [
    ['53100', 1],
    ['ECONNREFUSED', 1],
  ])
  clock.tick(60_000)
  assert.deepEqual(told(), [
    ['53100', 1],
    ['ECONNREFUSED', 2],
  ])
})

test('a line names the cause, its code and what to do', (t) => {
  const { complaints, lines } = start(t)
  complaints.note(full)
  complaints.note(gone)
  assert.equal(
    lines[0]!.message,
    'database refuses: no space left on device (53100); make room on the disks of the server',
  )
  assert.match(
    lines[1]!.message,
    /^database unavailable: the server cannot be reached \(ECONNREFUSED\); see that it runs/,
  )
})

test('causes without end are told of up to a bound', (t) => {
  const { complaints, lines } = start(t)
  for (let i = 0; i < 1_000; i++) complaints.note(new DatabaseUnavailable('odd', `E${i}`))
  assert.equal(lines.length, 100)
})
