import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { auditRetention } from '../../jobs/audit-retention.ts'
import { abortedAfter, inside, startScene } from './scene.ts'

const DAY = 86_400
const scene = await startScene(auditRetention, { auditRetentionBatchSize: 100 })
const { ago, run, count, sql } = scene

beforeEach(async () => {
  await sql`truncate audit_verdict`
})

/** Stores `n` verdicts with the same time. */
async function verdicts(n: number, secsAgo: number, policy = 'web'): Promise<void> {
  await sql`
    insert into audit_verdict (policy_uid, policy_namespace, policy_name, direction, dst_port, protocol, reason, observed_at, verdict)
    select '', 'shop', ${policy}::text, 'Ingress', i, 'TCP', '', ${ago(secsAgo)}::text::timestamp, 'Allow'
    from generate_series(1, ${n}::int) i`
}

async function stored(): Promise<Record<string, number>> {
  const rows = await sql<{ policy_name: string; n: number }[]>`
    select policy_name, count(*)::int as n from audit_verdict group by policy_name order by policy_name`
  return Object.fromEntries(rows.map(({ policy_name, n }) => [policy_name, n]))
}

test('a verdict older than 30 days is deleted, a younger one stays unchanged', async () => {
  await verdicts(1, 30 * DAY - 60, 'young')
  await verdicts(1, 30 * DAY + 60, 'old')
  const [young] = await sql`select * from audit_verdict where policy_name = 'young'`
  assert.deepEqual(await run(), { outcome: 'done', rows: 1, batches: 1 })
  assert.deepEqual([...(await sql`select * from audit_verdict`)], [young])
})

test('a verdict exactly 30 days old stays, one a microsecond older is deleted', async () => {
  await sql.begin(async (now) => {
    await now`
      insert into audit_verdict (policy_uid, policy_namespace, policy_name, direction, dst_port, protocol, reason, observed_at, verdict)
      select '', 'shop', name, 'Ingress', 80, 'TCP', '', now() at time zone 'utc' - age::interval, 'Allow'
      from (values ('at', '30 days'), ('past', '30 days 0.000001 s')) v (name, age)`
    assert.equal(await count({ db: inside(now) }), 1)
    assert.equal((await run({ db: inside(now) })).rows, 1)
  })
  assert.deepEqual(await stored(), { at: 1 })
})

test('age is measured in UTC by the clock of the database, whatever the time zone of the session', async () => {
  await sql.begin(async (now) => {
    await now`set local time zone 'Pacific/Kiritimati'`
    await now`
      insert into audit_verdict (policy_uid, policy_namespace, policy_name, direction, dst_port, protocol, reason, observed_at, verdict)
      select '', 'shop', name, 'Ingress', 80, 'TCP', '', now() at time zone 'utc' - age::interval, 'Allow'
      from (values ('at', '30 days'), ('past', '30 days 0.000001 s')) v (name, age)`
    assert.equal((await run({ db: inside(now) })).rows, 1)
  })
  assert.deepEqual(await stored(), { at: 1 })
})

test('the configuration sets the days and the interval; 0 days turn the job off', async () => {
  await verdicts(1, 3 * DAY)
  const { config } = scene.context()
  assert.equal((await run()).rows, 0)
  assert.equal((await run({ config: { ...config, auditRetentionDays: 2 } })).rows, 1)
  assert.equal(auditRetention.everySecs({ ...config, auditRetentionDays: 0 }), null)
  assert.equal(auditRetention.everySecs({ ...config, auditRetentionIntervalSecs: 77 }), 77)
  assert.equal(auditRetention.firstAfterSecs, 60)
})

test('many verdicts with the same time are deleted in batches of the configured size, and none is left', async () => {
  await verdicts(250, 40 * DAY, 'old')
  await verdicts(150, 0, 'young')
  assert.deepEqual(await run(abortedAfter(1, scene.db)), { outcome: 'aborted', rows: 100, batches: 1 })
  assert.deepEqual(await stored(), { old: 150, young: 150 })
  assert.deepEqual(await run(), { outcome: 'done', rows: 150, batches: 2 })
  assert.deepEqual(await stored(), { young: 150 })
})

test('the oldest verdicts are deleted first', async () => {
  await verdicts(60, 40 * DAY, 'b')
  await verdicts(60, 50 * DAY, 'a')
  await run(abortedAfter(1, scene.db))
  assert.deepEqual(await stored(), { b: 20 })
})

test('a pass ends after 200 batches, and the next pass does the rest', async () => {
  await verdicts(2_005, 40 * DAY, 'old')
  const config = { ...scene.context().config, auditRetentionBatchSize: 10 }
  assert.equal(await count({ config }), 2_000)
  assert.deepEqual(await run({ config }), { outcome: 'capped', rows: 2_000, batches: 200 })
  assert.deepEqual(await run({ config }), { outcome: 'done', rows: 5, batches: 1 })
})

test('a verdict that another session has locked is skipped, and the others are deleted', async () => {
  await verdicts(1, 41 * DAY, 'locked')
  await verdicts(150, 40 * DAY, 'old')
  await sql.begin(async (other) => {
    await other`select from audit_verdict where policy_name = 'locked' for update`
    assert.deepEqual(await run(), { outcome: 'done', rows: 150, batches: 2 })
  })
  assert.deepEqual(await stored(), { locked: 1 })
  assert.equal((await run()).rows, 1)
})

test('two processes at once delete every verdict once', async (t) => {
  await verdicts(5000, 40 * DAY, 'old')
  await verdicts(10, 0, 'young')
  const passes = await Promise.all([run(), run({ db: scene.otherProcess(t) })])
  assert.ok(passes.some(({ outcome }) => outcome === 'done'))
  assert.equal(passes[0].rows + passes[1].rows, 5000)
  assert.deepEqual(await stored(), { young: 10 })
})

test('with the lock held elsewhere it reports skipped and does nothing', async () => {
  await verdicts(2, 40 * DAY, 'old')
  await scene.whileLocked('audit-retention', async () =>
    assert.deepEqual(await run(), { outcome: 'skipped', rows: 0, batches: 0 }),
  )
  assert.deepEqual(await stored(), { old: 2 })
  await scene.whileLocked('dead-pod-retention', async () => assert.equal((await run()).rows, 2))
})

test('aborted before the first batch it does nothing', async () => {
  await verdicts(1, 40 * DAY, 'old')
  assert.deepEqual(await run({ signal: AbortSignal.abort() }), { outcome: 'aborted', rows: 0, batches: 0 })
  assert.deepEqual(await stored(), { old: 1 })
})

test('counting returns the number of rows that a pass would delete, and deletes none', async () => {
  await verdicts(250, 40 * DAY, 'old')
  await verdicts(3, 0, 'young')
  await scene.whileLocked('audit-retention', async () => assert.equal(await count(), 250))
  assert.deepEqual(await stored(), { old: 250, young: 3 })
})

test('a pass over an empty table has one batch and deletes nothing', async () => {
  assert.deepEqual(await run(), { outcome: 'done', rows: 0, batches: 1 })
  assert.equal(await count(), 0)
})
