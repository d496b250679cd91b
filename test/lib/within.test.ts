import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { within } from '../../lib/time/within.ts'

const LONG_MS = 60_000

test('a result in time is passed on, and no timer remains', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timers()
  assert.equal(await within(Promise.resolve('answer'), LONG_MS), 'answer')
  await assert.rejects(within(Promise.reject(new Error('told')), LONG_MS), /told/)
  assert.equal(timers(), before)
})

test('a late result is ignored, and so is a late failure', async () => {
  let fail = () => {}
  const late = new Promise((_, reject) => {
    fail = () => reject(new Error('nobody hears'))
  })
  assert.equal(await within(late, 1), undefined)
  assert.equal(await within(new Promise(() => {}), -1), undefined)
  fail()
  // An unhandled rejection would be reported by now.
  await turn()
})
