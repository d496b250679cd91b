import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import net from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import {
  type Database,
  DatabaseBusy,
  type DatabaseOptions,
  DatabaseUnavailable,
  fixed,
  type GateName,
  openDatabase,
  type Sql,
  splitPool,
} from '../../lib/db/index.ts'
import { holdClock, stopClock } from '../support/clock.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { promotedBytes } from '../support/heap.ts'
import { noLog } from '../support/log.ts'
import { type FaultyProxy, startProxy } from '../support/proxy.ts'
import { until } from '../support/until.ts'

// The clock stands still, so that a call whose connection is lost is always retried, however slow the machine.
holdClock()

let home: TestDatabase
const opened: Database[] = []
const proxies: FaultyProxy[] = []

function open(options: Partial<DatabaseOptions> = {}): Database {
  const database = openDatabase({
    connection: home.connection,
    poolMax: 3,
    statementTimeoutMs: 60_000,
    waitMs: 60_000,
    prepare: true,
    applicationName: 'database-test',
    log: noLog,
    ...options,
  })
  opened.push(database)
  return database
}

async function proxied(): Promise<FaultyProxy> {
  const proxy = await startProxy(home.connection)
  proxies.push(proxy)
  return proxy
}

const GATES = ['ingest', 'read', 'probe', 'job'] as const
const LOCK = 4711
/** A wait longer than any test: a call that returns before has another reason. */
const NEVER_MS = 3_600_000
const one = (sql: Sql) => sql`select 1 as one`
const sleep = (seconds: number) => (sql: Sql) => sql`select pg_sleep(${seconds}::float8)`

async function failure(promise: Promise<unknown>): Promise<Error & { code?: string }> {
  return promise.then(
    () => assert.fail('resolved'),
    (error: Error) => error,
  )
}

/** Holds the lock that `waits` waits for; the result releases it. */
async function holdLock(): Promise<() => Promise<void>> {
  let freeBuffer = () => {}
  const held = new Promise<void>((resolve) => {
    freeBuffer = resolve
  })
  let taken = () => {}
  const isTaken = new Promise<void>((resolve) => {
    taken = resolve
  })
  const done = home.adminSql.begin(async (sql) => {
    await sql`select pg_advisory_xact_lock(${LOCK})`
    taken()
    await held
  })
  await isTaken
  return async () => {
    freeBuffer()
    await done
  }
}

/** A statement that lasts as long as the lock is held. */
const waits = (sql: Sql) => sql`select pg_advisory_xact_lock_shared(${LOCK}), 1 as one`

/** Resolves when this many sessions wait for the lock, so their statements are running. */
const areWaiting = (sessions: number) =>
  until(`${sessions} wait`, async () => {
    const [row] =
      await home.adminSql`select count(*)::int as n from pg_locks where locktype = 'advisory' and objid = ${LOCK} and not granted`
    return row!.n === sessions
  })

/** Whether the promise is settled by now. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const open = {}
  const first = await Promise.race([promise.catch(() => {}), turn().then(() => open)])
  return first !== open
}

/** The value of a setting in a session of that gate. */
async function setting(database: Database, gate: GateName, name: string): Promise<string> {
  const [row] = await database[gate]((sql) => sql<{ value: string }[]>`select current_setting(${name}) as value`)
  return row!.value
}

