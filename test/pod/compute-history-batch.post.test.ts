import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { history, keep, minute, minutes, pairs, SHOWN } from '../compute/minutes.ts'
import { culprit, type Fields, inSecs, type Row, RUNQ, unique } from '../compute/posts.ts'
import { byLabel } from '../seccomp/drains.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { assertDatabaseBusy, assertForbidden, assertUnauthorized, refusedBodies, startReplica, whileLocked } from '../support/routes.ts'
import { until } from '../support/until.ts'

const PATH = '/pod/compute/history/batch'
const MAX_COUNT = 1_000_000_000_000_000
const MAX_BYTES = 16 * 1024 * 1024
const app = await startApp()
const { sql, deps } = app

beforeEach(async () => {
  await sql`truncate compute_minute, compute_folded, compute_contention, compute_container`
  await sql`update compute_fold set folded_until = '-infinity', closed_until = '-infinity'`
  app.logged.length = 0
})

const rejected = async () => (await byLabel(deps.metrics.rejectedEntries))[PATH] ?? 0
const warnings = () => app.logged.filter(({ level }) => level === 40)
const one = async (container: Fields, within = 60): Promise<Row> => {
  const rows = await history(app, container, within)
  assert.equal(rows.length, 1)
  return rows[0]!
}
const shown = async (fields: Fields, envelope: Fields = {}): Promise<Row> => {
  const c = minute(fields)
  assert.equal(await keep(app, [c], envelope), 1)
  return one(c)
}
const waits = (rows: readonly Row[]) => rows.map(({ wait_ns }) => wait_ns)

test('POST /pod/compute/history/batch 200: a row has all that was sent', async () => {
  const ts = inSecs(-5)
  const [c, bare] = [minute({ runq: RUNQ, stranger: {} }), minute()]
  assert.equal(await keep(app, [c, bare], { ts, stranger: [] }), 2)
  for (const [sent, runq] of [
    [
      c,
      {
        runq_count: 60,
        runq_p50_us: 200,
        runq_p95_us: 900,
        runq_p99_us: 1_500,
        runq_max_us: 4_000,
        runq_overflow: 2,
        runq_hist: RUNQ.hist,
      },
    ],
    [
      bare,
      {
        runq_count: null,
        runq_p50_us: null,
        runq_p95_us: null,
        runq_p99_us: null,
        runq_max_us: null,
        runq_overflow: null,
        runq_hist: null,
      },
    ],
  ] as const) {
    const { id, ...row } = await one(sent)
    assert.ok(Number.isInteger(id))
    const { container_uid, pod_uid, pod_name, namespace, container } = sent
    assert.deepEqual(row, { container_uid, pod_uid, namespace, pod_name, container, node: 'node-a', ts, ...SHOWN, ...runq })
  }
})

test('POST /pod/compute/history/batch 200: what was sent again changes nothing, and is accepted', async () => {
  const node = unique('node')
  const body = minutes([minute({ blame: [culprit(5), culprit(7)] }), minute({ blame: [culprit(3)] })], { node })
  const read = async () => [
    ...(await sql`select * from compute_minute`),
    ...(await sql`select * from compute_container`),
    await pairs(app, { node }),
  ]
  assert.equal((await app.post(PATH, body)).text, '{"accepted":2}')
  const first = await read()
  assert.equal((await app.post(PATH, body)).text, '{"accepted":2}')
  assert.deepEqual(await read(), first)
  const [a, b] = body.containers as Fields[]
  assert.equal(await keep(app, [{ ...a, blame: [culprit(9)] }, minute({ blame: [culprit(4)] }), b], { node, ts: body.ts }), 3)
  assert.deepEqual(waits(await pairs(app, { node })).sort(), [3, 4, 5, 7])
})
