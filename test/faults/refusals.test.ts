/** Temporary failures of the database are 503 with `Retry-After` and one log line. They end with their cause. */
import assert from 'node:assert/strict'
import test, { beforeEach } from 'node:test'
import type postgres from 'postgres'
import { staleSweep } from '../../jobs/stale-sweep.ts'
import { SUPERUSER } from '../../lib/db/embedded/start.ts'
import { DatabaseUnreachable, migrate } from '../../sql/migrate/index.ts'
import { startApp } from '../support/app.ts'
import { startAsRole } from '../support/as-role.ts'
import { noLog } from '../support/log.ts'
import { startOwnServer } from '../support/own-server.ts'
import { podPost } from '../support/records.ts'
import { administer, withDatabase } from '../support/server.ts'
import { becomes, until } from '../support/until.ts'

type Broker = Awaited<ReturnType<typeof startAsRole>>

const SECRET = 'hunter2-secret-value'
const owner = await startApp()
const broker = await startAsRole(owner)
const pod = (name: string) => podPost({ pod_name: name, node_name: 'node-a' })
assert.equal((await broker.post('/pod/spec', pod('first'))).status, 200)

beforeEach(() => {
  owner.logged.length = 0
})

let made = 0
/** A write, a look-up (folded with others into one statement), and a list. */
const ask = {
  write: (of: Broker) => of.post('/pod/spec', pod(`pod-${made++}`)),
  lookUp: (of: Broker) => of.get('/pod/name/first'),
  list: (of: Broker) => of.get('/pod/list/node-a'),
}
const askAll = (of: Broker) => Promise.all(Object.values(ask).map((one) => one(of)))

async function assertServed(of: Broker): Promise<void> {
  for (const answer of await askAll(of)) assert.equal(answer.status, 200, await answer.text())
}

async function assertUnavailable(answer: Response, retryAfter: string): Promise<void> {
  assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, retryAfter])
  assert.match(answer.headers.get('content-type')!, /^text\/plain/)
  assert.equal(await answer.text(), 'database unavailable; retry in a moment')
}

const warnings = () => owner.logged.filter(({ level, msg }) => level === 40 && String(msg).startsWith('database '))

/** One log line with the cause and the code, and without any text of a statement. */
function assertToldOnce(code: string, cause: RegExp): void {
  const lines = warnings().filter((line) => line.code === code)
  assert.equal(lines.length, 1, JSON.stringify(warnings()))
  assert.match(String(lines[0]!.msg), cause)
  assert.ok(String(lines[0]!.msg).includes(`(${code})`))
  for (const hidden of [SECRET, 'select', 'insert into', broker.password])
    assert.ok(!JSON.stringify(owner.logged).includes(hidden), hidden)
  assert.ok(!owner.logged.some(({ msg }) => msg === 'request failed'))
}

// ---- Refused by the server, statement by statement ------------------------------------------------------------------

await owner.sql.unsafe(`
  create table refusal (code text);
  create sequence refused;
  create function refuse() returns boolean language plpgsql security definer as $$
  declare asked text := (select r.code from refusal r);
  begin
    if asked is null then return true; end if;
    perform nextval('refused');
    raise exception '${SECRET}: select, insert into' using errcode = asked;
  end $$;
  alter table pod enable row level security;
  create policy everything on pod using (true) with check (true);
  create policy refusing on pod as restrictive using (refuse()) with check (refuse());`)

/** Makes every statement on pods fail with this code while `work` runs. */
async function whileRefused(code: string, work: () => Promise<void>): Promise<void> {
  await owner.sql`insert into refusal values (${code})`
  try {
    await work()
  } finally {
    await owner.sql`delete from refusal`
  }
}

