import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { readUnshipped } from '../../lib/runtime/reads/index.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { container, newDigest } from '../support/images.ts'
import { podPost } from '../support/records.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileLocked } from '../support/routes.ts'
import { executable, type Fields, take } from './executables.ts'
import { heartbeat, inSecs, take as takeHeartbeats } from './heartbeats.ts'

const app = await startApp()
const PATH = '/runtime/unshipped'

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
type Json = any

let made = 0
const newNamespace = () => `unshipped-${++made}`
const at = (secs: number) => new Date(Date.UTC(2026, 0, 1) + secs * 1_000).toISOString().slice(0, -1)

async function read(query: Record<string, string | number> = {}): Promise<Json> {
  const answer = await app.get(`${PATH}?${new URLSearchParams(query as Record<string, string>)}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
/** All items, page by page. */
async function readAll(query: Record<string, string | number>, between = async () => {}): Promise<Json[]> {
  const items: Json[] = []
  const cursors = new Set<string>()
  for (let after = ''; ; ) {
    assert.ok(!cursors.has(after), 'each page begins behind the one before')
    cursors.add(after)
    const page = await read({ ...query, after })
    items.push(...page.items)
    if (page.nextAfter === null) return items
    after = page.nextAfter
    await between()
  }
}
const file = (pod_namespace: string, fields: Fields = {}) =>
  executable({ pod_namespace, origin: 'writableLayer', path: '/tmp/x', ...fields })
/** Posts a live pod of Deployment web. */
async function pod(pod_namespace: string, pod_name: string, containers: unknown, fields: Fields = {}) {
  const owner = { workload_kind: 'Deployment', workload_name: 'web' }
  const time_stamp = new Date().toISOString().slice(0, -1)
  const answer = await app.post(
    '/pod/spec',
    podPost({ pod_name, pod_namespace, ...owner, time_stamp, containers, ...fields }),
  )
  assert.equal(answer.status, 200, answer.text)
}
const watch = (pod_namespace: string, pod_name: string, fields: Fields = {}) =>
  takeHeartbeats(app, [heartbeat({ pod_namespace, pod_name, ...fields })])

test('GET /runtime/unshipped 200: every key in wire order', async () => {
  const [pod_namespace, image_digest] = [newNamespace(), newDigest()]
  await pod(pod_namespace, 'web-0', [container('app', image_digest)])
  await watch(pod_namespace, 'web-0', { image_digest })
  await take(app, [file(pod_namespace, { image_digest, origin: 'memfd', path_complete: false })])
  assert.equal(
    (await app.get(`${PATH}?namespace=${pod_namespace}`)).text,
    JSON.stringify({
      items: [
        {
          ...{ namespace: pod_namespace, workloadKind: 'Deployment', workloadName: 'web', containerName: 'app' },
          ...{ imageDigest: image_digest, path: '/tmp/x', pathComplete: false, kind: 'exec', origin: 'memfd' },
          ...{ source: 'ebpf', firstSeen: '2026-01-01T00:00:00Z', lastSeen: '2026-01-01T01:00:00Z', lastPod: 'web-0' },
          ...{ imageRunning: true, imageRunningReason: null, runningInstances: 1, unwatchedInstances: 0 },
          watchReason: null,
        },
      ],
      nextAfter: null,
      watch: {
        ...{ runningInstances: 1, unwatchedInstances: 0 },
        reasons: { no_runtime_data: 0, probes_missing: 0, libraries_not_tracked: 0, events_dropped: 0, capture_gap: 0 },
        ...{ podsWithoutContainerList: 0, silentPods: 0 },
      },
    }),
  )
})

test('GET /runtime/unshipped 200: an empty list says how many running containers nobody watches', async () => {
  const namespace = newNamespace()
  assert.deepEqual((await read({ namespace })).watch.runningInstances, 0)
  await pod(namespace, 'silent', [container('app', newDigest()), container('side', newDigest())])
  await pod(namespace, 'late', [container('app', newDigest())])
  await watch(namespace, 'late', { heartbeat_at: inSecs(-3_600) })
  await pod(namespace, 'blind', [container('app', newDigest())])
  await watch(namespace, 'blind', { exec_probe: false })
  await pod(namespace, 'half', [container('app', newDigest())])
  await watch(namespace, 'half', { mode: 'exec' })
  await pod(namespace, 'good', [container('app', newDigest())])
  await watch(namespace, 'good')
  await pod(namespace, 'ended', [container('app', newDigest())])
  await watch(namespace, 'ended', { ended: true })
  await pod(namespace, 'dead', [container('app', newDigest())], { is_dead: true })
  await pod(namespace, 'unlisted', undefined)
  const { items, watch: got } = await read({ namespace })
  assert.deepEqual(items, [])
  assert.deepEqual(got, {
    runningInstances: 7,
    unwatchedInstances: 6,
    reasons: { no_runtime_data: 3, probes_missing: 1, libraries_not_tracked: 1, events_dropped: 0, capture_gap: 1 },
    ...{ podsWithoutContainerList: 1, silentPods: 0 },
  })
  const whole = (await read()).watch
  assert.ok(whole.runningInstances >= 7 && whole.unwatchedInstances >= 6)
})

test('GET /runtime/unshipped 200: pods whose agent fell silent are told, though they count as dead', async () => {
  const namespace = newNamespace()
  const ran = [container('app', newDigest()), container('side', newDigest())]
  for (const [name, hours, fields] of [
    ['lost-1', 1, {}],
    ['ended-1', 1, { ended: true }],
    ['deleted-1', 1, {}],
    ['long-ago', 25, {}],
  ] as const) {
    await pod(namespace, name, ran, { is_dead: name === 'deleted-1' })
    for (const container_name of ['app', 'side'])
      await watch(namespace, name, { container_name, heartbeat_at: inSecs(-3_600 * hours), ...fields })
  }
  await app.sql`
    update pod set is_dead = true, swept_at = now() at time zone 'utc' + interval '1 minute'
    where pod_namespace = ${namespace} and not is_dead`
  const { items, watch: got } = await read({ namespace })
  assert.deepEqual([items, got.runningInstances, got.silentPods], [[], 0, 1])
})

test('GET /runtime/unshipped 200: lost events are no watch, and the first reason of a container is shown', async () => {
  const [namespace, image_digest] = [newNamespace(), newDigest()]
  for (const name of ['web-0', 'web-1', 'web-2']) await pod(namespace, name, [container('app', image_digest)])
  const container_id = 'a'.repeat(64)
  await watch(namespace, 'web-0', { image_digest, container_id, heartbeat_at: inSecs(-60) })
  await watch(namespace, 'web-0', { image_digest, container_id, events_dropped: 5, heartbeat_at: inSecs(-1) })
  await watch(namespace, 'web-1', { image_digest, heartbeat_at: inSecs(-7_200) })
  await watch(namespace, 'web-2', { image_digest })
  await take(app, [file(namespace, { image_digest })])
  const { items, watch: got } = await read({ namespace })
  assert.deepEqual([got.reasons.events_dropped, got.reasons.capture_gap], [1, 1])
  assert.deepEqual(
    [items[0].runningInstances, items[0].unwatchedInstances, items[0].watchReason],
    [3, 2, 'events_dropped'],
  )
})

test('GET /runtime/unshipped 200: whether the image runs now is true, false, or unknown with a reason', async () => {
  const namespace = newNamespace()
  const [now, before, other] = [newDigest(), newDigest(), newDigest()]
  await pod(namespace, 'web-0', [container('app', now)])
  await take(app, [
    file(namespace, { image_digest: now, path: '/now' }),
    file(namespace, { image_digest: before, path: '/before' }),
    file(namespace, { image_digest: '', path: '/unresolved' }),
    file(namespace, { image_digest: other, container_name: 'gone', path: '/gone' }),
  ])
  const of = async (query: Fields = {}) =>
    Object.fromEntries(
      (await readAll({ namespace, ...(query as Record<string, string>) })).map((one) => [
        one.path,
        [one.imageRunning, one.imageRunningReason, one.runningInstances, one.watchReason],
      ]),
    )
  const all = {
    '/now': [true, null, 1, 'no_runtime_data'],
    '/before': [false, null, 1, 'no_runtime_data'],
    '/unresolved': [null, 'no_digest', 1, 'no_runtime_data'],
    '/gone': [null, 'not_in_inventory', 0, null],
  }
  assert.deepEqual(await of(), all)
  assert.deepEqual(await of({ running: 'true' }), { '/now': all['/now'] })
  assert.deepEqual(await of({ running: 'false' }), { '/before': all['/before'] })
})

test('GET /runtime/unshipped 200: files that an image shipped, and files past the retention, are not listed', async () => {
  const namespace = newNamespace()
  await take(
    app,
    ['unknown', 'image', 'otherFs', 'deleted', 'writableLayer', 'memfd'].map((origin) =>
      file(namespace, { origin, path: `/${origin}` }),
    ),
  )
  const paths = async (retentionDays: number) => {
    const question = { namespace, since: null, running: null, limit: 10, after: null, runningWindowSecs: 900 }
    const { items } = JSON.parse(await readUnshipped(app.db.read, { ...question, retentionDays }))
    return items.map((one: Json) => one.path).sort()
  }
  assert.deepEqual(await paths(0), ['/deleted', '/memfd', '/writableLayer'])
  assert.deepEqual(await paths(1), [])
})

test('GET /runtime/unshipped 200: a filter is plain text, and `since` is about the first time, with its own moment', async () => {
  const namespace = newNamespace()
  await take(app, [
    file(namespace, { path: '/old', first_seen: at(0), last_seen: at(900) }),
    file(namespace, { path: '/new', first_seen: at(600), last_seen: at(900) }),
  ])
  const paths = async (query: Record<string, string>) =>
    (await read({ namespace, ...query })).items.map((one: Json) => one.path)
  assert.deepEqual(await paths({}), ['/new', '/old'])
  assert.deepEqual(await paths({ since: ' ' }), ['/new', '/old'])
  assert.deepEqual(await paths({ since: '2026-01-01T00:10:00Z' }), ['/new'])
  assert.deepEqual(await paths({ since: '2026-01-01T01:10:00.000001+01:00' }), [])
  for (const other of ['%', `${namespace.slice(0, -1)}_`, `${namespace}%`, namespace.toUpperCase()])
    assert.deepEqual((await read({ namespace: other })).items, [], other)
})

/** A file as it is posted: a place in the lists below, and its times. */
const posted = fc.record({
  namespace: fc.nat(1),
  workload: fc.constantFrom('web', 'api', 'é"\\'),
  container: fc.constantFrom('app', 'side'),
  image: fc.nat(2),
  kind: fc.constantFrom('exec', 'lib'),
  path: fc.constantFrom('/tmp/a', '/tmp/b', `/${'p'.repeat(300)}1`, `/${'p'.repeat(300)}2`, '\u{1f600}'),
  origin: fc.constantFrom('image', 'unknown', 'deleted', 'writableLayer', 'memfd'),
  first: fc.nat(6),
  length: fc.nat(600),
})
const RANKS = ['unknown', 'image', 'otherFs', 'deleted', 'writableLayer', 'memfd']

test('GET /runtime/unshipped 200: pages of any size give what a naive filter over everything posted gives, newest first', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(posted, { minLength: 1, maxLength: 40, size: 'max' }),
      fc.integer({ min: 1, max: 12 }),
      fc.record({ isOfNamespace: fc.boolean(), since: fc.option(fc.nat(6)), maxRead: fc.integer({ min: 1, max: 8 }) }),
      async (rows, limit, { isOfNamespace, since, maxRead }) => {
        await app.sql`truncate runtime_executable`
        const namespaces = [newNamespace(), newNamespace()]
        const images = ['', newDigest(), newDigest()]
        const known = new Map<
          string,
          { path: string; origin: string; first: number; last: number; namespace: string }
        >()
        for (const row of rows) {
          const namespace = namespaces[row.namespace]!
          const [first, last] = [row.first, row.first + row.length]
          await take(app, [
            file(namespace, {
              ...{ workload_name: row.workload, container_name: row.container, image_digest: images[row.image] },
              ...{ kind: row.kind, path: row.path, origin: row.origin, first_seen: at(first), last_seen: at(last) },
            }),
          ])
          const key = [namespace, row.workload, row.container, row.image, row.kind, row.path].join(' ')
          const before = known.get(key)
          known.set(key, {
            ...{ path: row.path, namespace },
            origin: before && RANKS.indexOf(before.origin) > RANKS.indexOf(row.origin) ? before.origin : row.origin,
            first: Math.min(first, before?.first ?? first),
            last: Math.max(last, before?.last ?? last),
          })
        }
        const meant = [...known]
          .filter(([, one]) => RANKS.indexOf(one.origin) >= RANKS.indexOf('deleted'))
          .filter(([, one]) => !isOfNamespace || one.namespace === namespaces[0])
          .filter(([, one]) => since === null || one.first >= since)
        const got: Json[] = []
        const question = {
          ...{ namespace: isOfNamespace ? namespaces[0]! : null, since: since === null ? null : at(since) },
          ...{ running: null, limit, retentionDays: 0, runningWindowSecs: 900 },
        }
        // As the route reads them, but so few at once that pages also end without being full.
        let after: Parameters<typeof readUnshipped>[1]['after'] = null
        const cursors = new Set<string>()
        do {
          const page: Json = JSON.parse(await readUnshipped(app.db.read, { ...question, after }, maxRead))
          assert.ok(page.items.length <= limit)
          got.push(...page.items)
          assert.ok(!cursors.has(page.nextAfter), 'each page begins behind the one before')
          cursors.add(page.nextAfter)
          after = page.nextAfter && JSON.parse(Buffer.from(page.nextAfter, 'base64url').toString())
        } while (after !== null)
        const keyOf = (one: Json) =>
          [
            one.namespace,
            one.workloadName,
            one.containerName,
            images.indexOf(one.imageDigest),
            one.kind,
            one.path,
          ].join(' ')
        assert.deepEqual(got.map(keyOf).sort(), meant.map(([key]) => key).sort())
        for (const one of got) assert.equal(one.origin, known.get(keyOf(one))!.origin)
        const firsts = got.map((one) => known.get(keyOf(one))!.first)
        assert.deepEqual(
          firsts,
          firsts.toSorted((a, b) => b - a),
        )
      },
    ),
    { numRuns: depth(12, 300) },
  )
})

test('GET /runtime/unshipped 200: a page whose files a filter leaves out is short or empty, and has a next one', async () => {
  const [namespace, other] = [newNamespace(), newNamespace()]
  await app.sql`truncate runtime_executable`
  await take(app, [
    ...[1, 2, 9, 16].map((i) => file(namespace, { path: `/${i}`, first_seen: at(i), last_seen: at(100) })),
    ...[3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15].map((i) => file(other, { first_seen: at(i), path: `/${i}` })),
  ])
  const question = { namespace, since: null, running: null, limit: 2, retentionDays: 0, runningWindowSecs: 900 }
  const pages: string[][] = []
  let after: Parameters<typeof readUnshipped>[1]['after'] = null
  do {
    const page: Json = JSON.parse(await readUnshipped(app.db.read, { ...question, after }, 3))
    pages.push(page.items.map((one: Json) => one.path))
    after = page.nextAfter && JSON.parse(Buffer.from(page.nextAfter, 'base64url').toString())
  } while (after !== null && pages.length < 20)
  assert.deepEqual(pages, [['/16'], [], ['/9'], [], ['/2'], ['/1']])
})

test('GET /runtime/unshipped 200: pages read while files are posted neither lose nor repeat one that was there', async () => {
  const namespace = newNamespace()
  const posts = Array.from({ length: 60 }, (_, i) =>
    file(namespace, { path: `/before-${i}`, first_seen: at(10 + (i % 7)), last_seen: at(100) }),
  )
  await take(app, posts)
  let more = 0
  const between = async () => {
    more++
    await take(app, [
      file(namespace, { path: `/newer-${more}`, first_seen: at(50), last_seen: at(100) }),
      file(namespace, { path: `/same-${more}`, first_seen: at(13), last_seen: at(100) }),
      file(namespace, { path: `/older-${more}`, first_seen: at(1), last_seen: at(100) }),
      // Seen again, which moves no place.
      { ...posts[more]!, last_seen: at(2_000 * more) },
    ])
  }
  const paths = (await readAll({ namespace, limit: 7 }, between)).map((one) => one.path)
  assert.equal(new Set(paths).size, paths.length, 'none twice')
  assert.deepEqual(
    paths.filter((path) => path.startsWith('/before-')).sort(),
    posts.map(({ path }) => path as string).sort(),
  )
  assert.ok(!paths.some((path) => path.startsWith('/newer-')))
  assert.deepEqual(paths.filter((path) => path.startsWith('/older-')).length > 0, true)
})

test('GET /runtime/unshipped 200: the limit is 100 by default, and clamped to 1..500', async () => {
  const namespace = newNamespace()
  await take(
    app,
    Array.from({ length: 501 }, (_, i) => file(namespace, { path: `/${i}` })),
  )
  for (const [query, count] of [
    [{}, 100],
    [{ limit: 0 }, 1],
    [{ limit: 9_999 }, 500],
  ] as const) {
    const page = await read({ namespace, ...query })
    assert.deepEqual([page.items.length, page.nextAfter !== null], [count, true])
  }
})

test('GET /runtime/unshipped 200: shipped files are not read, nor more unshipped ones than a page needs', async () => {
  await app.sql`truncate runtime_executable`
  const rows = (origin: string, count: number) => app.sql`
    insert into runtime_executable (cluster_id, pod_namespace, workload_kind, workload_name, container_name,
                                    image_digest, kind, path, path_hash, path_complete, source, origin, first_seen,
                                    last_seen)
    select 'primary', 'many', 'Deployment', 'web-' || n % 100, 'app', '', 'exec', ${origin} || n, sha256(n::text::bytea),
           true, 'ebpf', ${origin}, now() - n * interval '1 second', now()
    from generate_series(1, ${count}::int) n`
  await rows('image', 20_000)
  await rows('memfd', 4_000)
  const reads = async () => {
    const [row] = await app.db.read(
      (of) => of`explain (analyze, buffers, format json, timing off, summary off)
        select * from unshipped_files(null, '-infinity', null, 'infinity', '', '', '', '', '', '', '', 0, 900, 100, 5000)`,
    )
    const [{ Plan: plan }] = row!['QUERY PLAN'] as [{ Plan: Record<string, number> }]
    return plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!
  }
  for (const step of [() => app.sql`select 1`, () => app.sql`vacuum analyze runtime_executable`]) {
    await step()
    for (let i = 0; i < app.deps.config.dbPoolMaxSize; i++) await reads()
    const pages = await reads()
    assert.ok(pages <= 600, `${pages} pages`)
  }
})

describe('faults', async () => {
  const guarded = await startApp({
    ...TOKENS,
    DB_STATEMENT_TIMEOUT_MS: '300',
    BROKER_READ_ACQUIRE_WAIT_MS: '0',
    BROKER_READ_MEMORY_BUDGET_MB: '1',
  })
  const token = TOKENS.BROKER_TOKEN_READ
  const cursorOf = (keys: unknown) => Buffer.from(JSON.stringify(keys)).toString('base64url')
  const hash = '0'.repeat(64)
  const first = '2026-01-01T00:00:00.000000'

  for (const [query, says] of [
    ['namespace=a%00', /namespace: U\+0000/],
    ['since=yesterday', /since: expected a time as in RFC 3339, with a zone$/],
    ['since=2026-01-01T00:00:00', /since: /],
    ['since=2026-02-30T00:00:00Z', /since: /],
    ['running=maybe', /running: expected true or false$/],
    ['running=', /running: /],
    ['limit=many', /limit: expected an integer$/],
    ['after=x', /after: expected the nextAfter of a page of this list$/],
    [`after=${cursorOf([first, hash, 'n', 'k', 'w', 'c', 'i'])}`, /after: /],
    [`after=${cursorOf([first, 'zz', 'n', 'k', 'w', 'c', 'i', 'exec'])}`, /after: /],
    [`after=${cursorOf(['2026-99-99T00:00:00.000000', hash, 'n', 'k', 'w', 'c', 'i', 'exec'])}`, /after: /],
    [`after=${cursorOf([first, hash, 'n\0', 'k', 'w', 'c', 'i', 'exec'])}`, /after: /],
    ['origin=memfd', /origin/],
  ] as const)
    test(`GET /runtime/unshipped 400: ${query.slice(0, 60)}`, async () => {
      const answer = await app.get(`${PATH}?${query}`)
      assert.equal(answer.status, 400, answer.text)
      assert.match(answer.text, says)
      assert.match(answer.text, /^Query deserialize error: /)
    })

  test('GET /runtime/unshipped 401: without a token', async () => assertUnauthorized(await guarded.get(PATH)))

  test('GET /runtime/unshipped 503: 8 KiB are charged for each file and one more', async () => {
    const release = await guarded.deps.budget.acquire(1_024 - 8 * 11 + 1)
    assertShed(await guarded.get(`${PATH}?limit=10`, { token }), 88, 1_024)
    release()
    assert.equal((await guarded.get(`${PATH}?limit=10`, { token })).status, 200)
  })

  test('GET /runtime/unshipped 503: a statement that is cancelled', async () => {
    await whileLocked(guarded.sql, 'runtime_executable', async () =>
      assertDatabaseBusy(await guarded.get(`${PATH}?limit=10`, { token })),
    )
  })
})
