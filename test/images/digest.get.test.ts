import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import test from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { age, container, digestOf, newDigest, newNamespace, replica } from '../support/images.ts'
import { assertDatabaseBusy, assertNoData, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'

/** 502 workloads of 2 KiB. */
const CHARGE_KIB = 1004
const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ
const unknown = digestOf('unknown')

const store = async (...posts: unknown[]) => {
  for (const post of posts) assert.equal((await app.post('/pod/spec', post)).status, 200)
}
const read = async (digest: string) => {
  const answer = await app.get(`/images/${digest}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}

test('GET /images/{digest} 200: the image and its workload, every key in wire order', async () => {
  const [namespace, digest] = [newNamespace(), newDigest()]
  await store(
    replica(namespace, [container('app', digest, { kind: 'init', state: 'terminated', state_reason: 'Completed' })]),
  )
  const image = await read(digest)
  const keys = ['digest', 'repository', 'tags', 'digestKind', 'firstSeen', 'lastSeen', 'workloads', 'truncated']
  assert.deepEqual(Object.keys(image), keys)
  const { firstSeen, lastSeen, workloads, ...rest } = image
  assert.deepEqual(rest, {
    digest,
    repository: 'registry.test/team/app',
    tags: ['v1'],
    digestKind: 'repo',
    truncated: false,
  })
  const expected = {
    clusterId: 'primary',
    namespace,
    workloadKind: 'Deployment',
    workloadName: 'web',
    containerName: 'app',
    containerKind: 'init',
    imageRef: 'registry.test/team/app:v1',
    firstSeen,
    lastSeen,
    state: 'terminated',
    stateReason: 'Completed',
    ranAsInit: true,
    running: false,
  }
  assert.equal(JSON.stringify(workloads), JSON.stringify([expected]))
})

test('GET /images/{digest} 200: a sha512 digest, and one with an escaped colon', async () => {
  const long = `sha512:${createHash('sha512').update('x').digest('hex')}`
  await store(replica(newNamespace(), [container('app', long)]))
  assert.equal((await read(long)).digest, long)
  assert.equal((await read(long.replace(':', '%3A'))).digest, long)
})

test('GET /images/{digest} 200: running ones first, then by namespace, kind, name and container', async () => {
  const [namespace, digest] = [newNamespace(), newDigest()]
  const uses: [boolean, string, string, string, string][] = []
  for (const space of ['b', 'a', 'A'])
    for (const kind of ['StatefulSet', 'DaemonSet'])
      for (const name of ['web', 'api'])
        for (const one of ['y', 'x']) uses.push([uses.length % 3 === 0, `${namespace}${space}`, kind, name, one])
  for (const [live, space, workload_kind, workload_name, one] of uses)
    await store(
      replica(space, [container(one, digest, { state: live ? 'running' : 'terminated' })], {
        workload_kind,
        workload_name,
      }),
    )
  const key = ([live, ...names]: (boolean | string)[]) => [live ? 0 : 1, ...names].join(' ')
  const found = (await read(digest)).workloads.map((w: Record<string, string>) => [
    ...[w.running, w.namespace, w.workloadKind, w.workloadName, w.containerName],
  ])
  assert.deepEqual(
    found,
    [...uses].sort((x, y) => (key(x) < key(y) ? -1 : 1)),
  )
})

test('GET /images/{digest} 200: 500 workloads are listed completely; of 501 one is left out and `truncated` is set', async () => {
  const digest = newDigest()
  await store(replica('aaa', [container('app', digest, { state: 'terminated' })]))
  const add = (from: number, to: number) => app.sql`
    insert into workload_container
    select 'primary', 'many', 'Deployment', 'w' || n, 'app', ${digest}, 'regular', 'r', '{}', '{}', null, null, null, null, now(), now()
    from generate_series(${from}::int, ${to}::int) n`
  await add(1, 499)
  const whole = await read(digest)
  assert.deepEqual([whole.workloads.length, whole.truncated], [500, false])
  assert.equal(whole.workloads.at(-1).namespace, 'aaa')
  await add(500, 500)
  const cut = await read(digest)
  assert.deepEqual([cut.workloads.length, cut.truncated], [500, true])
  assert.ok(cut.workloads.every((w: { running: boolean }) => w.running))
})

test('GET /images/{digest} 200: an image that no container has any more', async () => {
  const digest = newDigest()
  await app.sql`insert into image values (${digest}, null, '{}', 'pinned', now(), now())`
  const { workloads, truncated, digestKind } = await read(digest)
  assert.deepEqual([workloads, truncated, digestKind], [[], false, 'pinned'])
})

test('GET /images/{digest} 200: a container runs if its state is running and it was reported recently or its pod is alive', async () => {
  const cases = [
    ['running', null, true],
    [null, null, true],
    ['waiting', 'CrashLoopBackOff', true],
    ['waiting', 'ImagePullBackOff', false],
    ['waiting', null, false],
    ['terminated', 'Completed', false],
    ['terminated', 'CrashLoopBackOff', false],
  ] as const
  for (const [state, state_reason, expected] of cases) {
    const digest = newDigest()
    const body = replica(newNamespace(), [container('app', digest, { state, state_reason })])
    await store(body)
    const running = async () => (await read(digest)).workloads[0].running
    assert.equal(await running(), expected, `${state} ${state_reason} within the window`)
    await age(app.sql, 901)
    assert.equal(await running(), expected, `${state} ${state_reason} past the window, the pod lives`)
    await app.post('/pod/mark_dead', { pod_name: body.pod_name })
    assert.equal(await running(), false, `${state} ${state_reason} past the window, the pod is dead`)
  }
})

for (const bad of [
  'latest',
  'sha256:abc',
  digestOf('a').toUpperCase(),
  `${digestOf('a')}0`,
  digestOf('a').slice(7),
  `sha512:${digestOf('a').slice(7)}`,
  'a%00b',
]) {
  test(`GET /images/{digest} 400: ${bad}`, async () => {
    const answer = await app.get(`/images/${bad}`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, /^Path deserialize error: digest: expected sha256: and 64 /)
  })
}

test('GET /images/{digest} 404: a digest that was never reported', async () => {
  assertNoData(await app.get(`/images/${unknown}`))
})

test('GET /images/{digest} 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get(`/images/${unknown}`))
  assertUnauthorized(await guarded.get('/images/latest', { token: 'unknown' }))
})

test('GET /images/{digest} 404: any token may read', async () => {
  for (const one of Object.values(TOKENS)) assertNoData(await guarded.get(`/images/${unknown}`, { token: one }))
})

test('GET /images/{digest} 503: refused when the read budget is used up', async () => {
  const { budget } = guarded.deps
  const release = await budget.acquire(budget.totalKib - CHARGE_KIB + 1)
  assertShed(await guarded.get(`/images/${unknown}`, { token }), CHARGE_KIB, budget.totalKib)
  release()
  assertNoData(await guarded.get(`/images/${unknown}`, { token }))
})

test('GET /images/{digest} 503: the table is locked for longer than a statement may take', async () => {
  await whileRefused(guarded.sql, 'image', async () =>
    assertDatabaseBusy(await guarded.get(`/images/${unknown}`, { token })),
  )
  assertNoData(await guarded.get(`/images/${unknown}`, { token }))
})
