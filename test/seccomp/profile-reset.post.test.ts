import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { waiting } from '../jobs/scene.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { startLossyApp } from '../support/lossy.ts'
import { podPost } from '../support/records.ts'
import {
  assertDatabaseBusy,
  assertForbidden,
  assertUnauthorized,
  startReplica,
  whileRefused,
} from '../support/routes.ts'
import { until } from '../support/until.ts'

const app = await startApp()
const guarded = await startApp(TOKENS, app)
const lossy = await startLossyApp()
const replica = startReplica(app)
after(() => replica.end())
const { sql } = app

const naive = (ms: number) => new Date(ms).toISOString().slice(0, -1)
const MINUTE = 60_000

let made = 0
/** A workload with one pod that sent something a minute ago. */
async function workload(level = 'full', syscalls = ['read', 'ptrace']) {
  const namespace = `ns-${++made}`
  const path = `/seccomp/profiles/${namespace}/Deployment/web`
  const old = `old-${made}`
  await run(namespace, old, level)
  const sent = entry(old, syscalls, Date.now() - MINUTE)
  await send(sent)
  return { namespace, path, old, sent }
}
async function run(pod_namespace: string, pod_name: string, capture_level: string, time = Date.now()) {
  const owner = { workload_kind: 'Deployment', workload_name: 'web', time_stamp: naive(time) }
  assert.equal((await app.post('/pod/spec', podPost({ pod_name, pod_namespace, capture_level, ...owner }))).status, 200)
}
/** The first millisecond after the last reset: agents send milliseconds, so an earlier one may count as before it. */
let afterReset = 0
const entry = (pod_name: string, syscalls: string[], time = Math.max(Date.now(), afterReset)) => ({
  ...{ pod_name, pod_namespace: '', syscalls, arch: 'x86_64', time_stamp: naive(time) },
})
async function send(...entries: unknown[]) {
  assert.equal((await app.post('/pod/syscalls', entries)).status, 200)
}
async function reset(path: string) {
  const answer = await app.request('POST', `${path}/reset`)
  if (answer.status === 200) afterReset = Date.parse(answer.json.resetAt) + 1
  return answer
}
const namesOf = async (path: string) => {
  const { status, json } = await app.get(path)
  return status === 404 ? null : json.profile.syscalls[0].names.join()
}
const exported = async (path: string) => {
  const [yaml, json] = [await app.get(`${path}/export`), await app.get(`${path}/export?format=json`)]
  return { yaml: yaml.text, annotations: json.json?.metadata.annotations }
}

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/reset 200: the set starts again, and exports are partial until it is complete', async () => {
  const { namespace, path, old } = await workload()
  const { status, json } = await reset(path)
  assert.equal(status, 200)
  assert.deepEqual([json.namespace, json.kind, json.name], [namespace, 'Deployment', 'web'])
  assert.equal((await app.get(path)).status, 404)
  const empty = await app.get(`${path}/export`)
  assert.equal(empty.status, 404)
  assert.match(empty.text, /nothing was observed since it was reset at/)
  assert.ok(
    !(await app.get('/seccomp/profiles')).json.some((one: { namespace: string }) => one.namespace === namespace),
  )

  await send(entry(old, ['write']))
  assert.equal(await namesOf(path), 'write')
  const at = `${json.resetAt.slice(0, 19)}Z`
  const partial = await exported(path)
  assert.match(partial.yaml, new RegExp(`^# Reset: the set was reset at ${at} and has not been complete since`, 'm'))
  assert.equal(partial.annotations['kguardian.dev/reset-at'], at)
  const refused = await app.get(`${path}/export?defaultAction=SCMP_ACT_ERRNO`)
  assert.equal(refused.status, 409)
  assert.match(refused.text, /^reset: the set was reset at/m)

  await run(namespace, `new-${made}`, 'full')
  await send(entry(`new-${made}`, ['read']))
  assert.equal(await namesOf(path), 'read,write')
  const whole = await exported(path)
  assert.doesNotMatch(whole.yaml, /reset/i)
  assert.deepEqual(whole.annotations, {
    'kguardian.dev/capture-complete': 'true',
    'kguardian.dev/capture-level': 'full',
  })
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/reset 200: an older pod counts below full, but not at full', async () => {
  const { path, old } = await workload('low')
  await reset(path)
  await send(entry(old, ['write']))
  const { capture } = (await app.get(path)).json
  assert.deepEqual([capture.level, capture.complete, capture.pods], ['low', false, [{ name: old, level: 'low' }]])
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/reset 200: syscalls sent before the reset are not added when they are sent again', async () => {
  const { path, sent, old } = await workload()
  await reset(path)
  await send(sent)
  await send({ ...sent, syscalls: ['read', 'bpf'] })
  await send(entry(old, ['mount'], Date.now() - MINUTE / 2))
  assert.equal(await namesOf(path), null)
  await send(entry(old, ['write']))
  await send(sent)
  assert.equal(await namesOf(path), 'write')
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/reset 200: a name that is sent again has a first_seen after the reset', async () => {
  const { path, old } = await workload()
  const { resetAt } = (await reset(path)).json
  await send(entry(old, ['read']))
  const { detail } = (await app.get(`${path}?detail=true`)).json
  assert.deepEqual(
    detail.syscalls.map(({ name, firstSeen }: { name: string; firstSeen: string }) => [name, firstSeen > resetAt]),
    [['read', true]],
  )
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/reset 200: the reset also works for an agent with a clock that is ahead', async () => {
  const { path, old } = await workload()
  const ahead = entry(old, ['read', 'bpf'], Date.now() + 2 * MINUTE)
  await send(ahead)
  await reset(path)
  await send(ahead)
  assert.equal(await namesOf(path), null)
  await send(entry(old, ['write'], Date.now() + 3 * MINUTE))
  assert.equal(await namesOf(path), 'write')
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/reset 200: a syscall sent after the reset is in the set, however far off the clock of the agent', async () => {
  for (const ahead of [-10, -1, 1, 3, 10, 60].map((minutes) => minutes * MINUTE)) {
    const namespace = `off-${++made}`
    const path = `/seccomp/profiles/${namespace}/Deployment/web`
    const [old, silent] = [`off-${made}`, `silent-${made}`]
    for (const name of [old, silent]) await run(namespace, name, 'full', Date.now() + ahead)
    const sent = entry(old, ['read'], Date.now() + ahead)
    await send(sent)
    await reset(path)
    if (ahead <= 3 * MINUTE) {
      await send(sent)
      assert.equal(await namesOf(path), null, `sent again: ${ahead}`)
    }
    await until('the clock moves', async () => Date.now() > afterReset)
    await send(entry(old, ['ptrace'], Date.now() + ahead), entry(silent, ['bpf'], Date.now() + ahead))
    assert.equal(await namesOf(path), 'bpf,ptrace', `${ahead}`)
    assert.equal((await app.get(path)).json.captureComplete, true)
  }
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/reset 200: the first syscalls of an older pod that come late stay out, and it is not complete', async () => {
  const { namespace, path } = await workload()
  const late = `late-first-${made}`
  await run(namespace, late, 'full')
  await reset(path)
  await send(entry(late, ['bpf'], Date.now() - MINUTE))
  await send(entry(late, ['write']))
  assert.equal(await namesOf(path), 'write')
  assert.equal((await app.get(path)).json.capture.level, 'unknown')
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/reset 200: a new pod of a node with a clock that is behind loses nothing', async () => {
  const { namespace, path } = await workload()
  await reset(path)
  await run(namespace, `behind-${made}`, 'full', Date.now() - 2 * MINUTE)
  await send(entry(`behind-${made}`, ['read'], Date.now() - 2 * MINUTE))
  assert.equal(await namesOf(path), 'read')
  assert.equal((await app.get(path)).json.captureComplete, true)
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/reset 200: a new pod with a syscall from long before the reset is not complete', async () => {
  const { namespace, path } = await workload()
  await reset(path)
  await run(namespace, `late-${made}`, 'full')
  await send(entry(`late-${made}`, ['read'], Date.now() - 30 * MINUTE), entry(`late-${made}`, ['write']))
  assert.equal(await namesOf(path), 'write')
  assert.deepEqual((await app.get(path)).json.capture.level, 'unknown')
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/reset 200: a second reset changes nothing until something is observed', async () => {
  const { path, old } = await workload()
  const first = (await reset(path)).json
  assert.deepEqual((await reset(path)).json, first)
  await send(entry(old, ['write']))
  const second = (await reset(path)).json
  assert.ok(second.resetAt > first.resetAt)
  assert.equal(await namesOf(path), null)
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/reset 200: other workloads and the record of the pod are unchanged', async () => {
  const [one, other] = [await workload(), await workload()]
  const before = (await app.get(other.path)).text
  await reset(one.path)
  assert.equal((await app.get(other.path)).text, before)
  assert.equal((await app.get(`/pod/syscalls/${one.old}`)).json[0].syscalls, 'read,ptrace')
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/reset 200: a cached list is built again', async () => {
  const cached = await startApp({ SECCOMP_PROFILES_CACHE_TTL_SECS: '3600' })
  const pod = podPost({ pod_namespace: 'a', workload_kind: 'Job', workload_name: 'b' })
  await cached.post('/pod/spec', pod)
  await cached.post('/pod/syscalls', [entry(pod.pod_name, ['read'])])
  assert.equal((await cached.get('/seccomp/profiles')).json.length, 1)
  await cached.request('POST', '/seccomp/profiles/a/Job/b/reset')
  assert.equal((await cached.get('/seccomp/profiles')).json.length, 0)
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/reset 200: a concurrent post on another replica counts as before the reset, and is not in the new set', async () => {
  const { path, old, namespace } = await workload()
  let answers!: Promise<unknown>
  await sql.begin(async (other) => {
    await other`select lock_workload_syscalls(${namespace}, 'Deployment', 'web')`
    const both = [replica.post('/pod/syscalls', [entry(old, ['bpf'])])]
    await until('the post waits', async () => (await waiting(sql)) === 1)
    both.push(reset(path).then(({ status }) => status))
    await until('the reset waits', async () => (await waiting(sql)) === 2)
    answers = Promise.all(both)
    await other`select reset_syscalls(${namespace}, 'Deployment', 'web', gen_random_uuid())`
  })
  assert.deepEqual(await answers, [200, 200])
  assert.equal(await namesOf(path), null)
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/reset 200: many concurrent resets and posts on two replicas do not deadlock', async () => {
  const { path, old, namespace } = await workload()
  const { retried } = app.db.ingest.stats
  const work = Array.from({ length: 40 }, (_, i) =>
    i % 8 === 0
      ? replica.post(`${path}/reset`, {})
      : app.post('/pod/syscalls', [entry(old, [`s${i}`], Date.now() + i)]).then((one) => one.status),
  )
  assert.deepEqual(new Set(await Promise.all(work)), new Set([200]))
  assert.equal(app.db.ingest.stats.retried, retried)
  await reset(path)
  await run(namespace, `after-${made}`, 'full')
  await send(entry(`after-${made}`, ['read']))
  assert.equal(await namesOf(path), 'read')
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/reset 200: a reset whose answer from the database was lost is done once', async () => {
  const post = (path: string, body?: unknown) =>
    lossy.app.request(path, {
      method: 'POST',
      ...(body ? { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) } : {}),
    })
  for (const fate of ['answer lost', 'question lost'] as const) {
    const pod = podPost({ pod_namespace: 'a', workload_kind: 'Job', workload_name: fate })
    await post('/pod/spec', pod)
    await post('/pod/syscalls', [entry(pod.pod_name, ['read'])])
    lossy.lose('reset_syscalls', fate)
    const answer = await post(`/seccomp/profiles/a/Job/${encodeURIComponent(fate)}/reset`)
    assert.deepEqual([answer.status, lossy.toCome], [200, 0])
    const [row] =
      await lossy.sql`select syscall_count::int as n, reset_at is not null as is_reset from workload_syscalls where workload_name = ${fate}`
    assert.deepEqual({ ...row }, { n: 0, is_reset: true })
  }
})

