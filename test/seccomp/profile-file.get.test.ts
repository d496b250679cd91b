import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { assertDatabaseBusy, assertUnauthorized, whileRefused } from '../support/routes.ts'
import { forgetSeccomp, profilePath, storeWorkloads } from '../support/seccomp.ts'

const app = await startApp({ BROKER_READ_ACQUIRE_WAIT_MS: '0' })
const guarded = await startApp(TOKENS, app)
const token = TOKENS.BROKER_TOKEN_READ
const { sql } = app
const web = { namespace: 'shop', kind: 'Deployment', name: 'web' }
const path = (hash: string, name = 'web') => `/seccomp/profile-file/shop/Deployment/${name}/${hash}`

beforeEach(() => forgetSeccomp(sql))

test('GET /seccomp/profile-file/{namespace}/{kind}/{name}/{hash} 200: the bare profile, equal to that of the single route', async () => {
  await storeWorkloads(sql, [{ ...web, names: ['write', 'read'] }])
  const { hash, profile } = (await app.get(profilePath(web))).json
  assert.equal(
    (await app.get(path(hash))).text,
    '{"defaultAction":"SCMP_ACT_LOG","architectures":["SCMP_ARCH_X86_64"],"syscalls":[{"names":["read","write"],"action":"SCMP_ACT_ALLOW"}]}',
  )
  assert.deepEqual((await app.get(path(hash))).json, profile)
})

test('GET /seccomp/profile-file/{namespace}/{kind}/{name}/{hash} 200: not charged to the read budget', async () => {
  await storeWorkloads(sql, [{ ...web, names: ['read'], hash: '0123456789abcdef' }])
  const release = await app.deps.budget.acquire(app.deps.budget.totalKib)
  assert.equal((await app.get(path('0123456789abcdef'))).status, 200)
  release()
})

test('GET /seccomp/profile-file/{namespace}/{kind}/{name}/{hash} 404: under another hash than the present one, and of what nothing was observed', async () => {
  await storeWorkloads(sql, [{ ...web, names: ['read'], hash: '0123456789abcdef' }])
  for (const one of [path('0000000000000000'), path('0123456789ABCDEF'), path('0123456789abcdef', 'api')]) {
    const answer = await app.get(one)
    assert.deepEqual([answer.status, answer.text], [404, 'there is no seccomp profile for that workload'])
  }
  await storeWorkloads(sql, [{ ...web, names: ['read', 'write'], hash: 'fedcba9876543210' }])
  assert.equal((await app.get(path('0123456789abcdef'))).status, 404)
  assert.equal((await app.get(path('fedcba9876543210'))).status, 200)
})

test('GET /seccomp/profile-file/{namespace}/{kind}/{name}/{hash} 401: without a token', async () => {
  assertUnauthorized(await guarded.get(path('x')))
})

test('GET /seccomp/profile-file/{namespace}/{kind}/{name}/{hash} 503: a table is locked for longer than a statement may take', async () => {
  await whileRefused(guarded.sql, 'workload_syscalls', async () =>
    assertDatabaseBusy(await guarded.get(path('x'), { token })),
  )
  assert.equal((await guarded.get(path('x'), { token })).status, 404)
})
