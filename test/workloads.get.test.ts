import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { WorkloadKey } from '../lib/profile/built.ts'
import { STATUSES, type Status } from '../lib/profile/record/common.ts'
import { storeFailure } from '../lib/profile/versions/index.ts'
import { startApp, TOKENS } from './support/app.ts'
import { depth } from './support/depth.ts'
import { newNamespace } from './support/images.ts'
import { storeState, summary, workload } from './support/profile-versions.ts'
import { podPost } from './support/records.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from './support/routes.ts'
import { assertBadRequest } from './workloads/profile-errors.ts'

const RUNS = depth(60, 1_000)
const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ
const { job } = app.db

const read = async (query = '') => {
  const answer = await app.get(`/workloads?${query}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const names = ({ items }: { items: { name: string }[] }) => items.map(({ name }) => name)
/** The names of all workloads of a namespace, live or not. */
const namesIn = async (namespace: string, query = '') =>
  names(await read(`namespace=${encodeURIComponent(namespace)}&include_gone=true&${query}`))

const live = async ({ namespace, kind, name }: WorkloadKey, fields = {}) => {
  const post = podPost({ pod_namespace: namespace, workload_kind: kind, workload_name: name, ...fields })
  assert.equal((await app.post('/pod/spec', post)).status, 200)
}
const posture = (status: Status) => ({ posture: { coverage: 0.5, status, unknownDimensions: [] } })
const failed = (key: WorkloadKey, message = 'statement timeout') => storeFailure(job, key, message)

test('GET /workloads 200: every key, sorted', async () => {
  const key = workload(newNamespace())
  await storeState(job, key)
  await storeState(job, key, {
    snapshot: { network: { rules: [] } },
    summary: { drift: { byType: { tagMoved: 1, unshippedExecutable: 2 }, count: 3 } },
  })
  await app.sql`
    update workload_profile set computed_at = '2026-01-02T03:04:05.678901', last_changed_at = '2026-01-02T03:04:05'
    where pod_namespace = ${key.namespace}`
  const answer = await app.get(`/workloads?namespace=${key.namespace}&include_gone=true`)
  const { contentHash } = answer.json.items[0]
  assert.match(contentHash, /^fnv1a64:[0-9a-f]{16}$/)
  assert.equal(
    answer.text,
    JSON.stringify({
      items: [
        {
          clusterId: 'primary',
          computedAt: '2026-01-02T03:04:05.678901Z',
          contentHash,
          dimensions: {
            compute: { status: 'ok' },
            images: { mixedDigests: false, runningDigests: 1, signature: 'unsigned', status: 'unknown' },
            network: { status: 'warn' },
            podSecurity: { level: 'baseline', levelConfidence: 'upper_bound', status: 'warn' },
            syscalls: { status: 'ok' },
          },
          drift: { byType: { tagMoved: 1, unshippedExecutable: 2 }, count: 3 },
          failedAt: null,
          findingCounts: { critical: 0, high: 0, info: 0, low: 2, medium: 1 },
          kind: 'Deployment',
          lastChangedAt: '2026-01-02T03:04:05Z',
          lastError: null,
          name: 'books',
          namespace: key.namespace,
          posture: { coverage: 0.75, status: 'warn', unknownDimensions: ['images'] },
          revision: 2,
        },
      ],
      nextAfter: null,
    }),
  )
})

test('GET /workloads 200: a workload whose attempts all failed is unknown in everything, and has no profile', async () => {
  const key = workload(newNamespace())
  await failed(key, 'out of "memory"')
  await app.sql`update workload_profile_failure set failed_at = '2026-01-02T03:04:05.6' where pod_namespace = ${key.namespace}`
  const { items } = await read(`namespace=${key.namespace}&include_gone=true`)
  const unknown = { status: 'unknown' }
  assert.deepEqual(items, [
    {
      clusterId: 'primary',
      computedAt: null,
      contentHash: null,
      dimensions: {
        compute: unknown,
        images: { mixedDigests: null, runningDigests: null, signature: null, status: 'unknown' },
        network: unknown,
        podSecurity: { level: null, levelConfidence: null, status: 'unknown' },
        syscalls: unknown,
      },
      drift: null,
      failedAt: '2026-01-02T03:04:05.600Z',
      findingCounts: null,
      kind: 'Deployment',
      lastChangedAt: null,
      lastError: 'out of "memory"',
      name: 'books',
      namespace: key.namespace,
      posture: { coverage: 0, status: 'unknown', unknownDimensions: ['network', 'syscalls', 'podSecurity', 'images'] },
      revision: null,
    },
  ])
})

test('GET /workloads 200: the last good profile stays beside the failure after it', async () => {
  const key = workload(newNamespace())
  await storeState(job, key)
  const [before] = (await read(`namespace=${key.namespace}&include_gone=true`)).items
  await failed(key)
  const [now] = (await read(`namespace=${key.namespace}&include_gone=true`)).items
  assert.match(now.failedAt, /Z$/)
  assert.deepEqual(now, { ...before, lastError: 'statement timeout', failedAt: now.failedAt })
})

describe('filters', () => {
  test('GET /workloads 200: by namespace and kind, exactly', async () => {
    const [a, b] = [newNamespace(), newNamespace()]
    for (const key of [workload(a, 'one'), workload(a, 'two', 'Job'), workload(b, 'three')]) await storeState(job, key)
    await failed(workload(a, 'four', 'Job'))
    assert.deepEqual(await namesIn(a), ['one', 'four', 'two'])
    assert.deepEqual(await namesIn(a, 'kind=Job'), ['four', 'two'])
    assert.deepEqual(await namesIn(a, 'kind=job'), [])
    assert.deepEqual(await namesIn(a, 'kind=%20'), ['one', 'four', 'two'])
    assert.deepEqual(await namesIn(a.toUpperCase()), [])
    const all = await read('include_gone=true&namespace=&limit=500')
    assert.ok(names(all).includes('three') && names(all).includes('one'))
  })

  test('GET /workloads 200: by status; unknown also finds workloads without a profile, others do not', async () => {
    const namespace = newNamespace()
    for (const status of STATUSES) await storeState(job, workload(namespace, status), { summary: posture(status) })
    await failed(workload(namespace, 'failed'))
    await failed(workload(namespace, 'ok'))
    for (const status of ['ok', 'warn', 'risk'])
      assert.deepEqual(await namesIn(namespace, `status=${status}`), [status])
    assert.deepEqual(await namesIn(namespace, 'status=unknown'), ['failed', 'unknown'])
    assert.equal((await namesIn(namespace, 'status=')).length, 5)
  })

  test('GET /workloads 200: by a part of the name in any case, taken literally', async () => {
    const namespace = newNamespace()
    for (const name of ['cart', 'Cart-API', 'discart%', 'other']) await storeState(job, workload(namespace, name))
    await failed(workload(namespace, 'cart_failed'))
    assert.deepEqual(await namesIn(namespace, 'search=CART'), ['Cart-API', 'cart', 'cart_failed', 'discart%'])
    assert.deepEqual(await namesIn(namespace, 'search=t%25'), ['discart%'])
    assert.deepEqual(await namesIn(namespace, 'search=t_'), ['cart_failed'])
    assert.deepEqual(await namesIn(namespace, 'search=%20'), ['Cart-API', 'cart', 'cart_failed', 'discart%', 'other'])
    assert.deepEqual(await namesIn(namespace, `search=${'x'.repeat(253)}`), [])
  })

  test('GET /workloads 200: without a live pod only with include_gone; a bare pod is a workload of its own', async () => {
    const namespace = newNamespace()
    const [alive, dead, never] = ['alive', 'dead', 'never'].map((name) => workload(namespace, name))
    const bare = workload(namespace, `bare-${namespace}`, 'Pod')
    const deadBare = workload(namespace, `gone-${namespace}`, 'Pod')
    const owned = workload(namespace, `owned-${namespace}`, 'Pod')
    for (const key of [alive!, dead!, never!, bare, deadBare, owned]) await storeState(job, key)
    const failures = [workload(namespace, 'f-alive'), workload(namespace, 'f-dead')]
    for (const key of failures) await failed(key)
    await live(alive!)
    await live(alive!, { is_dead: true })
    await live(dead!, { is_dead: true })
    await live({ ...dead!, namespace: newNamespace() })
    await live({ ...dead!, kind: 'Job' })
    await live(failures[0]!)
    await app.post('/pod/spec', podPost({ pod_namespace: namespace, pod_name: bare.name }))
    await app.post('/pod/spec', podPost({ pod_namespace: namespace, pod_name: deadBare.name, is_dead: true }))
    await live(workload(namespace, 'elsewhere'), { pod_name: owned.name })
    for (const query of ['', 'include_gone=false', 'include_gone='])
      assert.deepEqual(names(await read(`namespace=${namespace}&${query}`)), ['alive', 'f-alive', bare.name], query)
    assert.deepEqual(await namesIn(namespace), [
      'alive',
      'dead',
      'f-alive',
      'f-dead',
      'never',
      bare.name,
      deadBare.name,
      owned.name,
    ])
  })
})

describe('pages', () => {
  test('GET /workloads 200: by namespace, kind and name in the order of their bytes', async () => {
    const prefix = newNamespace()
    const keys = [
      ...[workload(`${prefix}-a`, 'z'), workload(`${prefix}-a`, 'a', 'StatefulSet'), workload(`${prefix}-b`, 'B')],
      ...[workload(`${prefix}-b`, 'a'), workload(`${prefix}-b`, 'É')],
    ]
    for (const key of [...keys].reverse()) await (key.name === 'B' ? failed(key) : storeState(job, key))
    const after = (key: WorkloadKey) => encodeURIComponent(`${key.namespace}/${key.kind}/${key.name}`)
    const from = `include_gone=true&after=${encodeURIComponent(`${prefix}-/x/x`)}`
    assert.deepEqual(names(await read(`${from}&limit=5`)), ['z', 'a', 'B', 'a', 'É'])
    const first = await read(`${from}&limit=2`)
    assert.deepEqual([names(first), first.nextAfter], [['z', 'a'], `${prefix}-a/StatefulSet/a`])
    const second = await read(`include_gone=true&limit=2&after=${after(keys[1]!)}`)
    assert.deepEqual([names(second), second.nextAfter], [['B', 'a'], `${prefix}-b/Deployment/a`])
    assert.deepEqual(await namesIn(`${prefix}-b`, `after=${after(keys[0]!)}`), ['B', 'a', 'É'])
    assert.deepEqual(await namesIn(`${prefix}-a`, `after=${after(keys[4]!)}`), [])
  })

  test('GET /workloads 200: limits are clamped; a full last page has no next one', async () => {
    const namespace = newNamespace()
    for (const name of ['a', 'b', 'c']) await storeState(job, workload(namespace, name))
    for (const [limit, found, hasNext] of [
      ['0', 1, true],
      ['-3', 1, true],
      ['2', 2, true],
      ['3', 3, false],
      ['99999', 3, false],
    ] as const) {
      const page = await read(`namespace=${namespace}&include_gone=true&limit=${limit}`)
      assert.deepEqual([page.items.length, page.nextAfter !== null], [found, hasNext], limit)
    }
  })

  test('GET /workloads 200: names with slashes, percent signs and quotes do not end or repeat a list', async () => {
    const namespace = `${newNamespace()}/%2F"`
    const kinds = ['a/b', 'a%2Fb', 'a', 'a%', 'a%25']
    const keys = kinds.flatMap((kind) => ['x', 'x/y', '/', 'x"\\'].map((name) => workload(namespace, name, kind)))
    for (const key of keys) await storeState(job, key)
    const found: string[] = []
    let after = ''
    do {
      const query = `include_gone=true&limit=3&namespace=${encodeURIComponent(namespace)}&after=${encodeURIComponent(after)}`
      const { items, nextAfter } = await read(query)
      found.push(...items.map((one: WorkloadKey) => `${one.kind} ${one.name}`))
      after = nextAfter
    } while (after !== null && found.length <= keys.length)
    const byBytes = (a: WorkloadKey, b: WorkloadKey) =>
      Buffer.compare(Buffer.from(a.kind), Buffer.from(b.kind)) ||
      Buffer.compare(Buffer.from(a.name), Buffer.from(b.name))
    assert.deepEqual(
      found,
      keys.sort(byBytes).map(({ kind, name }) => `${kind} ${name}`),
    )
  })

  test(`GET /workloads 200: ${RUNS} random queries list each workload once, in order, as a model does`, async () => {
    const prefix = newNamespace()
    const KINDS = ['Deployment', 'Job']
    const all = ['x', 'y'].flatMap((ns) =>
      KINDS.flatMap((kind) =>
        STATUSES.flatMap((status, i) =>
          ['Cart', 'web'].map((name, j) => ({
            ...workload(`${prefix}-${ns}`, `${name}-${status}`, kind),
            status,
            isLive: (i + j) % 2 === 0,
            isFailed: status === 'unknown' && j === 0,
          })),
        ),
      ),
    )
    for (const one of all) {
      await (one.isFailed ? failed(one) : storeState(job, one, { summary: posture(one.status) }))
      if (one.isLive) await live(one)
    }
    const text = (one: WorkloadKey) => `${one.namespace}/${one.kind}/${one.name}`
    const isAbove = (a: WorkloadKey, b: WorkloadKey) =>
      [a.namespace, a.kind, a.name].join('\0') > [b.namespace, b.kind, b.name].join('\0')
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          namespace: fc.constantFrom(null, 'x', 'y'),
          kind: fc.constantFrom(null, ...KINDS),
          status: fc.constantFrom(null, ...STATUSES),
          search: fc.constantFrom(null, 'CART', 'e', 'web-'),
          gone: fc.boolean(),
          limit: fc.integer({ min: 1, max: 9 }),
        }),
        async ({ namespace, kind, status, search, gone, limit }) => {
          const query = new URLSearchParams({ include_gone: String(gone), limit: String(limit) })
          if (namespace) query.set('namespace', `${prefix}-${namespace}`)
          for (const [key, value] of Object.entries({ kind, status, search })) if (value) query.set(key, value)
          const found: string[] = []
          let after: string | null = `${prefix}-/x/x`
          while (after !== null && found.length <= all.length) {
            query.set('after', after)
            const page = await read(query.toString())
            const ours = page.items.filter((one: WorkloadKey) => one.namespace.startsWith(`${prefix}-`))
            found.push(...ours.map(text))
            after = ours.length < page.items.length ? null : page.nextAfter
          }
          const expected = all.filter(
            (one) =>
              (!namespace || one.namespace === `${prefix}-${namespace}`) &&
              (!kind || one.kind === kind) &&
              (!status || one.status === status) &&
              (!search || one.name.toLowerCase().includes(search.toLowerCase())) &&
              (gone || one.isLive),
          )
          assert.deepEqual(found, expected.sort((a, b) => (isAbove(a, b) ? 1 : -1)).map(text))
        },
      ),
      { numRuns: RUNS },
    )
  })
})