describe('database', () => {
  before(async () => {
    home = await createTestDatabase()
  })

  after(async () => {
    await Promise.all(opened.map((database) => database.end(100)))
    await Promise.all(proxies.map((proxy) => proxy.close()))
    await home.drop()
  })

  describe('values', () => {
    test('json gives the bytes of one column, null for SQL NULL and for no row', async () => {
      const { read } = open()
      assert.deepEqual(
        await read.json((sql) => sql`select json_build_object('a', ${'é"'}::text)`),
        Buffer.from('{"a" : "é\\""}'),
      )
      assert.equal(await read.json((sql) => sql`select null::json`), null)
      assert.equal(await read.json((sql) => sql`select 1 where false`), null)
    })

    test('bigint, numeric and timestamps are returned as exact text', async () => {
      const { read } = open()
      const [row] = await read(
        (sql) =>
          sql`select 9007199254740993::bigint as id, 0.10::numeric as n, '2026-01-02 03:04:05.678901'::timestamp as at, '{"a":1}'::jsonb as doc`,
      )
      assert.deepEqual(
        { ...row },
        { id: '9007199254740993', n: '0.10', at: '2026-01-02 03:04:05.678901', doc: { a: 1 } },
      )
    })

    test('timestamp parameters are stored as written, dates as UTC', async () => {
      const { read } = open()
      const text = '2026-01-02 03:04:05.678901'
      const [row] = await read(
        (sql) =>
          sql`select ${text}::timestamp as text, ${new Date('2026-01-02T03:04:05.678Z')}::timestamptz at time zone 'utc' as date`,
      )
      assert.deepEqual({ ...row }, { text, date: '2026-01-02 03:04:05.678' })
    })

    test('array elements with special characters are unchanged', async () => {
      const { read } = open()
      const texts = ['', 'a,b', '{}', '"', '\\', "'", 'null', 'NULL', ' é\n\t', '\\"']
      const [row] = await read(
        (sql) => sql`select to_json(${texts}::text[]) as texts, to_json(${[1, -2]}::bigint[]) as ids`,
      )
      assert.deepEqual({ ...row }, { texts, ids: [1, -2] })
      const [nulls] = await read(
        (sql) => sql`select to_json(${['a', null] as string[]}::text[]) as texts, to_json(${[]}::text[]) as none`,
      )
      assert.deepEqual({ ...nulls }, { texts: ['a', null], none: [] })
    })
  })

  describe('sessions', () => {
    test('have the application name, UTC, the statement timeout, and index plans except for jobs and probes', async () => {
      const database = open({ statementTimeoutMs: 4_321 })
      for (const gate of GATES) {
        assert.equal(await setting(database, gate, 'application_name'), 'database-test')
        assert.equal(await setting(database, gate, 'TimeZone'), 'UTC')
        assert.equal(await setting(database, gate, 'statement_timeout'), '4321ms')
        assert.equal(await setting(database, gate, 'jit'), 'off')
        for (const plan of ['enable_seqscan', 'enable_hashjoin', 'enable_mergejoin']) {
          assert.equal(await setting(database, gate, plan), gate === 'probe' || gate === 'job' ? 'on' : 'off')
        }
      }
    })

    test('with prepared statements off have only the application name and keep no prepared statement', async () => {
      const database = open({ prepare: false, statementTimeoutMs: 4_321 })
      assert.equal(await setting(database, 'read', 'application_name'), 'database-test')
      assert.equal(await setting(database, 'read', 'statement_timeout'), '0')
      assert.equal(await setting(database, 'read', 'enable_seqscan'), 'on')
      assert.equal(String(await database.read.json((sql) => sql`select count(*) from pg_prepared_statements`)), '0')
    })

    test('are split over four gates, at least one each, and never exceed the pool', () => {
      assert.deepEqual(splitPool(1), { ingest: 1, read: 1, probe: 1, job: 1 })
      assert.deepEqual(splitPool(6), { ingest: 2, read: 2, probe: 1, job: 1 })
      assert.deepEqual(splitPool(7), { ingest: 2, read: 3, probe: 1, job: 1 })
      assert.deepEqual(splitPool(8), { ingest: 2, read: 3, probe: 1, job: 2 })
      assert.deepEqual(splitPool(32), { ingest: 14, read: 15, probe: 1, job: 2 })
      for (let poolMax = 4; poolMax < 100; poolMax++) {
        const sum = Object.values(splitPool(poolMax)).reduce((total, slots) => total + slots, 0)
        assert.equal(sum, poolMax)
      }
    })

    test('never exceed the gate, and all are idle afterwards', async () => {
      const database = open({ poolMax: 5, applicationName: 'database-test-limit' })
      const count = (sql: Sql) =>
        sql<
          { n: number }[]
        >`select count(*)::int as n, pg_sleep(0.005) from pg_stat_activity where application_name = 'database-test-limit'`
      const counts = await Promise.all(Array.from({ length: 40 }, () => database.read(count)))
      assert.equal(Math.max(...counts.map(([row]) => row!.n)), 2)
      const { inFlight, waiting, open: standing, idle } = database.read.stats
      assert.deepEqual({ inFlight, waiting, standing, idle }, { inFlight: 0, waiting: 0, standing: 2, idle: 2 })
    })
  })

  describe('faults of the statement', () => {
    test('a statement timeout is DatabaseBusy with the message of the database', async () => {
      const error = await failure(
        open({ statementTimeoutMs: 100, deadlineMs: 60_000 }).read(
          (sql) => sql`select pg_sleep(600), ${'secret'}::text`,
        ),
      )
      assert.ok(error instanceof DatabaseBusy)
      assert.equal(error.message, 'database busy: canceling statement due to statement timeout')
      assert.equal(error.retryAfterSeconds, 5)
      assert.doesNotMatch(JSON.stringify(error, Object.getOwnPropertyNames(error)), /secret|pg_sleep/)
    })

    test('a lock timeout is DatabaseBusy', async () => {
      const error = await failure(
        open().read((sql) => sql`do $$ begin raise exception 'no lock' using errcode = '55P03'; end $$`),
      )
      assert.ok(error instanceof DatabaseBusy)
    })

    test('a deadlock is retried and both callers succeed', async () => {
      const database = open({ poolMax: 5 })
      const both = (first: number, second: number) => (sql: Sql) =>
        sql`
        with a as materialized (select pg_advisory_xact_lock(${first}::int)),
             s as materialized (select pg_advisory_xact_lock_shared(${LOCK}) from a)
        select pg_advisory_xact_lock(${second}::int) from s`
      const freeBuffer = await holdLock()
      const calls = Promise.all([database.read(both(1, 2)), database.read(both(2, 1))])
      // By now each holds its first lock.
      await areWaiting(2)
      await freeBuffer()
      await calls
      assert.ok(database.read.stats.retried >= 1)
    })

    test('a serialization failure is retried a limited number of times', async () => {
      const database = open({ retries: 2 })
      let attempts = 0
      const error = await failure(
        database.read((sql) => {
          attempts++
          return sql`do $$ begin raise exception 'again' using errcode = '40001'; end $$`
        }),
      )
      assert.ok(error instanceof DatabaseBusy)
      assert.equal(attempts, 3)
    })

    test('an error of the statement itself is returned unchanged and not retried', async () => {
      const database = open()
      let attempts = 0
      const error = await failure(
        database.read((sql) => {
          attempts++
          return sql`select * from no_such_table`
        }),
      )
      assert.equal(error.name, 'PostgresError')
      assert.equal(error.code, '42P01')
      assert.equal(attempts, 1)
      assert.equal(database.read.stats.open, 1)
    })

    test('undefined parameters, one after another, fail without a retry and free their slot', async () => {
      const database = open({ deadlineMs: 10_000 })
      const bad = (sql: Sql) => sql`select ${undefined as unknown as string}::text`
      await database.read(one)
      const errors = await Promise.all([
        failure(database.read(bad)),
        failure(database.read(bad)),
        failure(database.read(bad)),
      ])
      for (const error of errors) assert.equal(error.code, 'UNDEFINED_VALUE')
      assert.equal((await database.read(one)).length, 1)
      const { slots, inFlight, waiting, retried, lost, replaced } = database.read.stats
      assert.deepEqual(
        { slots, inFlight, waiting, retried, lost, replaced },
        { slots: 1, inFlight: 0, waiting: 0, retried: 0, lost: 0, replaced: 0 },
      )
    })

    test('a table altered under a prepared statement causes no error', async () => {
      const database = open()
      await home.adminSql`create table altered (a int)`
      await home.adminSql`insert into altered values (1)`
      const all = (sql: Sql) => sql`select * from altered where a = ${1}`
      assert.deepEqual([...(await database.read(all))], [{ a: 1 }])
      await home.adminSql`alter table altered add b int`
      assert.deepEqual([...(await database.read(all))], [{ a: 1, b: null }])
    })

    test('a statement refused by a read-only server is retried on a new connection', async () => {
      const database = open({ retries: 1 })
      await home.adminSql`create table written (a int)`
      await database.ingest((sql) => sql`set default_transaction_read_only = on`)
      await database.ingest((sql) => sql`insert into written values (1)`)
      assert.equal(database.ingest.stats.lost, 1)
    })

    test('a callback that throws rejects and gives its slot back', async () => {
      const database = open()
      const error = await failure(
        database.read(() => {
          throw new RangeError('built badly')
        }),
      )
      assert.ok(error instanceof RangeError)
      assert.equal(database.read.stats.inFlight, 0)
      await database.end(NEVER_MS)
    })
  })

  describe('fixed statements', () => {
    test('pass their values in order', async () => {
      const statement = fixed<[{ a: string; b: number }]>("select $1::text as a, 'in \\u0001' as between, $2::int as b")
      const { ingest, read } = open()
      for (const gate of [ingest, read, open({ prepare: false }).read]) {
        const [row] = await gate((sql) => statement(sql, "it's $1", 7))
        assert.deepEqual({ ...row }, { a: "it's $1", between: 'in \\u0001', b: 7 })
      }
    })

    test('run without values, and return bytes', async () => {
      const { read } = open()
      assert.deepEqual(await read.json((sql) => fixed('select 1')(sql)), Buffer.from('1'))
    })

    test('need each placeholder once and in order, and as many values', async () => {
      for (const text of ['select $2', 'select $1, $1', 'select $2, $1', 'select $0', 'select $1, $3'])
        assert.throws(() => fixed(text), TypeError, text)
      const { read } = open()
      const statement = fixed('select $1::text, $2::text')
      for (const values of [[], ['a'], ['a', 'b', 'c']])
        assert.ok((await failure(read((sql) => statement(sql, ...values)))) instanceof TypeError)
      assert.equal(read.stats.inFlight, 0)
    })
  })

  describe('memory after a query', () => {
    test('a finished query holds neither its values nor its rows', async () => {
      const { read } = open()
      for (const isRaw of [false, true]) {
        let query: (PromiseLike<unknown[]> & Record<string, unknown>) | undefined
        const statement = (sql: Sql) => {
          const pending = sql`select ${'value'}::text as a`
          query = pending as never
          return pending
        }
        if (isRaw) assert.deepEqual(await read.json(statement), Buffer.from('value'))
        else assert.deepEqual([...(await read(statement))], [{ a: 'value' }])
        assert.deepEqual([...(await query!)], [])
        for (const key of ['args', 'parameters', 'string', 'signature', 'options']) assert.equal(query![key], null, key)
      }
    })

    test('values and rows are freed by young collections, without a full collection', async () => {
      const { read } = open()
      const [ROUNDS, BYTES] = [100, 50_000]
      const text = (round: number) => String(round).padStart(BYTES, 'x')
      const statements = {
        value: (sql: Sql, round: number) => sql`select length(${text(round)}::text)`,
        row: (sql: Sql, round: number) => sql`select repeat(${String(round % 10)}::text, ${BYTES}::int)`,
      }
      for (const [what, statement] of Object.entries(statements)) {
        const promoted = await promotedBytes(ROUNDS, (round) => read((sql) => statement(sql, round)))
        assert.ok(promoted < ROUNDS * BYTES * 0.5, `${promoted} bytes of ${ROUNDS} times one ${what} of ${BYTES}`)
      }
    })
  })

  describe('the gate', () => {
    test('a full gate refuses at once and does not affect the other gates', async () => {
      const database = open({ maxQueue: 1 })
      const freeBuffer = await holdLock()
      const busy = [database.read(waits), database.read(waits)]
      const error = await failure(database.read(one))
      assert.ok(error instanceof DatabaseUnavailable)
      assert.equal(error.code, 'GATE_FULL')
      assert.equal(error.retryAfterSeconds, 1)
      for (const gate of GATES) if (gate !== 'read') await database[gate](one)
      assert.equal(database.read.stats.inFlight, 1)
      await freeBuffer()
      await Promise.all(busy)
    })

    test('a call waits at most waitMs', async (t) => {
      const database = open({ waitMs: 100 })
      const freeBuffer = await holdLock()
      const busy = database.read(waits)
      await areWaiting(1)
      const clock = stopClock(t)
      const error = failure(database.read(one))
      clock.tick(99)
      assert.equal(await isSettled(error), false)
      clock.tick(1)
      assert.ok((await error) instanceof DatabaseUnavailable)
      assert.equal((await error).code, 'GATE_TIMEOUT')
      clock.restart()
      await freeBuffer()
      await busy
    })

    test('a statement of a job waits for longer than five seconds behind a long one', async (t) => {
      const database = open({ waitMs: undefined })
      const freeBuffer = await holdLock()
      const busy = database.job(waits)
      await areWaiting(1)
      const clock = stopClock(t)
      const other = database.job(one)
      clock.tick(30_000)
      assert.equal(await isSettled(other), false)
      clock.restart()
      await freeBuffer()
      await busy
      assert.equal((await other).length, 1)
    })

    test('within: the caller gets its error in time, and the connection that did not answer is closed', async (t) => {
      const database = open()
      const freeBuffer = await holdLock()
      await database.probe.within(NEVER_MS, one)
      const clock = stopClock(t)
      const error = failure(database.probe.within(100, waits))
      await areWaiting(1)
      clock.tick(99)
      assert.equal(await isSettled(error), false)
      clock.tick(1)
      assert.equal((await error).code, 'PROBE_TIMEOUT')
      assert.ok((await error) instanceof DatabaseUnavailable)
      const { inFlight, open: standing, isCutOff } = database.probe.stats
      assert.deepEqual({ inFlight, standing, isCutOff }, { inFlight: 0, standing: 0, isCutOff: true })
      assert.equal((await database.probe.within(NEVER_MS, one)).length, 1, 'the lock is still held')
      assert.equal(database.probe.stats.isCutOff, false)
      clock.restart()
      await freeBuffer()
    })

    test('within: a call that gives up while queued closes no connection', async (t) => {
      const database = open()
      const freeBuffer = await holdLock()
      const busy = database.probe(waits)
      await areWaiting(1)
      const clock = stopClock(t)
      let wasBuilt = false
      const error = failure(
        database.probe.within(50, (sql) => {
          wasBuilt = true
          return one(sql)
        }),
      )
      clock.tick(50)
      assert.equal((await error).code, 'PROBE_TIMEOUT')
      assert.deepEqual(
        [database.probe.stats.waiting, database.probe.stats.inFlight, database.probe.stats.open],
        [0, 1, 0],
      )
      clock.restart()
      await freeBuffer()
      assert.equal((await busy).length, 1)
      assert.equal(wasBuilt, false)
    })

    test('within: a call that gives up between two attempts sends nothing more', async (t) => {
      const database = open({ retries: 5 })
      const clock = stopClock(t)
      let attempts = 0
      const error = failure(
        database.probe.within(100, (sql) => {
          attempts++
          return sql`do $$ begin raise exception 'again' using errcode = '40001'; end $$`
        }),
      )
      await until('the first attempt has failed', () => database.probe.stats.retried === 1)
      clock.tick(100)
      assert.equal((await error).code, 'PROBE_TIMEOUT')
      const sent = attempts
      assert.deepEqual([database.probe.stats.inFlight, database.probe.stats.open], [0, 0])
      clock.tick(1_000)
      assert.equal((await database.probe(one)).length, 1)
      assert.equal(attempts, sent)
    })

    test('once: the wait for a slot is limited, the statement is not', async (t) => {
      const database = open()
      let freeBuffer = await holdLock()
      const busy = database.job(waits)
      await areWaiting(1)
      const clock = stopClock(t)
      let wasBuilt = false
      const error = failure(
        database.job.once(100, (sql) => {
          wasBuilt = true
          return one(sql)
        }),
      )
      clock.tick(99)
      assert.equal(await isSettled(error), false)
      clock.tick(1)
      assert.ok((await error) instanceof DatabaseUnavailable)
      assert.equal(wasBuilt, false)
      assert.equal(database.job.stats.waiting, 0)
      const patient = database.job.once(5_000, one)
      await freeBuffer()
      await busy
      assert.equal((await patient).length, 1)
      freeBuffer = await holdLock()
      const long = database.job.once(50, waits)
      await areWaiting(1)
      clock.tick(10_000)
      assert.equal(await isSettled(long), false)
      clock.restart()
      await freeBuffer()
      assert.equal((await long).length, 1)
    })

    test('once: a lost connection is not retried, other calls are', async () => {
      const database = open()
      const kill = (sql: Sql) => sql`select pg_terminate_backend(pg_backend_pid())`
      const { retried } = database.job.stats
      assert.ok((await failure(database.job.once(1_000, kill))) instanceof DatabaseUnavailable)
      assert.equal(database.job.stats.retried, retried)
      await failure(database.job(kill))
      assert.ok(database.job.stats.retried > retried)
    })
  })

  describe('lost connections', { timeout: 900_000 }, () => {
    test('a closed port is DatabaseUnavailable after all retries', async () => {
      const server = net.createServer().listen(0, '127.0.0.1')
      await once(server, 'listening')
      const { port } = server.address() as net.AddressInfo
      server.close()
      await once(server, 'close')
      const database = open({ connection: { host: '127.0.0.1', port, user: 'nobody', database: 'nothing' } })
      const error = await failure(database.read(one))
      assert.ok(error instanceof DatabaseUnavailable)
      assert.equal(error.code, 'ECONNREFUSED')
      assert.equal(database.read.stats.retried, 2)
    })

    test('a missing socket is DatabaseUnavailable', async () => {
      const database = open({ connection: { host: '/nonexistent', port: 5432, user: 'nobody', database: 'nothing' } })
      assert.ok((await failure(database.read(one))) instanceof DatabaseUnavailable)
    })

    test('a server that closes during startup is dialled at most three times', async () => {
      const proxy = await proxied()
      proxy.slam(true)
      const database = open({ connection: proxy.connection })
      assert.ok((await failure(database.read(one))) instanceof DatabaseUnavailable)
      assert.ok(proxy.accepted <= 3, `dialled ${proxy.accepted} times`)
      proxy.slam(false)
      assert.equal((await database.read(one)).length, 1)
    })

    for (const harm of ['cut', 'halfClose'] as const) {
      test(`${harm} under a statement: it is sent again on a new connection, and listeners are called`, async () => {
        const proxy = await proxied()
        const database = open({ connection: proxy.connection })
        const heard: string[] = []
        database.onPoolReplaced((gate) => heard.push(gate))
        await database.read(one)
        const freeBuffer = await holdLock()
        const answer = database.read(waits)
        await areWaiting(1)
        proxy[harm]()
        await until('it is lost', () => database.read.stats.lost === 1)
        await freeBuffer()
        assert.equal((await answer)[0]!.one, 1)
        assert.deepEqual(heard, ['read'])
        assert.equal(database.generation, 1)
        const { lost, retried, replaced } = database.read.stats
        assert.deepEqual({ lost, retried, replaced }, { lost: 1, retried: 1, replaced: 0 })
      })
    }

    test('without retries a lost connection is DatabaseUnavailable', async () => {
      const proxy = await proxied()
      const database = open({ connection: proxy.connection, retries: 0 })
      const freeBuffer = await holdLock()
      const error = failure(database.read(waits))
      await areWaiting(1)
      proxy.cut()
      assert.ok((await error) instanceof DatabaseUnavailable)
      await freeBuffer()
    })

    for (const [ms, retried] of [
      [1_999, 1],
      [2_000, 0],
    ] as const) {
      test(`lost ${ms} ms into a call: ${retried === 1 ? 'sent again' : 'not sent again'}`, async (t) => {
        const database = open()
        const freeBuffer = await holdLock()
        const clock = stopClock(t)
        const answer = database.read(waits).catch((error: Error) => error)
        await areWaiting(1)
        clock.tick(ms)
        const name = 'database-test'
        await home.adminSql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = ${name} and wait_event_type = 'Lock'`
        await until('it is lost', () => database.read.stats.lost === 1)
        // The pause before the second attempt.
        clock.tick(100)
        await freeBuffer()
        assert.equal((await answer) instanceof DatabaseUnavailable, retried === 0)
        assert.deepEqual([database.read.stats.retried, database.read.stats.lost], [retried, 1])
      })
    }

    test('a connection that is cut while idle fails no call', async () => {
      const proxy = await proxied()
      const database = open({ connection: proxy.connection, retries: 0 })
      await database.read(one)
      proxy.cut()
      await until('it is noticed', () => database.read.stats.open === 0)
      assert.equal((await database.read(one)).length, 1)
    })

    test('a silent server: the pool is replaced, all running calls fail at once, and calls succeed when it answers again', async (t) => {
      const proxy = await proxied()
      const clock = stopClock(t)
      const database = open({ connection: proxy.connection, poolMax: 7, deadlineMs: 1_000 })
      const heard: string[] = []
      database.onPoolReplaced((gate) => heard.push(gate))
      await Promise.all([database.read(sleep(0.01)), database.read(sleep(0.01)), database.read(sleep(0.01))])
      proxy.pause()
      const told: (string | undefined)[] = []
      const ask = () => failure(database.read(one)).then(({ code }) => void told.push(code))
      const early = ask()
      clock.tick(500)
      const late = ask()
      clock.tick(500)
      await turn()
      assert.deepEqual(told, [])
      clock.tick(50)
      await Promise.all([early, late])
      assert.deepEqual(told, ['POOL_REPLACED', 'POOL_REPLACED'])
      assert.deepEqual(heard, ['read'])
      assert.equal(database.generation, 1)
      const { inFlight, replaced, open: standing, isCutOff } = database.read.stats
      assert.deepEqual(
        { inFlight, replaced, standing, isCutOff },
        { inFlight: 0, replaced: 1, standing: 0, isCutOff: true },
      )
      const again = failure(database.read(one))
      clock.tick(1_050)
      assert.equal((await again).code, 'POOL_REPLACED')
      assert.equal(database.generation, 2)
      proxy.resume()
      assert.equal((await database.read(one)).length, 1)
      assert.equal(database.read.stats.isCutOff, false)
    })

    test('unused connections are closed after ten minutes, used ones kept', async (t) => {
      t.mock.timers.enable({ apis: ['setInterval'] })
      const database = open({ retries: 0 })
      await Promise.all([database.read(one), database.ingest(one)])
      for (let minute = 0; minute < 11; minute++) {
        t.mock.timers.tick(60_000)
        await database.ingest(one)
      }
      assert.deepEqual([database.read.stats.open, database.ingest.stats.open], [0, 1])
      assert.equal(database.generation, 1)
      assert.equal((await database.read(one)).length, 1)
    })

    test('a blocked event loop is not taken for a silent server', async () => {
      const DEADLINE_MS = 1_500
      const database = open({ deadlineMs: DEADLINE_MS })
      await database.read(one)
      const answer = database.read(sleep(0.05))
      await turn()
      const end = Date.now() + 1.3 * DEADLINE_MS
      while (Date.now() < end);
      await answer
      assert.equal(database.read.stats.replaced, 0)
    })

    test('a dead first host is skipped for the second', async () => {
      const proxy = await proxied()
      const { user, password, host, port, database: name } = proxy.connection
      const database = open({ connection: `postgres://${user}:${password}@127.0.0.1:1,${host}:${port}/${name}` })
      assert.equal((await database.read(one)).length, 1)
      assert.equal((await database.ingest(one)).length, 1)
    })
  })

  describe('end', () => {
    test('lets statements finish, then refuses', async () => {
      const database = open()
      const freeBuffer = await holdLock()
      const answer = database.read(waits)
      await areWaiting(1)
      const end = database.end(NEVER_MS)
      assert.equal(await isSettled(end), false)
      await freeBuffer()
      await Promise.all([answer, end])
      const error = await failure(database.read(one))
      assert.ok(error instanceof DatabaseUnavailable)
      assert.equal(error.code, 'DATABASE_ENDED')
      await database.end()
    })

    test('returns at once when idle and closes its sessions on the server', async () => {
      const database = open({ applicationName: 'database-test-end' })
      await Promise.all(GATES.map((gate) => database[gate](one)))
      await database.end(NEVER_MS)
      await until('the server has none of its sessions left', async () => {
        const [row] =
          await home.adminSql`select count(*)::int as n from pg_stat_activity where application_name = 'database-test-end'`
        return row!.n === 0
      })
    })

    test('ends in time despite a hanging statement, a waiting one and a silent server', async (t) => {
      const proxy = await proxied()
      const database = open({ connection: proxy.connection })
      const freeBuffer = await holdLock()
      await database.ingest(one)
      const errors = [failure(database.read(waits)), failure(database.read(one))]
      await areWaiting(1)
      proxy.pause()
      const clock = stopClock(t)
      const end = database.end(200)
      clock.tick(199)
      assert.equal(await isSettled(end), false)
      clock.tick(1)
      await end
      for (const error of await Promise.all(errors)) assert.ok(error instanceof DatabaseUnavailable)
      assert.deepEqual([database.stats().open, database.read.stats.inFlight], [0, 0])
      await freeBuffer()
    })
  })

  describe('the rule against transactions', () => {
    const FORBIDDEN =
      /\.begin\s*\(|\.reserve\s*\(|\.(readable|writable)\s*\(\)|[`'"]\s*copy\s|\bcopy\b[^\n]*\b(from\s+stdin|to\s+stdout)\b/i

    test('no transaction, reserved connection or copy outside sql/', () => {
      for (const root of ['handlers', 'lib', 'jobs']) {
        for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
          if (!name.endsWith('.ts')) continue
          const file = join(root, name)
          assert.doesNotMatch(readFileSync(file, 'utf8'), FORBIDDEN, file)
        }
      }
    })

    test('the pattern matches what it forbids', () => {
      for (const text of [
        'await sql.begin(async',
        'sql.reserve()',
        'sql`\n  copy pod from stdin`',
        'select; copy pod to stdout',
      ])
        assert.match(text, FORBIDDEN)
      for (const text of ['const copy = [...rows]', 'a copy of the row', 'this.beginning()'])
        assert.doesNotMatch(text, FORBIDDEN)
    })
  })
})

test('a server that accepts the connection but stays silent is a CONNECT_TIMEOUT and frees its slot', async () => {
  const silent = net.createServer((socket) => socket.on('error', () => {})).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const { port } = silent.address() as net.AddressInfo
  const db = openDatabase({
    connection: { host: '127.0.0.1', port, user: 'u', database: 'd' },
    poolMax: 3,
    statementTimeoutMs: 0,
    prepare: true,
    applicationName: 'silent',
    log: noLog,
  })
  await assert.rejects(
    db.read((sql) => sql`select 1`),
    (error: Error) => error instanceof DatabaseUnavailable && error.code === 'CONNECT_TIMEOUT',
  )
  assert.equal(db.stats().gates.read.inFlight, 0)
  await db.end(100)
  silent.close()
})
