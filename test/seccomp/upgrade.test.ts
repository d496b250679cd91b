/**
 * A database filled before pods were distinguished by uid, and replicas of the previous release that write to it beside
 * new ones.
 */
import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { SQL_FOLDER } from '../../sql/migrate/files.ts'
import { migrate } from '../../sql/migrate/index.ts'
import { createTestDatabase } from '../support/database.ts'
import { logTo } from '../support/log.ts'

/** The last migration of the previous release. */
const LAST_BEFORE = 30
const log = logTo(() => {})

/** A database of the previous release. */
async function databaseBefore(t: TestContext) {
  const { adminSql: sql, url, drop } = await createTestDatabase()
  const folder = mkdtempSync(join(tmpdir(), 'broker-upgrade-'))
  t.after(async () => {
    await drop()
    rmSync(folder, { recursive: true })
  })
  for (const part of ['migrations', 'functions']) mkdirSync(join(folder, part))
  const before = readdirSync(join(SQL_FOLDER, 'migrations')).filter((name) => Number(name.slice(0, 4)) <= LAST_BEFORE)
  for (const name of before) copyFileSync(join(SQL_FOLDER, 'migrations', name), join(folder, 'migrations', name))
  await sql.unsafe('drop schema public cascade; create schema public')
  await migrate({ connection: url, folder, log })

  const T = '2026-01-01T09:00:00'
  return {
    sql,
    upgrade: () => migrate({ connection: url, log }),
    pod: (
      name: string,
      workload: string | null,
      level: string | null,
      fields: { uid?: string; started?: string } = {},
    ) => sql`
      insert into pod (pod_name, pod_ip, pod_namespace, time_stamp, node_name, is_dead, pod_ips, workload_kind, workload_name, capture_level, pod_uid,
                       started_at)
      values (${name}, '', 'shop', ${T}, 'n', false, '{}', ${workload && 'Deployment'}, ${workload}, ${level}, ${fields.uid ?? null},
              ${fields.started ?? null})`,
    syscalls: (name: string, names: string, unitedIn: string | null, time = T) => sql`
      insert into pod_syscalls (pod_name, pod_namespace, syscalls, arch, time_stamp, united_in)
      values (${name}, '', ${names}, 'x86_64', ${time},
              (select json_build_array('shop', 'Deployment', w)::text from (select ${unitedIn}::text as w) w where w is not null))`,
    union: (name: string, names: string) => sql`
      insert into workload_syscalls
      values ('shop', 'Deployment', ${name}, ${names}, '{x86_64}', 'h', ${names.split(',').length}, ${T})`,
    async capture(name: string) {
      const [row] =
        await sql`select worst, pods, to_json(names) as names, to_json(ranks) as ranks from workload_capture('shop', 'Deployment', ${name})`
      return (row!.names ?? []).map((one: string, i: number) => `${one} ${row!.ranks[i]}`)
    },
    namesOf: async (name: string) =>
      (await sql`select syscalls from workload_syscalls where workload_name = ${name}`)[0]?.syscalls,
  }
}
type Before = Awaited<ReturnType<typeof databaseBefore>>
/** As a replica of the previous release does it. */
async function oldPost(
  { sql }: Before,
  pod_name: string,
  syscalls: string[],
  time_stamp: string,
  pod_namespace = '',
): Promise<unknown> {
  const doc = JSON.stringify([{ pod_name, pod_namespace, syscalls, arch: 'x86_64', time_stamp }])
  return (await sql`select union_syscalls(${doc}::text::json) as left_out`)[0]!.left_out
}
async function oldSpec({ sql }: Before, pod_name: string, workload: string, level: string, fields: object) {
  const pod = {
    ...{
      pod_name,
      pod_ip: '',
      pod_namespace: 'shop',
      pod_obj: null,
      node_name: 'n',
      is_dead: false,
      pod_identity: null,
    },
    ...{
      workload_selector_labels: null,
      pod_ips: [],
      workload_kind: 'Deployment',
      workload_name: workload,
      capture_level: level,
    },
    ...{ host_network: null, started_at: null, pod_uid: null, running_containers: null, ...fields },
  }
  return (await sql`select upsert_pods(${JSON.stringify([pod])}::text::json) as n`)[0]!.n
}

