import assert from 'node:assert/strict'
import test, { after } from 'node:test'
import { MAX_BODY_DEPTH } from '../../lib/limits/limits.ts'
import { isWaiting } from '../jobs/scene.ts'
import { type Answer, startApp, TOKENS } from '../support/app.ts'
import { POD_KEYS, podPost, podsWithWrongAddresses, wholePodPost } from '../support/records.ts'
import {
  acceptedSpellings,
  assertDatabaseBusy,
  assertForbidden,
  assertUnauthorized,
  BAD_TIMES,
  GOOD_TIMES,
  refusedBodies,
  startReplica,
  whileRefused,
} from '../support/routes.ts'
import { until } from '../support/until.ts'

const app = await startApp()
const guarded = await startApp(TOKENS)
const replicas = [startReplica(app), startReplica(app)]
after(() => Promise.all(replicas.map((replica) => replica.end())))

const post = (body: unknown) => app.post('/pod/spec', body)
const stored = async (name: string) => (await app.get(`/pod/name/${encodeURIComponent(name)}`)).json
const posted = async (fields: object) => {
  const body = podPost(fields as Record<string, unknown>)
  const answer = await post(body)
  assert.equal(answer.status, 200, answer.text)
  const row = await stored(body.pod_name)
  assert.deepEqual(answer.json, row)
  return row
}
/** Posts both records under one name, in this order, and returns what is stored. */
const storedAfter = async (first: object, second: object) => {
  const { pod_name } = podPost()
  await posted({ ...first, pod_name })
  assert.equal((await post(podPost({ ...second, pod_name }))).status, 200)
  return stored(pod_name)
}
const version = async (name: string) =>
  (await app.sql`select xmin::text, ctid::text from pod where pod_name = ${name}`)[0]
const uid = async (name: string) =>
  (await app.sql<{ pod_uid: string }[]>`select pod_uid from pod where pod_name = ${name}`)[0]!.pod_uid
const podCount = async () => Number((await app.sql`select count(*) from pod`)[0]!.count)
const range = (n: number) => Array.from({ length: n }, (_, i) => i)

test('POST /pod/spec 200: the answer is the record as posted, its keys in wire order', async () => {
  const body = wholePodPost({ pod_ips: ['fd00::1'] })
  const answer = await post(body)
  assert.equal(answer.status, 200)
  assert.equal(answer.headers.get('content-type'), 'application/json')
  assert.deepEqual(Object.keys(answer.json), POD_KEYS)
  assert.deepEqual(answer.json, { ...body, pod_ips: [body.pod_ip, 'fd00::1'] })
  assert.deepEqual(await stored(body.pod_name), answer.json)
})

test('POST /pod/spec 200: a field that was not sent is null in the answer, even if a value is stored', async () => {
  const body = wholePodPost()
  await post(body)
  const { pod_name, pod_ip, time_stamp, node_name, is_dead } = body
  const answer = await post({ pod_name, pod_ip, time_stamp, node_name, is_dead })
  assert.deepEqual(Object.keys(answer.json), POD_KEYS)
  const nulls = Object.fromEntries(POD_KEYS.map((key) => [key, null]))
  assert.deepEqual(answer.json, { ...nulls, pod_name, pod_ip, time_stamp, node_name, is_dead, pod_ips: [pod_ip] })
})

const OPTIONAL = {
  pod_namespace: ['shop', 'bank'],
  pod_obj: [{ metadata: { name: 'a' } }, { metadata: { name: 'b' } }],
  pod_identity: ['cart', 'till'],
  workload_selector_labels: [{ app: 'a' }, {}],
  workload_kind: ['Deployment', 'DaemonSet'],
  workload_name: ['cart', 'till'],
  capture_level: ['high', 'full'],
  host_network: [true, false],
  started_at: ['2024-05-01T09:00:00', '2024-04-01T09:00:00'],
}
for (const [key, [first, second]] of Object.entries(OPTIONAL)) {
  test(`POST /pod/spec 200: ${key} is kept when it is absent or null, and replaced when it is sent`, async () => {
    assert.deepEqual((await storedAfter({ [key]: first }, {}))[key], first)
    assert.deepEqual((await storedAfter({ [key]: first }, { [key]: null }))[key], first)
    assert.deepEqual((await storedAfter({ [key]: first }, { [key]: second }))[key], second)
    assert.deepEqual((await storedAfter({}, { [key]: second }))[key], second)
  })
}

test('POST /pod/spec 200: address, node, liveness and time are always replaced, even by a post with an earlier time', async () => {
  const changed = { pod_ip: '10.7.7.7', node_name: 'node-9', is_dead: true, time_stamp: '2020-01-01T00:00:00' }
  const row = await storedAfter({ pod_ips: ['10.1.1.1', 'fd00::2'] }, changed)
  assert.deepEqual({ ...row, ...changed }, row)
  assert.deepEqual(row.pod_ips, ['10.7.7.7'])
  assert.deepEqual(await podsWithWrongAddresses(app.sql), [])
})

