import assert from 'node:assert/strict'
import test from 'node:test'
import type postgres from 'postgres'
import { buildProfile } from '../../lib/profile/build.ts'
import { isWaiting } from '../jobs/scene.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { type Told, tellWorkload } from '../support/exports.ts'
import { container, newDigest, newNamespace } from '../support/images.ts'
import { podPost } from '../support/records.ts'
import { assertDatabaseBusy, assertForbidden, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'
import { component, storeSbom } from '../support/supply-chain.ts'
import { until } from '../support/until.ts'

const ENV = { POD_TRAFFIC_RETENTION_DAYS: '0', ...TOKENS }
const app = await startApp(ENV)
const open = await startApp({}, app)
const impatient = await startApp({ ...ENV, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_ADMIN
const MAX_EXPORTS = 20

const record = (path: string, query = '', on = app, body?: unknown) =>
  on.request('POST', path + query, { token, ...(body === undefined ? {} : { body }) })
const told = (fields: Told = {}) => tellWorkload(app, { isWatched: false, ...fields })

const recordsOf = ({ namespace }: { namespace: string }, on = app) => on.sql`
  select cluster_id, workload_kind, workload_name, revision, content_hash, mode, to_json(artifacts) as artifacts, images,
         pod_security, id::integer as id
  from workload_profile_export
  where pod_namespace = ${namespace}
  order by exported_at desc, id desc`

test('POST /workloads/{namespace}/{kind}/{name}/export 200: the answer of GET, stored with what drift compares', async () => {
  const one = await told({ isWatched: true })
  const { status, headers, json } = await record(one.path, '?format=zip-manifest&mode=enforce')
  assert.equal(status, 200)
  assert.deepEqual(
    ['mode', 'recorded'].map((name) => headers.get(`x-kguardian-export-${name}`)),
    ['enforce', 'true'],
  )
  assert.equal(json.recorded, true)
  const read = await app.get(`${one.path}?format=zip-manifest&mode=enforce`, { token })
  const named = (documents: { fileName: string; available: boolean }[]) =>
    documents.map(({ fileName, available }) => [fileName, available])
  assert.deepEqual(named(json.documents), named(read.json.documents))
  assert.equal(read.json.recorded, false)
  const [stored, ...more] = await recordsOf(one.key)
  assert.deepEqual(more, [])
  const { id: _, pod_security: podSecurity, ...rest } = stored!
  assert.deepEqual(rest, {
    ...{ cluster_id: 'primary', workload_kind: 'Deployment', workload_name: 'web', revision: null, mode: 'enforce' },
    content_hash: json.profile.contentHash,
    artifacts: json.documents.map(({ artifact }: { artifact: string }) => artifact),
    images: { containers: { main: [one.digest] } },
  })
  assert.deepEqual(Object.keys(podSecurity).sort(), ['containers', 'level', 'pod'])
})

test('POST /workloads/{namespace}/{kind}/{name}/export 200: the revision of the profile, and a line that says it is stored', async () => {
  const one = await told()
  const { namespace, kind, name } = one.key
  const { snapshot } = (await buildProfile({ db: app.db, config: app.deps.config }, one.key, app.db.read))!
  await app.sql`
    insert into workload_profile_version
    select 'primary', ${namespace}, ${kind}, ${name}, 7, 'fnv1a64:00000000000000aa', '{}', '{}', ${JSON.stringify(snapshot)}::text::json,
           now() at time zone 'utc'`
  const { text } = await record(one.path, '?artifacts=sbom,networkpolicy')
  assert.match(text, /^# recorded: /m)
  assert.match(text, /profile-revision: '7'/)
  const [stored] = await recordsOf(one.key)
  assert.deepEqual([stored!.revision, stored!.artifacts], [7, ['networkpolicy', 'sbom']])
})

test('POST /workloads/{namespace}/{kind}/{name}/export 200: an artifact with several documents is recorded once', async () => {
  const one = await told()
  const other = newDigest()
  const containers = [container('main', one.digest), container('side', other)]
  await app.post('/pod/spec', { ...one.pod, containers }, { token })
  await storeSbom(app, other, 'registry', [component('one')])
  const { json } = await record(one.path, '?artifacts=sbom&format=zip-manifest')
  assert.deepEqual(
    json.documents.map(({ artifact, available }: { artifact: string; available: boolean }) => [artifact, available]),
    [
      ['sbom', true],
      ['sbom', true],
    ],
  )
  const [stored] = await recordsOf(one.key)
  assert.deepEqual(stored!.artifacts, ['sbom'])
})

test('POST /workloads/{namespace}/{kind}/{name}/export 200: `record` and a body are ignored', async () => {
  const one = await told()
  for (const [query, body] of [
    ['?record=true', undefined],
    ['?record=no', { artifacts: 'x' }],
    ['', '{broken'],
  ] as const)
    assert.equal((await record(one.path, query, app, body)).headers.get('x-kguardian-export-recorded'), 'true')
  assert.equal((await recordsOf(one.key)).length, 3)
})

test('POST /workloads/{namespace}/{kind}/{name}/export 200: an export without any document is not stored', async () => {
  const namespace = newNamespace()
  await app.post(
    '/pod/spec',
    podPost({ pod_namespace: namespace, workload_kind: 'Deployment', workload_name: 'web' }),
    {
      token,
    },
  )
  const { headers, json } = await record(
    `/workloads/${namespace}/Deployment/web/export`,
    '?artifacts=sbom,vex,seccompprofile&format=zip-manifest',
  )
  assert.equal(headers.get('x-kguardian-export-recorded'), 'false')
  assert.equal(json.recorded, false)
  assert.equal((await recordsOf({ namespace })).length, 0)
})

test('POST /workloads/{namespace}/{kind}/{name}/export 200: the newest 20 of a workload are kept, whatever comes at once', async () => {
  const [one, other] = [await told(), await told()]
  await record(other.path, '?artifacts=securitycontext')
  const statuses = await Promise.all(
    Array.from({ length: MAX_EXPORTS + 5 }, async () => (await record(one.path, '?artifacts=securitycontext')).status),
  )
  assert.deepEqual([...new Set(statuses)], [200])
  const ids = (await recordsOf(one.key)).map(({ id }) => id)
  assert.equal(ids.length, MAX_EXPORTS)
  await record(one.path, '?artifacts=securitycontext&mode=enforce')
  const [newest, ...rest] = await recordsOf(one.key)
  assert.equal(newest!.mode, 'enforce')
  assert.deepEqual(
    rest.map(({ id }) => id),
    ids.slice(0, -1),
  )
  assert.equal((await recordsOf(other.key)).length, 1)
})

test('POST /workloads/{namespace}/{kind}/{name}/export 200: an export waits for another one of its workload, and counts it', async () => {
  const one = await told()
  const { namespace, kind, name } = one.key
  const store = (on: postgres.ISql, count: number) => on`
    select record_profile_export('primary', ${namespace}, ${kind}, ${name}, null, 'x', 'audit', '{sbom}', '{"containers":{}}',
                                 '{"level":null,"pod":null,"containers":{}}', 20, false)
    from generate_series(1, ${count}::integer)`
  await store(app.sql, MAX_EXPORTS)
  let isAnswered = false
  const answer = await app.sql.begin(async (held) => {
    await store(held, 1)
    const sent = record(one.path, '?artifacts=securitycontext').finally(() => {
      isAnswered = true
    })
    await until('the export waits', async () => isAnswered || (await isWaiting(app.sql)))
    return { sent }
  })
  assert.equal((await answer.sent).status, 200)
  assert.equal((await recordsOf(one.key)).length, MAX_EXPORTS)
})

test('POST /workloads/{namespace}/{kind}/{name}/export 200: a repeated statement stores an export once', async () => {
  const one = await told()
  await record(one.path, '?artifacts=securitycontext')
  const { namespace, kind, name } = one.key
  const repeat = (mode: string, isRepeat: boolean) => app.sql`
    select record_profile_export('primary', ${namespace}, ${kind}, ${name}, null,
      (select content_hash from workload_profile_export where pod_namespace = ${namespace} limit 1), ${mode},
      '{securitycontext}', '{}', '{}', 20, ${isRepeat})`
  await repeat('audit', true)
  assert.equal((await recordsOf(one.key)).length, 1)
  await repeat('enforce', true)
  await repeat('enforce', false)
  assert.equal((await recordsOf(one.key)).length, 3)
})

test('POST /workloads/{namespace}/{kind}/{name}/export 200: allowed without authentication', async () => {
  const namespace = newNamespace()
  await open.post('/pod/spec', podPost({ pod_namespace: namespace, workload_kind: 'Deployment', workload_name: 'web' }))
  const answer = await open.request('POST', `/workloads/${namespace}/Deployment/web/export`)
  assert.equal(answer.status, 200, answer.text)
})

test('POST /workloads/{namespace}/{kind}/{name}/export 400: a parameter breaks a rule', async () => {
  for (const query of ['artifacts=x', 'mode=x', 'format=x']) {
    const { status, json } = await record('/workloads/a/b/c/export', `?${query}`)
    assert.deepEqual([status, json?.error], [400, 'bad_request'], query)
  }
})

test('POST /workloads/{namespace}/{kind}/{name}/export 401: no token', async () => {
  assertUnauthorized(await app.request('POST', '/workloads/a/b/c/export'))
})

test('POST /workloads/{namespace}/{kind}/{name}/export 403: any token but that of the scope admin', async () => {
  for (const [variable, one] of Object.entries(TOKENS)) {
    const answer = await app.request('POST', '/workloads/a/b/c/export', { token: one })
    if (variable === 'BROKER_TOKEN_ADMIN') assert.equal(answer.status, 404)
    else assertForbidden(answer, 'admin')
  }
})

test('POST /workloads/{namespace}/{kind}/{name}/export 404: nothing is known of the workload', async () => {
  const { status, json } = await record('/workloads/nowhere/Deployment/web/export')
  assert.deepEqual([status, json?.error], [404, 'workload_not_found'])
})

test('POST /workloads/{namespace}/{kind}/{name}/export 409: refused, and nothing is stored', async () => {
  const one = await told({ capture: 'low' })
  const { status, json, headers } = await record(one.path, '?mode=enforce')
  assert.deepEqual([status, json.error], [409, 'export_refused'])
  assert.notEqual(headers.get('x-kguardian-export-recorded'), 'true')
  assert.equal((await recordsOf(one.key)).length, 0)
  assert.equal((await record(one.path, '?mode=enforce&acknowledgePartial=true')).status, 200)
  assert.equal((await recordsOf(one.key)).length, 1)
})

test('POST /workloads/{namespace}/{kind}/{name}/export 503: the read budget is spent, or the database cancels the record', async () => {
  const one = await tellWorkload(impatient, { isWatched: false })
  const total = impatient.deps.budget.totalKib
  const release = await impatient.deps.budget.acquire(total - 1)
  const needed = Math.ceil((8 * 1024 * 1024 + 20_000 * 2_560 + 500 * 4_096) / 1_024)
  assertShed(await record(one.path, '?artifacts=securitycontext', impatient), needed, total)
  release()
  await whileRefused(impatient.sql, 'workload_profile_export', async () =>
    assertDatabaseBusy(await record(one.path, '?artifacts=securitycontext', impatient)),
  )
})
