/** Retention jobs in processes of their own: several at once on one database, and one that is killed during a pass. */

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, type TestContext, test } from 'node:test'
import type { JobName } from '../../jobs/locks.ts'
import { trafficRetention } from '../../jobs/traffic-retention.ts'
import { isWaiting, startScene } from '../jobs/scene.ts'
import { flow, post, startBroker } from '../support/broker.ts'
import { depth, onlyFull } from '../support/depth.ts'
import { program } from '../support/program.ts'
import { podsWithWrongAddresses } from '../support/records.ts'
import { until } from '../support/until.ts'

const PROCESSES = depth(2, 3)
/** The smallest batch size that the configuration allows. */
const BATCH_ROWS = 100
const EXPIRED = depth(1_200, 3_000)
const KEPT = depth(200, 500)
/** An expired row in the middle of a batch. */
const GATED = `expired-${String(EXPIRED / 2 + 10).padStart(5, '0')}`
const GATE = 77

const scene = await startScene(trafficRetention)
const { sql, url, ago } = scene
const LONG_AGO = ago(40 * 86_400)

interface Table {
  job: JobName
  table: string
  /** Stores rows `expired-<n>`, which the job must delete, and `kept-<n>`; `n` is in the order of the job. */
  fill(): Promise<unknown>
  key: string
}

const numbers = () => sql`
  (select 'expired-' || to_char(n, 'FM00000') as name, n, true as is_expired from generate_series(1, ${EXPIRED}::int) n
   union all
   select 'kept-' || to_char(n, 'FM00000'), n * ${EXPIRED / KEPT}::int, false from generate_series(1, ${KEPT}::int) n)`

const tables: Table[] = [
  {
    job: 'audit-retention',
    table: 'audit_verdict',
    key: 'policy_name',
    fill: () => sql`
      insert into audit_verdict (policy_uid, policy_namespace, policy_name, direction, dst_port, protocol, reason, observed_at, verdict)
      select '', '', name, 'Ingress', n, 'TCP', '',
             case when is_expired then ${LONG_AGO}::text::timestamp else ${ago(0)}::text::timestamp end + n * interval '1 ms', 'Allow'
      from ${numbers()} v order by random()`,
  },
  {
    job: 'dead-pod-retention',
    table: 'pod',
    key: 'pod_name',
    fill: async () => {
      await sql`
        insert into pod (pod_name, pod_ip, pod_ips, time_stamp, node_name, is_dead)
        select name, '10.0.0.1', array['10.0.0.1', 'fd00::' || n], ${LONG_AGO}::text::timestamp, 'node-a', is_expired
        from ${numbers()} v order by random()`
      await sql`insert into pod_address (ip, pod_name) select unnest(pod_ips), pod_name from pod`
    },
  },
  {
    job: 'traffic-retention',
    table: 'traffic',
    key: 'uuid',
    fill: async () => {
      await sql`insert into pod (pod_name, pod_ip, pod_ips, time_stamp, node_name, is_dead) values ('alive', '', '{}', ${ago(0)}::text::timestamp, 'node-a', false)`
      await sql`
        insert into traffic (uuid, pod_name, time_stamp)
        select name, case when is_expired then 'gone' else 'alive' end, ${LONG_AGO}::text::timestamp + n * interval '1 ms'
        from ${numbers()} v order by random()`
    },
  },
]

beforeEach(async () => {
  await sql`truncate audit_verdict, traffic, pod, pod_address, traffic_retention_cursor, job_run`
})

/** Starts one pass in a process of its own. */
function start(t: TestContext, job: JobName) {
  const { PATH, HOME } = process.env
  const sizes = {
    AUDIT_VERDICTS_RETENTION_BATCH_SIZE: String(BATCH_ROWS),
    POD_TRAFFIC_RETENTION_BATCH_SIZE: String(BATCH_ROWS),
  }
  const child: ChildProcess = spawn(process.execPath, [...program('jobs/run.ts'), job], {
    env: { PATH, HOME, DATABASE_URL: url, ...sizes },
  })
  t.after(() => child.kill('SIGKILL'))
  let [stdout, stderr] = ['', '']
  child.stdout!.on('data', (bytes) => {
    stdout += bytes
  })
  child.stderr!.on('data', (bytes) => {
    stderr += bytes
  })
  const ended = new Promise<{ code: number | null; lines: Record<string, unknown>[]; stderr: string }>((resolve) => {
    child.once('close', (code) => {
      const lines = stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line))
      resolve({ code, lines, stderr })
    })
  })
  return { child, ended }
}

/** Counts the remaining rows of each kind, and checks that the addresses of pods match their rows. */
async function left({ table, key }: Table): Promise<{ expired: number; kept: number }> {
  assert.deepEqual(await podsWithWrongAddresses(sql), [])
  const [row] = await sql<{ expired: number; kept: number }[]>`
    select count(*) filter (where starts_with(${sql(key)}, 'expired-'))::int as expired,
           count(*) filter (where starts_with(${sql(key)}, 'kept-'))::int    as kept
    from ${sql(table)}`
  return { ...row! }
}

async function aheadOfCursor(): Promise<number> {
  const [row] = await sql<{ n: number }[]>`
    select count(*)::int as n from traffic t, traffic_retention_cursor c where (t.time_stamp, t.uuid) > (c.time_stamp, c.uuid)`
  return row!.n
}

