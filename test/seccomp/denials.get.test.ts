import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import fc from 'fast-check'
import { startApp, TOKENS } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'
import { denial, type Row, rows, take } from './drains.ts'

const PATH = '/seccomp/denials'
const app = await startApp()
const { sql } = app

beforeEach(async () => {
  await sql`truncate seccomp_denial restart identity`
})

interface Stored {
  namespace?: string
  kind?: string | null
  workload?: string | null
  seen?: string
}

/** Stores rows as drains of known pods would, in this order, so that later ones have greater ids. */
async function store(...all: Stored[]): Promise<void> {
  await sql`
    insert into seccomp_denial (pod_uid, pod_name, pod_namespace, workload_kind, workload_name, node_name, syscall, action, count, first_seen, last_seen)
    select 'uid', 'pod', i.namespace, i.kind, i.workload, 'node', 's-' || n, 'a', 1, i.seen, i.seen
    from rows from (json_to_recordset(${JSON.stringify(
      all.map((one) => ({
        namespace: 'shop',
        kind: 'Deployment',
        workload: 'web',
        seen: '2026-01-01T00:00:00',
        ...one,
      })),
    )}::text::json) as (namespace text, kind text, workload text, seen timestamp)) with ordinality i(namespace, kind, workload, seen, n)
    order by n`
}

/** The positions in `store` of the rows that are found. */
const found = async (query: string): Promise<number[]> =>
  (await rows(app, query)).map(({ syscall }) => Number(syscall.slice(2)))

const KEYS = [
  ...[
    'id',
    'podUid',
    'podName',
    'podNamespace',
    'workloadKind',
    'workloadName',
    'nodeName',
    'syscall',
    'syscallNr',
    'action',
    'actionRaw',
  ],
  ...['arch', 'count', 'firstSeen', 'lastSeen'],
]

test('GET /seccomp/denials 200: an empty list without rows', async () => {
  const answer = await app.get(PATH)
  assert.deepEqual([answer.status, answer.text], [200, '[]'])
  assert.match(answer.headers.get('content-type')!, /^application\/json/)
})

test('GET /seccomp/denials 200: the keys of a row in wire order, also with nulls', async () => {
  await take(app, [denial()])
  const [row] = await rows(app)
  assert.deepEqual(Object.keys(row!), KEYS)
  const { workloadKind, workloadName, syscallNr, actionRaw, arch } = row!
  assert.deepEqual([workloadKind, workloadName, syscallNr, actionRaw, arch], [null, null, null, null, null])
})

test('GET /seccomp/denials 200: texts that need escapes and separators of columns are returned unchanged', async () => {
  const odd = ['a\u001fb', '\u0001', 'quote"back\\slash', 'line\nend', '\u2028é😀']
  await take(
    app,
    odd.map((text) => denial({ podName: text, podUid: text, arch: text === '\u0001' ? undefined : `x${text}x` })),
  )
  const got = new Map((await rows(app)).map((row) => [row.podName, row]))
  for (const text of odd) {
    const { podUid, arch } = got.get(text)!
    assert.deepEqual([podUid, arch], [text, text === '\u0001' ? null : `x${text}x`])
  }
})

test('GET /seccomp/denials 200: times are RFC 3339 with Z and at most microseconds', async () => {
  await take(app, [
    denial({ syscall: 'a', firstSeen: '2026-01-01T00:00:00Z', lastSeen: '2026-01-03T00:00:00.1234569Z' }),
    denial({ syscall: 'b', firstSeen: '2026-01-01T00:00:00.5Z', lastSeen: '2026-01-02T00:00:00.000001Z' }),
  ])
  const [a, b] = (await rows(app)) as [Row, Row]
  assert.deepEqual([a.firstSeen, a.lastSeen], ['2026-01-01T00:00:00Z', '2026-01-03T00:00:00.123456Z'])
  assert.deepEqual([b.firstSeen, b.lastSeen], ['2026-01-01T00:00:00.500Z', '2026-01-02T00:00:00.000001Z'])
})