for (const [code, cause, retryAfter] of [
  ['53100', /^database refuses: no space left on device/, '5'],
  ['53200', /^database refuses: the server is out of memory/, '5'],
  ['53400', /^database refuses: a configured limit/, '5'],
  ['53000', /^database refuses: the server lacks resources/, '5'],
  ['55000', /^database refuses: .* cannot be used in its present state/, '5'],
  ['55006', /^database refuses: .* cannot be used in its present state/, '5'],
  ['58000', /^database refuses: the server cannot read or write its files/, '5'],
  ['58030', /^database refuses: the server cannot read or write its files/, '5'],
  ['58P01', /^database refuses: the server cannot read or write its files/, '5'],
  ['42501', /^database refuses: the role lacks a privilege/, '5'],
  ['28000', /^database refuses: the role may not log in/, '5'],
  ['3D000', /^database refuses: the database does not exist/, '5'],
  ['F0000', /^database refuses: the configuration of the server is wrong/, '5'],
  ['XX001', /^database refuses: stored data are damaged/, '5'],
  ['XX002', /^database refuses: an index is damaged/, '5'],
  ['57P01', /^database unavailable: the server is shutting down/, '1'],
  ['57P02', /^database unavailable: the server crashed/, '1'],
  ['57P03', /^database unavailable: the server is starting up/, '1'],
  ['57P04', /^database unavailable: the database was dropped/, '1'],
  ['57P05', /^database unavailable: the operator/, '1'],
  ['25006', /^database unavailable: the server is read-only/, '1'],
  ['53300', /^database unavailable: the server takes no more connections/, '1'],
  ['08006', /^database unavailable: the server cannot be reached/, '1'],
] as const) {
  // A lost connection is replaced and its statement may be repeated; after a refusal neither happens.
  const isRefusal = retryAfter === '5'
  test(`${code}: 503, one line in the log, and served again without a restart`, async () => {
    await assertServed(broker)
    const before = broker.db.stats()
    await whileRefused(code, async () => {
      for (const answer of await askAll(broker)) await assertUnavailable(answer, retryAfter)
      const { gates } = broker.db.stats()
      for (const gate of ['ingest', 'read'] as const) {
        assert.equal(
          gates[gate].lost > before.gates[gate].lost,
          !isRefusal,
          `${gate}: connections are kept where they are sound`,
        )
        if (isRefusal) assert.equal(gates[gate].retried, before.gates[gate].retried)
      }
    })
    await assertServed(broker)
    // A broker logs each cause once a minute at most: each test has its own code.
    assertToldOnce(code, cause)
  })
}

for (const code of ['23505', '22P02', '42P01', '54001', 'XX000', 'P0001']) {
  test(`${code}: an error of the statement is 500, without a warning about the database`, async () => {
    await whileRefused(code, async () => {
      for (const answer of await askAll(broker))
        assert.deepEqual([answer.status, answer.headers.get('retry-after')], [500, null])
    })
    assert.deepEqual(warnings(), [])
    await assertServed(broker)
  })
}

test('a folded statement that is refused is not repeated one by one', async () => {
  const statements = async () => {
    const [row] = await owner.sql<{ n: number }[]>`select last_value::int as n from refused`
    return row!.n
  }
  await whileRefused('53100', async () => {
    for (const one of [ask.lookUp, ask.write]) {
      const before = await statements()
      const answers = await Promise.all(Array.from({ length: 20 }, () => one(broker)))
      for (const answer of answers) await assertUnavailable(answer, '5')
      // The first request has a statement of its own, the others share a few. One by one they would be twenty more.
      const count = (await statements()) - before
      assert.ok(count < answers.length, `${count} statements`)
    }
  })
  await assertServed(broker)
})

test('a refused statement of a job fails its pass, and the next pass succeeds', async () => {
  const { config, log } = owner.deps
  const pass = () => staleSweep.run({ config, db: broker.db, log, signal: new AbortController().signal })
  await owner.sql`update pod set is_dead = false, time_stamp = time_stamp - interval '1 year'`
  await whileRefused('53200', async () => {
    await assert.rejects(pass(), { name: 'DatabaseUnavailable', code: '53200' })
  })
  assert.equal((await pass()).outcome, 'done')
})

// ---- Refusals caused by an administrator ----------------------------------------------------------------------------

test('while a privilege is revoked, requests are 503; when it is granted again, they succeed', async () => {
  const other = await startAsRole(owner)
  await assertServed(other)
  await owner.sql.unsafe(`revoke all on pod from ${other.role}`)
  for (const answer of await askAll(other)) await assertUnavailable(answer, '5')
  await owner.sql.unsafe(`grant select, insert, update, delete on pod to ${other.role}`)
  await assertServed(other)
  assertToldOnce('42501', /the role lacks a privilege/)
})

