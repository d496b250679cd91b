/**
 * Statements that write the same rows write them in the same order. A retry would hide a deadlock, so these tests allow
 * none: another session holds the middle row until both statements wait for it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FlowWriter, SeenFlows } from '../../lib/traffic/index.ts'
import { startApp } from '../support/app.ts'
import { until } from '../support/until.ts'

const app = await startApp()

const T = '2024-05-01T10:00:00'

/** Runs both while another transaction holds a row `middle` of the table; that transaction is rolled back. */
async function crossed(table: string, middle: object, first: () => Promise<unknown>, second: () => Promise<unknown>) {
  const work: Promise<unknown>[] = []
  const { retried } = app.db.ingest.stats
  await app.sql
    .begin(async (held) => {
      await held`insert into ${held(table)} ${held(middle)}`
      for (const [i, run] of [first, second].entries()) {
        work.push(run())
        await until('it waits', async () => {
          const rows = await app.sql`
            select from pg_stat_activity
            where datname = current_database() and wait_event_type = 'Lock' and application_name = 'broker-test'`
          return rows.length === i + 1
        })
      }
      throw new Error('taken back')
    })
    .catch((error) => {
      if (error.message !== 'taken back') throw error
    })
  const answers = await Promise.all(work)
  assert.equal(app.db.ingest.stats.retried - retried, 0, 'a deadlock')
  return answers
}

const flow = (name: string) => ({
  ...{
    uuid: name,
    pod_name: name,
    pod_ip: name,
    pod_port: '0',
    ip_protocol: 'TCP',
    traffic_type: 'EGRESS',
    time_stamp: T,
  },
  ...{ traffic_in_out_ip: '10.2.0.1', traffic_in_out_port: '443', decision: 'ALLOW' },
})
const keys = (prefix: string) => ['a', 'b', 'c'].map((letter) => `${prefix}-${letter}`)

/** A writer of another replica, which does not know the flows of the others. */
const makeWriter = () =>
  new FlowWriter(app.db.ingest, new SeenFlows({ maxKeys: 10, generationMs: 1_000, now: () => 0 }))

for (const isExpected of [false, true]) {
  test(`flows of two replicas, ${isExpected ? 'all expected to be new' : 'each checked'}: no deadlock`, async () => {
    const names = keys(`flow-${isExpected}`)
    const post = (all: string[]) => {
      const writer = makeWriter()
      return async () => {
        // A statement expects new flows if the previous one found only new flows.
        if (isExpected) await writer.write([flow(`warm-${all[0]}`)], { records: false })
        return writer.write(all.map(flow), { records: false })
      }
    }
    const inserted = await crossed('traffic', flow(names[1]!), post(names), post(names.toReversed()))
    assert.deepEqual(inserted.flat().sort(), names)
  })
}

const functions: [
  name: string,
  table: string,
  column: string,
  row: (key: string) => object,
  held: object,
  more?: string,
][] = [
  ['upsert_services', 'service', 'svc_ip', (key) => ({ svc_ip: key, svc_name: key, time_stamp: T }), {}],
  [
    'add_syscalls',
    'pod_syscalls',
    'pod_name',
    (key) => ({ pod_name: key, pod_namespace: 'n', syscalls: ['read'], arch: 'x', time_stamp: T }),
    { syscalls: 'read' },
    ', null',
  ],
]
for (const [name, table, column, row, held, more = ''] of functions) {
  test(name, async () => {
    const names = keys(name)
    const call = (all: string[]) => () =>
      app.db.ingest(
        (sql) => sql`select ${sql.unsafe(name)}(${JSON.stringify(all.map(row))}::text::json${sql.unsafe(more)})`,
      )
    await crossed(table, { ...row(names[1]!), ...held }, call(names), call(names.toReversed()))
    assert.equal((await app.sql`select from ${app.sql(table)} where ${app.sql(column)} in ${app.sql(names)}`).length, 3)
  })
}
