import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { container, digestOf, newDigest, newNamespace, replica } from '../support/images.ts'
import { contained, POD, profilePath, state, storeState, toDatabase, workload } from '../support/profile-versions.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'
import { assertBadRequest, assertCoded, BAD_PATHS } from './profile-errors.ts'

const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ
type Key = ReturnType<typeof workload>
const newWorkload = () => workload(newNamespace())
const get = (key: Key, query = '') => app.get(profilePath(key, `/diff${query}`))
const read = async (key: Key, query?: string) => {
  const answer = await get(key, query)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
/** A workload with `n` versions, of which these are gone. */
const states = async (n: number, gone: number[] = []) => {
  const key = newWorkload()
  for (let i = 1; i <= n; i++) await storeState(app.db.job, key, state(i))
  for (const revision of gone)
    await app.sql`
      delete from workload_profile_version where pod_namespace = ${key.namespace} and revision = ${revision}::int`
  return key
}
/** The revisions that are compared, and whether the one before was deleted. */
const ends = ({
  from,
  to,
  fromTrimmed,
}: {
  from: { revision: number } | null
  to: { revision: number }
  fromTrimmed: boolean
}) => [from?.revision ?? null, to.revision, fromTrimmed]

test('GET /workloads/{namespace}/{kind}/{name}/profile/diff 200: every key, sorted', async () => {
  const key = newWorkload()
  await storeState(app.db.job, key)
  const containers = { web: contained({ privileged: true }), side: contained() }
  const cr = { name: 'books', hash: 'h', defaultAction: 'SCMP_ACT_LOG' }
  await storeState(app.db.job, key, {
    snapshot: {
      podSecurity: { level: 'privileged', pod: { ...POD, hostPID: true }, containers },
      images: { containers: { web: [digestOf('next')], setup: [] } },
      syscalls: { syscalls: ['read'], captureLevel: 'low', cr },
      network: { rules: [{ ...toDatabase, port: null }] },
    },
  })
  await app.sql`
    update workload_profile_version set created_at = '2026-01-02' where pod_namespace = ${key.namespace} and revision = 1`
  await app.sql`
    update workload_profile_version set created_at = '2026-01-03' where pod_namespace = ${key.namespace} and revision = 2`
  const answer = await get(key)
  const hash = (end: 'from' | 'to') => answer.json[end].contentHash
  const rule = { direction: 'egress', peer: toDatabase.peer, port: 5432, protocol: 'TCP' }
  const expected = {
    changed: true,
    dimensions: {
      images: {
        changed: true,
        containers: [{ added: [digestOf('next')], name: 'web', removed: [digestOf('web')] }],
        containersAdded: [],
        containersRemoved: [],
      },
      network: { added: [{ ...rule, port: null }], changed: true, removed: [rule] },
      podSecurity: {
        changed: true,
        containers: [{ fields: [{ field: 'securityContext.privileged', from: null, to: true }], name: 'web' }],
        containersAdded: ['side'],
        containersRemoved: ['setup'],
        level: { from: 'baseline', to: 'privileged' },
        pod: [{ field: 'hostPID', from: null, to: true }],
      },
      syscalls: {
        added: [],
        captureLevel: { from: 'high', to: 'low' },
        changed: true,
        cr: { from: null, to: { defaultAction: 'SCMP_ACT_LOG', hash: 'h', name: 'books' } },
        removed: ['openat'],
      },
    },
    from: { contentHash: hash('from'), createdAt: '2026-01-02T00:00:00Z', revision: 1 },
    fromTrimmed: false,
    kind: key.kind,
    name: key.name,
    namespace: key.namespace,
    to: { contentHash: hash('to'), createdAt: '2026-01-03T00:00:00Z', revision: 2 },
  }
  assert.equal(answer.text, JSON.stringify(expected))
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/diff 200: the first version has everything added, and nothing was trimmed', async () => {
  const key = await states(3)
  const diff = await read(key, '?to=1')
  assert.deepEqual(ends(diff), [null, 1, false])
  assert.equal(diff.changed, true)
  for (const { changed } of Object.values(diff.dimensions) as { changed: boolean }[]) assert.equal(changed, true)
  assert.deepEqual(diff.dimensions.images.containersAdded, ['setup', 'web'])
  assert.deepEqual(diff.dimensions.syscalls.added, ['call_1'])
})

describe('the versions that are compared', () => {
  const cases: [
    what: string,
    gone: number[],
    query: string,
    ends: [from: number | null, to: number, isTrimmed: boolean],
  ][] = [
    ['the newest two', [], '', [4, 5, false]],
    ['a version and the one before', [], '?to=3', [2, 3, false]],
    ['any two', [], '?from=1&to=5', [1, 5, false]],
    ['one and the newest', [], '?from=2', [2, 5, false]],
    ['blanks are as if absent', [], '?from=&to=%20', [4, 5, false]],
    ['the one before is gone', [4], '', [3, 5, true]],
    ['several before are gone', [2, 3, 4], '', [1, 5, true]],
    ['all before are gone', [1, 2, 3, 4], '', [null, 5, true]],
    ['all before an older one are gone', [1, 2], '?to=3', [null, 3, true]],
    ['what lies between two may be gone', [2, 3, 4], '?from=1&to=5', [1, 5, false]],
    ['the newest is gone', [5], '', [3, 4, false]],
  ]
  for (const [what, gone, query, expected] of cases)
    test(`GET /workloads/{namespace}/{kind}/{name}/profile/diff 200: ${what}`, async () => {
      const diff = await read(await states(5, gone), query)
      assert.deepEqual(ends(diff), expected)
      assert.equal(diff.changed, true)
    })
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/diff 200: a state that came back has not changed', async () => {
  const key = await states(2)
  await storeState(app.db.job, key, state(1))
  const diff = await read(key, '?from=1&to=3')
  assert.equal(diff.changed, false)
  assert.ok(Object.values(diff.dimensions).every((one) => !(one as { changed: boolean }).changed))
  assert.equal((await read(key, '?from=2&to=3')).changed, true)
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/diff 404: a revision that is not stored', async () => {
  const key = await states(4, [2])
  for (const query of [
    '?from=2',
    '?to=2',
    '?to=5',
    '?from=1&to=2',
    '?from=2&to=3',
    '?from=0',
    '?to=0',
    '?from=-3&to=4',
    '?from=9',
  ])
    assertCoded(await get(key, query), 404, 'revision_not_found')
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/diff 404: a known workload without versions', async () => {
  const namespace = newNamespace()
  await app.post('/pod/spec', replica(namespace, [container('web', newDigest())]))
  for (const query of ['', '?from=1&to=2'])
    assertCoded(await get(workload(namespace, 'web'), query), 404, 'revision_not_found')
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/diff 404: nothing is known of the workload', async () => {
  for (const query of ['', '?from=1&to=2', '?to=1'])
    assertCoded(await get(newWorkload(), query), 404, 'workload_not_found')
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/diff 400: a bad path, no integer, or from not below to', async () => {
  for (const [key, part] of BAD_PATHS) assertBadRequest(await get(key), part)
  const key = await states(2)
  for (const query of ['from=x', 'from=1.5', 'from=2147483648', 'from=2&to=1', 'from=2&to=2', 'from=9&to=9', 'from=2'])
    assertBadRequest(await get(key, `?${query}`), 'from')
  for (const query of ['to=x', 'to=2147483648', 'from=1&to=latest']) assertBadRequest(await get(key, `?${query}`), 'to')
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/diff 401: without a token', async () => {
  assertUnauthorized(await guarded.get(profilePath(newWorkload(), '/diff')))
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/diff 503: a cancelled statement', async () => {
  await whileRefused(guarded.sql, 'workload_profile_version', async () =>
    assertDatabaseBusy(await guarded.get(profilePath(newWorkload(), '/diff'), { token })),
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/profile/diff 503: charged 512 KiB', async () => {
  const { budget } = guarded.deps
  const spent = await budget.acquire(budget.totalKib - 1)
  assertShed(await guarded.get(profilePath(newWorkload(), '/diff'), { token }), 512, budget.totalKib)
  spent()
})