test('POST /pod/spec 200: a dead pod that is posted as alive is alive again', async () => {
  assert.equal((await storedAfter({ is_dead: true }, { is_dead: false })).is_dead, false)
})

test('POST /pod/spec 200: unknown keys are ignored, a malformed image inventory among them', async () => {
  const row = await posted({ uuid: 7, containers: 'none', pod_security: [1], nonsense: { deep: [null] } })
  assert.deepEqual(Object.keys(row), POD_KEYS)
})

for (const pod_name of ['', ' ', '\t\n', '\u{a0}']) {
  test(`POST /pod/spec 200: a pod named ${JSON.stringify(pod_name)} is echoed as posted and logged as a warning, but not written`, async () => {
    const before = await podCount()
    const body = podPost({
      pod_name,
      pod_ip: '::FFFF:10.0.0.9',
      pod_obj: { kind: 'Pod', status: {} },
      capture_level: 'ODD',
      pod_ips: 'x',
    })
    app.logged.length = 0
    const answer = await post(body)
    assert.equal(answer.status, 200)
    assert.deepEqual(Object.keys(answer.json), POD_KEYS)
    assert.deepEqual({ ...answer.json, ...body }, answer.json)
    assert.equal(await podCount(), before)
    assert.equal(app.logged.filter((line) => line.level === 40).length, 1)
  })
}

test('POST /pod/spec 400: a record without a name that is nested too deep to be echoed', async () => {
  const deep = (field: string) => `{"${field}":${'['.repeat(30_000)}${']'.repeat(30_000)},`
  const body = JSON.stringify(podPost({ pod_name: '' }))
  for (const text of [
    body.replace('{', deep('pod_ips')),
    body.replace('{', '{"pod_obj":{"a":').replace('{"a":', `${deep('a')}"b":1},`),
  ]) {
    const answer = await post(text)
    assert.equal(answer.status, 400, answer.text)
    assert.match(answer.text, /^Json deserialize error: pod_(ips|obj): nested deeper/)
  }
})

test('POST /pod/spec 200: a name with spaces around it is stored as sent', async () => {
  assert.equal((await posted({ pod_name: ' web ' })).pod_name, ' web ')
})

const ADDRESSES: [pod_ip: string, pod_ips: unknown, expected: string[]][] = [
  ['FD00:0:0:0::A', undefined, ['fd00::a']],
  ['::ffff:10.0.0.1', null, ['10.0.0.1']],
  ['10.0.0.1', ['::FFFF:a00:1', '10.0.0.1', 'FD00::0001', 'fd00::1'], ['10.0.0.1', 'fd00::1']],
  ['10.0.0.1', ['fd00::1', '10.0.0.1'], ['10.0.0.1', 'fd00::1']],
  ['10.0.0.1', ['  fd00::2\n', '', '  ', null, 7, { ip: 'x' }, ['10.0.0.9'], true], ['10.0.0.1', 'fd00::2']],
  ['10.0.0.1', '10.0.0.2', ['10.0.0.1']],
  ['10.0.0.1', { 0: '10.0.0.2' }, ['10.0.0.1']],
  ['10.0.0.1', 7, ['10.0.0.1']],
  ['', ['10.0.0.2'], ['10.0.0.2']],
  ['  ', [], []],
  ['', undefined, []],
  ['None', ['fe80::1%eth0', '010.0.0.1', '10.0.0.0/8'], ['None', 'fe80::1%eth0', '010.0.0.1', '10.0.0.0/8']],
]
for (const [pod_ip, pod_ips, expected] of ADDRESSES) {
  test(`POST /pod/spec 200: pod_ip ${JSON.stringify(pod_ip)} with pod_ips ${JSON.stringify(pod_ips)} is stored as ${JSON.stringify(expected)}`, async () => {
    const row = await posted({ pod_ip, pod_ips })
    assert.deepEqual(row.pod_ips, expected)
    assert.deepEqual(await podsWithWrongAddresses(app.sql), [])
  })
}

test('POST /pod/spec 200: the primary address is canonical in pod_ip too', async () => {
  assert.equal((await posted({ pod_ip: '::FFFF:0A00:0001' })).pod_ip, '10.0.0.1')
  assert.equal((await posted({ pod_ip: ' 10.0.0.1' })).pod_ip, ' 10.0.0.1')
})

test('POST /pod/spec 200: addresses are recomputed on every post', async () => {
  const { pod_name } = podPost()
  for (const pod_ips of [['fd00::1'], [], ['fd00::2', 'fd00::3'], ['fd00::3', '10.1.1.1'], undefined]) {
    const row = await posted({ pod_name, pod_ip: '10.2.2.2', pod_ips })
    assert.deepEqual(row.pod_ips, ['10.2.2.2', ...(pod_ips ?? [])])
    assert.deepEqual(await podsWithWrongAddresses(app.sql), [])
  }
})

