import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { staleSweep } from '../../jobs/stale-sweep.ts'
import { listen } from '../../lib/http/server/listen.ts'
import { MAX_COVERAGE } from '../../lib/runtime/reads/record.ts'
import { PIECE_BYTES } from '../../lib/runtime/reads/workload.ts'
import {
  type CoverageRow,
  type ExecutableRow,
  newImage,
  newNamespace,
  storeCoverage,
  storeExecutables,
} from '../runtime/rows.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileLocked } from '../support/routes.ts'

/** 2 KiB for each of the limit, the look-ahead row and 200 rows of coverage. */
const chargeKib = (limit: number) => 2 * (limit + 1 + 200)
const app = await startApp()
const guarded = await startApp({ ...TOKENS, DB_STATEMENT_TIMEOUT_MS: '300', BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ
const NOBODY = '/workloads/nowhere/Deployment/web/runtime'

const pathOf = (namespace: string, name = 'web', kind = 'Deployment') =>
  `/workloads/${[namespace, kind, name].map(encodeURIComponent).join('/')}/runtime`
const read = async (namespace: string, query: Record<string, string | number> = {}, name?: string, kind?: string) => {
  const answer = await app.get(
    `${pathOf(namespace, name, kind)}?${new URLSearchParams(query as Record<string, string>)}`,
  )
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
type Entry = { path: string; kind: string; origin: string }
type Container = { containerName: string; imageDigest: string; entries: Entry[] }
const listed = ({ containers }: { containers: Container[] }) =>
  containers.flatMap((c) => c.entries.map((e) => [c.containerName, c.imageDigest, e.kind, e.path]))
const store = (namespace: string, rows: Partial<ExecutableRow>[]) =>
  storeExecutables(
    app.sql,
    rows.map((row) => ({ namespace, ...row })),
  )
const watch = (namespace: string, rows: Partial<CoverageRow>[]) =>
  storeCoverage(
    app.sql,
    rows.map((row) => ({ namespace, ...row })),
  )

test('GET /workloads/{namespace}/{kind}/{name}/runtime 200: every key in wire order', async () => {
  const [namespace, image] = [newNamespace(), newImage()]
  await store(namespace, [{ image, origin: 'writableLayer' }])
  await watch(namespace, [{ image, secs: 60 }])
  const got = await read(namespace)
  const { lastHeartbeat, observedSince } = got.coverage[0]
  assert.equal(
    JSON.stringify(got),
    JSON.stringify({
      namespace,
      kind: 'Deployment',
      name: 'web',
      containers: [
        {
          containerName: 'app',
          imageDigest: image,
          entries: [
            {
              path: '/bin/x',
              kind: 'exec',
              source: 'ebpf',
              origin: 'writableLayer',
              pathComplete: true,
              firstSeen: '2026-01-01T00:00:00',
              lastSeen: '2026-01-02T00:00:00.500',
            },
          ],
        },
      ],
      truncated: false,
      coverage: [
        {
          containerName: 'app',
          imageDigest: image,
          instances: 1,
          lastHeartbeat,
          mode: 'full',
          librariesTracked: true,
          covered: true,
          observedSince,
          reason: null,
          reasonDetail: null,
          windowHours: 24,
        },
      ],
    }),
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/runtime 200: a workload without reports has empty lists', async () => {
  const answer = await app.get(NOBODY)
  assert.equal(answer.status, 200)
  assert.equal(
    answer.text,
    '{"namespace":"nowhere","kind":"Deployment","name":"web","containers":[],"truncated":false,"coverage":[]}',
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/runtime 200: the workload must match exactly', async () => {
  const namespace = newNamespace()
  await store(namespace, [
    {},
    { workload: 'we%', path: '/a' },
    { kind: 'Pod', path: '/b' },
    { workload: 'webs', path: '/c' },
  ])
  await store(`${namespace}x`, [{ path: '/d' }])
  const paths = async (name?: string, kind?: string) =>
    listed(await read(namespace, {}, name, kind)).map((entry) => entry[3])
  assert.deepEqual(await paths(), ['/bin/x'])
  assert.deepEqual(await paths('we%'), ['/a'])
  assert.deepEqual(await paths('web', 'Pod'), ['/b'])
  assert.deepEqual(await paths('WEB'), [])
})

test('GET /workloads/{namespace}/{kind}/{name}/runtime 200: filters combine, a blank one is ignored, and `unshipped` stands for three origins', async () => {
  const namespace = newNamespace()
  const origins = ['unknown', 'image', 'otherFs', 'deleted', 'writableLayer', 'memfd']
  const rows = origins.flatMap((origin) =>
    (['exec', 'lib'] as const).flatMap((entryKind) =>
      ['app', 'side'].map((container) => ({ origin, entryKind, container, path: origin })),
    ),
  )
  await store(namespace, rows)
  const of = async (query: Record<string, string>) =>
    (await read(namespace, query)).containers
      .flatMap((c: Container) => c.entries.map((e) => `${c.containerName} ${e.kind} ${e.origin}`))
      .sort()
  const meant = (passes: (row: (typeof rows)[number]) => boolean) =>
    rows
      .filter(passes)
      .map((row) => `${row.container} ${row.entryKind} ${row.origin}`)
      .sort()
  const isUnshipped = (origin: string) => ['deleted', 'writableLayer', 'memfd'].includes(origin)
  for (const container of ['', ' ', 'app', 'ap', 'side'])
    for (const kind of ['', 'exec', 'lib', ' '])
      for (const origin of ['', 'unshipped', 'image', 'memfd'])
        assert.deepEqual(
          await of({ container, kind, origin }),
          meant(
            (row) =>
              (container.trim() === '' || row.container === container) &&
              (kind.trim() === '' || row.entryKind === kind) &&
              (origin === '' || row.origin === origin || (origin === 'unshipped' && isUnshipped(row.origin))),
          ),
          JSON.stringify({ container, kind, origin }),
        )
})

test('GET /workloads/{namespace}/{kind}/{name}/runtime 200: a container filters coverage too, kind and origin do not', async () => {
  const namespace = newNamespace()
  await store(namespace, [{ container: 'app' }, { container: 'side' }])
  await watch(namespace, [{ container: 'app' }, { container: 'side' }])
  const names = async (query: Record<string, string>) =>
    (await read(namespace, query)).coverage.map((c: { containerName: string }) => c.containerName)
  assert.deepEqual(await names({ kind: 'lib', origin: 'memfd' }), ['app', 'side'])
  assert.deepEqual(await names({ container: 'side' }), ['side'])
  assert.deepEqual(await names({ container: 'none' }), [])
})

test('GET /workloads/{namespace}/{kind}/{name}/runtime 200: limit counts the entries of all containers, and is clamped', async () => {
  const namespace = newNamespace()
  await store(
    namespace,
    ['/a', '/b', '/c', '/d'].flatMap((path) => ['app', 'side'].map((container) => ({ path, container }))),
  )
  for (const [limit, count, truncated] of [
    [8, 8, false],
    [7, 7, true],
    [5, 5, true],
    [4, 4, true],
    [1, 1, true],
    [0, 1, true],
    [-7, 1, true],
    [99999, 8, false],
  ] as const) {
    const got = await read(namespace, { limit })
    assert.deepEqual([listed(got).length, got.truncated], [count, truncated], `limit ${limit}`)
  }
  assert.deepEqual(
    (await read(namespace, { limit: 5 })).containers.map((c: Container) => [c.containerName, c.entries.length]),
    [
      ['app', 4],
      ['side', 1],
    ],
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/runtime 200: the default limit is 1000, the greatest 5000', async () => {
  const namespace = newNamespace()
  const paths = Array.from({ length: 5_001 }, (_, i) => `/opt/${String(i).padStart(4, '0')}`)
  await store(
    namespace,
    paths.toReversed().map((path) => ({ path })),
  )
  for (const [query, count] of [
    [{}, 1_000],
    [{ limit: 9_999 }, 5_000],
  ] as const) {
    const got = await read(namespace, query)
    assert.deepEqual(
      listed(got).map((entry) => entry[3]),
      paths.slice(0, count),
    )
    assert.equal(got.truncated, true)
  }
})

test('GET /workloads/{namespace}/{kind}/{name}/runtime 200: at most 200 rows of coverage, the first by container and digest', async () => {
  const namespace = newNamespace()
  const names = Array.from({ length: MAX_COVERAGE + 5 }, (_, i) => `c-${String(i).padStart(3, '0')}`)
  await watch(
    namespace,
    names.toReversed().map((container) => ({ container })),
  )
  const { coverage } = await read(namespace)
  assert.deepEqual(
    coverage.map((c: { containerName: string }) => c.containerName),
    names.slice(0, MAX_COVERAGE),
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/runtime 200: the window is clamped to 1..720 hours', async () => {
  const namespace = newNamespace()
  await watch(namespace, [{ secs: 30 }, { container: 'old', secs: 25 * 3_600 }])
  const of = async (query: Record<string, string | number>) =>
    (await read(namespace, query)).coverage.map((c: Record<string, unknown>) => `${c.containerName} ${c.windowHours}`)
  assert.deepEqual(await of({}), ['app 24'])
  assert.deepEqual(await of({ window_hours: 0 }), ['app 1'])
  assert.deepEqual(await of({ window_hours: -3 }), ['app 1'])
  assert.deepEqual(await of({ window_hours: 26 }), ['app 26', 'old 26'])
  assert.deepEqual(await of({ window_hours: 721 }), ['app 720', 'old 720'])
})

/** Characters that are escaped, that separate columns, or that sort differently by bytes and by code units. */
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
  '%',
  ':',
  '\uffee',
  '\u{1f600}',
  'é',
)
const aPath = fc.tuple(
  fc.constantFrom('', 'p'.repeat(255), 'p'.repeat(256), 'p'.repeat(300)),
  fc.string({ unit: odd, minLength: 1, maxLength: 4 }),
)

test('GET /workloads/{namespace}/{kind}/{name}/runtime 200: entries are ordered by container, digest, kind and path in bytes, and may be cut after any of them', async () => {
  const images = ['', newImage(), newImage()]
  const row = fc.record({
    container: fc.string({ unit: odd, minLength: 1, maxLength: 2 }).map((name) => `c${name}`),
    image: fc.constantFrom(...images),
    entryKind: fc.constantFrom<'exec' | 'lib'>('exec', 'lib'),
    path: aPath.map((parts) => parts.join('')),
  })
  const key = (r: { container: string; image: string; entryKind: string; path: string }) => [
    r.container,
    r.image,
    r.entryKind,
    r.path,
  ]
  const compare = (a: string[], b: string[]) =>
    a.map((text, i) => Buffer.compare(Buffer.from(text), Buffer.from(b[i]!))).find((n) => n !== 0) ?? 0
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(row, { maxLength: 40, selector: (r) => key(r).join('\0') }),
      fc.nat(41),
      async (rows, limit) => {
        const namespace = newNamespace()
        await store(namespace, rows)
        const got = await read(namespace, { limit })
        const meant = rows.map(key).sort(compare)
        const most = Math.max(1, limit)
        assert.deepEqual([listed(got), got.truncated], [meant.slice(0, most), meant.length > most])
        const items = got.containers.map((c: Container) => `${c.containerName}\0${c.imageDigest}`)
        assert.equal(new Set(items).size, items.length, 'one item for each container and digest')
      },
    ),
    { numRuns: depth(12, 60) },
  )
})

const live = (await listen(app.app.fetch, [{ host: '127.0.0.1', port: 0 }])).server
after(() => {
  live.closeAllConnections()
  live.close()
})
const { port } = live.address() as { port: number }

for (const containers of [1, 3, 100]) {
  test(`GET /workloads/{namespace}/{kind}/{name}/runtime 200: paths of many megabytes in ${containers} containers are sent in pieces`, async () => {
    const namespace = newNamespace()
    const name = (i: number) => `c-${String(i % containers).padStart(3, '0')}`
    const paths = Array.from({ length: 1_000 }, (_, i) => ({
      container: name(i),
      path: `/${String(i).padStart(4, '0')}\u001f"${'x'.repeat(4_000)}`,
    }))
    await store(namespace, paths)
    const meant = paths.map(({ container, path }) => `${container}${path}`).sort()
    for (const limit of [1_000, 999, 300, 262]) {
      const answer = await fetch(`http://127.0.0.1:${port}${pathOf(namespace)}?limit=${limit}`, {
        headers: { 'accept-encoding': limit % 2 ? 'gzip' : 'identity' },
      })
      assert.equal(answer.headers.has('content-length'), false)
      const got = (await answer.json()) as { containers: Container[]; truncated: boolean; coverage: unknown[] }
      assert.deepEqual(
        listed(got as never).map((entry) => entry[0]! + entry[3]),
        meant.slice(0, limit),
      )
      assert.deepEqual([got.truncated, got.coverage], [limit < 1_000, []])
      const items = got.containers.map((c) => c.containerName)
      assert.deepEqual(items, [...new Set(items)])
    }
    assert.ok(1_000 * 4_000 > 3 * PIECE_BYTES)
  })
}

for (const [query, says] of [
  ['kind=script', /kind: expected one of exec, lib$/],
  ['kind=EXEC', /kind: /],
  ['origin=shipped', /origin: expected one of unknown, .*, unshipped$/],
  ['limit=many', /limit: expected an integer$/],
  ['limit=1.5', /limit: /],
  ['limit=', /limit: /],
  ['window_hours=day', /window_hours: expected an integer$/],
  [`container=${'c'.repeat(254)}`, /container: expected at most 253 bytes$/],
  [`container=${'%C3%A9'.repeat(127)}`, /container: expected at most 253 bytes$/],
  ['container=a%00', /container: U\+0000/],
] as const)
  test(`GET /workloads/{namespace}/{kind}/{name}/runtime 400: ${query.slice(0, 40)}`, async () => {
    const answer = await app.get(`${NOBODY}?${query}`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, says)
    assert.match(answer.text, /^Query deserialize error: /)
  })

test('GET /workloads/{namespace}/{kind}/{name}/runtime 400: a part of the path that is blank or too long', async () => {
  const long = 'é'.repeat(127)
  for (const [namespace, kind, name, part] of [
    [' ', 'K', 'n', 'namespace'],
    ['n', '\t', 'n', 'kind'],
    ['n', 'K', '  ', 'name'],
    [long, 'K', 'n', 'namespace'],
    ['n', long, 'n', 'kind'],
    ['n', 'K', long, 'name'],
    ['n', 'K', 'a\0', 'name'],
  ] as const) {
    const answer = await app.get(pathOf(namespace, name, kind))
    assert.equal(answer.status, 400, part)
    assert.match(answer.text, new RegExp(`^Path deserialize error: ${part}: `))
  }
  assert.equal((await app.get(pathOf('n'.repeat(253), 'n'.repeat(253), 'K'.repeat(253)))).status, 200)
})

test('GET /workloads/{namespace}/{kind}/{name}/runtime 401: without a token', async () => {
  assertUnauthorized(await guarded.get(NOBODY))
})

test('GET /workloads/{namespace}/{kind}/{name}/runtime 503: a cancelled statement', async () => {
  await whileLocked(guarded.sql, 'runtime_executable', async () =>
    assertDatabaseBusy(await guarded.get(NOBODY, { token })),
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/runtime 503: charged by limit', async () => {
  const { budget } = guarded.deps
  const spent = await budget.acquire(budget.totalKib - 1)
  assertShed(await guarded.get(NOBODY, { token }), chargeKib(1_000), budget.totalKib)
  assertShed(await guarded.get(`${NOBODY}?limit=7000`, { token }), chargeKib(5_000), budget.totalKib)
  spent()
})

test('GET /workloads/{namespace}/{kind}/{name}/runtime 200: coverage names pods on silent nodes that were swept and never ended, and its verdict does not change', async () => {
  const namespace = newNamespace()
  const image = newImage()
  const beat = (pod: string, days: number, fields = {}) => ({
    ...{
      pod_namespace: namespace,
      pod_name: `${namespace}-${pod}`,
      workload_kind: 'Deployment',
      workload_name: 'web',
      container_name: 'app',
    },
    ...{
      image_digest: image,
      container_id: `${namespace}${pod}`.replaceAll('-', ''),
      node_name: `node-${pod}`,
      mode: 'full',
    },
    ...{
      exec_probe: true,
      lib_probe: true,
      start_mode: 'start',
      tracking_since: at(20),
      heartbeat_at: at(days),
      heartbeat_secs: 300,
    },
    ...fields,
  })
  const post = async (path: string, body: unknown) => assert.equal((await app.post(path, body)).status, 200)
  const pod = (name: string, days: number, fields = {}) =>
    post('/pod/spec', {
      ...{
        pod_name: `${namespace}-${name}`,
        pod_ip: '10.0.0.9',
        pod_namespace: namespace,
        time_stamp: at(days),
        node_name: `node-${name}`,
      },
      ...{ is_dead: false, workload_kind: 'Deployment', workload_name: 'web', ...fields },
    })
  const at = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, -1)
  const coverage = async (query = {}) => (await read(namespace, query)).coverage[0]
  const sweep = async () => {
    const { config, db, log } = app.deps
    await staleSweep.run({ config, db, log, signal: new AbortController().signal } as Parameters<
      typeof staleSweep.run
    >[0])
  }

  await post('/runtime/coverage', [
    beat('here', 0),
    beat('silent', 3),
    beat('ended', 3, { ended: true }),
    beat('deleted', 3),
    beat('told', 3),
    beat('back', 3),
    beat('unknown', 3),
    beat('watched', 0),
    beat('late', 0.5),
    beat('other', 3, { container_name: 'side' }),
  ])
  for (const name of ['silent', 'ended', 'told', 'back', 'watched', 'other']) await pod(name, 3)
  await pod('here', 0)
  await pod('late', 0.5)
  await pod('deleted', 3, { is_dead: true })
  assert.equal((await coverage()).silentPods, undefined, 'before they were swept')
  await sweep()
  await post('/pod/mark_dead', { pod_name: `${namespace}-told` })
  await pod('back', 0, { containers: [] })
  const names = (...pods: string[]) => pods.map((name) => `${namespace}-${name}`)
  const { reason, silentPods, silentPodCount, windowHours, ...rest } = await coverage()
  assert.deepEqual([reason, silentPods, silentPodCount], ['capture_gap', names('late', 'silent'), 2])
  assert.deepEqual(Object.keys(await coverage()).slice(-3), ['windowHours', 'silentPods', 'silentPodCount'])
  assert.equal(rest.instances, 3)
  // The late pod is outside this window too: the rest is covered, although a container may run there.
  const short = await coverage({ window_hours: 10 })
  assert.deepEqual([short.covered, short.silentPods], [true, names('late', 'silent')])
  assert.equal(windowHours, 24)
  await pod('silent', 0)
  await post('/runtime/coverage', [beat('late', 0.1, { ended: true })])
  const { silentPods: none, silentPodCount: zero } = await coverage()
  assert.deepEqual([none, zero], [undefined, undefined])
})

test('GET /workloads/{namespace}/{kind}/{name}/runtime 200: coverage names at most 10 silent pods, and their number', async () => {
  const namespace = newNamespace()
  const ids = Array.from({ length: 23 }, (_, n) => `${namespace}-${String(n).padStart(2, '0')}`)
  // The pod has the name of its container id.
  await watch(namespace, [...ids.map((id) => ({ id, secs: 90_000 })), { secs: 1 }])
  await app.sql`
    insert into pod (pod_name, pod_namespace, pod_ip, pod_ips, time_stamp, node_name, is_dead, swept_at)
    select n, ${namespace}, '', '{}', now() at time zone 'utc' - interval '1 hour', 'n', true, now() at time zone 'utc'
    from unnest(${`{${ids}}`}::text::text[]) n`
  const [{ silentPods, silentPodCount }] = (await read(namespace)).coverage
  assert.deepEqual([silentPods, silentPodCount], [ids.slice(0, 10), 23])
})
