import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashSnapshot } from '../../lib/profile/versions/index.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { container, newDigest, newNamespace, replica } from '../support/images.ts'
import { profilePath, snapshotOf, state, storeState, workload } from '../support/profile-versions.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'
import { assertBadRequest, assertCoded, BAD_PATHS } from './profile-errors.ts'

const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ
const newWorkload = () => workload(newNamespace())
const get = (key: ReturnType<typeof workload>, revision: number | string) =>
  app.get(profilePath(key, `/versions/${revision}`))

test('GET /workloads/{namespace}/{kind}/{name}/profile/versions/{revision} 200: every key, sorted, and the snapshot as it is stored', async () => {
  const key = newWorkload()
  await storeState(app.db.job, key, state(1))
  await storeState(app.db.job, key)
  await app.sql`
    update workload_profile_version set created_at = '2026-01-02T03:04:05.678' where pod_namespace = ${key.namespace}`
  const { snapshotText, contentHash, dimensionHashes: hashes } = hashSnapshot(snapshotOf())
  const { images, network, podSecurity, syscalls } = hashes
  const whole = {
    contentHash,
    createdAt: '2026-01-02T03:04:05.678Z',
    dimensionHashes: { images, network, podSecurity, syscalls },
    kind: key.kind,
    name: key.name,
    namespace: key.namespace,
    posture: { coverage: 0.75, status: 'warn' },
    revision: 2,
    snapshot: JSON.parse(snapshotText),
  }
  assert.equal((await get(key, 2)).text, JSON.stringify(whole))
  assert.deepEqual(Object.keys(whole.snapshot), ['images', 'network', 'podSecurity', 'syscalls'])
  assert.deepEqual(Object.keys(whole.snapshot.podSecurity.pod), [
    ...['automountServiceAccountToken', 'hostIPC', 'hostNetwork', 'hostPID', 'hostUsers', 'known'],
    ...['securityContext', 'serviceAccountName'],
  ])
  assert.deepEqual((await get(key, 1)).json.snapshot.syscalls, state(1).snapshot!.syscalls)
  assert.equal((await get(key, '+2')).json.revision, 2)
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/versions/{revision} 200: names with quotes, line ends and letters beyond ASCII', async () => {
  const key = workload(newNamespace(), 'bü"ch\ner\\', 'É')
  const containers = { __proto__x: [newDigest()], '"': [], '\n': [] }
  await storeState(app.db.job, key, { snapshot: { images: { containers } } })
  const { json } = await get(key, 1)
  assert.deepEqual([json.name, json.kind], [key.name, key.kind])
  assert.deepEqual(json.snapshot.images.containers, containers)
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/versions/{revision} 404: a known workload without that revision', async () => {
  const key = newWorkload()
  await storeState(app.db.job, key)
  for (const revision of [0, 2, -1, 2147483647]) assertCoded(await get(key, revision), 404, 'revision_not_found')
  await app.sql`update workload_profile_version set revision = 2 where pod_namespace = ${key.namespace}`
  assertCoded(await get(key, 1), 404, 'revision_not_found')
  const namespace = newNamespace()
  await app.post('/pod/spec', replica(namespace, [container('web', newDigest())]))
  assertCoded(await get(workload(namespace, 'web'), 1), 404, 'revision_not_found')
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/versions/{revision} 404: nothing is known of the workload', async () => {
  assertCoded(await get(newWorkload(), 1), 404, 'workload_not_found')
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/versions/{revision} 400: a bad path, or no integer', async () => {
  for (const [key, part] of BAD_PATHS) assertBadRequest(await get(key, 1), part)
  for (const revision of ['x', '1.5', '1e3', '2147483648', '-2147483648', '%20', '0x1', 'latest'])
    assertBadRequest(await get(newWorkload(), revision), 'revision')
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/versions/{revision} 401: without a token', async () => {
  assertUnauthorized(await guarded.get(profilePath(newWorkload(), '/versions/1')))
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/versions/{revision} 503: a cancelled statement', async () => {
  await whileRefused(guarded.sql, 'workload_profile_version', async () =>
    assertDatabaseBusy(await guarded.get(profilePath(newWorkload(), '/versions/1'), { token })),
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/versions/{revision} 503: charged 128 KiB', async () => {
  const { budget } = guarded.deps
  const spent = await budget.acquire(budget.totalKib - 1)
  assertShed(await guarded.get(profilePath(newWorkload(), '/versions/1'), { token }), 128, budget.totalKib)
  spent()
})