test('POST /pod/spec 400: more than 64 addresses, or one of more than 128 characters', async () => {
  const ips = range(64).map((i) => `10.3.0.${i}`)
  assert.equal((await posted({ pod_ip: ips[0], pod_ips: ips })).pod_ips.length, 64)
  assert.equal((await posted({ pod_ips: ['x'.repeat(128)] })).pod_ips.length, 2)
  for (const pod_ips of [ips, ['x'.repeat(129)]]) {
    const body = podPost({ pod_ip: '10.4.0.1', pod_ips })
    const answer = await post(body)
    assert.equal(answer.status, 400)
    assert.match(answer.text, /^Json deserialize error: pod_ips: /)
    assert.equal((await app.get(`/pod/name/${body.pod_name}`)).status, 404)
  }
})

const MANIFESTS: [sent: object, kept: object][] = [
  [
    {
      ...{ apiVersion: 'v1', kind: 'Pod', status: { phase: 'Running' } },
      metadata: {
        name: 'a',
        uid: 'u',
        annotations: { note: '1' },
        managedFields: [{ manager: 'kubelet' }],
        generation: 3,
      },
      spec: { hostNetwork: true, containers: [{ name: 'c' }], volumes: [] },
    },
    { metadata: { name: 'a', uid: 'u', annotations: { note: '1' }, generation: 3 }, spec: { hostNetwork: true } },
  ],
  [{ metadata: { name: 'a' }, spec: { hostNetwork: null } }, { metadata: { name: 'a' } }],
  [{ metadata: { name: 'a' }, spec: { containers: [] } }, { metadata: { name: 'a' } }],
  [{ spec: { hostNetwork: false } }, { spec: { hostNetwork: false } }],
  [{ metadata: 'text', spec: [1], status: 7 }, {}],
  [{}, {}],
]
for (const [sent, kept] of MANIFESTS) {
  test(`POST /pod/spec 200: the manifest is compacted to ${JSON.stringify(kept)}`, async () => {
    assert.deepEqual((await posted({ pod_obj: sent })).pod_obj, kept)
  })
}

test('POST /pod/spec 200: a part of the manifest that is dropped may be nested as deep as the limit of a body', async () => {
  const deep = `${'['.repeat(MAX_BODY_DEPTH - 3)}${']'.repeat(MAX_BODY_DEPTH - 3)}`
  const text = JSON.stringify(podPost({ pod_obj: { metadata: {}, spec: { containers: 0 } } })).replace(
    ':0}',
    `:${deep}}`,
  )
  assert.deepEqual((await post(text)).json.pod_obj, { metadata: {} })
})

const HOST_NETWORK: [fields: object, expected: boolean | null][] = [
  [{ host_network: true }, true],
  [{ host_network: true, pod_obj: { spec: { hostNetwork: false } } }, true],
  [{ host_network: false, pod_obj: { spec: { hostNetwork: true } } }, false],
  [{ host_network: null, pod_obj: { spec: { hostNetwork: true } } }, true],
  [{ pod_obj: { spec: { hostNetwork: true } } }, true],
  [{ pod_obj: { spec: { hostNetwork: false } } }, false],
  [{ pod_obj: { spec: { hostNetwork: 'yes' } } }, false],
  [{ pod_obj: { spec: {} } }, false],
  [{ pod_obj: { metadata: {} } }, false],
  [{ pod_obj: null }, null],
  [{}, null],
]
for (const [fields, expected] of HOST_NETWORK) {
  test(`POST /pod/spec 200: host_network of ${JSON.stringify(fields)} is ${expected}`, async () => {
    assert.equal((await posted(fields)).host_network, expected)
  })
}

const START = (startTime: unknown) => ({ pod_obj: { status: { startTime } } })
const STARTED: [fields: object, expected: string | null, warned: boolean][] = [
  [START('2024-05-01T09:00:00Z'), '2024-05-01T09:00:00', false],
  [START('2024-05-01T01:30:00+02:00'), '2024-04-30T23:30:00', false],
  [START('2024-12-31T23:00:00.25-01:30'), '2025-01-01T00:30:00.250', false],
  [{ ...START('2024-05-01T09:00:00Z'), started_at: '2024-05-01T08:00:00' }, '2024-05-01T08:00:00', false],
  [{ ...START('2024-05-01T09:00:00Z'), started_at: null }, '2024-05-01T09:00:00', false],
  [START('yesterday'), null, true],
  [START('2024-02-30T09:00:00Z'), null, true],
  [START(1_714_554_000), null, true],
  [START(null), null, false],
  [{ pod_obj: { status: 'x' } }, null, false],
  [{}, null, false],
]
for (const [fields, expected, warned] of STARTED) {
  test(`POST /pod/spec 200: started_at of ${JSON.stringify(fields)} is ${expected}`, async () => {
    app.logged.length = 0
    assert.equal((await posted(fields)).started_at, expected)
    assert.equal(
      app.logged.some((line) => line.level === 40),
      warned,
    )
  })
}

