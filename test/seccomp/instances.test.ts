/**
 * Syscalls belong to the pod that sent them, also when several pods have its name, one after another or in two
 * namespaces at once.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startApp } from '../support/app.ts'
import { container, newDigest } from '../support/images.ts'
import { podPost } from '../support/records.ts'

const app = await startApp()
const { sql } = app

const START = Date.now() - 3_600_000
/** A time so many minutes after an hour ago, by the clock of the agents. */
const at = (minutes: number) => new Date(START + minutes * 60_000).toISOString().slice(0, -1)

let made = 0
const unique = (prefix: string) => `${prefix}-${++made}`

interface Of {
  namespace: string
  kind?: string
  name?: string
}
async function run(
  pod_name: string,
  of: Of,
  level: string | undefined,
  minute: number,
  fields: Record<string, unknown> = {},
) {
  const { namespace: pod_namespace, kind = 'StatefulSet', name = 'web' } = of
  const whole = {
    pod_name,
    pod_namespace,
    workload_kind: kind,
    workload_name: name,
    capture_level: level,
    time_stamp: at(minute),
    ...fields,
  }
  assert.equal((await app.post('/pod/spec', podPost(whole))).status, 200)
}
const uid = (text: string) => ({ pod_obj: { metadata: { uid: text } } })
async function send(pod_name: string, minute: number, syscalls: string[], pod_namespace = '') {
  const entry = { pod_name, pod_namespace, syscalls, arch: 'x86_64', time_stamp: at(minute) }
  assert.equal((await app.post('/pod/syscalls', [entry])).status, 200)
}
const pathOf = ({ namespace, kind = 'StatefulSet', name = 'web' }: Of) =>
  `/seccomp/profiles/${namespace}/${kind}/${name}`
async function profile(of: Of) {
  const { status, json } = await app.get(pathOf(of))
  return status === 200 ? json : null
}
const namesOf = async (of: Of) => (await profile(of))?.profile.syscalls[0]?.names.join() ?? null
async function captureOf(of: Of) {
  const { capture, captureComplete } = await profile(of)
  assert.equal(capture.complete, captureComplete)
  return [
    capture.level,
    capture.complete,
    ...capture.pods.map(({ name, level }: { name: string; level: string }) => `${name} ${level}`),
  ]
}
async function counted(reason: string): Promise<number> {
  const { values } = await app.deps.metrics.unattributedSyscalls.get()
  return values.find(({ labels }) => labels.reason === reason)?.value ?? 0
}

test('syscalls of a pod are not credited to a pod of the same name in another namespace', async () => {
  const name = unique('web')
  const [dev, prod] = [{ namespace: unique('dev') }, { namespace: unique('prod') }]
  await run(name, dev, 'full', 0)
  await run(name, prod, 'full', 0)
  await send(name, 1, ['ptrace', 'bpf'], dev.namespace)
  await send(name, 1, ['read', 'write'], prod.namespace)
  await run(name, dev, 'full', 2)
  await send(name, 3, ['read'], prod.namespace)
  await send(name, 3, ['ptrace', 'mount'], dev.namespace)
  assert.equal(await namesOf(prod), 'read,write')
  assert.equal(await namesOf(dev), 'bpf,mount,ptrace')
  assert.deepEqual(await captureOf(prod), ['full', true, `${name} full`])
  const [record] = (await app.get(`/pod/syscalls/${name}`)).json
  assert.deepEqual(
    record.syscalls.split(',').sort(),
    ['bpf', 'mount', 'ptrace', 'read', 'write'],
    'the record of the name has all of them',
  )
})

test('a pod of another namespace and workload is not a moved pod, also if agents send no uids', async () => {
  const name = unique('web')
  const [dev, prod] = [
    { namespace: unique('dev'), name: 'a' },
    { namespace: unique('prod'), name: 'b' },
  ]
  for (const of of [dev, prod]) {
    await run(name, of, 'full', 0)
    await send(name, 1, ['read'], of.namespace)
    assert.deepEqual(await captureOf(of), ['full', true, `${name} full`])
  }
})

