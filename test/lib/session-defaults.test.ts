import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { pino } from 'pino'
import { routes } from '../../handlers/router.ts'
import { jobs } from '../../jobs/index.ts'
import { runPass } from '../../jobs/pass.ts'
import { createApp } from '../../lib/app/app.ts'
import { buildDeps } from '../../lib/app/build.ts'
import { type Config, loadConfig } from '../../lib/config/index.ts'
import { type Database, openDatabase } from '../../lib/db/index.ts'
import { roleSettings, sessionSettings } from '../../lib/db/session.ts'
import { checkSettings } from '../../lib/db/settings-check.ts'
import { migrate } from '../../sql/migrate/index.ts'
import { flow } from '../support/broker.ts'
import { createTestDatabase } from '../support/database.ts'
import { onlyFull } from '../support/depth.ts'
import { container, digestOf } from '../support/images.ts'
import { logTo, noLog } from '../support/log.ts'
import { startOwnServer } from '../support/own-server.ts'
import { undisturbed } from '../support/undisturbed.ts'

type Defaults = Record<string, string>

/**
 * `direct`: without a pooler. `pooled`: sessions have no settings of their own, and the role has those from the
 * migration.
 */
const KINDS = ['direct', 'pooled'] as const
type Kind = (typeof KINDS)[number]

const STATEMENT_TIMEOUT_MS = 20_000
const NOW_MS = 10 * 60_000
const log = pino({ level: 'silent' })

/** A database that was never migrated, with these defaults for its sessions. */
async function emptyDatabase(defaults: Defaults) {
  const database = await createTestDatabase()
  const sql = database.adminSql
  await sql.unsafe('drop schema public cascade; create schema public')
  const name = new URL(database.url).pathname.slice(1)
  const known = new Set((await sql<{ name: string }[]>`select name from pg_settings`).map((row) => row.name))
  for (const [setting, value] of Object.entries(defaults))
    if (known.has(setting) || setting.includes('.'))
      await sql.unsafe(`alter database ${name} set ${setting} = ${value}`)
  return { ...database, name }
}

/** Migrates an empty database with these defaults, posts, reads, runs the jobs and reads again; returns all answers. */
async function answers(kind: Kind, defaults: Defaults): Promise<unknown[]> {
  const { url, drop } = await emptyDatabase(defaults)
  const prepare = kind === 'direct'
  await migrate({
    connection: url,
    log: noLog,
    ...(prepare ? {} : { roleSettings: roleSettings(STATEMENT_TIMEOUT_MS) }),
  })
  const config = loadConfig({ NODE_ENV: 'test', PEER_STALE_ALIVE_SECS: '60', DEAD_POD_RETENTION_DAYS: '1' })
  const db = openDatabase({
    connection: url,
    poolMax: 6,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    waitMs: 60_000,
    prepare,
    applicationName: 'session-defaults-test',
    retries: 0,
    log,
  })
  try {
    return await conversation(config, db)
  } finally {
    await db.end(100)
    await drop()
  }
}

