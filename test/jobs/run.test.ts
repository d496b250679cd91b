import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, type TestContext, test } from 'node:test'
import { lateResolve } from '../../jobs/late-resolve.ts'
import { program } from '../support/program.ts'
import { until } from '../support/until.ts'
import { isWaiting, startScene } from './scene.ts'

const scene = await startScene(lateResolve)
const { sql, url, ago, pod } = scene

beforeEach(async () => {
  await sql`truncate traffic, pod, pod_address, job_run`
})

/** Starts the entry point with only `env` in its environment, by default the database of this file. */
function start(args: string[], env: NodeJS.ProcessEnv = { DATABASE_URL: url }) {
  const { PATH, HOME } = process.env
  const child = spawn(process.execPath, [...program('jobs/run.ts'), ...args], { env: { PATH, HOME, ...env } })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (bytes) => {
    stdout += bytes
  })
  child.stderr.on('data', (bytes) => {
    stderr += bytes
  })
  const ended = new Promise<{ code: number | null; lines: Record<string, unknown>[]; stderr: string }>(
    (resolve, reject) => {
      child.once('close', (code) => {
        try {
          resolve({ code, lines: stdout.split('\n').filter(Boolean).map(parsed), stderr })
        } catch (error) {
          reject(new Error(`not JSON: ${stdout}`, { cause: error }))
        }
      })
    },
  )
  return { child: child as ChildProcess, ended }
}

const parsed = (line: string) => JSON.parse(line) as Record<string, unknown>
const run = (args: string[], env?: NodeJS.ProcessEnv) => start(args, env).ended

/** A folder that does not exist yet. */
function newDataDir(t: TestContext): string {
  const parent = mkdtempSync(join(tmpdir(), 'broker-run-'))
  chmodSync(parent, 0o711) // where root is not the user of the embedded server
  t.after(() => rmSync(parent, { recursive: true, force: true }))
  return join(parent, 'data')
}

async function manyFlows(n: number): Promise<void> {
  await sql`
    insert into traffic (uuid, traffic_in_out_ip, time_stamp)
    select to_char(i, 'FM00000'), '10.0.0.2', ${ago(60)}::text::timestamp from generate_series(1, ${n}::int) i`
}

async function stamped(): Promise<number> {
  const [row] = await sql<{ n: number }[]>`select count(*)::int as n from traffic where peer_kind is not null`
  return row!.n
}

for (const [what, args] of [
  ['an unknown job', ['no-such-job']],
  ['an unknown job for a dry run', ['--dry-run', 'no-such-job']],
  ['no job', []],
  ['two jobs', ['late-resolve', 'stale-sweep']],
  ['an unknown option', ['late-resolve', '--force']],
] as const) {
  test(`${what}: exit code 1, one line with the known jobs, and no database is touched`, async (t) => {
    const dataDir = newDataDir(t)
    const { code, lines, stderr } = await run([...args], { DATA_DIR: dataDir })
    assert.equal(code, 1)
    assert.deepEqual(lines, [])
    assert.match(stderr, /^[^\n]*late-resolve, stale-sweep[^\n]*\n$/)
    if (args[0] === 'no-such-job') assert.match(stderr, /no-such-job/)
    assert.equal(existsSync(dataDir), false)
  })
}

test('one pass: exit code 0, one line of JSON, and the pass is recorded', async () => {
  await pod({ pod_ip: '10.0.0.2' })
  await manyFlows(3)
  const { code, lines, stderr } = await run(['late-resolve'])
  assert.equal(stderr, '')
  assert.equal(code, 0)
  const [{ job, outcome, rows, batches, durationMs }] = lines as [Record<string, unknown>]
  assert.deepEqual(
    [lines.length, job, outcome, rows, batches, typeof durationMs],
    [1, 'late-resolve', 'done', 3, 1, 'number'],
  )
  assert.equal(await stamped(), 3)
  const [row] = await sql`select job, rows::int from job_run`
  assert.deepEqual({ ...row }, { job: 'late-resolve', rows: 3 })
})

test('the interval is ignored: a job runs again right after its last pass', async () => {
  await sql`insert into job_run values ('late-resolve', now() at time zone 'utc', 1, 0)`
  await pod({ pod_ip: '10.0.0.2' })
  await manyFlows(1)
  assert.equal((await run(['late-resolve'])).code, 0)
  assert.equal(await stamped(), 1)
})

test('the warning of stale-sweep is a line of JSON too', async () => {
  await pod({ time_stamp: ago(1000) })
  const { code, lines } = await run(['stale-sweep'])
  assert.equal(code, 0)
  assert.deepEqual(
    lines.map(({ level, pods, podsByNode, rows }) => [level, pods ?? rows, podsByNode]),
    [
      ['warn', 1, 'node-a=1'],
      ['info', 1, undefined],
    ],
  )
})

for (const name of ['late-resolve', 'stale-sweep']) {
  test(`${name} --dry-run counts, changes nothing and records nothing`, async () => {
    await pod({ pod_ip: '10.0.0.2' })
    await pod({ time_stamp: ago(1000) })
    await pod({ time_stamp: ago(1000) })
    await manyFlows(2)
    const { code, lines } = await run([name, '--dry-run'])
    assert.equal(code, 0)
    assert.deepEqual(
      lines.map(({ job, isDryRun, rows }) => [job, isDryRun, rows]),
      [[name, true, 2]],
    )
    assert.equal(await stamped(), 0)
    assert.equal((await sql`select from pod where is_dead`).length, 0)
    assert.equal((await sql`select from job_run`).length, 0)
  })
}

