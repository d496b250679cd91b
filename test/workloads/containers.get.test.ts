import assert from 'node:assert/strict'
import test from 'node:test'
import { startApp, TOKENS } from '../support/app.ts'
import { age, container, newDigest, newNamespace, replica } from '../support/images.ts'
import { assertDatabaseBusy, assertNoData, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'

/** 257 rows of 2 KiB. */
const CHARGE_KIB = 514
const app = await startApp()
const guarded = await startApp(
  {
    ...TOKENS,
    BROKER_READ_ACQUIRE_WAIT_MS: '0',
    IMAGE_INVENTORY_RUNNING_WINDOW_SECS: '360',
  },
  app,
)
const token = TOKENS.BROKER_TOKEN_READ
const NOBODY = '/workloads/nowhere/Deployment/web/containers'

const store = async (...posts: unknown[]) => {
  for (const post of posts) assert.equal((await app.post('/pod/spec', post)).status, 200)
}
const read = async (namespace: string, kind = 'Deployment', name = 'web') => {
  const answer = await app.get(
    `/workloads/${encodeURIComponent(namespace)}/${kind}/${encodeURIComponent(name)}/containers`,
  )
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const digests = (entries: { digest: string }[]) => entries.map(({ digest }) => digest)

test('GET /workloads/{namespace}/{kind}/{name}/containers 200: every key in wire order', async () => {
  const [namespace, digest] = [newNamespace(), newDigest()]
  const body = replica(namespace, [container('app', digest, { security_context: { privileged: true } })], {
    pod_security: { hostPID: true },
  })
  await store(body)
  const workload = await read(namespace)
  const { firstSeen, lastSeen } = workload.containers[0].digests[0]
  const entry = {
    digest,
    imageRef: 'registry.test/team/app:v1',
    securityContext: { privileged: true },
    podSecurity: { hostPID: true },
    lastPodName: body.pod_name,
    firstSeen,
    lastSeen,
    state: 'running',
    stateReason: null,
    ranAsInit: false,
  }
  const head = { clusterId: 'primary', containerName: 'app', containerKind: 'regular', mixedDigests: false }
  assert.equal(
    JSON.stringify(workload),
    JSON.stringify({
      namespace,
      kind: 'Deployment',
      name: 'web',
      runningWindowSeconds: 900,
      containers: [{ ...head, digests: [entry], previousDigests: [] }],
      truncated: false,
    }),
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/containers 200: containers by name, digests newest first', async () => {
  const namespace = newNamespace()
  const [first, second, third, side] = [newDigest(), newDigest(), newDigest(), newDigest()]
  for (const digest of [first, second, third]) {
    await store(replica(namespace, [container('web', digest), container('api', side)]))
    await age(app.sql, 10)
  }
  const { containers } = await read(namespace)
  assert.deepEqual(
    containers.map((c: { containerName: string }) => c.containerName),
    ['api', 'web'],
  )
  assert.deepEqual(digests(containers[1].digests), [third, second, first])
})

test('GET /workloads/{namespace}/{kind}/{name}/containers 200: running digests are apart from previous ones, and several running ones are mixed', async () => {
  const namespace = newNamespace()
  const [old, now, init] = [newDigest(), newDigest(), newDigest()]
  const body = replica(namespace, [
    container('app', old),
    container('init', init, { kind: 'init', state: 'terminated' }),
  ])
  await store(body, { ...body, containers: [container('app', now)] })
  const at = async () => {
    const [app, init] = (await read(namespace)).containers
    return [
      app.mixedDigests,
      digests(app.digests).sort(),
      digests(app.previousDigests),
      init.containerKind,
      init.previousDigests[0].ranAsInit,
    ]
  }
  assert.deepEqual(await at(), [true, [old, now].sort(), [], 'init', true])
  await age(app.sql, 901)
  assert.deepEqual(await at(), [false, [now], [old], 'init', true], 'the old one names no pod')
})

test('GET /workloads/{namespace}/{kind}/{name}/containers 200: a container that changed its kind with its image is listed under both', async () => {
  const [namespace, one, two] = [newNamespace(), newDigest(), newDigest()]
  await store(
    replica(namespace, [container('app', one)]),
    replica(namespace, [container('app', two, { kind: 'init' })]),
  )
  const { containers } = await read(namespace)
  assert.deepEqual(
    containers.map((c: Record<string, string>) => [c.containerName, c.containerKind, c.mixedDigests]),
    [
      ['app', 'init', false],
      ['app', 'regular', false],
    ],
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/containers 200: the workload must match exactly, including case', async () => {
  const namespace = newNamespace()
  const [one, two] = [newDigest(), newDigest()]
  await store(
    replica(namespace, [container('app', one)]),
    replica(namespace, [container('app', two)], { workload_name: 'we%' }),
  )
  assert.deepEqual(digests((await read(namespace)).containers[0].digests), [one])
  assert.deepEqual(digests((await read(namespace, 'Deployment', 'we%')).containers[0].digests), [two])
  for (const path of [
    `${namespace}/deployment/web`,
    `${namespace}/StatefulSet/web`,
    `${namespace}/Deployment/WEB`,
    `${namespace}x/Deployment/web`,
  ])
    assertNoData(await app.get(`/workloads/${path}/containers`))
})

test('GET /workloads/{namespace}/{kind}/{name}/containers 200: 256 rows are listed; of 257 the oldest that is not running is left out', async () => {
  const [namespace, newest] = [newNamespace(), newDigest()]
  const add = (from: number, to: number) => app.sql`
    insert into workload_container
    select 'primary', ${namespace}, 'Deployment', 'web', 'app', 'sha256:' || md5(n::text) || md5(n::text), 'regular', 'r', '{}', '{}', null, null,
           null, null, now(), now() at time zone 'utc' - interval '1 day' - n * interval '1 s'
    from generate_series(${from}::int, ${to}::int) n`
  await add(1, 255)
  await store(replica(namespace, [container('app', newest)]))
  const rows = async () => {
    const { containers, truncated } = await read(namespace)
    const last = containers[0].previousDigests.at(-1).digest
    return [containers[0].digests.length, containers[0].previousDigests.length, truncated, last]
  }
  const before = await rows()
  assert.deepEqual(before.slice(0, 3), [1, 255, false])
  await add(256, 256)
  assert.deepEqual(await rows(), [1, 255, true, before[3]])
})

test('GET /workloads/{namespace}/{kind}/{name}/containers 200: of 257 rows a running one is never left out, however old', async () => {
  const [namespace, oldest] = [newNamespace(), newDigest()]
  const body = replica(namespace, [container('app', oldest)])
  await store(body)
  // It runs because its pod lives, although no report came for two days.
  await app.sql`
    update workload_container set last_seen = last_seen - interval '2 days' where pod_namespace = ${namespace}`
  await app.sql`
    insert into workload_container
    select 'primary', ${namespace}, 'Deployment', 'web', 'app', 'sha256:' || md5(n::text) || md5(n::text), 'regular', 'r', '{}', '{}', null, null,
           null, null, now(), now() at time zone 'utc' - interval '1 day' - n * interval '1 s'
    from generate_series(1, 256) n`
  const { containers, truncated } = await read(namespace)
  assert.deepEqual(
    [digests(containers[0].digests), containers[0].previousDigests.length, truncated],
    [[oldest], 255, true],
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/containers 200: the configured window is returned', async () => {
  const namespace = newNamespace()
  await guarded.post('/pod/spec', replica(namespace, [container('app', newDigest())]), {
    token: TOKENS.BROKER_TOKEN_INGEST,
  })
  const answer = await guarded.get(`/workloads/${namespace}/Deployment/web/containers`, { token })
  assert.equal(answer.json.runningWindowSeconds, 360)
})

test('GET /workloads/{namespace}/{kind}/{name}/containers 200: names of any characters, percent-encoded', async () => {
  for (const name of ['a/b', 'a b', '100%', 'ключ', "x' or '1'='1"]) {
    await store(replica(name, [container('app', newDigest())], { workload_name: name }))
    assert.equal((await read(name, 'Deployment', name)).name, name)
  }
})

test('GET /workloads/{namespace}/{kind}/{name}/containers 400: U+0000 in a part', async () => {
  for (const [path, field] of [
    ['a%00/b/c', 'namespace'],
    ['a/b%00/c', 'kind'],
    ['a/b/%00c', 'name'],
  ]) {
    const answer = await app.get(`/workloads/${path}/containers`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, new RegExp(`^Path deserialize error: ${field}: U\\+0000`))
  }
})

test('GET /workloads/{namespace}/{kind}/{name}/containers 404: a workload without reports', async () => {
  assertNoData(await app.get(NOBODY))
})

test('GET /workloads/{namespace}/{kind}/{name}/containers 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get(NOBODY))
  assertUnauthorized(await guarded.get('/workloads/a%00/b/c/containers', { token: 'unknown' }))
})

test('GET /workloads/{namespace}/{kind}/{name}/containers 404: every token may read', async () => {
  for (const one of Object.values(TOKENS)) assertNoData(await guarded.get(NOBODY, { token: one }))
})

test('GET /workloads/{namespace}/{kind}/{name}/containers 503: refused when the read budget is spent', async () => {
  const { budget } = guarded.deps
  const release = await budget.acquire(budget.totalKib - CHARGE_KIB + 1)
  assertShed(await guarded.get(NOBODY, { token }), CHARGE_KIB, budget.totalKib)
  release()
  assertNoData(await guarded.get(NOBODY, { token }))
})

test('GET /workloads/{namespace}/{kind}/{name}/containers 503: the table is locked for longer than a statement may take', async () => {
  await whileRefused(guarded.sql, 'workload_container', async () =>
    assertDatabaseBusy(await guarded.get(NOBODY, { token })),
  )
  assertNoData(await guarded.get(NOBODY, { token }))
})