test('GET /workloads 200: unknown parameters are ignored', async () => {
  await read('sort=name&limit=1')
})

test('GET /workloads 400: values that break a rule, each named', async () => {
  for (const [name, values] of Object.entries({
    status: ['great', 'OK', 'ok,warn'],
    search: ['x'.repeat(254), 'é'.repeat(127)],
    limit: ['ten', '1.5', ''],
    include_gone: ['maybe', '1', 'TRUE'],
    after: ['x', 'a/b', '/a/b', 'a//b', 'a/b/', '//', 'a%00/b/c', 'a%252/b/c', 'a%25/b/c'],
    namespace: ['a%00'],
  }))
    for (const value of values) {
      const sent = name === 'after' || name === 'namespace' ? value : encodeURIComponent(value)
      assertBadRequest(await app.get(`/workloads?${name}=${sent}`), name)
    }
})

test('GET /workloads 401: without a token', async () => {
  assertUnauthorized(await guarded.get('/workloads'))
})

test('GET /workloads 503: a cancelled statement', async () => {
  await whileRefused(guarded.sql, 'workload_profile', async () =>
    assertDatabaseBusy(await guarded.get('/workloads', { token })),
  )
})

test('GET /workloads 503: charged 2 KiB for each workload and one more', async () => {
  const { budget } = guarded.deps
  const spent = await budget.acquire(budget.totalKib - 1)
  assertShed(await guarded.get('/workloads', { token }), 202, budget.totalKib)
  assertShed(await guarded.get('/workloads?limit=999', { token }), 1_002, budget.totalKib)
  spent()
  assert.ok(JSON.stringify(summary()).length < 2_048)
})