test('a repeated reset with the same id does not remove what came after it', async () => {
  const { path, namespace } = await workload()
  const id = '00000000-0000-4000-8000-000000000001'
  const again = async () =>
    (await sql`select reset_syscalls(${namespace}, 'Deployment', 'web', ${id})::text as at`)[0]!.at
  const at = await again()
  await run(namespace, `kept-${made}`, 'full')
  await send(entry(`kept-${made}`, ['read']))
  assert.equal(await again(), at)
  assert.equal(await namesOf(path), 'read')
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/reset 404: a workload without observed syscalls, in plain text', async () => {
  const answer = await reset('/seccomp/profiles/nobody/Deployment/web')
  assert.deepEqual([answer.status, answer.text], [404, 'there is no seccomp profile for that workload'])
  assert.match(answer.headers.get('content-type')!, /^text\/plain/)
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/reset 400: U+0000 in the path', async () => {
  assert.equal((await reset('/seccomp/profiles/a/b/%00')).status, 400)
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/reset 401: without a token', async () => {
  assertUnauthorized(await guarded.request('POST', '/seccomp/profiles/a/b/c/reset'))
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/reset 403: a token without the scope', async () => {
  assertForbidden(
    await guarded.request('POST', '/seccomp/profiles/a/b/c/reset', { token: TOKENS.BROKER_TOKEN_READ }),
    'ingest',
  )
})

test('POST /seccomp/profiles/{namespace}/{kind}/{name}/reset 503: the database is busy', async () => {
  await whileRefused(guarded.sql, 'workload_syscalls', async () => {
    assertDatabaseBusy(
      await guarded.request('POST', '/seccomp/profiles/a/b/c/reset', { token: TOKENS.BROKER_TOKEN_INGEST }),
    )
  })
})
