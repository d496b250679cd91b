import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MAX_PAGE_BYTES, MAX_ROWS_READ, readImage } from '../../lib/runtime/reads/image.ts'
import { type CoverageRow, type ExecutableRow, newImage, storeCoverage, storeExecutables } from '../runtime/rows.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileLocked } from '../support/routes.ts'

/** 2 KiB for each row of limit, for the look-ahead row and for 200 rows of coverage. */
const chargeKib = (limit: number) => 2 * (limit + 1 + 200)
const app = await startApp()
const guarded = await startApp({ ...TOKENS, DB_STATEMENT_TIMEOUT_MS: '300', BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ
const NOBODY = `/images/${newImage()}/runtime`

type Query = Record<string, string | number>
type Entry = {
  path: string
  kind: string
  workloads: number
  origin: string
  pathComplete: boolean
  firstSeen: string
  lastSeen: string
}
type Page = { entries: Entry[]; truncated: boolean; nextCursor: string | null; coverage: Record<string, unknown> }

const read = async (image: string, query: Query = {}): Promise<Page> => {
  const answer = await app.get(`/images/${image}/runtime?${new URLSearchParams(query as Record<string, string>)}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const key = ({ kind, path }: Pick<Entry, 'kind' | 'path'>) => `${kind}:${path}`
const keys = (page: Page) => page.entries.map(key)
const store = (image: string, rows: Partial<ExecutableRow>[]) =>
  storeExecutables(
    app.sql,
    rows.map((row) => ({ image, ...row })),
  )
const watch = (image: string, rows: Partial<CoverageRow>[]) =>
  storeCoverage(
    app.sql,
    rows.map((row) => ({ image, ...row })),
  )

/** Reads all pages; calls `between` after each but the last. */
async function pages(image: string, query: Query, between: (page: Page) => unknown = () => {}): Promise<Page[]> {
  const all: Page[] = []
  for (let after: string | null | undefined; after !== null; ) {
    const page = await read(image, after === undefined ? query : { ...query, after })
    assert.equal(page.truncated, page.nextCursor !== null)
    if (page.truncated) assert.equal(page.nextCursor, key(page.entries.at(-1)!), 'it ends with the last entry')
    all.push(page)
    after = page.nextCursor
    if (after !== null) await between(page)
  }
  return all
}
const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

test('GET /images/{digest}/runtime 200: every key in wire order', async () => {
  const image = newImage()
  await store(image, [{ origin: 'deleted', complete: false }])
  await watch(image, [{ secs: 60 }])
  const got = await read(image)
  assert.equal(
    JSON.stringify(got),
    JSON.stringify({
      digest: image,
      entries: [
        {
          path: '/bin/x',
          kind: 'exec',
          pathComplete: false,
          origin: 'deleted',
          firstSeen: '2026-01-01T00:00:00',
          lastSeen: '2026-01-02T00:00:00.500',
          workloads: 1,
        },
      ],
      truncated: false,
      nextCursor: null,
      coverage: {
        workloads: 1,
        instances: 1,
        lastHeartbeat: got.coverage.lastHeartbeat,
        librariesTracked: true,
        instancesWithDrops: 0,
        windowHours: 24,
      },
    }),
  )
})

test('GET /images/{digest}/runtime 200: an image that runs nowhere has no entry, and its coverage is zero', async () => {
  const [digest512] = [`sha512:${'a'.repeat(128)}`]
  for (const digest of [newImage(), digest512]) {
    const answer = await app.get(`/images/${digest}/runtime`)
    assert.equal(answer.status, 200)
    assert.equal(
      answer.text,
      `{"digest":"${digest}","entries":[],"truncated":false,"nextCursor":null,"coverage":{"workloads":0,"instances":0,"lastHeartbeat":null,"librariesTracked":false,"instancesWithDrops":0,"windowHours":24}}`,
    )
  }
})

test('GET /images/{digest}/runtime 200: an entry combines its rows: distinct workloads, all times, the most suspicious origin, any whole path', async () => {
  const image = newImage()
  await store(image, [
    { namespace: 'a', workload: 'x', container: 'one', complete: false, origin: 'image', first: '2026-01-05T00:00:00' },
    { namespace: 'a', workload: 'x', container: 'two', complete: true, origin: 'memfd', last: '2026-03-01T00:00:00' },
    { namespace: 'a', workload: 'x', kind: 'Pod', complete: false, first: '2025-12-01T00:00:00', origin: 'deleted' },
    // Joined as text, these would be the same workload.
    { namespace: 'aD', kind: 'eployment', workload: 'x' },
    { namespace: 'a', workload: 'x', path: '/other' },
    { namespace: 'a', workload: 'x', entryKind: 'lib' },
  ])
  const entry = (kind: string, path: string, rest: Partial<Entry>) => ({
    ...{
      path,
      kind,
      pathComplete: true,
      origin: 'image',
      firstSeen: '2026-01-01T00:00:00',
      lastSeen: '2026-01-02T00:00:00.500',
      workloads: 1,
    },
    ...rest,
  })
  assert.deepEqual((await read(image)).entries, [
    entry('exec', '/bin/x', {
      origin: 'memfd',
      firstSeen: '2025-12-01T00:00:00',
      lastSeen: '2026-03-01T00:00:00',
      workloads: 3,
    }),
    entry('exec', '/other', {}),
    entry('lib', '/bin/x', {}),
  ])
})

test('GET /images/{digest}/runtime 200: the more suspicious of two origins', async () => {
  const origins = ['unknown', 'image', 'otherFs', 'deleted', 'writableLayer', 'memfd']
  const image = newImage()
  const pairs = origins.flatMap((a, i) => origins.slice(i).map((b) => ({ a, b, path: `${a}-${b}` })))
  await store(
    image,
    pairs.flatMap(({ a, b, path }) => [
      { path, origin: a, workload: 'w-1' },
      { path, origin: b, workload: 'w-2' },
    ]),
  )
  for (const { path, origin } of (await read(image)).entries) assert.equal(origin, path.split('-')[1])
})

test('GET /images/{digest}/runtime 200: a filter by kind, before, at and behind a cursor', async () => {
  const image = newImage()
  await store(
    image,
    ['/a', '/b', '/c'].flatMap((path) => [
      { path, entryKind: 'exec' as const },
      { path, entryKind: 'lib' as const },
    ]),
  )
  const of = async (query: Query) => keys(await read(image, query)).join(' ')
  assert.equal(await of({ kind: ' ' }), 'exec:/a exec:/b exec:/c lib:/a lib:/b lib:/c')
  assert.equal(await of({ kind: 'lib' }), 'lib:/a lib:/b lib:/c')
  assert.equal(await of({ kind: 'exec', after: 'exec:/a' }), 'exec:/b exec:/c')
  assert.equal(await of({ kind: 'lib', after: 'exec:/b' }), 'lib:/a lib:/b lib:/c')
  assert.equal(await of({ kind: 'exec', after: 'lib:/a' }), '')
  assert.equal(await of({ after: 'exec:/bx' }), 'exec:/c lib:/a lib:/b lib:/c')
  assert.equal(await of({ after: 'lib:/c' }), '')
})

test('GET /images/{digest}/runtime 200: limit is 1000 by default, and clamped to 1..5000', async () => {
  const image = newImage()
  const paths = Array.from({ length: 5_001 }, (_, i) => `/opt/${String(i).padStart(4, '0')}`)
  await store(
    image,
    paths.toReversed().map((path) => ({ path })),
  )
  for (const [query, count] of [
    [{}, 1_000],
    [{ limit: 9_999 }, 5_000],
    [{ limit: 0 }, 1],
    [{ limit: -1 }, 1],
  ] as const) {
    const got = await read(image, query)
    assert.deepEqual(
      got.entries.map(({ path }) => path),
      paths.slice(0, count),
    )
    assert.deepEqual([got.truncated, got.nextCursor], [true, `exec:${paths[count - 1]}`])
  }
  const exact = await read(image, { limit: 5_000, after: `exec:${paths[0]}` })
  assert.deepEqual([exact.entries.length, exact.truncated], [5_000, false])
})

/**
 * Characters that need an escape in JSON or a URL, are part of a cursor, or sort differently by bytes and by code
 * units.
 */
const odd = fc.constantFrom(
  'a',
  'B',
  '/',
  '"',
  '\\',
  '\n',
  '\u0001',
  '\u001f',
  ' ',
  '+',
  '&',
  '%',
  '%2',
  '%00',
  ':',
  'lib:',
  '\uffee',
  '\u{1f600}',
  'é',
)
const start = fc.constantFrom('', '', 'p'.repeat(255), 'p'.repeat(256), 'p'.repeat(300), 'é'.repeat(2_000))
const aPath = fc.tuple(start, fc.string({ unit: odd, minLength: 1, maxLength: 4 })).map((parts) => parts.join(''))

test('GET /images/{digest}/runtime 200: all pages together are the list, and concurrent writes remove nothing from it', async () => {
  const row = fc.record({
    path: aPath,
    entryKind: fc.constantFrom<'exec' | 'lib'>('exec', 'lib'),
    workload: fc.constantFrom('w-1', 'w-2', 'w-3'),
    container: fc.constantFrom('app', 'side'),
  })
  const rows = fc.uniqueArray(row, {
    maxLength: 30,
    selector: (r) => JSON.stringify([r.path, r.entryKind, r.workload, r.container]),
  })
  const keyOf = (r: { entryKind: string; path: string }) => `${r.entryKind}:${r.path}`
  await fc.assert(
    fc.asyncProperty(
      rows,
      fc.array(row, { maxLength: 10 }),
      fc.integer({ min: 1, max: 8 }),
      async (old, later, limit) => {
        const image = newImage()
        await store(image, old)
        const arriving = [...later]
        const seen: string[] = []
        const workloads = new Map<string, number>()
        for (const page of await pages(image, { limit }, async () => {
          const next = arriving.pop()
          if (next) await store(image, [{ ...next, namespace: `later-${arriving.length}` }])
        })) {
          assert.ok(page.entries.length <= limit)
          seen.push(...keys(page))
          for (const entry of page.entries) workloads.set(key(entry), entry.workloads)
        }
        assert.deepEqual(seen, [...new Set(seen)].sort(byBytes), 'each once, in order')
        const fresh = new Set(later.map(keyOf))
        for (const one of old) {
          const meant = new Set(old.filter((r) => keyOf(r) === keyOf(one)).map((r) => r.workload)).size
          assert.ok(workloads.get(keyOf(one))! >= meant, 'lost')
          if (!fresh.has(keyOf(one))) assert.equal(workloads.get(keyOf(one)), meant)
        }
        for (const one of seen) assert.ok(fresh.has(one) || old.some((r) => keyOf(r) === one))
      },
    ),
    { numRuns: depth(12, 60) },
  )
})

test('GET /images/{digest}/runtime 200: a page ends with a whole entry once it has read enough', async () => {
  const image = newImage()
  const [paths, workloads] = [50, 1_000]
  await app.sql`
    insert into runtime_executable (cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, kind, path, path_hash,
                                    path_complete, source, origin, first_seen, last_seen)
    select 'primary', 'shop', 'Deployment', 'web-' || w, 'app', ${image}, 'exec', p.path, sha256(convert_to(p.path, 'UTF8')), true, 'ebpf', 'image',
           now(), now()
    from generate_series(1, ${workloads}::int) w
    cross join (select '/bin/' || lpad(n::text, 3, '0') as path from generate_series(1, ${paths}::int) n) p`
  const all = await pages(image, {})
  // The last path may have more rows than were read.
  assert.equal(all.length, Math.ceil(paths / (MAX_ROWS_READ / workloads - 1)))
  assert.deepEqual(
    all.flatMap((page) => page.entries.map((entry) => [entry.path, entry.workloads])),
    Array.from({ length: paths }, (_, i) => [`/bin/${String(i + 1).padStart(3, '0')}`, workloads]),
  )
  // One entry that exceeds that limit.
  const question = { digest: image, kind: null, after: null, limit: 1_000, windowHours: 24, retentionDays: 0 }
  const { entries, nextCursor } = await readImage(app.db.read, question, 500)
  const list = JSON.parse(`[${entries}]`) as Entry[]
  assert.deepEqual([list.length, list.at(-1)!.workloads, nextCursor], [7, workloads, 'exec:/bin/007'])
})

test('GET /images/{digest}/runtime 200: a page of long paths ends at one megabyte', async () => {
  const image = newImage()
  const paths = Array.from({ length: 600 }, (_, i) => `/${String(i).padStart(3, '0')}${'\u0001'.repeat(4_092)}`)
  await store(
    image,
    paths.map((path) => ({ path })),
  )
  const all = await pages(image, {})
  assert.deepEqual(
    all.flatMap((page) => page.entries.map(({ path }) => path)),
    paths,
  )
  assert.deepEqual(
    all.map((page) => page.entries.length),
    [MAX_PAGE_BYTES / 4_096, MAX_PAGE_BYTES / 4_096, 88],
  )
})

test('GET /images/{digest}/runtime 200: coverage counts heartbeats within the window', async () => {
  const image = newImage()
  const HOUR = 3_600
  await watch(image, [
    { workload: 'one', secs: 30, dropSecs: 30 },
    { workload: 'one', secs: 20, container: 'side', dropSecs: 23 * HOUR },
    { workload: 'two', secs: 50, dropSecs: 25 * HOUR },
    { workload: 'three', secs: 30 * HOUR, dropSecs: 30 * HOUR, mode: 'exec' },
  ])
  await watch(newImage(), [{ workload: 'four' }])
  const of = async (query: Query) => {
    const { lastHeartbeat, ...rest } = (await read(image, query)).coverage
    assert.match(String(lastHeartbeat), /^\d{4}-\d\d-\d\dT/)
    return Object.values(rest)
  }
  assert.deepEqual(await of({}), [2, 3, true, 2, 24])
  assert.deepEqual(await of({ window_hours: 48 }), [3, 4, false, 4, 48])
  assert.deepEqual(await of({ window_hours: 0 }), [2, 3, true, 1, 1])
  assert.equal((await of({ window_hours: 9_999 }))[4], 720)
  assert.equal((await of({ kind: 'lib' }))[1], 3, 'whatever else is asked for')
})

for (const [what, row, tracked] of [
  ['no library probe', { lib: false }, false],
  ['mode exec', { mode: 'exec' }, false],
  ['both', {}, true],
] as const)
  test(`GET /images/{digest}/runtime 200: libraries are tracked when every instance tracks them: one with ${what}`, async () => {
    const image = newImage()
    await watch(image, [{}, row])
    assert.equal((await read(image)).coverage.librariesTracked, tracked)
  })

for (const digest of [
  'latest',
  `sha256:${'a'.repeat(63)}`,
  `sha256:${'A'.repeat(64)}`,
  `sha512:${'a'.repeat(64)}`,
  `md5:${'a'.repeat(32)}`,
])
  test(`GET /images/{digest}/runtime 400: digest ${digest.slice(0, 12)} of ${digest.length} characters`, async () => {
    const answer = await app.get(`/images/${digest}/runtime`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, /^Path deserialize error: digest: expected sha256: /)
  })

for (const [query, says] of [
  ['kind=script', /kind: expected one of exec, lib$/],
  ['limit=many', /limit: expected an integer$/],
  ['window_hours=1h', /window_hours: expected an integer$/],
  ...[
    'exec',
    'exec:',
    'lib:',
    'script:/x',
    '/x',
    ':/x',
    'EXEC:/x',
    ' exec:/x',
    `exec:/${'x'.repeat(4_096)}`,
    `exec:${'%C3%A9'.repeat(2_049)}`,
  ].map(
    (cursor) => [`after=${cursor}`, /after: expected the nextCursor of a page: exec: or lib:, and a path$/] as const,
  ),
  ['after=exec:a%00', /after: U\+0000 is not allowed$/],
] as const)
  test(`GET /images/{digest}/runtime 400: ${query.slice(0, 30)}`, async () => {
    const answer = await app.get(`${NOBODY}?${query}`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, /^Query deserialize error: /)
    assert.match(answer.text, says)
  })

test('GET /images/{digest}/runtime 401: without a token', async () => {
  assertUnauthorized(await guarded.get(NOBODY))
})

test('GET /images/{digest}/runtime 503: a cancelled statement', async () => {
  await whileLocked(guarded.sql, 'runtime_executable', async () =>
    assertDatabaseBusy(await guarded.get(NOBODY, { token })),
  )
})

test('GET /images/{digest}/runtime 503: charged by limit', async () => {
  const { budget } = guarded.deps
  const spent = await budget.acquire(budget.totalKib - 1)
  assertShed(await guarded.get(NOBODY, { token }), chargeKib(1_000), budget.totalKib)
  assertShed(await guarded.get(`${NOBODY}?limit=7000`, { token }), chargeKib(5_000), budget.totalKib)
  spent()
})
