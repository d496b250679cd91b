import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { createTestDatabase, schemaSnapshot } from '../support/database.ts'

const FILE = new URL('../../sql/schema.snapshot.sql', import.meta.url)
const HEAD = '-- The effect of all migrations, written by `UPDATE_SNAPSHOTS=1 npm test test/lib/schema.test.ts`.\n\n'

test('the migrated schema is the one in sql/schema.snapshot.sql', async () => {
  const database = await createTestDatabase()
  try {
    const found = HEAD + (await schemaSnapshot(database.adminSql))
    if (process.env.UPDATE_SNAPSHOTS === '1') writeFileSync(FILE, found)
    assert.equal(found, readFileSync(FILE, 'utf8'))
  } finally {
    await database.drop()
  }
})
