/**
 * Posts of capabilities add to what is stored, so an attempt that is repeated after a lost answer must not add again
 * (docs/contract.md#capabilities).
 */
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { checks, PATH, stored } from '../runtime/capabilities.ts'
import { startLossyApp } from '../support/lossy.ts'

const app = await startLossyApp()

beforeEach(() => app.sql`truncate runtime_capability`)

const entries = [checks({ capability: 'CHOWN' }), checks({ capability: 'KILL', count: 5 })]
const post = async () => {
  const { status, text } = await app.post(PATH, entries)
  assert.deepEqual([status, text], [200, '{"accepted":2,"dropped":0,"written":2}'])
}
const counts = async () => (await stored(app)).map(({ count }) => count)

test('a post counts once, whether its answer is lost or it never arrives', async () => {
  let posts = 0
  for (const fates of [['answer lost'], ['question lost'], ['answer lost', 'answer lost']] as const) {
    app.lose('store_capabilities', ...fates)
    await post()
    posts++
    assert.equal(app.toCome, 0, fates.join())
    assert.deepEqual(await counts(), [3 * posts, 5 * posts], fates.join())
  }
})

test('a post that the agent repeats counts again', async () => {
  await post()
  await post()
  assert.deepEqual(await counts(), [6, 10])
})