async function conversation(config: Config, db: Database): Promise<unknown[]> {
  const app = createApp(buildDeps({ config, db, log }), routes)
  const said: unknown[] = []
  const ask = async (method: string, path: string, body?: unknown) => {
    const answer = await app.request(path, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    said.push(`${method} ${path} ${answer.status} ${withoutNow(await answer.text())}`)
  }
  const pod = (n: number, fields = {}) =>
    ask('POST', '/pod/spec', {
      pod_name: `web-${n}`,
      pod_ip: `10.1.0.${n + 1}`,
      pod_namespace: 'shop',
      time_stamp: '2026-01-01T10:00:00.123456',
      node_name: 'node-a',
      is_dead: false,
      pod_obj: { metadata: { name: `web-${n}`, uid: `uid-${n}`, note: 'back\\slash "quoted" {}\'' } },
      workload_selector_labels: { app: 'web' },
      workload_kind: 'Deployment',
      workload_name: 'web',
      started_at: '2025-12-31T23:00:00',
      containers: [container('app', digestOf(`image-${n % 2}`)), container('side')],
      ...fields,
    })
  for (const n of [0, 1, 2]) await pod(n)
  await pod(0, { time_stamp: '2026-01-01T10:01:00.5', pod_ip: '10.1.0.99' })
  await ask('POST', '/svc/spec', {
    svc_ip: '10.96.0.7',
    svc_name: 'pay\\ments',
    svc_namespace: 'shop',
    time_stamp: '2026-01-01T09:00:00',
  })
  const flows = [1, 2, 3, 4, 5].map((n) => ({
    ...flow(n),
    traffic_in_out_ip: n % 2 ? '10.1.0.2' : '10.96.0.7',
    syn_retries: n,
  }))
  await ask('POST', '/pod/traffic/batch', flows)
  await ask('POST', '/pod/traffic/batch', [...flows, flow(6)])
  await ask('POST', '/pod/traffic', flow(7))
  for (const syscalls of [
    ['read', 'write'],
    ['write', 'open'],
  ])
    await ask('POST', '/pod/syscalls', {
      pod_name: 'web-0',
      pod_namespace: 'shop',
      syscalls,
      arch: 'x86_64',
      time_stamp: '2026-01-01T09:00:00',
    })
  await ask('POST', '/node/facts', {
    node_name: 'node-a',
    provider: 'kind',
    distro: 'k8s',
    cni: 'cilium',
    ip_family: 'ipv4',
  })
  await ask('POST', '/pod/mark_dead', { pod_name: 'web-2', pod_namespace: 'shop' })
  const readAll = async () => {
    for (const path of READS) await ask('GET', path)
  }
  await readAll()
  for (const job of jobs) {
    const {
      durationMs: _,
      finishedAt,
      ...pass
    } = await runPass(job, { config, db, log, signal: new AbortController().signal })
    said.push([job.name, pass, finishedAt !== null && Math.abs(finishedAt * 1_000 - Date.now()) < NOW_MS])
  }
  await readAll()
  const [values] = await db.read(
    (sql) => sql`
      select to_json(${['a', null, 'null', '\\']}::text[])::text as texts, 'a\\b' as backslash, '2026-01-02'::date::text as date,
             '2026-01-02 03:04:05+00'::timestamptz::text as at, 0.1::float8 + 0.2::float8 as float, interval '1 day 2 hours'::text as span,
             ('x' = null) is null as is_unknown, current_setting('synchronous_commit') as durability,
             current_setting('transaction_isolation') as isolation`,
  )
  said.push({ ...values })
  const failure = await db.read((sql) => sql`select 1 / 0`).catch((error) => [error.code, error.severity])
  said.push(failure)
  for (const gate of ['ingest', 'read'] as const) {
    const wanted = sessionSettings(gate, STATEMENT_TIMEOUT_MS)
    const rows = await db[gate](
      (sql) => sql<{ name: string; setting: string }[]>`
        select name, setting from pg_settings where name = any (${Object.keys(wanted)}::text[]) order by name`,
    )
    assert.deepEqual(Object.fromEntries(rows.map(({ name, setting }) => [name, setting])), wanted)
  }
  return said
}

const READS = [
  ...[
    '/health',
    '/pod/info',
    '/pod/namespaces',
    '/pod/name/web-0',
    '/pod/ip/10.1.0.2',
    '/pod/ip/10.1.0.2?at=2026-01-01T09:30:00',
  ],
  ...[
    '/pod/list/node-a',
    '/pod/traffic?limit=100',
    '/pod/traffic/web-0',
    '/pod/syscalls/web-0',
    '/svc/info',
    '/svc/ip/10.96.0.7',
  ],
  ...[
    '/images',
    `/images/${digestOf('image-0')}`,
    '/workloads/shop/Deployment/web/containers',
    '/audit/verdicts',
    '/node/status',
  ],
  '/cluster/environment',
]

/** Replaces times close to now, which differ between runs; times hours away are data and stay. */
function withoutNow(text: string): string {
  return text.replace(/\d{4}-\d\d-\d\d[T ][\d:]+(\.\d+)?/g, (time) =>
    Math.abs(Date.parse(`${time.replace(' ', 'T')}Z`) - Date.now()) < NOW_MS ? 'now' : time,
  )
}

const SETS: [what: string, defaults: Defaults][] = [
  [
    'serializable transactions',
    { default_transaction_isolation: "'serializable'", default_transaction_deferrable: 'on' },
  ],
  ['repeatable reads', { default_transaction_isolation: "'repeatable read'" }],
  ['asynchronous commits', { synchronous_commit: 'off' }],
  ['NULL in arrays as text', { array_nulls: 'off' }],
  ['backslash escapes', { standard_conforming_strings: 'off', backslash_quote: 'off', escape_string_warning: 'on' }],
  ['another time zone', { timezone: "'Asia/Kathmandu'", timezone_abbreviations: "'India'" }],
  [
    'other forms of dates and numbers',
    { datestyle: "'SQL, DMY'", intervalstyle: "'sql_standard'", extra_float_digits: '-15', bytea_output: "'escape'" },
  ],
  ['sessions that end on an error', { exit_on_error: 'on' }],
  [
    'tight limits',
    {
      statement_timeout: '200',
      lock_timeout: '1',
      idle_in_transaction_session_timeout: '200',
      idle_session_timeout: '200',
    },
  ],
  ['`= null` as `is null`', { transform_null_equals: 'on' }],
  ['another encoding', { client_encoding: "'LATIN1'" }],
]

/** Settings that the sessions of the broker do not set. */
const HARMLESS: [what: string, defaults: Defaults][] = [
  [
    'a planner that avoids every index and order',
    {
      ...{
        enable_indexscan: 'off',
        enable_indexonlyscan: 'off',
        enable_sort: 'off',
        enable_incremental_sort: 'off',
        enable_nestloop: 'off',
      },
      ...{
        enable_material: 'off',
        enable_memoize: 'off',
        enable_hashagg: 'off',
        plan_cache_mode: 'force_custom_plan',
        work_mem: '64',
      },
      ...{
        geqo_threshold: '2',
        from_collapse_limit: '1',
        join_collapse_limit: '1',
        constraint_exclusion: 'on',
        cursor_tuple_fraction: '1',
      },
      ...{
        random_page_cost: '1000',
      },
    },
  ],
  [
    'parallel workers for every statement',
    {
      ...{
        debug_parallel_query: 'regress',
        force_parallel_mode: 'regress',
        parallel_setup_cost: '0',
        parallel_tuple_cost: '0',
      },
      ...{ min_parallel_table_scan_size: '0', min_parallel_index_scan_size: '0', parallel_leader_participation: 'off' },
    },
  ],
  [
    'messages and names',
    {
      ...{
        lc_messages: "'C'",
        client_min_messages: 'debug2',
        quote_all_identifiers: 'on',
        xmloption: 'document',
        row_security: 'off',
      },
      ...{ 'plpgsql.extra_errors': "'all'", 'plpgsql.extra_warnings': "'all'", 'plpgsql.variable_conflict': "'error'" },
    },
  ],
  [
    'storage and other settings',
    {
      ...{
        check_function_bodies: 'off',
        default_tablespace: "'pg_default'",
        default_toast_compression: "'pglz'",
        temp_buffers: '100',
      },
      ...{
        session_replication_role: 'replica',
        default_statistics_target: '1',
        commit_siblings: '1',
        gin_fuzzy_search_limit: '1',
      },
      ...{
        restrict_nonsystem_relation_kind: "'view, foreign-table'",
        event_triggers: 'off',
        password_encryption: "'md5'",
      },
    },
  ],
]

/** All of them are in one database. To find the one that changes an answer, leave sets out. */
const atOnce = (sets: typeof SETS): (typeof SETS)[number] => [
  sets.map(([what]) => what).join(', '),
  Object.assign({}, ...sets.map(([, defaults]) => defaults)),
]

describe('a database with other defaults for its sessions', () => {
  const expected = new Map<Kind, unknown[]>()
  before(async () => {
    if (onlyFull) return
    for (const kind of KINDS) expected.set(kind, await answers(kind, {}))
    assert.deepEqual(expected.get('pooled'), expected.get('direct'))
  })

  for (const [what, defaults] of [atOnce(SETS), atOnce(HARMLESS)])
    for (const kind of KINDS)
      test(`${kind}, ${what}: every answer is the same`, { timeout: 900_000, skip: onlyFull }, () =>
        undisturbed(async () => assert.deepEqual(await answers(kind, defaults), expected.get(kind))),
      )

  test('tables are created in the first schema of the search path, and a later schema named like the role does not matter', async () => {
    const first = await emptyDatabase({ search_path: 'telemetry, public' })
    await first.adminSql.unsafe('create schema telemetry')
    await migrate({ connection: first.url, log: noLog })
    const schemas = await first.adminSql<{ schema: string }[]>`
      select distinct relnamespace::regnamespace::text as schema from pg_class where relname in ('pod', 'traffic', 'schema_migration')`
    assert.deepEqual([...schemas], [{ schema: 'telemetry' }])

    const second = await emptyDatabase({})
    await migrate({ connection: second.url, log: noLog })
    await second.adminSql.unsafe("do $$ begin execute format('create schema %I', current_user); end $$")
    assert.deepEqual((await migrate({ connection: second.url, log: noLog })).applied, [])
  })

  test('a migration without a schema to create in, or in a read-only database, fails with the reason', async () => {
    const nowhere = await emptyDatabase({ search_path: "''" })
    await assert.rejects(migrate({ connection: nowhere.url, log: noLog }), /no schema has been selected to create in/)
    const frozen = await emptyDatabase({ default_transaction_read_only: 'on' })
    await assert.rejects(migrate({ connection: frozen.url, log: noLog }), /read-only transaction/)
  })
})

describe('the settings of the role', () => {
  const settingsOf = async (sql: Awaited<ReturnType<typeof createTestDatabase>>['adminSql']) => {
    const rows = await sql<{ entry: string }[]>`
      select unnest(setconfig) as entry from pg_db_role_setting
      where setdatabase = (select oid from pg_database where datname = current_database()) and setrole <> 0`
    return Object.fromEntries(rows.map(({ entry }) => entry.split(/=(.*)/s).slice(0, 2)))
  }

  test('are set by a migration that is configured to, are updated on a change, and are otherwise not touched', async () => {
    const { url, adminSql } = await createTestDatabase()
    const lines: string[] = []
    const run = (timeoutMs?: number) =>
      migrate({
        connection: url,
        log: logTo((level, message, fields) => {
          if (level !== 'debug') lines.push(`${level} ${message} ${JSON.stringify(fields)}`)
        }),
        ...(timeoutMs === undefined ? {} : { roleSettings: roleSettings(timeoutMs) }),
      })
    await run()
    assert.deepEqual(await settingsOf(adminSql), {})
    await run(5_000)
    const [server] = await adminSql<{ number: number }[]>`select current_setting('server_version_num')::int as number`
    const { transaction_timeout, ...everywhere } = roleSettings(5_000)
    const known = server!.number >= 170_000 ? { ...everywhere, transaction_timeout } : everywhere
    assert.deepEqual(await settingsOf(adminSql), known)
    assert.equal(lines.length, 1)
    assert.match(lines[0]!, /^info migrate: gave the role settings .*plan_cache_mode = force_generic_plan.*reset all/)
    await run(5_000)
    assert.equal(lines.length, 1)
    await run(6_000)
    assert.match(lines[1]!, /"settings":\["statement_timeout = 6000"\]/)
    assert.deepEqual(await settingsOf(adminSql), { ...known, statement_timeout: '6000' })
    await run()
    assert.equal(lines.length, 2)
  })

  test('cannot be set: the migration logs a warning and succeeds', async () => {
    const { port, sql } = await startOwnServer({ hba: ['host all all all trust'] })
    await sql.unsafe(
      'create role keeper; grant keeper to app; alter database app owner to keeper; alter role app set role = keeper',
    )
    const lines: [level: string, message: string, fields: { settings?: string[]; code?: string }][] = []
    const { version } = await migrate({
      connection: `postgres://app@127.0.0.1:${port}/app`,
      log: logTo((level, message, fields) => lines.push([level, message, fields])),
      roleSettings: roleSettings(5_000),
    })
    assert.ok(version > 0)
    const [[, message, { settings, code }], ...others] = lines.filter(([level]) => level === 'warn') as typeof lines & {
      0: (typeof lines)[0]
    }
    assert.match(message, /the role may not be given its settings/)
    assert.equal(code, '42501')
    assert.ok(settings!.includes('enable_seqscan = off'))
    assert.deepEqual(others, [])
  })

  test('are named in a warning when missing, and not when all are in force', async (t) => {
    const { url } = await createTestDatabase()
    const warned: { missing?: string[] }[] = []
    const check = async (prepare: boolean) => {
      const heard = { ...noLog, warn: (fields: object) => void warned.push(fields) }
      const db = openDatabase({
        connection: url,
        poolMax: 3,
        statementTimeoutMs: 7_000,
        prepare,
        applicationName: 'check',
        log: heard,
      })
      t.after(() => db.end(100))
      await checkSettings(db, { statementTimeoutMs: 7_000, log: heard })
    }
    await check(true)
    assert.equal(warned.length, 0)
    await check(false)
    assert.equal(warned.length, 1)
    const missing = warned[0]!.missing!
    for (const one of ['statement_timeout = 7000', 'plan_cache_mode = force_generic_plan', 'enable_seqscan = off'])
      assert.ok(missing.includes(one), one)
    await migrate({ connection: url, log: noLog, roleSettings: roleSettings(7_000) })
    await check(false)
    assert.equal(warned.length, 1)
  })
})
