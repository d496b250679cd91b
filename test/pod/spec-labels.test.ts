/** The labels and the node of each pod over time, as posts of `/pod/spec` record them (docs/contract.md#flow-queries). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labelsHash } from '../../lib/pods/index.ts'
import { startApp } from '../support/app.ts'
import { podPost } from '../support/records.ts'

const app = await startApp()
const { sql } = app

const START = '2024-05-01T09:00:00'
const at = (minute: number) => `2024-05-01T10:${String(minute).padStart(2, '0')}:00`

/** A pod with its own name; `post` sends it at a minute. */
function labelled(own: Record<string, unknown> = {}) {
  const base = podPost({ pod_namespace: 'shop', started_at: START, ...own })
  const { pod_name } = base
  const manifest = (labels: unknown, uid = 'uid-1') => ({ metadata: { uid, labels } })
  const post = async (minute: number, fields: Record<string, unknown>) => {
    const answer = await app.post('/pod/spec', { ...base, time_stamp: at(minute), ...fields })
    assert.equal(answer.status, 200, answer.text)
  }
  return { pod_name, manifest, post, rows: () => rows(pod_name) }
}

async function rows(pod_name: string) {
  const all = await sql<{ ns: string; since: string; labels: object; node: string }[]>`
    select pod_namespace as ns, to_char(since, 'YYYY-MM-DD"T"HH24:MI:SS') as since, labels, node_name as node
    from pod_labels where pod_name = ${pod_name} order by pod_namespace, since`
  return all.map(({ since, labels, node }) => [since, labels, node])
}
const versions = async (pod_name: string) =>
  (await sql`select xmin::text, ctid::text from pod_labels where pod_name = ${pod_name} order by since`).map((row) => ({
    ...row,
  }))

test('the first post records the labels and the node since the start of the pod, and a change since its post', async () => {
  const pod = labelled()
  await pod.post(0, { pod_obj: pod.manifest({ app: 'web', tier: 'a' }) })
  assert.deepEqual(await pod.rows(), [[START, { app: 'web', tier: 'a' }, 'node-1']])
  await pod.post(5, { pod_obj: pod.manifest({ app: 'web', tier: 'b' }) })
  await pod.post(7, { pod_obj: pod.manifest({}) })
  assert.deepEqual(await pod.rows(), [
    [START, { app: 'web', tier: 'a' }, 'node-1'],
    [at(5), { app: 'web', tier: 'b' }, 'node-1'],
    [at(7), {}, 'node-1'],
  ])
})

test('without a start, or with one after the post, labels hold since the post', async () => {
  for (const started_at of [null, at(30)]) {
    const pod = labelled({ started_at })
    await pod.post(3, { pod_obj: pod.manifest({ app: 'web' }) })
    assert.deepEqual(await pod.rows(), [[at(3), { app: 'web' }, 'node-1']])
  }
})

test('a post that changes something else, or only the order of the labels, writes no row', async () => {
  const pod = labelled()
  await pod.post(0, { pod_obj: pod.manifest({ app: 'web', tier: 'a' }) })
  const before = await versions(pod.pod_name)
  await pod.post(0, { pod_obj: pod.manifest({ app: 'web', tier: 'a' }) })
  await pod.post(1, { pod_obj: pod.manifest({ app: 'web', tier: 'a' }) })
  await pod.post(2, { pod_obj: pod.manifest({ tier: 'a', app: 'web' }), pod_ip: '10.8.0.1', is_dead: true })
  await pod.post(3, {
    pod_obj: { metadata: { uid: 'uid-1', labels: { app: 'web', tier: 'a' }, annotations: { a: 'b' } } },
  })
  await pod.post(20, {})
  assert.deepEqual(await versions(pod.pod_name), before)
  assert.equal(before.length, 1)
})

test('another uid has its own labels since its own start, also if they are the same', async () => {
  const pod = labelled()
  await pod.post(0, { pod_obj: pod.manifest({ app: 'web' }) })
  await pod.post(5, { pod_obj: pod.manifest({ app: 'api' }, 'uid-2'), started_at: at(4) })
  await pod.post(9, { pod_obj: pod.manifest({ app: 'api' }, 'uid-3'), started_at: at(8) })
  assert.deepEqual(await pod.rows(), [
    [START, { app: 'web' }, 'node-1'],
    [at(4), { app: 'api' }, 'node-1'],
    [at(8), { app: 'api' }, 'node-1'],
  ])
})

test('two pods of one name in two namespaces keep their histories, whoever posts last', async () => {
  const pod = labelled()
  const one = { pod_obj: pod.manifest({ app: 'one' }, 'uid-1') }
  const two = { pod_obj: pod.manifest({ app: 'two' }, 'uid-2'), pod_namespace: 'till' }
  await pod.post(0, one)
  await pod.post(0, two)
  await pod.post(1, { pod_obj: pod.manifest({ app: 'uno' }, 'uid-1') })
  for (const minute of [2, 3, 4]) {
    await pod.post(minute, { pod_obj: pod.manifest({ app: 'uno' }, 'uid-1') })
    await pod.post(minute, two)
  }
  assert.deepEqual(await pod.rows(), [
    [START, { app: 'one' }, 'node-1'],
    [at(1), { app: 'uno' }, 'node-1'],
    [START, { app: 'two' }, 'node-1'],
  ])
})