test('a post without a uid belongs to the pod that was posted recently, and to another one if none was', async () => {
  const name = unique('web')
  const of = { namespace: unique('ns') }
  await run(name, of, 'low', 0, uid('a'))
  await send(name, 1, ['read'])
  await run(name, of, 'full', 2)
  await send(name, 3, ['read'])
  assert.deepEqual(await captureOf(of), ['full', true, `${name} full`], 'the same pod')
  await sql`update pod_instance set last_seen = last_seen - interval '1 hour' where pod_name = ${name}`
  await run(name, of, 'low', 40)
  await send(name, 41, ['read'])
  assert.deepEqual(await captureOf(of), ['low', false, `${name} low`, `${name} full`], 'another pod')
})

test('a post with another namespace than the row waits until a pod of that namespace is posted', async () => {
  const name = unique('web')
  const [here, there] = [{ namespace: unique('here') }, { namespace: unique('there') }]
  await run(name, here, 'full', 0)
  await send(name, 1, ['read'])
  const before = await counted('unknown_pod')
  await send(name, 1, ['ptrace'], there.namespace)
  assert.equal((await counted('unknown_pod')) - before, 1)
  assert.equal(await namesOf(here), 'read')
  assert.equal(await namesOf(there), null)
  assert.deepEqual(await captureOf(here), ['full', true, `${name} full`])
  await run(name, there, 'low', 2)
  assert.equal(await namesOf(there), 'ptrace')
  assert.deepEqual(await captureOf(there), ['low', false, `${name} low`])
  assert.equal(await namesOf(here), 'read')
})

test('a post without a namespace is credited if only one namespace posted the name recently', async () => {
  const name = unique('web')
  const of = { namespace: unique('ns') }
  await run(name, of, 'full', 50)
  await send(name, 51, ['read'])
  assert.equal(await namesOf(of), 'read')
})

test('an ambiguous post without a namespace is credited to no pod and counted, and neither workload is complete', async () => {
  const name = unique('web')
  const [dev, prod] = [{ namespace: unique('dev') }, { namespace: unique('prod') }]
  for (const of of [dev, prod]) {
    await run(name, of, 'full', 0)
    await send(name, 1, ['read'], of.namespace)
    assert.deepEqual(await captureOf(of), ['full', true, `${name} full`])
  }
  const before = await counted('ambiguous')
  await send(name, 2, ['ptrace'])
  assert.equal((await counted('ambiguous')) - before, 1)
  for (const of of [dev, prod]) {
    assert.equal(await namesOf(of), 'read')
    assert.deepEqual(await captureOf(of), ['unknown', false, `${name} unknown`])
  }
  const rows = await sql`select syscalls, is_ambiguous from unattributed_syscalls where pod_name = ${name}`
  assert.deepEqual([...rows], [{ syscalls: 'ptrace', is_ambiguous: true }])
  await send(name, 3, ['write'], prod.namespace)
  assert.deepEqual(await captureOf(prod), ['unknown', false, `${name} unknown`], 'what may be missing is still missing')
  assert.match((await app.get(`${pathOf(prod)}/export?defaultAction=SCMP_ACT_ERRNO`)).text, /^refused/)
  const [entry] = (await app.get('/seccomp/profiles')).json.filter(({ namespace }: Of) => namespace === prod.namespace)
  assert.deepEqual([entry.capture.level, entry.captureComplete], ['unknown', false], 'the list says the same')
})

test('a pod that was not posted for minutes is not credited with later posts under its name', async () => {
  const name = unique('web')
  const [old, now] = [{ namespace: unique('old') }, { namespace: unique('now') }]
  await run(name, old, 'full', 0)
  await sql`update pod_instance set last_seen = last_seen - interval '1 hour' where pod_name = ${name}`
  await run(name, now, 'full', 40)
  await send(name, 41, ['read'])
  assert.equal(await namesOf(now), 'read')
  assert.equal(await namesOf(old), null)
})

test('syscalls posted before their pod wait, and the workload of another pod of the name is incomplete meanwhile', async () => {
  const name = unique('web')
  const of = { namespace: unique('ns') }
  await run(name, of, 'full', 0, uid('a'))
  await send(name, 1, ['read'])
  await sql`update pod_instance set last_seen = last_seen - interval '1 hour' where pod_name = ${name}`
  await send(name, 40, ['write'])
  assert.equal(await namesOf(of), 'read')
  assert.deepEqual(await captureOf(of), ['unknown', false, `${name} unknown`])
  await run(name, of, 'full', 41, uid('a'))
  assert.equal(await namesOf(of), 'read,write')
  assert.deepEqual(await captureOf(of), ['full', true, `${name} full`])
})

