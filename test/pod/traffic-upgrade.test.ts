/** A database with flows from before they kept their workload and their transaction, which is migrated under load. */
import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { SQL_FOLDER } from '../../sql/migrate/files.ts'
import { migrate } from '../../sql/migrate/index.ts'
import { createTestDatabase } from '../support/database.ts'
import { logTo } from '../support/log.ts'

const LAST_BEFORE = 42
const FLOWS = 20_000
const log = logTo(() => {})

test('flows of a filled table keep null stamps, the table is not rewritten, and flows are stored meanwhile', async (t) => {
  const { adminSql: sql, url, drop } = await createTestDatabase()
  const folder = mkdtempSync(join(tmpdir(), 'broker-upgrade-'))
  t.after(async () => {
    await drop()
    rmSync(folder, { recursive: true })
  })
  for (const part of ['migrations', 'functions']) mkdirSync(join(folder, part))
  for (const name of readdirSync(join(SQL_FOLDER, 'migrations')))
    if (Number(name.slice(0, 4)) <= LAST_BEFORE)
      copyFileSync(join(SQL_FOLDER, 'migrations', name), join(folder, 'migrations', name))
  await sql.unsafe('drop schema public cascade; create schema public')
  await migrate({ connection: url, folder, log })
  await sql`
    insert into traffic (uuid, pod_name, pod_namespace, time_stamp)
    select 'before-' || n, 'web', 'shop', timestamp '2026-01-01' from generate_series(1, ${FLOWS}::int) n`
  const fileOf = async () => (await sql`select pg_relation_filenode('traffic') as node`)[0]!.node
  const file = await fileOf()

  let isDone = false
  const migrated = migrate({ connection: url, log }).finally(() => {
    isDone = true
  })
  // As a replica of the previous release stores flows, whose statement does not name the new columns.
  let stored = 0
  do
    await sql`
      insert into traffic (uuid, pod_name, pod_namespace, time_stamp)
      values (${`during-${stored++}`}, 'web', 'shop', timestamp '2026-01-02')`
  while (!isDone)
  await migrated
  await sql`insert into traffic (uuid, time_stamp) values ('after', timestamp '2026-01-03')`

  assert.equal(await fileOf(), file)
  const [before] = await sql`
    select count(*)::int as rows, count(tx)::int as txs, count(pod_workload_name)::int as workloads
    from traffic where uuid like 'before-%'`
  assert.deepEqual({ ...before }, { rows: FLOWS, txs: 0, workloads: 0 })
  const [during] = await sql`select count(*)::int as rows from traffic where uuid like 'during-%'`
  assert.equal(during!.rows, stored)
  const [after] = await sql`select tx::text::bigint > (select max(tx::text::bigint) from traffic where uuid <> 'after')
    or not exists (select from traffic where uuid <> 'after' and tx is not null) as is_last from traffic where uuid = 'after'`
  assert.equal(after!.is_last, true)
  const [index] = await sql`select indisvalid from pg_index where indexrelid = 'traffic_in_order_of_writing'::regclass`
  assert.equal(index!.indisvalid, true)
})