test('a change of the node writes a row, without a manifest with the labels that the pod has', async () => {
  const pod = labelled()
  await pod.post(0, { pod_obj: pod.manifest({ app: 'web' }) })
  await pod.post(1, { pod_obj: pod.manifest({ app: 'web' }), node_name: 'node-2' })
  await pod.post(2, { node_name: 'node-3' })
  await pod.post(3, { node_name: 'node-3' })
  assert.deepEqual(await pod.rows(), [
    [START, { app: 'web' }, 'node-1'],
    [at(1), { app: 'web' }, 'node-2'],
    [at(2), { app: 'web' }, 'node-3'],
  ])
})

test('a pod without a manifest has no row; its first manifest counts from its start', async () => {
  const pod = labelled()
  await pod.post(0, {})
  await pod.post(1, { node_name: 'node-2' })
  assert.deepEqual(await pod.rows(), [])
  await pod.post(2, { pod_obj: pod.manifest({ app: 'web' }), node_name: 'node-2' })
  assert.deepEqual(await pod.rows(), [[START, { app: 'web' }, 'node-2']])
})

test('a pod that was stored before labels were recorded gets them since its start, by the next manifest', async () => {
  const pod = labelled()
  await pod.post(0, { pod_obj: pod.manifest({ app: 'web' }) })
  await sql`delete from pod_labels where pod_name = ${pod.pod_name}`
  await sql`update pod set labels_hash = null where pod_name = ${pod.pod_name}`
  await pod.post(1, { node_name: 'node-2' })
  assert.deepEqual(await pod.rows(), [])
  await pod.post(2, { pod_obj: pod.manifest({ app: 'web' }) })
  assert.deepEqual(await pod.rows(), [[START, { app: 'web' }, 'node-1']])
})

test('a pod without a namespace has no row until the namespace is posted', async () => {
  for (const pod_namespace of [null, '', ' \u00a0']) {
    const pod = labelled({ pod_namespace })
    await pod.post(0, { pod_obj: pod.manifest({ app: 'web' }) })
    assert.deepEqual(await pod.rows(), [])
    await pod.post(1, { pod_obj: pod.manifest({ app: 'web' }), pod_namespace: 'shop' })
    await pod.post(2, { pod_obj: pod.manifest({ app: 'web' }) })
    assert.deepEqual(await pod.rows(), [[START, { app: 'web' }, 'node-1']])
  }
})

test('a post older than the stored one writes no row, and the post after it records what it has', async () => {
  const pod = labelled()
  const web = { pod_obj: pod.manifest({ app: 'web' }) }
  const api = { pod_obj: pod.manifest({ app: 'api' }), node_name: 'node-2' }
  await pod.post(10, web)
  await pod.post(5, api)
  await pod.post(4, web)
  assert.deepEqual(await pod.rows(), [[START, { app: 'web' }, 'node-1']])
  // The record has the older post's time by now, and its labels are recorded though they are the record's.
  await pod.post(11, api)
  await pod.post(12, api)
  assert.deepEqual(await pod.rows(), [
    [START, { app: 'web' }, 'node-1'],
    [at(11), { app: 'api' }, 'node-2'],
  ])
  await pod.post(7, web)
  await pod.post(13, api)
  assert.equal((await pod.rows()).length, 2)
})

test('an older post that says the same leaves the record of labels as it is', async () => {
  const pod = labelled()
  await pod.post(10, { pod_obj: pod.manifest({ app: 'web' }) })
  const before = await versions(pod.pod_name)
  await pod.post(5, { pod_obj: pod.manifest({ app: 'web' }) })
  await pod.post(11, { pod_obj: pod.manifest({ app: 'web' }) })
  assert.deepEqual(await versions(pod.pod_name), before)
})

test('two changes of one time leave the later one', async () => {
  const pod = labelled()
  await pod.post(0, { pod_obj: pod.manifest({ app: 'web' }) })
  await pod.post(1, { pod_obj: pod.manifest({ app: 'api' }) })
  await pod.post(1, { pod_obj: pod.manifest({ app: 'job' }) })
  assert.deepEqual(await pod.rows(), [
    [START, { app: 'web' }, 'node-1'],
    [at(1), { app: 'job' }, 'node-1'],
  ])
})

test('a record that retention deleted does not change the labels that its pod had, when it is posted again', async () => {
  const pod = labelled()
  await pod.post(0, { pod_obj: pod.manifest({ app: 'web' }) })
  await pod.post(1, { pod_obj: pod.manifest({ app: 'api' }) })
  await sql`delete from pod where pod_name = ${pod.pod_name}`
  await pod.post(2, { pod_obj: pod.manifest({ app: 'api' }) })
  assert.deepEqual(await pod.rows(), [
    [START, { app: 'web' }, 'node-1'],
    [at(1), { app: 'api' }, 'node-1'],
  ])
})