test('a pod whose waiting syscalls found no room is not complete once it is posted', async () => {
  const long = Array.from({ length: 250 }, (_, i) => `z${String(i).padStart(62, '0')}`)
  const more = ['openat', 'execve', ...Array.from({ length: 20 }, (_, i) => `zz_${i}_${'x'.repeat(30)}`)]
  for (const [posts, level] of [
    [[long], 'full'],
    [[long, more], 'unknown'],
    [[[...long, ...more]], 'unknown'],
    [[long, more, ['read']], 'unknown'],
  ] as const) {
    const name = unique('web')
    const of = { namespace: unique('ns') }
    for (const names of posts) await send(name, 1, [...names])
    await run(name, of, 'full', 2, { workload_name: undefined })
    await run(name, of, 'full', 3)
    assert.deepEqual(await captureOf(of), [level, level === 'full', `${name} ${level}`])
  }
})

test('a late level is ignored, and the same level is still accepted when it is posted again', async () => {
  for (const [first, late] of [
    ['low', 'full'],
    ['full', 'low'],
  ] as const) {
    const name = unique('late')
    const of = { namespace: unique('ns') }
    await run(name, of, first, 1)
    await run(name, of, late, 0)
    await send(name, 1, ['read'])
    assert.deepEqual(await captureOf(of), [first, first === 'full', `${name} ${first}`])
    const [row] = await sql`select last_post::text from pod_instance where pod_name = ${name}`
    assert.equal(
      row!.last_post.slice(0, 16),
      at(1).slice(0, 16).replace('T', ' '),
      'the last post is the newest, not the one that came last',
    )
    await run(name, of, late, 2)
    await send(name, 3, ['read'])
    assert.deepEqual(await captureOf(of), [late, late === 'full', `${name} ${late}`])
  }
})

test('a pod that reuses a name does not complete what the previous pod sent', async () => {
  const name = unique('web')
  const of = { namespace: unique('ns') }
  await run(name, of, 'low', 0, uid('a'))
  await send(name, 1, ['read'])
  await run(name, of, 'full', 2, uid('b'))
  assert.deepEqual(await captureOf(of), ['low', false, `${name} low`])
  await send(name, 3, ['write'])
  assert.deepEqual(await captureOf(of), ['low', false, `${name} low`, `${name} full`])
  assert.equal(await namesOf(of), 'read,write')
})

test('a pod that sent something before it was posted, under the name of another one, counts at its own level', async () => {
  for (const [sent, level, captured] of [
    [{ minute: 21, names: ['write'] }, 'low', ['low', false, 'low', 'full']],
    [{ minute: 21, names: ['read'] }, 'low', ['low', false, 'low', 'full']],
    [{ minute: 21, names: ['write'] }, undefined, ['unknown', false, 'unknown', 'full']],
    [{ minute: 21, names: ['write'] }, 'full', ['full', true, 'full']],
    [{ minute: 19, names: ['write'] }, 'low', ['full', true, 'full']],
  ] as const) {
    const name = unique('web')
    const of = { namespace: unique('ns') }
    await run(name, of, 'full', 1, { ...uid('a'), started_at: at(0) })
    await send(name, 2, ['read'])
    await send(name, sent.minute, [...sent.names])
    await run(name, of, level, 22, { ...uid('b'), started_at: at(20) })
    const [all, isComplete, ...levels] = captured
    assert.deepEqual(await captureOf(of), [all, isComplete, ...levels.map((one) => `${name} ${one}`)])
  }
})

test('a pod of another workload that sent something before it was posted is not complete, nor is one that did before a reset', async () => {
  for (const workload of ['web', 'other']) {
    const name = unique('web')
    const of = { namespace: unique('ns') }
    const next = { ...of, name: workload }
    await run(name, of, 'full', 1, { ...uid('a'), started_at: at(0) })
    await send(name, 2, ['read'])
    await send(name, 21, ['execve'])
    if (workload === 'web') assert.equal((await app.request('POST', `${pathOf(of)}/reset`)).status, 200)
    await run(name, next, 'full', 62, { ...uid('b'), started_at: at(20) })
    await send(name, 63, ['write'])
    assert.equal(await namesOf(next), 'write')
    assert.deepEqual(await captureOf(next), ['unknown', false, `${name} unknown`])
  }
})