test('POST /pod/spec 200: a missing start is set by a later post, and a known start is kept when a later post has no valid one', async () => {
  assert.equal((await storedAfter({}, START('2024-05-01T09:00:00Z'))).started_at, '2024-05-01T09:00:00')
  assert.equal((await storedAfter(START('2024-05-01T09:00:00Z'), START('bad'))).started_at, '2024-05-01T09:00:00')
})

test('POST /pod/spec 200: capture levels are trimmed and lower-cased; an unknown one is null and logged as a warning', async () => {
  for (const level of ['full', 'high', 'medium', 'low', 'custom'])
    assert.equal((await posted({ capture_level: ` ${level.toUpperCase()}\t` })).capture_level, level)
  assert.equal((await posted({ capture_level: `${' '.repeat(100)}full${'\n'.repeat(100_000)}` })).capture_level, 'full')
  for (const level of ['', 'fullest', 'no ne', 'лow', 'x'.repeat(65), 'full'.repeat(250_000)]) {
    app.logged.length = 0
    assert.equal((await posted({ capture_level: level })).capture_level, null)
    assert.equal(app.logged.filter((line) => line.level === 40).length, 1)
  }
  assert.equal((await storedAfter({ capture_level: 'high' }, { capture_level: 'odd' })).capture_level, 'high')
})

for (const [sent, shown] of Object.entries(GOOD_TIMES)) {
  test(`POST /pod/spec 200: the time ${sent} is shown as ${shown}`, async () => {
    const row = await posted({ time_stamp: sent, started_at: sent })
    assert.deepEqual([row.time_stamp, row.started_at], [shown, shown])
  })
}

test('POST /pod/spec 200: text of any script, escapes and labels come back as sent', async () => {
  const odd = 'ключ "q" \\ / 🐘 \u{1}\u{7f}\u{2028}\'; drop table pod; --'
  const row = await posted({
    ...{
      pod_name: `odd ${odd}`,
      pod_namespace: odd,
      node_name: odd,
      pod_identity: odd,
      workload_selector_labels: { [odd]: odd },
    },
    pod_obj: { metadata: { annotations: { [odd]: odd } } },
  })
  assert.deepEqual(row.workload_selector_labels, { [odd]: odd })
  assert.deepEqual(row.pod_obj.metadata.annotations, { [odd]: odd })
})

const BARE = ['pod_name', 'pod_ip', 'time_stamp', 'node_name', 'is_dead'] as const
const manifest = (uid?: unknown) => ({ metadata: uid === undefined ? {} : { uid } })
test('POST /pod/spec 200: a manifest with another uid is another pod, and nothing of the old pod is kept', async () => {
  const old = wholePodPost({ pod_ips: ['fd00::7'] })
  const bare = Object.fromEntries(BARE.map((key) => [key, old[key]]))
  await posted(old)
  await post({ ...bare, pod_obj: manifest('uid-2') })
  const nulls = Object.fromEntries(POD_KEYS.map((key) => [key, null]))
  // Derived from a manifest without `hostNetwork`.
  const derived = { host_network: false, pod_ips: [old.pod_ip] }
  assert.deepEqual(await stored(old.pod_name), { ...nulls, ...bare, ...derived, pod_obj: manifest('uid-2') })
  assert.deepEqual(await podsWithWrongAddresses(app.sql), [])
})

test('POST /pod/spec 200: stored values are kept when the uid is the same, or missing in one of the manifests or both', async () => {
  const uids: [stored: unknown, posted: unknown][] = [
    ['uid-1', undefined],
    [undefined, 'uid-1'],
    [undefined, undefined],
    ['uid-1', 'uid-1'],
    ['uid-1', ''],
    ['', 'uid-1'],
    ['uid-1', 7],
    [7, 'uid-1'],
  ]
  for (const [before, after] of uids) {
    const old = wholePodPost({ pod_obj: manifest(before) })
    await posted(old)
    await post({ ...Object.fromEntries(BARE.map((key) => [key, old[key]])), pod_obj: manifest(after) })
    assert.deepEqual(
      await stored(old.pod_name),
      { ...old, pod_obj: manifest(after), pod_ips: [old.pod_ip] },
      `${before}, then ${after}`,
    )
  }
})

