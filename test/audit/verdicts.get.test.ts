import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { startApp, TOKENS } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'

const app = await startApp()
const guarded = await startApp(
  {
    ...TOKENS,
    BROKER_READ_ACQUIRE_WAIT_MS: '0',
    BROKER_READ_MEMORY_BUDGET_MB: '1',
  },
  app,
)
const token = TOKENS.BROKER_TOKEN_READ

const KEYS = [
  ...[
    'id',
    'policy_uid',
    'policy_namespace',
    'policy_name',
    'direction',
    'src_namespace',
    'src_pod',
    'dst_namespace',
    'dst_pod',
  ],
  ...['dst_port', 'protocol', 'reason', 'observed_at', 'verdict'],
]

interface Row {
  policy_namespace: string
  policy_name: string
  direction: string
  verdict: string
  observed_at: string
}

const row = (fields: Partial<Row> = {}) => ({
  policy_uid: 'u',
  policy_namespace: 'shop',
  policy_name: 'web',
  direction: 'Egress',
  src_namespace: 'shop',
  src_pod: 'web-0',
  dst_namespace: null,
  dst_pod: null,
  dst_port: 443,
  protocol: 'TCP',
  reason: '',
  observed_at: '2024-05-01T10:00:00',
  verdict: 'Allow',
  ...fields,
})
/** Replaces the table with these rows, with ids from 1 in their order. */
async function hold(rows: object[]): Promise<void> {
  await app.sql`truncate audit_verdict restart identity`
  await app.sql`
    insert into audit_verdict (policy_uid, policy_namespace, policy_name, direction, src_namespace, src_pod, dst_namespace, dst_pod,
                               dst_port, protocol, reason, observed_at, verdict)
    select i.policy_uid, i.policy_namespace, i.policy_name, i.direction, i.src_namespace, i.src_pod, i.dst_namespace, i.dst_pod,
           i.dst_port, i.protocol, i.reason, i.observed_at, i.verdict
    from json_populate_recordset(null::audit_verdict, ${JSON.stringify(rows)}::text::json) i`
}
async function list(query: Record<string, string> = {}): Promise<Record<string, unknown>[]> {
  const answer = await app.get(`/audit/verdicts?${new URLSearchParams(query)}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const ids = async (query?: Record<string, string>) => (await list(query)).map(({ id }) => id)

test('GET /audit/verdicts 200: an empty array when nothing matches', async () => {
  await hold([])
  const answer = await app.get('/audit/verdicts?policy=none')
  assert.deepEqual([answer.status, answer.text], [200, '[]'])
})

test('GET /audit/verdicts 200: all keys in wire order, numbers as numbers', async () => {
  await hold([row({ observed_at: '2024-05-01T10:00:00.123456' })])
  const [first] = await list()
  assert.deepEqual(Object.keys(first!), KEYS)
  assert.deepEqual(first, { id: 1, ...row({ observed_at: '2024-05-01T10:00:00.123456' }) })
})

test('GET /audit/verdicts 200: newest first, then the greatest id, over all outcomes', async () => {
  const outcomes = ['Allow', 'WouldDeny'].flatMap((verdict) =>
    ['Ingress', 'Egress'].map((direction) => ({ verdict, direction })),
  )
  const rows = Array.from({ length: 40 }, (_, i) =>
    row({ ...outcomes[i % 4], observed_at: `2024-05-01T10:00:0${(i * 7) % 5}` }),
  )
  await hold(rows)
  const all = await list()
  const key = ({ observed_at, id }: Record<string, unknown>) => `${observed_at} ${String(id).padStart(5, '0')}`
  assert.deepEqual(all.map(key), all.map(key).sort().reverse())
  assert.equal(all.length, 40)
  for (const limit of [1, 3, 4, 5, 39])
    assert.deepEqual(
      await ids({ limit: `${limit}` }),
      all.slice(0, limit).map(({ id }) => id),
    )
})

test('GET /audit/verdicts 200: among verdicts of one time a limit keeps the greatest ids, with and without an index', async () => {
  await hold(Array.from({ length: 300 }, () => row()))
  const indexes = await app.sql<{ name: string; definition: string }[]>`
    select indexname as name, indexdef as definition from pg_indexes where tablename = 'audit_verdict' and indexname <> 'audit_verdict_pkey'`
  assert.ok(indexes.length >= 5)
  try {
    for (const { name } of [{ name: '' }, ...indexes]) {
      if (name !== '') await app.sql.unsafe(`drop index ${name}`)
      for (const query of [{}, { policy: 'web' }, { namespace: 'shop' }, { verdict: 'Allow', direction: 'Egress' }]) {
        assert.deepEqual(await ids({ ...query, limit: '3' }), [300, 299, 298])
        assert.equal((await ids({ ...query, limit: '299' })).at(-1), 2)
      }
    }
  } finally {
    for (const { definition } of indexes) await app.sql.unsafe(definition.replace('INDEX', 'INDEX IF NOT EXISTS'))
  }
})

test('GET /audit/verdicts 200: the default limit is 100 rows, the greatest 500', async () => {
  await hold(Array.from({ length: 503 }, () => row()))
  assert.equal((await list()).length, 100)
  for (const [limit, count] of [
    ['7', 7],
    ['500', 500],
    ['501', 500],
    ['9'.repeat(400), 500],
    ['0', 1],
    ['-3', 1],
    ['+2', 2],
  ] as const)
    assert.equal((await list({ limit })).length, count, limit)
})

test('GET /audit/verdicts 200: an empty namespace is a filter, other empty filters are ignored', async () => {
  await hold([row(), row({ policy_namespace: '' }), row({ policy_name: '' })])
  assert.deepEqual(await ids({ namespace: '' }), [2])
  assert.deepEqual(await ids({ policy: '' }), [3, 2, 1])
  assert.deepEqual(await ids({ verdict: '', direction: '' }), [3, 2, 1])
  assert.deepEqual(await ids({ of_no_interest: 'x' }), [3, 2, 1])
})

test('GET /audit/verdicts 200: property: filters select by AND, in order, up to the limit', async () => {
  const word = fc.constantFrom('', 'a', 'b')
  const fields = fc.record({
    policy_name: word,
    policy_namespace: word,
    direction: fc.constantFrom('Ingress', 'Egress'),
    verdict: fc.constantFrom('Allow', 'WouldDeny'),
    observed_at: fc.nat(3).map((n) => `2024-05-01T10:00:0${n}`),
  })
  const query = fc.record(
    {
      policy: word,
      namespace: word,
      verdict: fc.constantFrom('', 'Allow', 'WouldDeny'),
      direction: fc.constantFrom('', 'Ingress', 'Egress'),
      limit: fc.integer({ min: 1, max: 12 }).map(String),
    },
    { requiredKeys: [] },
  )
  await fc.assert(
    fc.asyncProperty(
      fc.array(fields, { maxLength: 30 }),
      fc.array(query, { minLength: 1, maxLength: 8 }),
      async (rows, queries) => {
        await hold(rows.map(row))
        for (const one of queries) {
          const expected = rows
            .map((fields, i) => ({ ...fields, id: i + 1 }))
            .filter(
              (r) =>
                (!one.policy || r.policy_name === one.policy) &&
                (one.namespace === undefined || r.policy_namespace === one.namespace) &&
                (!one.verdict || r.verdict === one.verdict) &&
                (!one.direction || r.direction === one.direction),
            )
            .sort((a, b) => (a.observed_at === b.observed_at ? b.id - a.id : a.observed_at < b.observed_at ? 1 : -1))
            .slice(0, Number(one.limit ?? 100))
          assert.deepEqual(
            await ids(one as Record<string, string>),
            expected.map(({ id }) => id),
            JSON.stringify(one),
          )
        }
      },
    ),
    { numRuns: depth(8, 40) },
  )
})

for (const [query, says] of [
  ['verdict=allow', /^Query deserialize error: verdict: "allow" is not one of Allow, WouldDeny$/],
  ['verdict=NotApplicable', /verdict: "NotApplicable"/],
  ['direction=ingress', /^Query deserialize error: direction: "ingress" is not one of Ingress, Egress$/],
  ['direction=%20Egress', /direction: " Egress"/],
  ['limit=abc', /limit: expected an integer/],
  ['limit=', /limit: expected an integer/],
  ['limit=1.5', /limit: expected an integer/],
  ['policy=a%00b', /policy: U\+0000/],
  ['namespace=%00', /namespace: U\+0000/],
] as const)
  test(`GET /audit/verdicts 400: ${query}`, async () => {
    const answer = await app.get(`/audit/verdicts?${query}`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, says)
  })

test('GET /audit/verdicts 400: a bad filter is refused before the read budget is charged', async () => {
  const release = await guarded.deps.budget.acquire(1024)
  assert.equal((await guarded.get('/audit/verdicts?verdict=allow', { token })).status, 400)
  release()
})

test('GET /audit/verdicts 401: without a token', async () => assertUnauthorized(await guarded.get('/audit/verdicts')))

test('GET /audit/verdicts 200: every token with the scope read is accepted', async () => {
  for (const one of Object.values(TOKENS))
    assert.equal((await guarded.get('/audit/verdicts', { token: one })).status, 200)
})

test('GET /audit/verdicts 503: one kibibyte is charged for each row', async () => {
  const release = await guarded.deps.budget.acquire(1024 - 99)
  assertShed(await guarded.get('/audit/verdicts', { token }), 100, 1024)
  assert.equal((await guarded.get('/audit/verdicts?limit=99', { token })).status, 200)
  release()
})

test('GET /audit/verdicts 503: a statement that is cancelled', async () => {
  await whileRefused(guarded.sql, 'audit_verdict', async () =>
    assertDatabaseBusy(await guarded.get('/audit/verdicts', { token })),
  )
})
