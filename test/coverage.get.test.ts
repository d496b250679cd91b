import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startApp } from './support/app.ts'
import { container, newDigest, newNamespace, replica } from './support/images.ts'

const app = await startApp()
test('GET /coverage 200: smoke', async () => {
  const ns = newNamespace()
  const d = newDigest()
  const r = await app.post('/pod/spec', replica(ns, [container('app', d), container('side')]))
  assert.equal(r.status, 200)
  const a = await app.get(`/coverage?namespace=${ns}`)
  assert.equal(a.status, 200)
  const b = await app.get(`/coverage`)
  assert.equal(b.status, 200)
})
