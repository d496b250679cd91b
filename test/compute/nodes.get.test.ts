import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileLocked } from '../support/routes.ts'
import { nodes, sample, take } from './posts.ts'

const PATH = '/compute/nodes'
const app = await startApp()

beforeEach(async () => {
  await app.sql`truncate compute_latest, compute_node`
})

const KEYS = [
  ...[
    'node',
    'ts',
    'interval_ms',
    'ctxt_per_sec',
    'compute_enabled',
    'compute_supported',
    'contention_loaded',
    'cpu_some10',
    'cpu_full10',
  ],
  ...[
    'mem_some10',
    'mem_full10',
    'cpu_cores',
    'memory_bytes',
    'bpf_runq_enqueued',
    'bpf_runq_hist',
    'bpf_pair',
    'unknown_blame_share',
  ],
  ...['updated_at', 'bpf_hist_update_failures', 'bpf_pair_update_failures'],
]

test('GET /compute/nodes 200: an empty array without nodes', async () => {
  assert.deepEqual(await nodes(app), [])
})

test('GET /compute/nodes 200: the latest sample of every node, by name in byte order, keys in wire order', async () => {
  const names = ['b', 'a-', 'a', 'é', 'Z', '"\\\u001f']
  for (const node of names) await take(app, [], { node, ctxt_per_sec: 1 })
  await take(app, [sample()], { node: 'a', ctxt_per_sec: 2.5, interval_ms: 10_000 })
  const rows = await nodes(app)
  assert.deepEqual(
    rows.map((row) => [row.node, row.ctxt_per_sec, row.interval_ms]),
    [
      ['"\\\u001f', 1, 5_000],
      ['Z', 1, 5_000],
      ['a', 2.5, 10_000],
      ['a-', 1, 5_000],
      ['b', 1, 5_000],
      ['é', 1, 5_000],
    ],
  )
  for (const row of rows) assert.deepEqual(Object.keys(row), KEYS)
})

describe('access and faults', async () => {
  const guarded = await startApp({
    ...TOKENS,
    DB_STATEMENT_TIMEOUT_MS: '300',
    BROKER_READ_ACQUIRE_WAIT_MS: '0',
    BROKER_READ_MEMORY_BUDGET_MB: '1',
  })
  const token = TOKENS.BROKER_TOKEN_READ

  test('GET /compute/nodes 401: without a token', async () => assertUnauthorized(await guarded.get(PATH)))

  test('GET /compute/nodes 503: 512 KiB are charged', async () => {
    const release = await guarded.deps.budget.acquire(1024 - 511)
    assertShed(await guarded.get(PATH, { token }), 512, 1024)
    release()
    assert.equal((await guarded.get(PATH, { token })).status, 200)
  })

  test('GET /compute/nodes 503: a statement that is cancelled', async () => {
    await whileLocked(guarded.sql, 'compute_node', async () => assertDatabaseBusy(await guarded.get(PATH, { token })))
  })
})
