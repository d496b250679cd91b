import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createStore, type FlowVerdicts } from '../../lib/audit/store.ts'
import { openDatabase } from '../../lib/db/index.ts'
import { startApp } from '../support/app.ts'
import { stopClock } from '../support/clock.ts'
import { whileLocked } from '../support/routes.ts'
import { until } from '../support/until.ts'

const app = await startApp()

/** A database with so many connections for writes, and a store on it. */
function open(poolMax: number, ingestSlots: number) {
  const db = openDatabase({
    connection: app.url,
    poolMax,
    statementTimeoutMs: 0,
    prepare: true,
    applicationName: 'store-test',
    log: app.deps.log,
    waitMs: 3_600_000,
  })
  after(() => db.end(100))
  assert.equal(db.ingest.stats.slots, ingestSlots)
  return { db, store: createStore(db) }
}

const verdictsOf = (policyName: string): FlowVerdicts => ({
  request: { dstPort: 80, protocol: 'TCP', timestamp: '2024-05-01T10:00:00+00:00' } as FlowVerdicts['request'],
  verdicts: [
    {
      policy_uid: 'u',
      policy_namespace: 'shop',
      policy_name: policyName,
      direction: 'Egress',
      verdict: 'Allow',
      reason: '',
    },
  ],
})

const stored = async (policyName: string) =>
  (await app.sql`select from audit_verdict where policy_name = ${policyName}`).length

test('verdicts wait exactly one second for a connection, and are lost after it', async (t) => {
  const { db, store } = open(4, 1)
  await whileLocked(app.sql, 'service', async () => {
    const busy = db.ingest((sql) => sql`select count(*) from service`)
    await until('the connection for writes is taken', () => db.ingest.stats.inFlight === 1)
    const clock = stopClock(t)
    let outcome: { code?: string } | 'stored' | undefined
    const settle = (promise: Promise<void>) =>
      promise.then(
        () => {
          outcome = 'stored'
        },
        (error) => {
          outcome = error
        },
      )
    const done = settle(store.verdicts(verdictsOf('late')))
    clock.tick(999)
    await turn()
    assert.equal(outcome, undefined)
    clock.tick(1)
    await done
    assert.equal((outcome as { code?: string } | undefined)?.code, 'GATE_TIMEOUT')
    assert.equal(db.ingest.stats.waiting, 0)
    clock.restart()
    void busy
  })
  assert.equal(await stored('late'), 0)
  await store.verdicts(verdictsOf('in time'))
  assert.equal(await stored('in time'), 1)
})

for (const [what, table, send] of [
  [
    'verdicts',
    'audit_verdict',
    (store: ReturnType<typeof createStore>, n: number) => store.verdicts(verdictsOf(`lane-${n}`)),
  ],
  [
    'causes',
    'traffic',
    (store: ReturnType<typeof createStore>, n: number) =>
      store.cause({ uuid: `lane-${n}`, time_stamp: '2026-01-01T00:00:00', cause: 'no-policy' }),
  ],
] as const) {
  test(`${what} use at most one of the connections for writes`, async () => {
    const { db, store } = open(12, 4)
    const sent: Promise<void>[] = []
    await whileLocked(app.sql, table, async () => {
      for (let n = 0; n < 20; n++) {
        sent.push(send(store, n))
        await turn()
      }
      await until('the first is under way', () => db.ingest.stats.inFlight > 0)
      await turn()
      assert.deepEqual([db.ingest.stats.inFlight, db.ingest.stats.waiting], [1, 0])
    })
    await Promise.all(sent)
  })
}

test('verdicts and causes do not wait for each other', async () => {
  const { db, store } = open(12, 4)
  await whileLocked(app.sql, 'audit_verdict', async () => {
    void store.verdicts(verdictsOf('apart')).catch(() => {})
    await until('it waits', () => db.ingest.stats.inFlight === 1)
    await store.cause({ uuid: 'none', time_stamp: '2026-01-01T00:00:00', cause: 'no-policy' })
  })
})