test('POST /pod/spec 200: the column pod_uid follows the uid in pod_obj', async () => {
  const { pod_name } = podPost()
  const expected: [fields: object, uid: string | null][] = [
    [{}, null],
    [{ pod_obj: { metadata: { uid: 'one' } } }, 'one'],
    [{}, 'one'],
    [{ pod_obj: null, node_name: 'node-2' }, 'one'],
    [{ pod_obj: { metadata: { uid: 'two' } } }, 'two'],
    [{ pod_obj: { metadata: { uid: '' } } }, null],
    [{ pod_obj: { metadata: { uid: 'three' } } }, 'three'],
    [{ pod_obj: { metadata: { uid: 7 } } }, null],
    [{ pod_obj: { metadata: { uid: 'four' } } }, 'four'],
    [{ pod_obj: {} }, null],
  ]
  for (const [fields, value] of expected) {
    await post(podPost({ ...fields, pod_name }))
    assert.equal(await uid(pod_name), value)
  }
})

test('POST /pod/spec 200: a repeated post writes nothing, even with fewer keys', async () => {
  const body = wholePodPost({ pod_ips: ['fd00::5'] })
  await post(body)
  const before = await version(body.pod_name)
  assert.equal((await post(body)).status, 200)
  const { pod_name, pod_ip, time_stamp, node_name, is_dead, pod_ips } = body as typeof body & { pod_ips: string[] }
  assert.equal((await post({ pod_name, pod_ip, time_stamp, node_name, is_dead, pod_ips })).status, 200)
  assert.equal(await replicas[0]!.post('/pod/spec', body), 200)
  assert.deepEqual(await version(body.pod_name), before)
})

test('POST /pod/spec 200: a change of any one key is written', async () => {
  const first = wholePodPost({ pod_ips: ['fd00::6'] })
  const changes = {
    ...Object.fromEntries(Object.entries(OPTIONAL).map(([key, [, second]]) => [key, second])),
    ...{
      host_network: true,
      pod_ip: '10.5.5.5',
      pod_ips: ['fd00::7'],
      time_stamp: '2024-05-01T10:00:00.000001',
      node_name: 'node-2',
    },
    is_dead: true,
  }
  for (const [key, value] of Object.entries(changes)) {
    await post(first)
    const before = await version(first.pod_name)
    const answer = await post({ ...first, [key]: value })
    assert.deepEqual(await stored(first.pod_name), answer.json, key)
    assert.notDeepEqual(await version(first.pod_name), before, key)
  }
  assert.deepEqual(await podsWithWrongAddresses(app.sql), [])
})

test('POST /pod/spec 200: a repeated post with a new time touches no index', async () => {
  // No more new row versions than a page has free space for: open transactions may keep the old ones.
  const pods = range(3).map(() => wholePodPost())
  const flushed = async () => {
    // Flushed on the connection that has just written: PostgreSQL reports its counts only after a while.
    await app.db.ingest((sql) => sql`select pg_stat_force_next_flush()`)
    const [counts] = await app.sql`
      select n_tup_upd::int as updates, n_tup_hot_upd::int as hot from pg_stat_user_tables where relname = 'pod'`
    return counts as unknown as { updates: number; hot: number }
  }
  for (const pod of pods) await post(pod)
  const before = await flushed()
  for (const pod of pods) await post({ ...pod, time_stamp: '2024-05-01T11:00:00' })
  const now = await flushed()
  assert.deepEqual([now.updates - before.updates, now.hot - before.hot], [3, 3])
})

for (const { what, body, headers } of acceptedSpellings(podPost({ pod_name: 'spelled' }))) {
  test(`POST /pod/spec 200: takes ${what}`, async () => {
    await app.sql`delete from pod where pod_name = 'spelled'`
    const answer = await app.request('POST', '/pod/spec', { body, headers })
    assert.equal(answer.status, 200, answer.text)
    assert.equal((await stored('spelled')).pod_name, 'spelled')
  })
}

const unwritten = podPost({ pod_name: 'never written', pod_namespace: 'text' })
for (const { what, status, says, ...request } of refusedBodies(unwritten, 'pod_namespace')) {
  test(`POST /pod/spec ${status}: ${what}, and nothing is written`, async () => {
    const answer = await app.request('POST', '/pod/spec', request)
    assert.equal(answer.status, status, answer.text)
    assert.match(answer.text, says)
    assert.match(answer.headers.get('content-type')!, /^text\/plain/)
    assert.equal((await app.get('/pod/name/never%20written')).status, 404)
  })
}