test('a job that is turned off: exit code 0, and no database is touched', async (t) => {
  const dataDir = newDataDir(t)
  const { code, lines } = await run(['late-resolve'], { DATA_DIR: dataDir, PEER_LATE_RESOLVE_WINDOW_SECS: '0' })
  assert.equal(code, 0)
  assert.deepEqual(
    lines.map(({ msg }) => msg),
    ['the job is turned off'],
  )
  assert.equal(existsSync(dataDir), false)
})

test('a job whose lock is held elsewhere: skipped, exit code 0', async () => {
  await pod({ pod_ip: '10.0.0.2' })
  await manyFlows(1)
  await scene.whileLocked('late-resolve', async () => {
    const { code, lines } = await run(['late-resolve'])
    assert.deepEqual([code, lines[0]!.outcome, lines[0]!.rows], [0, 'skipped', 0])
  })
  assert.equal((await sql`select from job_run`).length, 0)
})

test('no database at the address: exit code 1 and a line `no database`', async () => {
  const { code, lines } = await run(['late-resolve'], { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' })
  assert.equal(code, 1)
  assert.deepEqual([lines.at(-1)!.level, lines.at(-1)!.msg], ['fatal', 'no database'])
})

test('a database with a missing migration: exit code 1 and a line that says to migrate', async () => {
  const [newest] =
    await sql`delete from schema_migration where version = (select max(version) from schema_migration) returning *`
  const { code, lines } = await run(['late-resolve'])
  await sql`insert into schema_migration ${sql(newest!)}`
  assert.equal(code, 1)
  assert.match(String(lines.at(-1)!.msg), /migrate/)
})

test('an invalid environment: exit code 1 and a line with the reason', async () => {
  const { code, stderr } = await run(['late-resolve'], { NODE_ENV: 'production' })
  assert.equal(code, 1)
  assert.match(stderr, /DATABASE_URL or PGHOST is required in production/)
})

test('without DATABASE_URL the program starts the embedded server in DATA_DIR, and stops it', async (t) => {
  const dataDir = newDataDir(t)
  const { code, lines } = await run(['late-resolve'], { DATA_DIR: dataDir })
  assert.equal(code, 0)
  assert.equal(lines.at(-1)!.outcome, 'done')
  assert.equal(existsSync(join(dataDir, 'postgres', 'postmaster.pid')), false)
})

/**
 * Starts a pass over 3 000 flows, which waits in its second batch for a row that another transaction is writing, and runs
 * `meanwhile` then.
 */
async function inSecondBatch(meanwhile: (child: ChildProcess) => Promise<void>) {
  await pod({ pod_ip: '10.0.0.2' })
  await manyFlows(3000)
  return sql.begin(async (other) => {
    await other`update traffic set syn_retries = 1 where uuid = '01500'`
    const { child, ended } = start(['late-resolve'])
    await until('it waits for the row', () => isWaiting(sql))
    await meanwhile(child)
    return { ended }
  })
}

/** The number of flows with a peer, and of those with only a part of one. */
async function consistency() {
  const [row] = await sql`
    select count(*) filter (where peer_kind is not null)::int as stamped,
           count(*) filter (where num_nulls(peer_kind, peer_name, peer_uid, peer_resolved_at) not in (0, 4))::int as broken
    from traffic`
  return row as unknown as { stamped: number; broken: number }
}

test('SIGTERM ends a pass after its batch: exit code 1, and the changed rows stay', async () => {
  const { ended } = await inSecondBatch(async (child) => {
    let heard = ''
    child.stdout!.on('data', (bytes) => {
      heard += bytes
    })
    child.kill('SIGTERM')
    await until('it heard', () => heard.includes('stopping after this batch'))
  })
  const { code, lines } = await ended
  assert.equal(code, 1)
  assert.deepEqual([lines.at(-1)!.outcome, lines.at(-1)!.batches], ['aborted', 2])
  const { stamped, broken } = await consistency()
  assert.deepEqual([stamped, broken], [Number(lines.at(-1)!.rows), 0])
  assert.ok(stamped < 3000)
  assert.equal((await sql`select from job_run`).length, 0)
})

test('a killed pass leaves no half-updated row, and the next pass does the rest', async () => {
  const { ended } = await inSecondBatch(async (child) => {
    child.kill('SIGKILL')
    await until('it is gone', () => child.signalCode)
  })
  assert.equal((await ended).code, null)
  // The server ends the statement of the closed connection, by commit or rollback.
  await until('its session is over', async () => {
    const rows =
      await sql`select from pg_stat_activity where datname = current_database() and application_name = 'cluster-telemetry-broker-job'`
    return rows.length === 0
  })
  const { stamped, broken } = await consistency()
  assert.equal(broken, 0)
  assert.ok(stamped >= 1000)
  const { lines } = await run(['late-resolve'])
  assert.equal(lines[0]!.rows, 3000 - stamped)
  assert.deepEqual(await consistency(), { stamped: 3000, broken: 0 })
})

test('a pass that cannot lock a table ends with exit code 0 and a warning, and leaves the rest to the next pass', async () => {
  await sql.begin(async (tx) => {
    await tx`lock table compute_minute in access exclusive mode`
    const { code, lines, stderr } = await run(['compute-retention'])
    assert.deepEqual([code, stderr], [0, ''])
    assert.ok(
      lines.some(({ level, msg }) => level === 'warn' && /next pass/.test(String(msg))),
      JSON.stringify(lines),
    )
    assert.deepEqual(
      lines.filter(({ level }) => level === 'error' || level === 'fatal'),
      [],
    )
  })
  const { code, lines } = await run(['compute-retention'])
  assert.deepEqual([code, lines.at(-1)!.outcome], [0, 'done'])
})
