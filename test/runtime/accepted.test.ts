/** The counts in answers to posts with several entries of one file or container. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { startApp } from '../support/app.ts'
import { executable } from './executables.ts'
import { heartbeat } from './heartbeats.ts'

const app = await startApp()

test('several executables of one file are all counted as accepted or dropped', async () => {
  const one = executable()
  const entries = [one, one, executable(), { ...one, path: '' }, { ...one, source: 'backfill' }]
  assert.deepEqual((await app.post('/runtime/executables', entries)).json, { accepted: 4, dropped: 1, written: 2 })
  assert.deepEqual((await app.post('/runtime/executables', entries)).json, { accepted: 4, dropped: 1, written: 0 })
})

test('several heartbeats of one container are all counted as accepted or dropped', async () => {
  const one = heartbeat()
  const entries = [one, one, heartbeat(), { ...one, mode: 'x' }, 7]
  assert.deepEqual((await app.post('/runtime/coverage', entries)).json, { accepted: 3, dropped: 2, written: 2 })
})
