import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { container, newDigest, newNamespace, replica } from '../support/images.ts'
import { profilePath, state, storeState, toDatabase, workload } from '../support/profile-versions.ts'
import { podPost } from '../support/records.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'
import { assertBadRequest, assertCoded, BAD_PATHS } from './profile-errors.ts'

const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ

type Key = ReturnType<typeof workload>
const newWorkload = () => workload(newNamespace())
const get = (key: Key, query = '') => app.get(profilePath(key, `/versions${query}`))
const read = async (key: Key, query?: string) => {
  const answer = await get(key, query)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const revisions = ({ items }: { items: { revision: number }[] }) => items.map(({ revision }) => revision)
const states = async (key: Key, n: number) => {
  for (let i = 1; i <= n; i++) await storeState(app.db.job, key, state(i))
}

test('GET /workloads/{namespace}/{kind}/{name}/profile/versions 200: every key, sorted, the newest first', async () => {
  const key = newWorkload()
  await storeState(app.db.job, key)
  await storeState(app.db.job, key, { snapshot: { network: { rules: [] }, images: { containers: {} } } })
  await app.sql`
    update workload_profile_version set created_at = '2026-01-02T03:04:05.678901'
    where pod_namespace = ${key.namespace} and revision = 2`
  const { items, ...rest } = await read(key)
  assert.deepEqual(rest, { ...key, nextBefore: null })
  assert.deepEqual(Object.keys(rest), ['kind', 'name', 'namespace', 'nextBefore'])
  assert.deepEqual(revisions({ items }), [2, 1])
  const [newest, oldest] = items
  assert.deepEqual(Object.keys(newest), [
    ...['changedDimensions', 'contentHash', 'createdAt', 'dimensionHashes', 'posture', 'revision'],
  ])
  assert.equal(newest.createdAt, '2026-01-02T03:04:05.678901Z')
  assert.match(newest.contentHash, /^fnv1a64:[0-9a-f]{16}$/)
  assert.deepEqual(Object.keys(newest.dimensionHashes), ['images', 'network', 'podSecurity', 'syscalls'])
  assert.deepEqual(newest.posture, { coverage: 0.75, status: 'warn' })
  assert.deepEqual(newest.changedDimensions, ['network', 'images'])
  assert.deepEqual(oldest.changedDimensions, ['network', 'syscalls', 'podSecurity', 'images'])
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/versions 200: changes are unknown where the revision before is gone', async () => {
  const key = newWorkload()
  await states(key, 4)
  await app.sql`delete from workload_profile_version where pod_namespace = ${key.namespace} and revision in (1, 3)`
  const { items } = await read(key)
  assert.deepEqual(
    items.map(({ changedDimensions }: { changedDimensions: unknown }) => changedDimensions),
    [null, null],
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/versions 200: pages by revision, each with its changes', async () => {
  const key = newWorkload()
  await states(key, 5)
  const first = await read(key, '?limit=2')
  assert.deepEqual([revisions(first), first.nextBefore], [[5, 4], 4])
  assert.deepEqual(first.items[1].changedDimensions, ['syscalls'])
  const second = await read(key, '?limit=2&before=4')
  assert.deepEqual([revisions(second), second.nextBefore], [[3, 2], 2])
  const last = await read(key, '?limit=2&before=2')
  assert.deepEqual([revisions(last), last.nextBefore], [[1], null])
  const whole = await read(key, '?limit=5')
  assert.deepEqual([revisions(whole), whole.nextBefore], [[5, 4, 3, 2, 1], null])
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/versions 200: limits, blanks and unknown parameters', async () => {
  const key = newWorkload()
  await states(key, 3)
  for (const [query, found] of [
    ['?limit=0', [3]],
    ['?limit=-4', [3]],
    ['?limit=9999', [3, 2, 1]],
    ['?before=', [3, 2, 1]],
    ['?before=2147483647', [3, 2, 1]],
    ['?before=1', []],
    ['?before=-5', []],
    ['?who=knows', [3, 2, 1]],
  ] as const)
    assert.deepEqual(revisions(await read(key, query)), found, query)
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/versions 200: a known workload without versions has none, whatever is known of it', async () => {
  const [imaged, bare] = [newNamespace(), newNamespace()]
  await app.post('/pod/spec', replica(imaged, [container('web', newDigest())]))
  const pod = podPost({ pod_namespace: bare, is_dead: true })
  await app.post('/pod/spec', pod)
  for (const key of [workload(imaged, 'web'), workload(bare, pod.pod_name, 'Pod')])
    for (const query of ['', '?before=3'])
      assert.deepEqual(await read(key, query), { ...key, items: [], nextBefore: null })
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/versions 404: nothing is known of the workload, also with before', async () => {
  const key = newWorkload()
  await storeState(app.db.job, key)
  for (const other of [{ ...key, kind: 'deployment' }, { ...key, name: 'Books' }, newWorkload()])
    for (const query of ['', '?before=3']) assertCoded(await get(other, query), 404, 'workload_not_found')
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/versions 400: a bad path, limit or revision', async () => {
  for (const [key, part] of BAD_PATHS) assertBadRequest(await get(key), part)
  const key = newWorkload()
  for (const [query, name] of [
    ...['limit=ten', 'limit=1.5', 'limit=1e3', 'limit='].map((one) => [one, 'limit']),
    ...['before=two', 'before=1.5', 'before=2147483648', 'before=-2147483648', 'before=0x1'].map((one) => [
      one,
      'before',
    ]),
  ] as const)
    assertBadRequest(await get(key, `?${query}`), name!)
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/versions 401: without a token', async () => {
  assertUnauthorized(await guarded.get(profilePath(newWorkload(), '/versions')))
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/versions 503: a cancelled statement', async () => {
  await whileRefused(guarded.sql, 'workload_profile_version', async () =>
    assertDatabaseBusy(await guarded.get(profilePath(newWorkload(), '/versions'), { token })),
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/versions 503: charged a KiB for each version and one more', async () => {
  const { budget } = guarded.deps
  const spent = await budget.acquire(budget.totalKib - 1)
  const path = profilePath(newWorkload(), '/versions')
  assertShed(await guarded.get(path, { token }), 51, budget.totalKib)
  assertShed(await guarded.get(`${path}?limit=999`, { token }), 201, budget.totalKib)
  spent()
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/versions 200: hashes of equal parts are equal over versions and workloads', async () => {
  const [one, other] = [newWorkload(), newWorkload()]
  await storeState(app.db.job, one)
  await storeState(app.db.job, other, { snapshot: { network: { rules: [toDatabase, { ...toDatabase, port: 1 }] } } })
  const [[a], [b]] = [(await read(one)).items, (await read(other)).items]
  assert.equal(a.dimensionHashes.podSecurity, b.dimensionHashes.podSecurity)
  assert.notEqual(a.dimensionHashes.network, b.dimensionHashes.network)
  assert.notEqual(a.contentHash, b.contentHash)
})