test('a post of a replica of the release before, without a hash, keeps the history', async () => {
  const pod = labelled()
  await pod.post(0, { pod_obj: pod.manifest({ app: 'web' }) })
  const [row] = await sql<{ doc: string }[]>`
    select json_agg(p)::text as doc
    from (select pod_name, pod_ip, pod_ips, pod_namespace, node_name, is_dead, pod_uid, started_at,
                 ${JSON.stringify(pod.manifest({ app: 'api' }))}::text::json as pod_obj,
                 ${at(1)}::text as time_stamp
          from pod where pod_name = ${pod.pod_name}) p`
  await sql`select upsert_pods(${row!.doc}::text::json)`
  assert.deepEqual(await pod.rows(), [[START, { app: 'web' }, 'node-1']])
  await pod.post(2, { pod_obj: pod.manifest({ app: 'api' }) })
  assert.deepEqual(await pod.rows(), [
    [START, { app: 'web' }, 'node-1'],
    [at(2), { app: 'api' }, 'node-1'],
  ])
})

test('members that are no strings are left out, and labels that are no object are none', async () => {
  const pod = labelled()
  const text = (minute: number, labels: string) =>
    JSON.stringify({
      ...podPost({ pod_namespace: 'shop', started_at: START }),
      pod_name: pod.pod_name,
      time_stamp: at(minute),
      pod_obj: { metadata: { uid: 'u', labels: 'LABELS' } },
    }).replace('"LABELS"', labels)
  const post = async (minute: number, labels: string) =>
    assert.equal((await app.post('/pod/spec', text(minute, labels))).status, 200)
  await post(
    0,
    '{"n":1,"big":12345678901234567890,"deep":{"a":["b"]},"no":null,"yes":true,"app":"web","":"","__proto__":"p"}',
  )
  const [row] = await sql<{ labels: string }[]>`
    select labels::text from pod_labels where pod_name = ${pod.pod_name}`
  assert.equal(row!.labels, '{"": "", "app": "web", "__proto__": "p"}')
  await post(1, '{"n":2,"big":12345678901234567891,"app":"web","":"","__proto__":"p"}')
  assert.equal((await pod.rows()).length, 1)
  for (const [minute, odd] of ['[["app","web"]]', '"app"', 'null', '7', '12345678901234567890'].entries())
    await post(2 + minute, odd)
  assert.deepEqual((await pod.rows()).slice(1), [[at(2), {}, 'node-1']])
})

test('labels with U+0000 or half a surrogate pair are refused with the post', async () => {
  const pod = labelled()
  for (const labels of [{ app: 'a\0' }, { 'a\0': 'a' }, { app: '\ud800' }]) {
    const answer = await app.post('/pod/spec', { ...podPost(), pod_name: pod.pod_name, pod_obj: pod.manifest(labels) })
    assert.equal(answer.status, 400)
  }
  assert.deepEqual(await pod.rows(), [])
})

test('500 long labels are recorded and found by the index', async () => {
  const pod = labelled()
  const labels = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`example.com/key-${i}`, `${i}`.repeat(60)]))
  await pod.post(0, { pod_obj: pod.manifest(labels) })
  assert.deepEqual(await pod.rows(), [[START, labels, 'node-1']])
  const wanted = JSON.stringify({ 'example.com/key-7': '7'.repeat(60) })
  const found = await sql`select pod_name from pod_labels where labels @> ${wanted}::text::jsonb`
  assert.deepEqual(
    found.map(({ pod_name }) => pod_name),
    [pod.pod_name],
  )
})

test('posts of many pods at once are each recorded once', async () => {
  const pods = Array.from({ length: 100 }, () => labelled())
  await Promise.all(pods.map((pod, i) => pod.post(0, { pod_obj: pod.manifest({ app: `web-${i}` }) })))
  await Promise.all(pods.map((pod, i) => pod.post(1, i % 2 ? { node_name: 'node-2' } : {})))
  for (const [i, pod] of pods.entries()) {
    const first = [START, { app: `web-${i}` }, 'node-1']
    assert.deepEqual(await pod.rows(), i % 2 ? [first, [at(1), { app: `web-${i}` }, 'node-2']] : [first])
  }
})

test('the hash depends on the strings among the labels only, whatever their order', () => {
  const hashOf = (labels: unknown) => labelsHash({ metadata: { labels } })
  assert.match(hashOf({ a: 'b' })!, /^[0-9a-f]{32}$/)
  assert.equal(hashOf({ a: '1', b: '2', c: 3 }), hashOf({ b: '2', a: '1' }))
  assert.equal(hashOf({}), hashOf(undefined))
  assert.equal(hashOf({}), labelsHash({}))
  assert.equal(labelsHash(null), null)
  const different = [{}, { a: 'b' }, { a: 'c' }, { b: 'a' }, { a: '","b' }, { a: '', b: '' }, { a: 'b', b: 'a' }]
  assert.equal(new Set(different.map(hashOf)).size, different.length)
})