test('stored syscalls get the pods they belong to, and an unknown level if these are no longer known', async (t) => {
  const before = await databaseBefore(t)
  await before.union('web', 'read,write')
  await before.pod('web-1', 'web', 'full', { uid: 'u1' })
  await before.syscalls('web-1', 'read', 'web')
  await before.pod('web-2', 'web', 'high')
  await before.syscalls('web-2', 'write', 'web')
  // Nothing of these was sent yet, or it cannot be determined.
  await before.pod('web-3', 'web', 'low')
  await before.syscalls('stray', 'bpf', null)
  await before.union('api', 'read')
  await before.syscalls('api-gone', 'read', 'api')
  await before.union('moved', 'read')
  await before.pod('moved-1', 'other', 'full')
  await before.syscalls('moved-1', 'read', 'moved')
  // The pod of the row started after the syscalls were sent.
  await before.union('again', 'read')
  await before.pod('again-0', 'again', 'full', { uid: 'u2', started: '2026-01-01T08:59:00' })
  await before.syscalls('again-0', 'read', 'again', '2026-01-01T08:00:00')

  await before.upgrade()
  assert.deepEqual(await before.capture('web'), ['web-2 1', 'web-1 0'])
  assert.deepEqual(await before.capture('api'), ['api-gone 4'])
  assert.deepEqual(await before.capture('moved'), ['moved-1 4'])
  assert.deepEqual(await before.capture('again'), ['again-0 4'])
  const waiting = await before.sql`select pod_name, syscalls from unattributed_syscalls`
  assert.deepEqual([...waiting], [{ pod_name: 'stray', syscalls: 'bpf' }])

  // A repeated post of stored values changes no set; the new pod of the name counts beside the previous one.
  await oldSpec(before, 'again-0', 'again', 'full', { time_stamp: '2026-01-01T09:01:00', pod_uid: 'u2', pod_obj: {} })
  assert.deepEqual(await before.capture('again'), ['again-0 4'])
  await oldPost(before, 'again-0', ['read'], '2026-01-01T09:02:00')
  assert.deepEqual(await before.capture('again'), ['again-0 4', 'again-0 0'])
  // Waiting syscalls are given to the pod once it is posted.
  await oldSpec(before, 'stray', 'web', 'full', { time_stamp: '2026-01-01T09:01:00' })
  assert.equal(await before.namesOf('web'), 'bpf,read,write')
})

test('posts through a replica of the previous release, beside new ones, are also credited to the right pod', async (t) => {
  const before = await databaseBefore(t)
  await before.upgrade()
  const { sql } = before
  assert.equal(
    await oldSpec(before, 'db-0', 'db', 'low', { time_stamp: '2026-01-01T09:00:00', pod_uid: 'a', pod_obj: {} }),
    1,
  )
  assert.equal(await oldPost(before, 'db-0', ['read'], '2026-01-01T09:01:00'), 0)
  await oldSpec(before, 'db-0', 'db', 'full', { time_stamp: '2026-01-01T09:02:00', pod_uid: 'b', pod_obj: {} })
  assert.deepEqual(await before.capture('db'), ['db-0 3'])
  await oldSpec(before, 'db-0', 'db', 'full', {
    time_stamp: '2026-01-01T09:03:00',
    pod_namespace: 'bank',
    pod_uid: 'c',
    pod_obj: {},
  })
  await oldPost(before, 'db-0', ['bpf'], '2026-01-01T09:04:00', 'bank')
  assert.equal(await oldPost(before, 'db-0', ['write'], '2026-01-01T09:05:00', 'shop'), 0)
  const sets = await sql`select pod_namespace, syscalls from workload_syscalls order by 1`
  assert.deepEqual(
    [...sets],
    [
      { pod_namespace: 'bank', syscalls: 'bpf' },
      { pod_namespace: 'shop', syscalls: 'read,write' },
    ],
  )
  assert.deepEqual(await before.capture('db'), ['db-0 3', 'db-0 0'])
})

test('the tables accept the writes of the previous release until the functions are new', async (t) => {
  const before = await databaseBefore(t)
  await before.upgrade()
  // Rows as written by the functions of the previous release, by column position.
  await before.union('web', 'read')
  await before.pod('web-1', 'web', 'full')
  await before.syscalls('web-1', 'read', 'web')
  assert.equal(await before.namesOf('web'), 'read')
})
