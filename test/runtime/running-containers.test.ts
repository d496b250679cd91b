/** The running containers that POST /pod/spec stores for a pod (docs/contract.md#runtime-coverage). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startApp } from '../support/app.ts'
import { wholePodPost } from '../support/records.ts'
import { coverage, digest, type Fields, heartbeat, namespace, take } from './heartbeats.ts'

const app = await startApp()
const { sql } = app
const post = async (fields: Fields) => assert.equal((await app.post('/pod/spec', fields)).status, 200)
const running = async (name: string) => {
  const [row] = await sql<
    { names: string[] | null }[]
  >`select to_json(running_containers) as names from pod where pod_name = ${name}`
  return row!.names
}
const named = (name: unknown, state?: unknown, state_reason?: unknown) => ({ name, state, state_reason })
const stored = async (containers: unknown) => {
  const pod = wholePodPost({ pod_name: namespace(), containers })
  await post(pod)
  return running(pod.pod_name)
}

test('containers without a state, that run, or that crash again and again are running', async () => {
  assert.deepEqual(
    await stored([
      ...[
        named('none'),
        named('null', null),
        named('running', 'running'),
        named('odd', 'Running'),
        named('crash', 'waiting', 'CrashLoopBackOff'),
      ],
      ...[
        named('pulls', 'waiting', 'ImagePullBackOff'),
        named('waits', 'waiting'),
        named('done', 'terminated', 'Completed'),
      ],
      ...[
        named('crashed', 'terminated', 'CrashLoopBackOff'),
        { ...named('whole', 'running'), kind: 'init', image: 'x', digest: digest('x') },
      ],
    ]),
    ['crash', 'none', 'null', 'odd', 'running', 'whole'],
  )
})

test('the first entry of each valid name counts, up to 64 names', async () => {
  assert.deepEqual(
    await stored([
      ...[
        7,
        null,
        'x',
        [],
        {},
        named(''),
        named(' '),
        named(7),
        named('a\0'),
        named('n'.repeat(254)),
        named(`${'n'.repeat(252)}é`),
      ],
      ...[
        named('b'),
        named('b', 'terminated'),
        named('a', 'terminated'),
        named('a', 'running'),
        named('n'.repeat(253)),
        named(' b'),
      ],
    ]),
    [' b', 'b', 'n'.repeat(253)],
  )
  const many = Array.from({ length: 70 }, (_, n) => named(`c${n}`))
  assert.deepEqual(
    await stored(many),
    many
      .slice(0, 64)
      .map(({ name }) => name)
      .sort(),
  )
  assert.deepEqual(await stored([]), [])
})

test('a post without container states keeps the list, unless the pod is another', async () => {
  const pod = wholePodPost({ pod_name: namespace(), containers: [named('a')] })
  const { containers: _, ...silent } = pod
  await post(pod)
  for (const nothing of [undefined, null, {}, 'a', 7]) {
    await post({ ...silent, containers: nothing })
    assert.deepEqual(await running(pod.pod_name), ['a'])
  }
  await post({ ...silent, pod_obj: null })
  assert.deepEqual(await running(pod.pod_name), ['a'])
  await post({ ...silent, containers: [] })
  assert.deepEqual(await running(pod.pod_name), [])
  await post(pod)
  await post({ ...silent, pod_obj: { metadata: { uid: 'uid-2' } } })
  assert.equal(await running(pod.pod_name), null)
})

test('a repeated post in any order takes no lock and writes nothing; a change is a HOT update', async () => {
  const containers = [named('b', 'running'), named('a')]
  const pod = wholePodPost({ pod_name: namespace(), containers })
  await post(pod)
  const version = async () => [...(await sql`select xmin::text, ctid::text from pod where pod_name = ${pod.pod_name}`)]
  const before = await version()
  await sql.begin(async (held) => {
    await held`select from pod where pod_name = ${pod.pod_name} for update`
    for (const same of [containers, containers.toReversed(), [...containers, named('c', 'terminated')]])
      await post({ ...pod, containers: same })
    const { containers: _, ...silent } = pod
    await post(silent)
  })
  assert.deepEqual(await version(), before)
  await sql.begin(async (on) => {
    const row = { ...pod, pod_ips: [pod.pod_ip], running_containers: ['a'] }
    await on`select upsert_pods(${JSON.stringify([row])}::text::json)`
    const [found] = await on`
      select pg_stat_get_xact_tuples_updated('pod'::regclass)::int as all, pg_stat_get_xact_tuples_hot_updated('pod'::regclass)::int as hot`
    assert.deepEqual(found, { all: 1, hot: 1 })
  })
  assert.deepEqual(await running(pod.pod_name), ['a'])
})

test('a pod with an unwatched container uncovers its workload until it is watched, ends it, or dies', async () => {
  const ns = namespace()
  const owner = { pod_namespace: ns, workload_kind: 'Deployment', workload_name: 'web' }
  const pod = wholePodPost({
    ...owner,
    pod_name: `${ns}-1`,
    containers: [named('init', 'terminated', 'Completed'), named('app', 'running')],
  })
  const reason = async () => (await coverage(sql, { namespace: ns })).reason
  await take(app, [
    heartbeat({ ...owner, pod_name: `${ns}-0` }),
    heartbeat({ ...owner, pod_name: `${ns}-0`, container_name: 'init', ended: true }),
  ])
  assert.equal(await reason(), null)
  await post(pod)
  assert.equal(await reason(), 'capture_gap')
  assert.equal((await coverage(sql, { namespace: ns, container: 'init' })).reason, null, 'what has ended is no gap')
  await post({ ...pod, containers: [named('app', 'terminated')] })
  assert.equal(await reason(), null)
  await post(pod)
  await app.post('/pod/mark_dead', { pod_name: pod.pod_name })
  assert.equal(await reason(), null)
  await post(pod)
  assert.equal(await reason(), 'capture_gap')
  await take(app, [heartbeat({ ...owner, pod_name: pod.pod_name })])
  assert.equal(await reason(), null)
})