test('the last syscalls of a pod before a reset do not make the set complete for the pod that takes its name', async () => {
  const name = unique('web')
  const of = { namespace: unique('ns') }
  await run(name, of, 'full', 1, { ...uid('a'), started_at: at(0) })
  await send(name, 2, ['read'])
  assert.equal((await app.request('POST', `${pathOf(of)}/reset`)).status, 200)
  await send(name, 62, ['exit_group'])
  await run(name, of, 'full', 63, { ...uid('b'), started_at: at(61) })
  assert.deepEqual(await captureOf(of), ['unknown', false])
  await send(name, 64, ['read'])
  assert.deepEqual(await captureOf(of), ['full', true, `${name} full`])
})

test('pods without uids are distinguished by their start', async () => {
  const name = unique('web')
  const of = { namespace: unique('ns') }
  await run(name, of, 'low', 1, { started_at: at(0) })
  await send(name, 2, ['read'])
  await run(name, of, 'full', 4, { started_at: at(3) })
  assert.deepEqual(await captureOf(of), ['low', false, `${name} low`])
  await send(name, 5, ['write'])
  assert.deepEqual(await captureOf(of), ['low', false, `${name} low`, `${name} full`])
})

test('a pod with a raised level counts at that level once it has sent syscalls, not before', async () => {
  const name = unique('web')
  const of = { namespace: unique('ns') }
  await run(name, of, 'low', 0)
  await send(name, 1, ['read'])
  await run(name, of, 'full', 3)
  assert.deepEqual(await captureOf(of), ['low', false, `${name} low`])
  await send(name, 1, ['read'])
  assert.deepEqual(await captureOf(of), ['low', false, `${name} low`], 'a retry of what was sent at low')
  await send(name, 2, ['write'])
  assert.deepEqual(await captureOf(of), ['low', false, `${name} low`], 'sent at low, and late')
  await send(name, 4, [])
  assert.deepEqual(await captureOf(of), ['low', false, `${name} low`], 'nothing was sent')
  await send(name, 5, ['read'])
  assert.deepEqual(await captureOf(of), ['full', true, `${name} full`])
  await run(name, of, 'medium', 6)
  assert.deepEqual(await captureOf(of), ['full', true, `${name} full`])
  await send(name, 7, ['read'])
  assert.deepEqual(await captureOf(of), ['medium', false, `${name} medium`])
  await send(name, 4, ['read'])
  assert.deepEqual(await captureOf(of), ['medium', false, `${name} medium`])
})

test('late syscalls of a pod whose name is reused are its own', async () => {
  const name = unique('web')
  const [a, b] = [
    { namespace: unique('ns'), name: 'a' },
    { namespace: '', name: 'b' },
  ]
  b.namespace = a.namespace
  await run(name, a, 'low', 0, uid('a'))
  await run(name, b, 'full', 20, uid('b'))
  await send(name, 10, ['read'])
  await send(name, 21, ['write'])
  assert.equal(await namesOf(a), 'read')
  assert.equal(await namesOf(b), 'write')
  assert.deepEqual(await captureOf(a), ['low', false, `${name} low`])
  assert.deepEqual(await captureOf(b), ['full', true, `${name} full`])
})

test('entries of one pod with two namespaces or times, in one body or in posts that are stored together, belong to their own pods', async () => {
  const name = unique('web')
  const [dev, prod] = [{ namespace: unique('dev') }, { namespace: unique('prod') }]
  await run(name, dev, 'full', 0)
  await run(name, prod, 'full', 0)
  const entry = (pod_namespace: string, syscalls: string[]) => ({
    ...{ pod_name: name, pod_namespace, syscalls, arch: 'x86_64', time_stamp: at(1) },
  })
  await app.post('/pod/syscalls', [
    entry(dev.namespace, ['ptrace']),
    entry(prod.namespace, ['read']),
    entry(dev.namespace, ['bpf']),
  ])
  await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      app.post('/pod/syscalls', [entry((i % 2 ? dev : prod).namespace, [`s${i % 4}`])]),
    ),
  )
  assert.equal(await namesOf(dev), 'bpf,ptrace,s1,s3')
  assert.equal(await namesOf(prod), 'read,s0,s2')
})