/** Invalid values of each field. */
const BAD_FIELDS: Record<string, unknown[]> = {
  pod_name: [undefined, null, 7, ['web'], {}, 'n'.repeat(254)],
  pod_ip: [undefined, null, 10, ['10.0.0.1'], '1'.repeat(129)],
  time_stamp: [undefined, null, 1_714_554_000, ...BAD_TIMES],
  node_name: [undefined, null, 7, 'n'.repeat(254)],
  is_dead: [undefined, null, 0, 'false'],
  pod_namespace: [7, {}, 'n'.repeat(254)],
  pod_obj: ['text', 7, true, [], [{}]],
  pod_identity: [7, 'n'.repeat(254)],
  workload_selector_labels: ['text', [], { app: 7 }, { app: null }, { app: { deep: 'x' } }],
  workload_kind: [7, 'k'.repeat(129)],
  workload_name: [7, 'n'.repeat(254)],
  capture_level: [7],
  host_network: ['true', 1, {}],
  started_at: [7, '2024-05-01T09:00:00Z', '2024-02-30T09:00:00', ''],
}
for (const [field, values] of Object.entries(BAD_FIELDS)) {
  test(`POST /pod/spec 400: a bad ${field} is named, and nothing is written`, async () => {
    const before = await podCount()
    for (const value of values) {
      const answer = await post(podPost({ [field]: value }))
      assert.equal(answer.status, 400, JSON.stringify(value))
      assert.ok(answer.text.startsWith(`Json deserialize error: ${field}`), answer.text)
    }
    assert.equal(await podCount(), before)
  })
}

test('POST /pod/spec 400: a character of four bytes counts as two, so that indexes can hold the longest names', async () => {
  const name = '🐘'.repeat(126)
  await posted({ pod_name: name, pod_namespace: name, node_name: name, workload_name: name })
  for (const field of ['pod_name', 'pod_namespace', 'node_name', 'workload_name']) {
    const answer = await post(podPost({ [field]: '🐘'.repeat(127) }))
    assert.equal(answer.status, 400)
    assert.match(answer.text, new RegExp(`^Json deserialize error: ${field}: .*253 characters`))
  }
})

test('POST /pod/spec 200: fields of the greatest length are accepted, in characters of three bytes', async () => {
  const name = '元'.repeat(253)
  await posted({
    ...{ pod_name: name, pod_namespace: name, node_name: name, pod_identity: name, workload_name: name },
    ...{
      workload_kind: '元'.repeat(128),
      pod_ip: '元'.repeat(128),
      pod_ips: range(63).map((i) => `${'元'.repeat(126)}${i + 10}`),
    },
  })
  assert.deepEqual(await podsWithWrongAddresses(app.sql), [])
})