test('GET /seccomp/denials 200: the last seen first, of equal times the greater key first', async () => {
  await store(
    { seen: '2026-01-01T00:00:03' },
    { seen: '2026-01-01T00:00:05' },
    { seen: '2026-01-01T00:00:03' },
    { seen: '2026-01-01T00:00:04' },
  )
  assert.deepEqual(await found(''), [2, 4, 3, 1])
  assert.deepEqual(await found('namespace=shop'), [2, 4, 3, 1])
  assert.deepEqual(await found('namespace=shop&kind=Deployment&workload=web'), [2, 4, 3, 1])
})

test('GET /seccomp/denials 200: filters are exact and combine, and blank ones are ignored', async () => {
  await store(
    { namespace: 'a' },
    { namespace: 'a', kind: 'StatefulSet', workload: 'db' },
    { namespace: 'b' },
    { namespace: 'a', kind: null, workload: null },
    { namespace: 'a', kind: 'StatefulSet' },
  )
  const of = async (query: string) => (await found(query)).sort().join('')
  assert.equal(await of('namespace=a'), '1245')
  assert.equal(await of('namespace=A'), '')
  assert.equal(await of('kind=Deployment'), '13')
  assert.equal(await of('kind=deployment'), '')
  assert.equal(await of('workload=web'), '135')
  assert.equal(await of('kind=StatefulSet&workload=web'), '5')
  assert.equal(await of('namespace=a&kind=StatefulSet'), '25')
  assert.equal(await of('namespace=a&workload=web'), '15')
  assert.equal(await of('namespace=b&workload=db'), '')
  assert.equal(await of('namespace=a&kind=StatefulSet&workload=db'), '2')
  assert.equal(await of('namespace=&kind=%20&workload=%09&since='), '12345')
  assert.equal(await of('namespace=b&kind='), '3')
})

test('GET /seccomp/denials 200: since selects rows seen at that time or later, in any zone, with every filter', async () => {
  await store({ seen: '2026-01-01T00:00:00' }, { seen: '2026-01-01T00:00:00.000001' }, { seen: '2026-01-01T00:00:01' })
  for (const more of [
    '',
    '&namespace=shop',
    '&namespace=shop&kind=Deployment&workload=web',
    '&kind=Deployment',
    '&namespace=shop&workload=web',
  ]) {
    assert.deepEqual(await found(`since=2026-01-01T00:00:00Z${more}`), [3, 2, 1])
    assert.deepEqual(await found(`since=2026-01-01T00:00:00.000001Z${more}`), [3, 2])
    assert.deepEqual(await found(`since=2026-01-01T02:00:01%2B02:00${more}`), [3])
    assert.deepEqual(await found(`since=2026-01-01T00:00:01.1Z${more}`), [])
  }
})

for (const bad of [
  'yesterday',
  '2026-01-01T00:00:00',
  '2026-01-01',
  '2026-13-01T00:00:00Z',
  '2026-01-01T00:00:00 02:00',
  '1767225600',
  'null',
])
  test(`GET /seccomp/denials 400: since=${bad}`, async () => {
    const answer = await app.get(`${PATH}?since=${encodeURIComponent(bad)}`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, /^Query deserialize error: since: expected a time as in RFC 3339, with a zone$/)
    assert.match(answer.headers.get('content-type')!, /^text\/plain/)
  })

for (const name of ['namespace', 'kind', 'workload', 'since'])
  test(`GET /seccomp/denials 400: U+0000 in ${name}`, async () => {
    assert.equal((await app.get(`${PATH}?${name}=a%00`)).status, 400)
  })

test('GET /seccomp/denials 200: the default limit is 100, and limit is clamped to 1..500', async () => {
  await store(...Array.from({ length: 510 }, () => ({})))
  const count = async (query: string) => (await app.get(`${PATH}${query}`)).json.length
  for (const [query, expected] of Object.entries({
    '': 100,
    '?limit=7': 7,
    '?limit=0': 1,
    '?limit=-5': 1,
    '?limit=500': 500,
    '?limit=501': 500,
    '?limit=99999999999999999999999': 500,
    '?namespace=shop&limit=2': 2,
    '?namespace=shop&kind=Deployment&workload=web&limit=2': 2,
    '?kind=Deployment&limit=2': 2,
    '?namespace=shop&kind=Deployment&limit=2': 2,
  }))
    assert.equal(await count(query), expected, query)
})