test('a pod that gets its workload later adds its earlier syscalls with that post', async () => {
  const name = unique('web')
  const of = { namespace: unique('ns') }
  await run(name, of, 'full', 0, { workload_kind: null, workload_name: null })
  await send(name, 1, ['read'])
  assert.equal(await namesOf(of), null)
  await run(name, of, 'full', 2)
  assert.equal(await namesOf(of), 'read')
  assert.deepEqual(await captureOf(of), ['full', true, `${name} full`])
})

test('a pod that moves to another workload adds only later syscalls, and does not make the new set complete', async () => {
  const name = unique('web')
  const first = { namespace: unique('ns'), kind: 'ReplicaSet', name: 'web-abc' }
  const second = { ...first, kind: 'Deployment', name: 'web' }
  await run(name, first, 'full', 0, uid('a'))
  await send(name, 1, ['read'])
  await run(name, second, 'full', 2, uid('a'))
  await send(name, 3, ['write'])
  assert.deepEqual([await namesOf(first), await namesOf(second)], ['read', 'write'])
  assert.deepEqual(await captureOf(second), ['unknown', false])
  assert.deepEqual(await captureOf(first), ['full', true, `${name} full`])
})

test('a clock that is ahead credits nothing to a later pod, and takes nothing from later pods', async () => {
  const name = unique('web')
  const of = { namespace: unique('ns') }
  await run(name, of, 'low', 100 * 24 * 60, uid('a'))
  await send(name, 100 * 24 * 60, ['read'])
  const [row] =
    await sql`select first_post < now() at time zone 'utc' + interval '6 minutes' as is_bounded from pod_instance where pod_name = ${name}`
  assert.equal(row!.is_bounded, true)
  assert.deepEqual(await captureOf(of), ['low', false, `${name} low`])
})

test('the images of a pod are those of the last post that named them', async () => {
  const name = unique('web')
  const digests = async () =>
    (await sql`select image_digests::text as digests from pod_instance where pod_name = ${name}`)[0]!.digests
  const of = { namespace: unique('ns') }
  const digest = newDigest()
  await run(name, of, 'low', 0, { ...uid('a'), containers: [container('app', digest)] })
  await run(name, of, 'full', 1, uid('a'))
  assert.equal(await digests(), `{${digest}}`)
  const next = newDigest()
  await run(name, of, 'full', 7, { ...uid('a'), containers: [container('app', next)] })
  assert.equal(await digests(), `{${next}}`)
})

test('a syscall sent right after an image change has the new image', async () => {
  const name = unique('web')
  const of = { namespace: unique('ns') }
  const [first, second] = [newDigest(), newDigest()]
  for (const fields of [uid('a'), {}]) {
    const pod = `${name}-${Object.keys(fields).length}`
    await run(pod, of, 'full', 0, { ...fields, containers: [container('app', first)] })
    await run(pod, of, 'full', 1, { ...fields, containers: [container('app', second)] })
    // Late: the pod ran this image before.
    await run(pod, of, 'full', 0.5, { ...fields, containers: [container('app', first)] })
    await send(pod, 2, [`of_${Object.keys(fields).length}`], of.namespace)
  }
  const { detail } = (await app.get(`${pathOf(of)}?detail=true`)).json
  assert.deepEqual(
    detail.syscalls.map((one: { name: string; imageDigests: string[] }) => [one.name, one.imageDigests]),
    [
      ['of_0', [second]],
      ['of_1', [second]],
    ],
  )
})

test('a repeated pod post writes no instance, and a post without a level does not change it', async () => {
  const name = unique('web')
  const of = { namespace: unique('ns') }
  const version = async () =>
    (await sql`select xmin::text, xmax::text, ctid::text from pod_instance where pod_name = ${name}`)[0]
  await run(name, of, 'full', 0, uid('a'))
  const before = await version()
  for (const minute of [1, 2, 3, 4]) await run(name, of, undefined, minute, minute % 2 ? uid('a') : {})
  assert.deepEqual(await version(), before)
  await run(name, of, undefined, 6, uid('a'))
  assert.notDeepEqual(await version(), before)
  const [row] = await sql`select capture_level, last_post::text from pod_instance where pod_name = ${name}`
  assert.deepEqual([row!.capture_level, row!.last_post.slice(0, 16)], ['full', at(6).slice(0, 16).replace('T', ' ')])
})