for (const one of tables) {
  describe(one.job, { timeout: 900_000 }, () => {
    // The test of each job in test/jobs runs two passes at once, in one process.
    test(`${PROCESSES} processes at once: each expired row is deleted once, nothing else, no error`, {
      skip: one.job !== 'traffic-retention' && onlyFull,
    }, async (t) => {
      await one.fill()
      await sql`create table deletion (name text)`
      await sql.unsafe(
        `create function note_deletion() returns trigger language plpgsql as $$ begin insert into deletion values (old.${one.key}); return old; end $$`,
      )
      await sql`create trigger note_deletion after delete on ${sql(one.table)} for each row execute function note_deletion()`
      t.after(async () => {
        await sql`drop function note_deletion cascade`
        await sql`drop table deletion`
      })
      const passes = await Promise.all(Array.from({ length: PROCESSES }, () => start(t, one.job).ended))
      for (const { code, lines, stderr } of passes) {
        assert.equal(stderr, '')
        assert.deepEqual([code, lines.length, lines[0]!.msg], [0, 1, 'job pass'])
        assert.ok(lines[0]!.outcome === 'done' || lines[0]!.outcome === 'skipped')
      }
      assert.equal(
        passes.reduce((sum, { lines }) => sum + Number(lines[0]!.rows), 0),
        EXPIRED,
      )
      assert.deepEqual(await left(one), { expired: 0, kept: KEPT })
      const [deleted] = await sql`
        select count(*)::int as n, count(distinct name)::int as names, bool_and(starts_with(name, 'expired-')) as only_expired from deletion`
      assert.deepEqual({ ...deleted }, { n: EXPIRED, names: EXPIRED, only_expired: true })
    })

    // The other jobs delete from a second table, or move a cursor, in the same statement.
    const skip = one.job === 'audit-retention' && onlyFull
    test('a pass that is killed leaves whole batches, and the next pass deletes the rest', { skip }, async (t) => {
      await one.fill()
      // The deletion of a row in the middle waits for an advisory lock.
      await sql.unsafe(
        `create function wait_for_us() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(${GATE}); return old; end $$`,
      )
      await sql.unsafe(
        `create trigger wait_for_us before delete on ${one.table} for each row when (old.${one.key} = '${GATED}') execute function wait_for_us()`,
      )
      t.after(() => sql`drop function wait_for_us cascade`)
      const killed = await sql.begin(async (other) => {
        await other`select pg_advisory_xact_lock(${GATE})`
        const { child, ended } = start(t, one.job)
        await until('it is in the middle of a batch', () => isWaiting(sql))
        const midway = await left(one)
        assert.ok(midway.expired > 0 && midway.expired < EXPIRED)
        child.kill('SIGKILL')
        await until('it is gone', () => child.signalCode)
        return { ended, midway }
      })
      assert.equal((await killed.ended).code, null)
      // The server commits or aborts the orphaned statement by itself.
      await until('its session is over', async () => {
        const rows =
          await sql`select from pg_stat_activity where datname = current_database() and application_name = 'cluster-telemetry-broker-job'`
        return rows.length === 0
      })
      const after = await left(one)
      assert.equal(after.kept, KEPT)
      const inBatch = killed.midway.expired - after.expired
      if (one.job === 'traffic-retention') {
        // A batch reads BATCH_ROWS rows and keeps some: expired rows before the cursor are deleted, and none after it.
        const [row] = await sql`
          select count(*) filter (where (t.time_stamp, t.uuid) <= (c.time_stamp, c.uuid))::int as missed,
                 count(*) filter (where (t.time_stamp, t.uuid) > (c.time_stamp, c.uuid))::int as ahead
          from traffic t, traffic_retention_cursor c where t.pod_name = 'gone'`
        assert.deepEqual({ ...row }, { missed: 0, ahead: after.expired })
        assert.equal((EXPIRED + KEPT - (await aheadOfCursor())) % BATCH_ROWS, 0)
      } else assert.ok(inBatch === 0 || inBatch === BATCH_ROWS, `half a batch: ${inBatch}`)
      assert.equal((await sql`select from job_run`).length, 0)

      const { code, lines, stderr } = await start(t, one.job).ended
      assert.deepEqual([code, stderr, lines[0]!.outcome, lines[0]!.rows], [0, '', 'done', after.expired])
      assert.deepEqual(await left(one), { expired: 0, kept: KEPT })
    })
  })
}

test('a flow that another process deleted is stored when it is posted again', { timeout: 900_000 }, async (t) => {
  const broker = await startBroker({ databaseUrl: url, env: { JOBS: 'external' } })
  const repeat = async (n: number) => {
    const answer = await post(`${broker.url}/pod/traffic/batch`, [
      { ...flow(n, 'gone'), uuid: randomUUID(), time_stamp: LONG_AGO },
    ])
    assert.equal(answer.status, 200)
    return answer.json
  }
  for (const n of [1, 2]) assert.deepEqual([await repeat(n), await repeat(n)], [1, 0])
  const { lines } = await start(t, 'traffic-retention').ended
  assert.equal(lines[0]!.rows, 2)
  for (const n of [1, 2]) await until('it is taken for new', async () => (await repeat(n)) === 1)
  await broker.stop()
})