test('while the role may not log in, requests are 503; when it may again, they succeed', async () => {
  const other = await startAsRole(owner)
  await assertServed(other)
  await owner.sql.unsafe(`alter role ${other.role} nologin`)
  await other.terminate()
  await until('its sessions are over', () => other.db.stats().open === 0)
  for (const answer of await askAll(other)) await assertUnavailable(answer, '1')
  const { retried } = other.db.stats().gates.read
  await assertUnavailable(await ask.list(other), '1')
  assert.equal(other.db.stats().gates.read.retried, retried, 'not tried again at once')
  await owner.sql.unsafe(`alter role ${other.role} login`)
  await assertServed(other)
  assertToldOnce('28000', /^database unavailable: the role may not log in/)
})

test('while the server is read-only, reads succeed and writes are 503; afterwards both succeed', async () => {
  const other = await startAsRole(owner)
  await owner.sql.unsafe(`alter role ${other.role} set default_transaction_read_only = on`)
  await assertUnavailable(await ask.write(other), '1')
  for (const one of [ask.lookUp, ask.list]) assert.equal((await one(other)).status, 200)
  await owner.sql.unsafe(`alter role ${other.role} reset default_transaction_read_only`)
  await assertServed(other)
  assertToldOnce('25006', /^database unavailable: the server is read-only/)
})

test('while the database refuses connections or is renamed, requests are 503; when it is back, they succeed', async () => {
  const home = await startApp()
  const other = await startAsRole({ ...home, deps: owner.deps })
  assert.equal((await other.post('/pod/spec', pod('first'))).status, 200)
  await assertServed(other)
  const name = home.url.split('/').at(-1)!
  // A database can be renamed only without connections to it.
  const server = withDatabase(home.url, 'postgres')
  const evict = () =>
    administer(server, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`)
  const rename = (from: string, to: string) =>
    until('it is renamed', async () => {
      await evict()
      await administer(server, `alter database ${from} rename to ${to}`)
      return true
    })
  await administer(server, `alter database ${name} allow_connections false`)
  await evict()
  await until('its sessions are over', () => other.db.stats().open === 0)
  for (const answer of await askAll(other)) await assertUnavailable(answer, '1')
  assertToldOnce('55000', /cannot be used in its present state/)
  await rename(name, `${name}_away`)
  for (const answer of await askAll(other)) await assertUnavailable(answer, '1')
  await becomes(async () => (await other.get('/health')).status, 503)
  assertToldOnce('3D000', /^database unavailable: the database does not exist/)
  await rename(`${name}_away`, name)
  await administer(server, `alter database ${name} allow_connections true`)
  await assertServed(other)
  await becomes(async () => (await other.get('/health')).status, 200)
})

/** Starts another server, which requires a password from the role. */
async function withPasswords(work: (of: Broker, sql: postgres.Sql) => Promise<void>): Promise<void> {
  const { port, sql } = await startOwnServer({})
  const url = `postgres://${SUPERUSER}@127.0.0.1:${port}/postgres`
  const other = await startAsRole({ deps: owner.deps, sql, url })
  await work(other, sql).finally(() => other.db.end(100))
}

test('while the password is wrong, requests are 503 and migrations fail', { timeout: 900_000 }, () =>
  withPasswords(async (other, sql) => {
    assert.equal((await other.post('/pod/spec', pod('first'))).status, 200)
    await assertServed(other)
    await sql.unsafe(`alter role ${other.role} password '${SECRET}'`)
    await other.terminate('%', sql)
    await until('its sessions are over', () => other.db.stats().open === 0)
    for (const answer of await askAll(other)) await assertUnavailable(answer, '1')
    assertToldOnce('28P01', /^database unavailable: the password is wrong/)
    await assert.rejects(
      migrate({ connection: other.connection, log: noLog, maxRetries: 2, retryPauseMs: 1 }),
      (error: Error) => {
        assert.ok(error instanceof DatabaseUnreachable)
        assert.match(error.message, /\(28P01\) in 2 attempts: the password is wrong; .*DATABASE_URL/)
        for (const hidden of [SECRET, other.password]) assert.ok(!error.message.includes(hidden))
        return true
      },
    )
    await sql.unsafe(`alter role ${other.role} password '${other.password}'`)
    await assertServed(other)
    const elsewhere = other.connection.replace(/\/postgres$/, '/nowhere')
    await assert.rejects(
      migrate({ connection: elsewhere, log: noLog, maxRetries: 1 }),
      /\(3D000\) in 1 attempts: the database does not exist;/,
    )
  }),
)
