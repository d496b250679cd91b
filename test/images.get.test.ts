import assert from 'node:assert/strict'
import test from 'node:test'
import { startApp, TOKENS } from './support/app.ts'
import { age, container, digestOf, newDigest, newNamespace, replica } from './support/images.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from './support/routes.ts'

const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ

const store = async (...posts: unknown[]) => {
  for (const post of posts) assert.equal((await app.post('/pod/spec', post)).status, 200)
}
const list = async (query: string) => {
  const answer = await app.get(`/images?${query}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json as { items: Record<string, unknown>[]; nextAfter: string | null }
}
const digests = async (query: string) => (await list(query)).items.map(({ digest }) => digest)
const many = (n: number) => Array.from({ length: n }, newDigest).sort()

test('GET /images 200: an empty page when nothing was reported', async () => {
  const answer = await app.get('/images')
  assert.deepEqual([answer.status, answer.text], [200, '{"items":[],"nextAfter":null}'])
  assert.equal(answer.headers.get('content-type'), 'application/json')
})

test('GET /images 200: the keys of an image, in wire order', async () => {
  const [namespace, digest] = [newNamespace(), newDigest()]
  await store(replica(namespace, [container('app', digest)]))
  const page = await list(`namespace=${namespace}`)
  assert.deepEqual(Object.keys(page), ['items', 'nextAfter'])
  const [{ firstSeen, lastSeen, ...image }] = page.items as [Record<string, string>]
  assert.deepEqual(Object.keys(page.items[0]!), [
    'digest',
    'repository',
    'tags',
    'digestKind',
    'firstSeen',
    'lastSeen',
    'runningContainers',
  ])
  assert.deepEqual(image, {
    digest,
    repository: 'registry.test/team/app',
    tags: ['v1'],
    digestKind: 'repo',
    runningContainers: 1,
  })
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3}|\.\d{6})?$/
  assert.match(firstSeen!, time)
  assert.match(lastSeen!, time)
})

test('GET /images 200: an image without repository and tags has null and an empty list', async () => {
  const namespace = newNamespace()
  await store(replica(namespace, [container('app', newDigest(), { repository: null, tag: undefined })]))
  const [image] = (await list(`namespace=${namespace}`)).items
  assert.deepEqual([image!.repository, image!.tags], [null, []])
})

test('GET /images 200: pages follow the order of digests, each begins where the last ended, with every filter', async () => {
  const [namespace, all] = [newNamespace(), many(7)]
  const repository = `registry.test/${namespace}`
  await store(
    replica(
      namespace,
      [...all].reverse().map((digest, i) => container(`c${i}`, digest, { repository })),
    ),
  )
  for (const filter of [
    `namespace=${namespace}`,
    `repository=${repository}`,
    `repository=${repository}&namespace=${namespace}`,
    '',
  ]) {
    const everything = filter === '' ? ((await digests('limit=500')) as string[]) : all
    assert.deepEqual(everything, [...everything].sort())
    const paged: unknown[] = []
    for (let after = ''; ; ) {
      const { items, nextAfter } = await list(`${filter}&limit=3${after}`)
      assert.ok(items.length <= 3)
      paged.push(...items.map(({ digest }) => digest))
      if (nextAfter === null) break
      assert.equal(nextAfter, items.at(-1)!.digest)
      after = `&after=${nextAfter}`
    }
    assert.deepEqual(paged, everything, filter)
  }
})

test('GET /images 200: nextAfter is null on a page that is exactly full', async () => {
  const [namespace, all] = [newNamespace(), many(3)]
  await store(
    replica(
      namespace,
      all.map((digest, i) => container(`c${i}`, digest)),
    ),
  )
  assert.equal((await list(`namespace=${namespace}&limit=3`)).nextAfter, null)
  assert.equal((await list(`namespace=${namespace}&limit=2`)).nextAfter, all[1])
  assert.deepEqual(await list(`namespace=${namespace}&after=${all[2]}`), { items: [], nextAfter: null })
})

test('GET /images 200: the default limit is 100, and limits are clamped to 1..500', async () => {
  const namespace = newNamespace()
  await app.sql`
    with added as (
      insert into image select 'sha256:' || md5(n::text) || md5(n::text), null, '{}', 'repo', now(), now() from generate_series(1, 501) n
      returning digest)
    insert into workload_container
    select 'primary', ${namespace}, 'Deployment', 'many', 'app', digest, 'regular', 'r', '{}', '{}', null, null, null, null, now(), now() from added`
  const found = async (query: string) => (await digests(`namespace=${namespace}${query}`)).length
  assert.deepEqual(
    [
      await found(''),
      await found('&limit=0'),
      await found('&limit=-7'),
      await found('&limit=%2B2'),
      await found('&limit=501'),
      await found('&limit=99999999999'),
    ],
    [100, 1, 1, 2, 500, 500],
  )
  assert.notEqual((await list(`namespace=${namespace}&limit=500`)).nextAfter, null)
})

test('GET /images 200: filters by namespace, which also limits the count of containers, by exact repository, and by both', async () => {
  const [a, b] = [newNamespace(), newNamespace()]
  const [one, two] = [newDigest(), newDigest()]
  const [r, s] = [`r.test/${a}`, `r.test/${a}x`]
  await store(
    replica(a, [
      container('app', one, { repository: r }),
      container('side', one),
      container('x', two, { repository: s }),
    ]),
  )
  await store(replica(b, [container('app', one)]))
  const counts = async (query: string) =>
    Object.fromEntries((await list(query)).items.map((i) => [i.digest, i.runningContainers]))
  assert.deepEqual(await counts(`namespace=${a}`), { [one]: 2, [two]: 1 })
  assert.deepEqual(await counts(`namespace=${b}`), { [one]: 1 })
  assert.deepEqual(await counts(`repository=${r}`), { [one]: 3 })
  assert.deepEqual(await counts(`repository=${r}&namespace=${b}`), { [one]: 1 })
  for (const none of [
    `repository=${s}&namespace=${b}`,
    'namespace=nowhere',
    `repository=${r.toUpperCase()}`,
    `repository=${r.slice(0, -1)}`,
  ])
    assert.deepEqual(await counts(none), {}, none)
})

test('GET /images 200: a blank filter is ignored, and the first of repeated ones counts', async () => {
  const all = await digests('limit=500')
  for (const query of ['namespace=', 'namespace=%20&repository=', 'repository=%09', 'limit=500&limit=abc'])
    assert.deepEqual(await digests(`${query}&limit=500`), all, query)
})

test('GET /images 200: a container counts as running within the window, and later while its pod lives', async () => {
  const windowed = await startApp({ IMAGE_INVENTORY_RUNNING_WINDOW_SECS: '400' })
  const digest = digestOf('window')
  const body = replica('shop', [container('app', digest)])
  const running = async () => (await windowed.get('/images')).json.items[0].runningContainers
  await windowed.post('/pod/spec', body)
  await age(windowed.sql, 390)
  await windowed.post('/pod/mark_dead', { pod_name: body.pod_name })
  assert.equal(await running(), 1)
  await age(windowed.sql, 20)
  assert.equal(await running(), 0)
  await windowed.post('/pod/spec', { ...body, containers: undefined })
  assert.equal(await running(), 1, 'the pod lives')
  await windowed.post('/pod/spec', { ...body, containers: undefined, pod_namespace: 'other' })
  assert.equal(await running(), 0, 'the pod of that name is in another namespace')
})

for (const [query, field] of [
  ...['limit=abc', 'limit=', 'limit=1.5', 'limit=1e3', 'limit=0x10', 'limit=%00'].map((query) => [query, 'limit']),
  ...[
    'after=web',
    'after=sha256:abc',
    `after=${digestOf('a').toUpperCase()}`,
    `after=${digestOf('a')}0`,
    `after=md5:${'0'.repeat(32)}`,
  ].map((query) => [query, 'after']),
  ['namespace=a%00b', 'namespace'],
  ['repository=a%00b', 'repository'],
] as [string, string][]) {
  test(`GET /images 400: ${query}`, async () => {
    const answer = await app.get(`/images?${query}`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, new RegExp(`^Query deserialize error: ${field}: `))
  })
}

test('GET /images 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get('/images'))
  assertUnauthorized(await guarded.get('/images?limit=abc', { token: 'unknown' }))
})

test('GET /images 200: every token may read', async () => {
  for (const one of Object.values(TOKENS)) assert.equal((await guarded.get('/images', { token: one })).status, 200)
})

test('GET /images 503: refused when the read budget is spent, with one KiB for each image and one more', async () => {
  const { budget } = guarded.deps
  for (const [query, kib] of [
    ['', 101],
    ['?limit=1', 2],
    ['?limit=9999', 501],
  ] as const) {
    const release = await budget.acquire(budget.totalKib - kib + 1)
    assertShed(await guarded.get(`/images${query}`, { token }), kib, budget.totalKib)
    release()
  }
  assert.equal((await guarded.get('/images', { token })).status, 200)
})

test('GET /images 503: the table is locked for longer than a statement may take', async () => {
  await whileRefused(guarded.sql, 'image', async () => assertDatabaseBusy(await guarded.get('/images', { token })))
  assert.equal((await guarded.get('/images', { token })).status, 200)
})
