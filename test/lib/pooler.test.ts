import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Connection, type GateName, openDatabase, splitPool } from '../../lib/db/index.ts'
import { sessionSettings } from '../../lib/db/session.ts'
import { checkSettings } from '../../lib/db/settings-check.ts'
import { migrate } from '../../sql/migrate/index.ts'
import { createTestDatabase } from '../support/database.ts'
import { noLog } from '../support/log.ts'
import { startPooler } from '../support/pooler.ts'

const GATES = ['ingest', 'read', 'probe', 'job'] as const
const POOL_MAX = 9

function open(t: TestContext, connection: Connection, prepare = true) {
  const warned: { gate?: string; settings?: string[]; missing?: string[]; reason?: string }[] = []
  const log = { ...noLog, warn: (fields: object) => void warned.push(fields) }
  const db = openDatabase({
    connection,
    poolMax: POOL_MAX,
    statementTimeoutMs: 7_000,
    prepare,
    applicationName: 'pooler-test',
    log,
  })
  t.after(() => db.end(100))
  const settings = async (gate: GateName) => {
    const names = Object.keys(sessionSettings(gate, 7_000))
    const rows = await db[gate](
      (sql) => sql<{ name: string; setting: string }[]>`
        select name, setting from pg_settings where name = any (${names}::text[]) and (select pg_sleep(0.05)) is not null`,
    )
    return Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))
  }
  return { db, log, warned, settings }
}

test('a session pooler that refuses startup settings is connected without them, and each session sets them itself', async (t) => {
  const { url } = await createTestDatabase()
  const pooler = await startPooler(url, 'refused')
  const { warned, settings } = open(t, pooler.connection)
  for (const gate of GATES) {
    const wanted = sessionSettings(gate, 7_000)
    // Concurrent, so that each has its own connection.
    for (const found of await Promise.all(Array.from({ length: splitPool(POOL_MAX)[gate] }, () => settings(gate))))
      assert.deepEqual(found, wanted, gate)
  }
  assert.deepEqual(
    warned.map(({ gate }) => gate),
    [...GATES],
  )
  assert.match(warned[0]!.reason!, /unsupported startup parameter/)
  assert.ok(warned[1]!.settings!.includes('plan_cache_mode'))
  const { refused } = pooler
  await settings('read')
  assert.equal(pooler.refused, refused)
})

test('a migration runs behind such a pooler, and with DB_PREPARE=false no connection is refused', async (t) => {
  const { url, adminSql } = await createTestDatabase()
  await adminSql.unsafe('drop schema public cascade; create schema public')
  const pooler = await startPooler(url, 'refused')
  assert.ok((await migrate({ connection: pooler.connection, log: noLog })).version > 0)
  const { db, warned } = open(t, pooler.connection, false)
  for (const gate of GATES) await db[gate]((sql) => sql`select 1`)
  assert.equal(pooler.refused, 0)
  assert.deepEqual(warned, [])
})

test('settings of the URL are set in the same way, and those of the service override them', async (t) => {
  const { url } = await createTestDatabase()
  const pooler = await startPooler(url, 'refused')
  const { db } = open(t, {
    ...pooler.connection,
    settings: { work_mem: '1234kB', array_nulls: 'off', 'own.name': "a'b" },
  })
  const [row] = await db.read(
    (sql) =>
      sql`select current_setting('work_mem') as mem, current_setting('array_nulls') as nulls, current_setting('own.name') as own`,
  )
  assert.deepEqual({ ...row }, { mem: '1234kB', nulls: 'on', own: "a'b" })
})

test('another refused setting is reported and not worked around', async (t) => {
  const { url } = await createTestDatabase()
  const { db, warned } = open(t, `${url}?no_such_setting=1`)
  await assert.rejects(
    db.read((sql) => sql`select 1`),
    { code: '42704' },
  )
  // One line says what the server refuses, and none that settings are set another way.
  assert.deepEqual(warned, [{ code: '42704', statements: 1 }])
})

test('a pooler that swallows the settings is detected, and missing settings are logged', async (t) => {
  const { url } = await createTestDatabase()
  const pooler = await startPooler(url, 'swallowed')
  const { db, log, warned } = open(t, pooler.connection)
  await checkSettings(db, { statementTimeoutMs: 7_000, log })
  assert.equal(warned.length, 1)
  assert.ok(warned[0]!.missing!.includes('statement_timeout = 7000'))
})
