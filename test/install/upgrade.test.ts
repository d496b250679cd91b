/** Upgrades as docs/operations.md describes them: brokers of the old release on the schema of the next. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { flow, get, post, startBroker } from '../support/broker.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { becomes, until } from '../support/until.ts'

describe('the schema of the next release', { timeout: 900_000 }, () => {
  let database: TestDatabase
  const start = (env: NodeJS.ProcessEnv = {}) => startBroker({ databaseUrl: database.url, env })

  before(async () => {
    database = await createTestDatabase()
  })

  test('a running broker stays ready and serves; a new one refuses to start, unless MIGRATE_ON_START is false', async () => {
    const old = await start()
    assert.equal((await post(`${old.url}/pod/traffic/batch`, [flow(1)])).json, 1)
    await database.adminSql.unsafe(`
      insert into schema_migration (version, name) select max(version) + 1, 'of_the_next_release' from schema_migration;
      alter table traffic add column of_the_next_release text;
      create table of_the_next_release (id integer primary key)`)

    await becomes(
      async () => [(await get(`${old.admin}/readyz`)).status, (await get(`${old.url}/health`)).text],
      [200, 'Healthy!'],
    )
    assert.equal((await post(`${old.url}/pod/traffic/batch`, [flow(1), flow(2)])).json, 1)
    assert.equal((await get(`${old.url}/pod/traffic`)).json.length, 2)

    const migrates = await startBroker({ databaseUrl: database.url, ready: false }).catch((error: Error) => error)
    assert.ok(migrates instanceof Error)
    assert.match(
      migrates.message,
      /the database schema is at version \d+ but this release knows only up to \d+: deploy the newer release again/,
    )

    const leaves = await start({ MIGRATE_ON_START: 'false' })
    await until('it is ready', async () => (await get(`${leaves.admin}/readyz`)).status === 200)
    assert.equal((await post(`${leaves.url}/pod/traffic/batch`, [flow(2), flow(3)])).json, 1)
    for (const broker of [old, leaves]) assert.deepEqual(await broker.stop(), { code: 0, signal: null })
  })
})
