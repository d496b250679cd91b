import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../support/database.ts'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { Storm } from './follow-storm.ts'

const KILLS = depth(3, 12)
const FLOWS_BETWEEN = 400

test('followers of three replicas, of which one after the other is killed, have each flow once', async () => {
  const database = await createTestDatabase()
  const storm = await Storm.start({ databaseUrl: database.url, replicas: 3, followers: depth(12, 60), pauseMs: 20 })
  for (let n = 0; n < KILLS; n++) {
    const before = storm.stored
    await until('more flows', () => storm.stored >= before + FLOWS_BETWEEN)
    await storm.killOne()
  }
  await storm.finish()
  const rows = await database.adminSql<{ uuid: string }[]>`select uuid from traffic order by uuid`
  const stored = rows.map(({ uuid }) => uuid)
  assert.equal(stored.length, storm.stored)
  assert.ok(storm.readers.every(({ connections }) => connections > 1))
  for (const { uuids } of storm.readers) assert.deepEqual([...uuids].sort(), stored)
})