const nested = (depth: number): unknown => JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`)
test('POST /pod/spec 400: metadata nested deeper than 100 levels, and nothing is written', async () => {
  await posted({ pod_obj: { metadata: nested(100) } })
  for (const pod_obj of [{ metadata: nested(101) }, { spec: { hostNetwork: nested(101) } }]) {
    const body = podPost({ pod_obj })
    const answer = await post(body)
    assert.equal(answer.status, 400)
    assert.match(
      answer.text,
      /^Json deserialize error: pod_obj\.(metadata|spec\.hostNetwork): nested deeper than 100 levels/,
    )
    assert.equal((await app.get(`/pod/name/${body.pod_name}`)).status, 404)
  }
  const bottomless = JSON.stringify(podPost({ pod_obj: { metadata: {} } })).replace(
    '{}',
    `{"a":${'['.repeat(3e5)}${']'.repeat(3e5)}}`,
  )
  const answer = await post(bottomless)
  assert.deepEqual(
    [answer.status, answer.text],
    [400, `Json deserialize error: nested deeper than ${MAX_BODY_DEPTH} levels`],
  )
})

test('POST /pod/spec 400: a number in metadata beyond a double is named, and nothing is written', async () => {
  assert.equal((await posted({ pod_obj: { metadata: { generation: 1e308 } } })).pod_obj.metadata.generation, 1e308)
  for (const number of ['1e309', '-1e400', `${'9'.repeat(400)}`]) {
    const body = podPost({ pod_obj: { metadata: { sizes: [1, { generation: 7 }] } } })
    const answer = await post(JSON.stringify(body).replace(':7}', `:${number}}`))
    assert.equal(answer.status, 400)
    assert.match(answer.text, /^Json deserialize error: pod_obj\.metadata\.sizes\[1\]\.generation: number out of range/)
    assert.equal((await app.get(`/pod/name/${body.pod_name}`)).status, 404)
  }
})

test('POST /pod/spec 200: integers beyond 2^53 in the manifest keep their digits, in the answer and on every read', async () => {
  const numbers = '[9007199254740993,-9223372036854775808,18446744073709551615,9007199254740991,1.5]'
  const kept = `{"metadata":{"uid":"u","sizes":${numbers},"__proto__":12345678901234567890}}`
  const { pod_name, ...rest } = podPost({ node_name: 'exact', pod_obj: 0 })
  const sent = kept.replace('}}', ',"managedFields":[]},"status":{"n":9007199254740993}}')
  const text = (name: string) => JSON.stringify({ pod_name: name, ...rest }).replace('"pod_obj":0', `"pod_obj":${sent}`)
  // One statement writes all three.
  const answers = await Promise.all([post(podPost()), post(text(pod_name)), post(podPost())])
  assert.ok(answers[1]!.text.includes(`"pod_obj":${kept},`), answers[1]!.text)
  for (const path of [`name/${pod_name}`, `ip/${rest.pod_ip}`, 'list/exact', 'info'])
    assert.ok((await app.get(`/pod/${path}`)).text.includes(kept), path)
  assert.ok((await post(text(''))).text.includes(`"pod_obj":${sent},`))
  const before = await version(pod_name)
  await post(text(pod_name))
  assert.deepEqual(await version(pod_name), before)
})

test('POST /pod/spec 200: a long integer where another type is expected is treated like a short one', async () => {
  for (const n of ['7', '9007199254740993']) {
    const { pod_name, ...rest } = podPost({ pod_obj: 0 })
    const text = JSON.stringify({ pod_name, ...rest })
    const manifest = (pod_obj: string) => post(text.replace('"pod_obj":0', `"pod_obj":${pod_obj}`))
    assert.equal(
      (await manifest(`{"metadata":{"uid":${n}},"spec":{"hostNetwork":${n}},"status":{"startTime":${n}}}`)).status,
      200,
    )
    const { host_network, started_at } = await stored(pod_name)
    assert.deepEqual([host_network, started_at, await uid(pod_name)], [false, null, null])
    assert.deepEqual((await manifest(`{"metadata":${n},"spec":${n}}`)).json.pod_obj, {})
    assert.match((await manifest(n)).text, /^Json deserialize error: pod_obj: /)
    const labels = await post(text.replace('"pod_obj":0', `"workload_selector_labels":{"a":${n}}`))
    assert.match(labels.text, /workload_selector_labels\.a: .*expected string, received number/)
  }
})

test('POST /pod/spec 400: text that PostgreSQL cannot store, in any field', async () => {
  const before = await podCount()
  const places = [
    ...['pod_name', 'pod_ip', 'node_name', 'pod_namespace', 'pod_identity', 'workload_kind', 'workload_name'].map(
      (key) => ({
        [key]: '@',
      }),
    ),
    ...[
      { pod_ips: ['10.0.0.1', '@'] },
      { workload_selector_labels: { app: '@' } },
      { workload_selector_labels: { '@': 'app' } },
    ],
    ...[
      { pod_obj: { metadata: { uid: '@' } } },
      { pod_obj: { metadata: { '@': 1 } } },
      { pod_obj: { metadata: { list: [['@']] } } },
      { pod_obj: { spec: { hostNetwork: '@' } } },
      { pod_name: ' ', pod_obj: { status: { message: '@' } } },
    ],
  ]
  for (const fields of places) {
    for (const bad of ['\\u0000', 'a\\ud83d', '\\udE00b']) {
      const answer = await post(JSON.stringify(podPost(fields)).replace('@', bad))
      assert.equal(answer.status, 400, JSON.stringify(fields))
      assert.ok(answer.text.includes(Object.keys(fields).at(-1)!), answer.text)
    }
  }
  const annotations = { 'a/b': 'x\0' }
  assert.equal(
    (await post(podPost({ pod_obj: { metadata: { annotations } } }))).text,
    'Json deserialize error: pod_obj.metadata.annotations.a/b: U+0000 is not allowed',
  )
  assert.equal(await podCount(), before)
  assert.equal((await posted({ pod_namespace: '\u{1f600}' })).pod_namespace, '\u{1f600}')
  const escaped = await post(JSON.stringify(podPost({ pod_namespace: '@' })).replace('@', '\\ud83d\\ude00 \\\\u0000'))
  assert.equal(escaped.json.pod_namespace, '\u{1f600} \\u0000')
})

test('POST /pod/spec 200: text that PostgreSQL cannot store, in the parts of the manifest that are dropped', async () => {
  for (const bad of ['panic: \0 core', '\ud83d']) {
    const { pod_obj } = await posted({
      pod_obj: {
        metadata: { name: 'web', managedFields: [{ [bad]: bad }] },
        spec: {
          hostNetwork: true,
          containers: [{ name: bad, ports: [{ name: bad, containerPort: 80 }], args: [bad] }],
        },
        status: { startTime: bad, containerStatuses: [{ lastState: { terminated: { message: bad } } }] },
        [bad]: {},
      },
    })
    assert.deepEqual(pod_obj, { metadata: { name: 'web' }, spec: { hostNetwork: true } })
  }
})

test('POST /pod/spec 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.post('/pod/spec', podPost()))
  assertUnauthorized(await guarded.post('/pod/spec', 'not read', { token: 'unknown' }))
  assert.deepEqual([...(await guarded.sql`select from pod`)], [])
})

test('POST /pod/spec 403: a token without the scope ingest', async () => {
  for (const token of [TOKENS.BROKER_TOKEN_READ, TOKENS.BROKER_TOKEN_SUPPLYCHAIN])
    assertForbidden(await guarded.post('/pod/spec', podPost(), { token }), 'ingest')
  assert.deepEqual([...(await guarded.sql`select from pod`)], [])
})

test('POST /pod/spec 200: the token of agents and the shared token of older installations are accepted', async () => {
  for (const token of [TOKENS.BROKER_TOKEN_INGEST, TOKENS.BROKER_AUTH_TOKEN])
    assert.equal((await guarded.post('/pod/spec', podPost(), { token })).status, 200)
})

test('POST /pod/spec 503: the row is locked for longer than a statement may take; the next post succeeds', async () => {
  const token = TOKENS.BROKER_TOKEN_INGEST
  const body = podPost()
  await whileRefused(guarded.sql, 'pod', async () =>
    assertDatabaseBusy(await guarded.post('/pod/spec', body, { token })),
  )
  assert.equal((await guarded.get(`/pod/name/${body.pod_name}`, { token })).status, 404)
  assert.equal((await guarded.post('/pod/spec', body, { token })).status, 200)
})

test('POST /pod/spec 200: 24 concurrent posts of one name leave one row, equal to one of the posts', async () => {
  const { pod_name } = podPost()
  const bodies = range(24).map((i) =>
    wholePodPost({ pod_name, pod_ip: `10.6.0.${i}`, pod_ips: [`fd06::${i + 1}`], node_name: `node-${i}` }),
  )
  const statuses = await Promise.all(bodies.map((body, i) => replicas[i % 2]!.post('/pod/spec', body)))
  assert.deepEqual(new Set(statuses), new Set([200]))
  const row = await stored(pod_name)
  const winner = bodies.find((body) => body.node_name === row.node_name)!
  assert.deepEqual(row, {
    ...winner,
    pod_ips: [winner.pod_ip, ...(winner as unknown as { pod_ips: string[] }).pod_ips],
  })
  assert.deepEqual(await podsWithWrongAddresses(app.sql), [])
})

test('POST /pod/spec 200: concurrent posts of one pod with changing addresses, through two processes, leave the right addresses', async () => {
  const { pod_name } = podPost()
  const all = range(6).map((i) => `10.8.0.${i}`)
  for (const round of range(8)) {
    const bodies = range(8).map((i) =>
      podPost({ pod_name, pod_ip: all[(i + round) % 6], pod_ips: all.filter((_, n) => (n * 7 + i + round) % 3 === 0) }),
    )
    assert.deepEqual(
      new Set(await Promise.all(bodies.map((body, i) => replicas[i % 2]!.post('/pod/spec', body)))),
      new Set([200]),
    )
    assert.deepEqual(await podsWithWrongAddresses(app.sql), [])
  }
})

test('POST /pod/spec 200: a post that waits for another post of its pod replaces the addresses that the other one stored', async () => {
  const { pod_name } = podPost()
  const body = podPost({ pod_name, pod_ip: '10.8.1.1' })
  await posted(body)
  let second: Promise<Answer> | undefined
  await app.sql.begin(async (other) => {
    const moved = { ...body, pod_ip: '10.8.1.2', pod_ips: ['10.8.1.2'] }
    await other`select upsert_pods(${JSON.stringify([moved])}::text::json)`
    // The statement that compares addresses cannot see the open transaction: to it this post changes none.
    second = post({ ...body, time_stamp: '2024-05-01T10:00:01' })
    await until('it waits for the row', () => isWaiting(app.sql))
  })
  assert.equal((await second!).status, 200)
  assert.deepEqual((await stored(pod_name)).pod_ips, ['10.8.1.1'])
  assert.deepEqual(await podsWithWrongAddresses(app.sql), [])
})

test('POST /pod/spec 200: two processes that write the same pods in opposite orders both succeed', async () => {
  const pods = range(60).map(() => podPost())
  const orders = [pods, [...pods].reverse()]
  for (const time_stamp of ['2024-05-01T10:00:01', '2024-05-01T10:00:02']) {
    const posts = orders.flatMap((order, i) =>
      order.map((pod) => replicas[i]!.post('/pod/spec', { ...pod, pod_ip: `10.${20 + i}.0.1`, time_stamp })),
    )
    assert.deepEqual(new Set(await Promise.all(posts)), new Set([200]))
  }
  assert.deepEqual(await podsWithWrongAddresses(app.sql), [])
})

test('POST /pod/spec 200: a refused post does not fail the posts sent with it', async () => {
  const pods = range(30).map(() => podPost())
  const posts = pods.flatMap((pod) => [post(pod), post({ ...podPost(), pod_ip: 7 })])
  const answers = await Promise.all(posts)
  assert.deepEqual(new Set(answers.filter((_, i) => i % 2 === 0).map((answer) => answer.status)), new Set([200]))
  assert.deepEqual(new Set(answers.filter((_, i) => i % 2 === 1).map((answer) => answer.status)), new Set([400]))
  for (const pod of pods) assert.equal((await stored(pod.pod_name)).pod_name, pod.pod_name)
})