for (const bad of ['many', '', '1.5', '1e2', '0x10', 'NaN'])
  test(`GET /seccomp/denials 400: limit=${bad}`, async () => {
    const answer = await app.get(`${PATH}?limit=${bad}`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, /limit: expected an integer/)
  })

test('GET /seccomp/denials 401: without a token', async () => {
  const secured = await startApp(TOKENS)
  assertUnauthorized(await secured.get(PATH))
})

test('GET /seccomp/denials 200: every token reads', async () => {
  const secured = await startApp(TOKENS)
  for (const token of Object.values(TOKENS)) assert.equal((await secured.get(PATH, { token })).status, 200)
})

test('GET /seccomp/denials 503: 1 KiB is charged for each row of the limit', async () => {
  const small = await startApp({ BROKER_READ_MEMORY_BUDGET_MB: '1', BROKER_READ_ACQUIRE_WAIT_MS: '0' })
  const held = await small.deps.budget.acquire(1_024 - 99)
  assertShed(await small.get(PATH), 100, 1_024)
  assertShed(await small.get(`${PATH}?limit=5000`), 500, 1_024)
  assert.equal((await small.get(`${PATH}?limit=99`)).status, 200)
  held()
  assert.equal((await small.get(PATH)).status, 200)
})

test('GET /seccomp/denials 503: the database is busy', async () => {
  const busy = await startApp()
  await whileRefused(busy.sql, 'seccomp_denial', async () => assertDatabaseBusy(await busy.get(PATH)))
})

test('GET /seccomp/denials 200: with any filters the result equals a plain filter of all rows', {
  timeout: 900_000,
}, async () => {
  const word = fc.constantFrom('a', 'b', 'B', 'é')
  const moment = fc.integer({ min: 0, max: 5 }).map((n) => `2026-01-01T00:00:0${n}`)
  const stored = fc.record({
    namespace: word,
    owner: fc.option(fc.tuple(word, word), { nil: null }),
    seen: moment,
  })
  const asked = fc.record({
    namespace: fc.option(word, { nil: '' }),
    kind: fc.option(word, { nil: '' }),
    workload: fc.option(word, { nil: '' }),
    since: fc.option(moment, { nil: '' }),
    limit: fc.integer({ min: 1, max: 12 }),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(stored, { maxLength: 20 }),
      fc.array(asked, { minLength: 1, maxLength: 8 }),
      async (all, questions) => {
        await sql`truncate seccomp_denial restart identity`
        await store(
          ...all.map(({ namespace, owner, seen }) => ({
            namespace,
            kind: owner?.[0] ?? null,
            workload: owner?.[1] ?? null,
            seen,
          })),
        )
        for (const { namespace, kind, workload, since, limit } of questions) {
          const expected = all
            .map((row, i) => ({ ...row, place: i + 1 }))
            .filter(({ namespace: of }) => namespace === '' || of === namespace)
            .filter(({ owner }) => kind === '' || owner?.[0] === kind)
            .filter(({ owner }) => workload === '' || owner?.[1] === workload)
            .filter(({ seen }) => since === '' || seen >= since)
            .sort((a, b) => (a.seen === b.seen ? b.place - a.place : a.seen < b.seen ? 1 : -1))
            .slice(0, limit)
            .map(({ place }) => place)
          const query = new URLSearchParams({
            namespace,
            kind,
            workload,
            since: since && `${since}Z`,
            limit: String(limit),
          })
          const answer = await app.get(`${PATH}?${query}`)
          assert.deepEqual(
            answer.json.map(({ syscall }: Row) => Number(syscall.slice(2))),
            expected,
            String(query),
          )
        }
      },
    ),
    { numRuns: depth(15, 100) },
  )
})
