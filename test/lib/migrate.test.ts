import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import net, { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type postgres from 'postgres'
import { openPool } from '../../lib/db/open-pool.ts'
import { schemaVersion } from '../../sql/migrate/files.ts'
import { type MigrateOptions, migrate } from '../../sql/migrate/index.ts'
import { createTestDatabase } from '../support/database.ts'
import { logTo } from '../support/log.ts'
import { startRefusing } from '../support/refusing.ts'
import { withDatabase } from '../support/server.ts'
import { undisturbed } from '../support/undisturbed.ts'
import { until } from '../support/until.ts'
import { bundled } from './bundled.ts'

type Files = Record<string, string>

/** A schema folder; `add` writes more files. Keys are paths such as `migrations/0001_a.sql`. */
function schemaFolder(t: TestContext, files: Files) {
  const folder = mkdtempSync(join(tmpdir(), 'broker-migrate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  for (const part of ['migrations', 'functions']) mkdirSync(join(folder, part))
  const add = (more: Files) => {
    for (const [name, text] of Object.entries(more)) writeFileSync(join(folder, name), text)
  }
  add(files)
  return { folder, add }
}

const home = await createTestDatabase()
let databases = 0

/** A database without any of the product's own migrations. */
async function emptyDatabase(t: TestContext): Promise<{ sql: postgres.Sql; url: string }> {
  const name = `${new URL(home.url).pathname.slice(1)}_${databases++}`
  const url = withDatabase(home.url, name)
  await home.adminSql.unsafe(`create database ${name} template template0 encoding 'UTF8'`)
  const sql = openPool(url, { max: 4, fetch_types: false, connect_timeout: 0, onnotice: () => {} })
  t.after(async () => {
    await sql.end({ timeout: 1 })
    await home.adminSql.unsafe(`drop database ${name} with (force)`)
  })
  return { sql, url }
}

interface Line {
  level: string
  message: string
}

function run(url: string, folder: string, options: Partial<MigrateOptions> = {}) {
  const lines: Line[] = []
  const result = migrate({
    connection: url,
    folder,
    log: logTo((level, message) => lines.push({ level, message })),
    retryPauseMs: 20,
    ...options,
  })
  return Object.assign(result, { lines })
}

const TWO = {
  'migrations/0001_first.sql': '-- reason\ncreate table first (id int primary key)',
  'migrations/0002_second.sql':
    '-- reason\ncreate table second (id int);\ninsert into second values (1); -- no newline at the end',
}

test('files are applied in order and recorded, and a second run applies nothing', async (t) => {
  const { folder, add } = schemaFolder(t, TWO)
  const { sql, url } = await emptyDatabase(t)
  assert.equal(schemaVersion(folder), 2)
  assert.deepEqual(await run(url, folder), { applied: ['0001_first', '0002_second'], version: 2 })
  assert.deepEqual(await run(url, folder), { applied: [], version: 2 })
  add({ 'migrations/0010_later.sql': 'alter table first add column name text' })
  assert.deepEqual(await run(url, folder), { applied: ['0010_later'], version: 10 })
  const rows =
    await sql`select version, name, abs(extract(epoch from now() at time zone 'utc' - applied_at)) < 600 as is_recent
                         from schema_migration order by version`
  assert.deepEqual(
    rows.map(({ version, name, is_recent }) => [version, name, is_recent]),
    [
      [1, '0001_first', true],
      [2, '0002_second', true],
      [10, '0010_later', true],
    ],
  )
})

test('the schema folder of the product is found from the sources', () => {
  assert.ok(Number.isInteger(schemaVersion()))
})

test('a file that fails changes nothing and is named with its line', async (t) => {
  const { folder, add } = schemaFolder(t, {
    ...TWO,
    'migrations/0003_bad.sql': 'create table third (id int);\n\nselect nonsense from first;\n',
  })
  const { sql, url } = await emptyDatabase(t)
  await assert.rejects(run(url, folder), {
    name: 'MigrationFailed',
    message: /migrations\/0003_bad\.sql:3: column "nonsense" does not exist/,
  })
  assert.deepEqual(
    [...(await sql`select to_regclass('third')::text as third, max(version) as version from schema_migration`)],
    [{ third: null, version: 2 }],
  )
  add({ 'migrations/0003_bad.sql': 'create table third (id int)' })
  assert.deepEqual((await run(url, folder)).applied, ['0003_bad'])
})

test('four processes at once on an empty database all succeed, and each file runs once', async (t) => {
  const { folder } = schemaFolder(t, {
    ...TWO,
    'migrations/0003_index.sql':
      '-- no-transaction: the table is large\ncreate index concurrently if not exists second_by_id on second (id)',
    'migrations/0004_slow.sql': 'select pg_sleep(0.3); create table fourth (id int)',
    'functions/one.sql': "create or replace function one() returns int language sql as 'select 1'",
  })
  const { sql, url } = await emptyDatabase(t)
  const script = `
    ${bundled(new URL('../../sql/migrate/index.ts', import.meta.url))}
    const result = await migrate({ connection: process.argv[1], folder: process.argv[2], log: { debug() {}, info() {}, warn() {} } })
    console.log(JSON.stringify(result))`
  const runs = Array.from({ length: 4 }, async () => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', script, url, folder], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    const [code] = await once(child, 'close')
    assert.equal(code, 0)
    return JSON.parse(output) as { applied: string[]; version: number }
  })
  const results = await Promise.all(runs)
  assert.deepEqual(
    results.map(({ version }) => version),
    [4, 4, 4, 4],
  )
  assert.deepEqual(results.flatMap(({ applied }) => applied).sort(), [
    '0001_first',
    '0002_second',
    '0003_index',
    '0004_slow',
  ])
  assert.deepEqual([...(await sql`select one(), (select count(*)::int from second) as rows`)], [{ one: 1, rows: 1 }])
})

test('a schema newer than the code is refused and not changed', async (t) => {
  const newer = schemaFolder(t, TWO)
  const older = schemaFolder(t, {
    'migrations/0001_first.sql': TWO['migrations/0001_first.sql'],
    'functions/f.sql': 'select 1',
  })
  const { sql, url } = await emptyDatabase(t)
  await run(url, newer.folder)
  const before = await sql`select hash from schema_functions`
  await assert.rejects(run(url, older.folder), { name: 'SchemaTooNew', message: /version 2 .* up to 1/ })
  assert.deepEqual([...(await sql`select hash from schema_functions`)], [...before])
})

test('a database migrated by a file that this release does not have is refused', async (t) => {
  const { sql, url } = await emptyDatabase(t)
  await run(url, schemaFolder(t, TWO).folder)
  await sql`update schema_migration set name = '0001_other' where version = 1`
  await assert.rejects(run(url, schemaFolder(t, TWO).folder), { name: 'UnsupportedDatabase', message: /0001_other/ })
})

test('functions are applied again when their text changes, and only then', async (t) => {
  const { folder, add } = schemaFolder(t, {
    'functions/one.sql': "create or replace function one() returns int language sql as 'select 1';",
  })
  const { sql, url } = await emptyDatabase(t)
  await run(url, folder)
  const [first] = await sql`select applied_at::text, one() from schema_functions`
  assert.equal(first!.one, 1)
  await run(url, folder)
  assert.equal((await sql`select applied_at::text from schema_functions`)[0]!.applied_at, first!.applied_at)
  add({
    'functions/one.sql': "create or replace function one() returns int language sql as 'select 11';",
    'functions/two.sql': 'select one()',
  })
  await run(url, folder)
  assert.equal((await sql`select one()`)[0]!.one, 11)
  add({ 'functions/two.sql': 'select no_such_function()' })
  await assert.rejects(run(url, folder), { name: 'MigrationFailed', message: /functions.*no_such_function/ })
  assert.equal((await sql`select one()`)[0]!.one, 11)
})

test('waits for a table lock no longer than the limit, then retries', async (t) => {
  const { folder, add } = schemaFolder(t, { 'migrations/0001_first.sql': TWO['migrations/0001_first.sql'] })
  const { url } = await emptyDatabase(t)
  await run(url, folder)
  add({ 'migrations/0002_column.sql': 'alter table first add column name text' })

  const holder = openPool(url, { max: 1, fetch_types: false })
  t.after(() => holder.end({ timeout: 1 }))
  await holder.unsafe('begin; lock table first in access share mode')
  await assert.rejects(run(url, folder, { lockTimeoutMs: 20, maxRetries: 2 }), {
    name: 'MigrationFailed',
    message: /0002_column.*lock timeout/,
  })

  const patient = run(url, folder, { lockTimeoutMs: 20, maxRetries: 1_000 })
  await until('it was held up', () => patient.lines.some(({ message }) => message.includes('held up')))
  await holder.unsafe('commit')
  assert.deepEqual((await patient).applied, ['0002_column'])
})

async function migrateUnderLimits(t: TestContext): Promise<void> {
  const { folder } = schemaFolder(t, {
    'migrations/0001_slow.sql': 'create table slow as select 1 as id; select pg_sleep(0.8)',
    'migrations/0002_index.sql':
      '-- no-transaction\ncreate index concurrently if not exists slow_by_id on slow (pause(id))',
  })
  const { sql, url } = await emptyDatabase(t)
  await sql.unsafe(
    "create function pause(int) returns int immutable language plpgsql as 'begin perform pg_sleep(0.8); return 1; end'",
  )
  const name = new URL(url).pathname.slice(1)
  await sql.unsafe(
    `alter database ${name} set statement_timeout = 500; alter database ${name} set idle_in_transaction_session_timeout = 500`,
  )
  assert.deepEqual((await run(url, folder)).applied, ['0001_slow', '0002_index'])
}
test('the limits of a database do not interrupt a migration', (t) => undisturbed(() => migrateUnderLimits(t)))

for (const isolation of ['repeatable read', 'serializable']) {
  test(`a database whose default isolation is ${isolation} is migrated like any other`, {
    timeout: 900_000,
  }, async (t) => {
    const { folder } = schemaFolder(t, {
      ...TWO,
      'migrations/0003_index.sql':
        '-- no-transaction\ncreate index concurrently if not exists second_by_id on second (id)',
    })
    const { sql, url } = await emptyDatabase(t)
    await sql.unsafe(
      `alter database ${new URL(url).pathname.slice(1)} set default_transaction_isolation = '${isolation}'`,
    )
    assert.deepEqual((await run(url, folder)).applied, ['0001_first', '0002_second', '0003_index'])
  })
}

test('a file outside a transaction waits for locks no longer than the limit, and is retried a limited number of times', {
  timeout: 900_000,
}, async (t) => {
  const { folder, add } = schemaFolder(t, TWO)
  const { sql, url } = await emptyDatabase(t)
  await run(url, folder)
  add({
    'migrations/0003_index.sql':
      '-- no-transaction\ncreate index concurrently if not exists second_by_id on second (id)',
  })
  const holder = openPool(url, { max: 1, fetch_types: false })
  t.after(() => holder.end({ timeout: 1 }))
  await holder.unsafe('begin; insert into second values (2)')
  await assert.rejects(run(url, folder, { aloneLockTimeoutMs: 20, maxRetries: 2 }), {
    name: 'MigrationFailed',
    message: /0003_index.*lock timeout/,
  })
  const patient = run(url, folder, { aloneLockTimeoutMs: 20, maxRetries: 1_000 })
  await until('it was held up', () => patient.lines.some(({ message }) => message.includes('held up')))
  await holder.unsafe('commit')
  assert.deepEqual((await patient).applied, ['0003_index'])
  const [index] = await sql<
    { valid: boolean }[]
  >`select indisvalid as valid from pg_index where indexrelid = to_regclass('second_by_id')`
  assert.equal(index!.valid, true)
})

test('the wait for another migration is limited, and the error names its server process', async (t) => {
  const { folder } = schemaFolder(t, TWO)
  const { url } = await emptyDatabase(t)
  const holder = openPool(url, { max: 1, fetch_types: false })
  t.after(() => holder.end({ timeout: 1 }))
  const [[row]] = (await holder.unsafe(
    'select pg_backend_pid() as pid; begin; select pg_advisory_xact_lock(1651666795, 1)',
  )) as unknown as [{ pid: number }[]]
  await assert.rejects(run(url, folder, { lockWaitMs: 50 }), {
    name: 'MigrationFailed',
    message: `another migration has held the lock for 0.05 s: server process ${row!.pid} holds it`,
  })
})

test('an invalid index that a failed concurrent build left behind is built again', async (t) => {
  const { folder } = schemaFolder(t, {
    'migrations/0001_rows.sql': 'create table rows (id int); insert into rows values (1), (1)',
    'migrations/0002_unique.sql':
      '-- no-transaction\ncreate unique index concurrently if not exists rows_by_id on rows (id)',
  })
  const { sql, url } = await emptyDatabase(t)
  await assert.rejects(run(url, folder), { name: 'MigrationFailed', message: /0002_unique\.sql.*rows_by_id/ })
  const isValid = () =>
    sql<{ indisvalid: boolean }[]>`select indisvalid from pg_index where indexrelid = to_regclass('rows_by_id')`
  assert.equal((await isValid())[0]?.indisvalid, false)
  await sql`delete from rows where ctid = (select min(ctid) from rows)`
  assert.deepEqual((await run(url, folder)).applied, ['0002_unique'])
  assert.equal((await isValid())[0]?.indisvalid, true)

  // The process died between the statement and its record.
  await sql`delete from schema_migration where version = 2`
  assert.deepEqual((await run(url, folder)).applied, ['0002_unique'])
})

test('file names, numbers and repeatability are checked before anything runs', async (t) => {
  for (const [files, message] of [
    [{ 'migrations/1_short.sql': '' }, /NNNN_name/],
    [{ 'migrations/0000_zero.sql': '' }, /NNNN_name/],
    [{ 'migrations/0001_a.sql': '', 'migrations/0001_b.sql': '' }, /number 1/],
    [{ 'migrations/0001_a.sql': '-- no-transaction\ncreate index concurrently a on b (c)' }, /exists/],
  ] as const) {
    const { folder } = schemaFolder(t, files)
    assert.throws(() => schemaVersion(folder), { message })
    await assert.rejects(run('postgresql://nobody@127.0.0.1:1/none', folder), { message })
  }
})

test('an encoding other than UTF8 is refused', async (t) => {
  const { folder } = schemaFolder(t, TWO)
  const { sql, url } = await emptyDatabase(t)
  const name = new URL(url).pathname.slice(1)
  await sql.unsafe(`create database ${name}_l1 template template0 encoding 'LATIN1' locale 'C'`)
  try {
    await assert.rejects(run(url.replace(name, `${name}_l1`), folder), {
      name: 'UnsupportedDatabase',
      message: /LATIN1.*UTF8/,
    })
  } finally {
    await sql.unsafe(`drop database ${name}_l1 with (force)`)
  }
})

test('an unreachable database is retried up to the limit', async (t) => {
  const { folder } = schemaFolder(t, TWO)
  const closed = createServer().listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const { port } = closed.address() as { port: number }
  await new Promise((resolve) => closed.close(resolve))
  const url = `postgresql://nobody@127.0.0.1:${port}/none`
  const attempt = run(url, folder, { maxRetries: 3 })
  await assert.rejects(attempt, { name: 'DatabaseUnreachable', message: /ECONNREFUSED.*3 attempts/ })
  assert.equal(attempt.lines.filter(({ level }) => level === 'warn').length, 2)
})

test('a server that accepts connections and stays silent counts as unreachable', { timeout: 900_000 }, async (t) => {
  const { folder } = schemaFolder(t, TWO)
  const mute = createServer().listen(0, '127.0.0.1')
  await once(mute, 'listening')
  t.after(() => mute.close())
  mute.on('connection', (socket) => t.after(() => socket.destroy()))
  const { port } = mute.address() as { port: number }
  const attempt = run(`postgresql://nobody@127.0.0.1:${port}/none`, folder, { maxRetries: 1 })
  await assert.rejects(attempt, { name: 'DatabaseUnreachable', message: /CONNECT_TIMEOUT.*1 attempt/ })
})

test('a migration whose connections are cut continues', async (t) => {
  const { folder } = schemaFolder(t, {
    ...TWO,
    'migrations/0003_slow.sql': 'create table third (id int); select pg_advisory_xact_lock(77)',
  })
  const { sql, url } = await emptyDatabase(t)
  const holder = openPool(url, { max: 1, fetch_types: false })
  t.after(() => holder.end({ timeout: 1 }))
  await holder.unsafe('select pg_advisory_lock(77)')
  const attempt = run(url, folder)
  const cut = await until('both connections are seen', async () => {
    const rows = await sql<{ pid: number }[]>`
        select pid from pg_stat_activity
        where datname = current_database() and application_name = 'broker-migrate' and pid <> pg_backend_pid()`
    const isSlow = (
      await sql`select from pg_stat_activity where query like '%pg_advisory_xact_lock(77)%' and state = 'active' and pid <> pg_backend_pid()`
    ).length
    return isSlow > 0 && rows.length === 2 && rows
  })
  for (const { pid } of cut) await sql`select pg_terminate_backend(${pid})`
  await holder.unsafe('select pg_advisory_unlock(77)')
  assert.equal((await attempt).version, 3)
  assert.deepEqual(
    [...(await sql`select count(*)::int as files, to_regclass('third')::text as third from schema_migration`)],
    [{ files: 3, third: 'third' }],
  )
})

// ---- Retries by error code ------------------------------------------------------------------------------------------

const ATTEMPTS = 3

/** Whether the whole migration, only the file, or nothing is retried. */
type Outcome = 'reconnects' | 'is held up' | 'fails at once'

/** The outcome of a migration that meets the same error each time. */
async function outcomeOf(attempt: ReturnType<typeof run>, code: string): Promise<Outcome> {
  const error: Error = await attempt.then(
    () => assert.fail('it succeeded'),
    (reason) => reason,
  )
  const warned = (text: string) =>
    attempt.lines.filter(({ level, message }) => level === 'warn' && message.includes(text)).length
  const [reconnects, heldUp] = [warned('no connection to the database'), warned('held up by other sessions')]
  if (error.name === 'DatabaseUnreachable') {
    assert.match(error.message, new RegExp(`\\(${code}\\) in ${ATTEMPTS} attempts`))
    assert.deepEqual([reconnects, heldUp], [ATTEMPTS - 1, 0])
    return 'reconnects'
  }
  assert.equal(reconnects, 0)
  if (heldUp === 0) return 'fails at once'
  assert.deepEqual([error.name, heldUp], ['MigrationFailed', ATTEMPTS - 1])
  return 'is held up'
}

const PATIENT = { maxRetries: ATTEMPTS, retryPauseMs: 1 }

/** An error as the sockets and resolvers of Node report it. */
const failed = (code: string, syscall: string) => Object.assign(new Error(`${syscall} ${code}`), { code, syscall })

for (const [code, syscall] of [
  ['ECONNREFUSED', 'connect'],
  ['ECONNRESET', 'read'],
  ['EPIPE', 'write'],
  ['ETIMEDOUT', 'connect'],
  ['EHOSTUNREACH', 'connect'],
  ['ENETUNREACH', 'connect'],
  ['EADDRNOTAVAIL', 'connect'],
  ['EACCES', 'connect'], // no access to the folder of a unix socket
  ['ENOENT', 'connect'], // a unix socket that does not exist yet
  ['ENOTFOUND', 'getaddrinfo'],
  ['EAI_AGAIN', 'getaddrinfo'],
] as const) {
  for (const [what, error] of [
    ['one address', failed(code, syscall)],
    ['several addresses', new AggregateError([failed(code, syscall), failed('ECONNREFUSED', 'connect')])],
    ['several addresses, named together', Object.assign(new AggregateError([failed(code, syscall)]), { code })],
  ] as const) {
    test(`${code} of ${what}: the migration reconnects`, async (t) => {
      t.mock.method(net, 'connect', () => {
        const socket = new net.Socket()
        setImmediate(() => socket.destroy(error))
        return socket
      })
      const { folder } = schemaFolder(t, TWO)
      assert.equal(await outcomeOf(run('postgresql://nobody@nowhere/none', folder, PATIENT), code), 'reconnects')
    })
  }
}

for (const [severity, code] of [
  ['FATAL', '08P01'],
  ['FATAL', '25P03'],
  ['FATAL', '25P04'],
  ['FATAL', '28000'],
  ['FATAL', '28P01'],
  ['FATAL', '3D000'],
  ['FATAL', '40001'], // a standby in recovery
  ['FATAL', '42501'],
  ['FATAL', '53300'],
  ['FATAL', '55000'],
  ['FATAL', '57014'],
  ['FATAL', '57P01'],
  ['FATAL', '57P02'],
  ['FATAL', '57P03'],
  ['FATAL', '57P04'],
  ['FATAL', '57P05'],
  ['FATAL', 'XX000'],
  ['PANIC', '58030'],
] as const) {
  test(`${severity} ${code} on connecting: the migration reconnects`, async (t) => {
    const server = await startRefusing(t, severity, code)
    const { folder } = schemaFolder(t, TWO)
    const { port } = server.address() as net.AddressInfo
    assert.equal(
      await outcomeOf(run(`postgresql://nobody@127.0.0.1:${port}/none`, folder, PATIENT), code),
      'reconnects',
    )
  })
}

test('the code of a failed statement decides about retries, in a transaction and outside one', {
  timeout: 900_000,
}, async (t) => {
  const { url } = await emptyDatabase(t)
  const outcomes: Record<Outcome, readonly string[]> = {
    reconnects: [
      '08000',
      '08003',
      '08006',
      '08P01',
      '53300',
      '57P01',
      '57P02',
      '57P03',
      '57P04',
      '57P05',
      '25P03',
      '25P04',
    ],
    'is held up': ['55P03', '40P01', '40001'],
    'fails at once': [
      ...['57014', '25006', '22P02', '23505', '28000', '3D000', '42501', '42P07', '53100', '53200', '53400', '54001'],
      ...['55000', '55006', '57000', '58030', 'F0000', 'P0001', 'XX000', 'XX001'],
    ],
  }
  for (const [expected, codes] of Object.entries(outcomes)) {
    for (const code of codes) {
      for (const head of ['', '-- no-transaction, if exists\n']) {
        await t.test(`${code}${head && ', alone'}: ${expected}`, async (t) => {
          const text = `${head}do $$ begin raise exception 'told' using errcode = '${code}'; end $$`
          const { folder } = schemaFolder(t, { 'migrations/0001_told.sql': text })
          assert.equal(await outcomeOf(run(url, folder, PATIENT), code), expected)
        })
      }
    }
  }
})
