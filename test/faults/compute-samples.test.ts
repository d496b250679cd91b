/**
 * Samples while answers are lost: a post is stored whole, with its containers and its node, or not at all
 * (docs/contract.md#compute). agents-kill.test.ts kills the broker.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SAMPLES } from '../compute/posts.ts'
import { startLossyApp } from '../support/lossy.ts'
import type { Fate } from '../support/proxy.ts'
import { CONTAINERS, post } from './compute-samples.ts'

const STORE = 'store_samples'
/** The first attempt of a statement and its two repetitions. */
const ATTEMPTS = 3

const app = await startLossyApp()

test('a post is stored if answers or statements are lost once or twice, and is 503 if all attempts are lost', async () => {
  const stored = async () => {
    const rows = await app.sql<{ n: number }[]>`
      select distinct mem_current::int as n from compute_latest union select ctxt_per_sec::int from compute_node`
    return rows.map(({ n }) => n)
  }
  const lost: Fate[][] = [
    ['answer lost'],
    ['answer lost', 'answer lost'],
    ['question lost', 'answer lost'],
    ['question lost'],
  ]
  for (const [n, fates] of lost.entries()) {
    app.lose(STORE, ...fates)
    assert.deepEqual(
      [await app.post(SAMPLES, post('lossy', n)), app.toCome],
      [{ status: 200, text: `{"accepted":${CONTAINERS}}` }, 0],
    )
    assert.deepEqual(await stored(), [n])
  }
  app.lose(STORE, ...Array<Fate>(ATTEMPTS).fill('question lost'))
  assert.equal((await app.post(SAMPLES, post('lossy', 98))).status, 503)
  assert.deepEqual(await stored(), [lost.length - 1])
  app.lose(STORE, ...Array<Fate>(ATTEMPTS).fill('answer lost'))
  assert.equal((await app.post(SAMPLES, post('lossy', 99))).status, 503)
  assert.deepEqual(await stored(), [99])
})
