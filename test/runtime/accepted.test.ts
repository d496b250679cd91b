/** What posts of the runtime inventory answer of entries that are of one file or container. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { startApp } from '../support/app.ts'
import { executable } from './executables.ts'
import { heartbeat } from './heartbeats.ts'

const app = await startApp()

test('accepted and dropped executables are all that were posted, several of one file too', async () => {
  const one = executable()
  const entries = [one, one, executable(), { ...one, path: '' }, { ...one, source: 'backfill' }]
  assert.deepEqual((await app.post('/runtime/executables', entries)).json, { accepted: 4, dropped: 1, written: 2 })
  assert.deepEqual((await app.post('/runtime/executables', entries)).json, { accepted: 4, dropped: 1, written: 0 })
})

test('accepted and dropped heartbeats are all that were posted, several of one container too', async () => {
  const one = heartbeat()
  const entries = [one, one, heartbeat(), { ...one, mode: 'x' }, 7]
  assert.deepEqual((await app.post('/runtime/coverage', entries)).json, { accepted: 3, dropped: 2, written: 2 })
})
