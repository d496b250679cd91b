import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PARTS, readPart } from '../lib/coverage/index.ts'
import { writeCursor } from '../lib/http/request/cursor.ts'
import { HOUR, heartbeat, inSecs, take } from './runtime/heartbeats.ts'
import { startApp, TOKENS } from './support/app.ts'
import { storeAttestation, unverified } from './support/attestations.ts'
import { container, newDigest, newNamespace, replica } from './support/images.ts'
import { podPost } from './support/records.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from './support/routes.ts'
import { component, finding, storeFindings, storeSbom } from './support/supply-chain.ts'

const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0', BROKER_READ_MEMORY_BUDGET_MB: '1' }, app)
const token = TOKENS.BROKER_TOKEN_READ
const { sql } = app

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
type Json = any

async function read(query: string): Promise<Json> {
  const answer = await app.get(`/coverage?${query}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const part = async (name: string, query: string): Promise<Json> => (await read(`part=${name}&${query}`))[name]
async function posts(path: string, body: unknown): Promise<void> {
  const answer = await app.post(path, body)
  assert.equal(answer.status, 200, answer.text)
}
const codes = (items: Json[], key: string) => items.map((one) => [one[key], one.missing.join()])
/** A pod that its agent posted a moment ago. */
const fresh = (namespace: string, containers: unknown, fields = {}) =>
  replica(namespace, containers, { time_stamp: inSecs(-5), ...fields })
const days = (n: number) => inSecs(-n * 24 * HOUR).slice(0, 19)

test('GET /coverage 200: every key in wire order, of one container of which nothing is known', async () => {
  const [namespace, digest] = [newNamespace(), newDigest()]
  const post = fresh(namespace, [container('app', digest)])
  await posts('/pod/spec', post)
  const answer = await app.get(`/coverage?namespace=${namespace}`)
  const noneOf = (...missing: string[]) => Object.fromEntries(missing.map((code) => [code, 0]))
  const nobody = { cause: 'never_watched', containerId: null, podName: post.pod_name, nodeName: 'node-1', at: null }
  const [{ lastPodPostAt }] = answer.json.nodes.items
  assert.equal(
    answer.text,
    JSON.stringify({
      ...{ namespace, olderThanDays: 30, windowHours: 24, runningWindowSeconds: 900 },
      images: {
        totals: {
          ...{ total: 1, known: 0 },
          missing: {
            ...{ no_report: 1, ...noneOf('old_report', 'guessed_report', 'cut_report'), no_sbom: 1, guessed_sbom: 0 },
            ...{ no_signature_result: 1, unknown_signature: 0 },
          },
        },
        items: [
          {
            ...{ digest, repository: 'registry.test/team/app', containers: 1 },
            ...{ missing: ['no_report', 'no_sbom', 'no_signature_result'], report: null, sbom: null, signature: null },
          },
        ],
        nextAfter: null,
      },
      containers: {
        totals: {
          ...{ total: 1, known: 0 },
          missing: {
            no_runtime_data: 1,
            ...noneOf(
              'probes_missing',
              'libraries_not_tracked',
              'events_dropped',
              'events_pending',
              'incomplete_paths',
            ),
            ...noneOf('capture_gap', 'image_not_resolved'),
          },
        },
        items: [
          {
            ...{ namespace, kind: 'Deployment', name: 'web', container: 'app', imageDigest: digest },
            ...{ missing: ['no_runtime_data'], covered: false, reason: 'no_runtime_data', reasonDetail: nobody },
            observedSince: null,
          },
        ],
        nextAfter: null,
      },
      nodes: {
        totals: {
          ...{ total: 1, known: 0 },
          missing: { no_facts: 1, silent: 0, no_runtime_data: 1, probes_missing: 0, denials_not_watched: 1 },
        },
        items: [
          {
            ...{ node: 'node-1', missing: ['no_facts', 'no_runtime_data', 'denials_not_watched'], alivePods: 1 },
            ...{ watchedContainers: 0, lastPodPostAt, factsAt: null, drainedAt: null, reasonDetail: null },
          },
        ],
        nextAfter: null,
      },
      workloads: {
        totals: { total: 1, known: 0, missing: { no_observations: 1, capture_incomplete: 0, denials_unknown: 1 } },
        items: [
          {
            ...{ namespace, kind: 'Deployment', name: 'web', missing: ['no_observations', 'denials_unknown'] },
            ...{ captureLevel: null, incompletePods: 0, denialsReason: 'no_node_watching', denialsReasonDetail: null },
          },
        ],
        nextAfter: null,
      },
    }),
  )
})

test('GET /coverage 200: nothing is missing of what was scanned, checked and watched; include_known=true lists it', async () => {
  const [namespace, digest, node] = [newNamespace(), newDigest(), 'node-whole']
  const post = fresh(namespace, [container('app', digest)], { node_name: node, capture_level: 'full' })
  await posts('/pod/spec', post)
  const names = { pod_name: post.pod_name, pod_namespace: namespace }
  await posts('/pod/syscalls', [{ ...names, syscalls: ['read'], arch: 'x86_64', time_stamp: inSecs(-1) }])
  await take(app, [heartbeat({ ...names, image_digest: digest, node_name: node })])
  await posts('/node/facts', {
    ...{ node_name: node, provider: 'aws', distro: 'eks', cni: 'cilium', ip_family: 'ipv4', node_os: 'cos' },
  })
  await posts('/seccomp/denials', { node, capturing: true, intervalSeconds: 600, denials: [] })
  const scannedAt = days(2)
  await storeFindings(app, digest, 'db-matcher', [], { scanned_at: scannedAt })
  await storeSbom(app, digest, 'registry', [component('c')], { scanned_at: days(400) })
  await storeAttestation(app, digest)
  const [short, whole] = [await read(`namespace=${namespace}`), await read(`namespace=${namespace}&include_known=true`)]
  for (const one of PARTS) {
    assert.deepEqual(short[one].items, [], one)
    assert.deepEqual([whole[one].items.length, whole[one].items[0].missing], [1, []], one)
    assert.deepEqual([short[one].totals.total, short[one].totals.known], [1, 1], one)
    assert.deepEqual(short[one].totals, whole[one].totals)
  }
  assert.deepEqual(whole.images.items[0].report, { scannedAt, join: 'image_id' })
  assert.equal(whole.images.items[0].signature.verdict, 'unsigned')
  assert.equal(whole.containers.items[0].covered, true)
  assert.equal(whole.workloads.items[0].captureLevel, 'full')
  await sql`delete from seccomp_denial_node`
})

describe('images', () => {
  test('GET /coverage 200: a report is old by its newest scan, from any source, after older_than_days', async () => {
    const [namespace, digest] = [newNamespace(), newDigest()]
    await posts('/pod/spec', fresh(namespace, [container('app', digest)]))
    await storeFindings(app, digest, 'db-matcher', [], { scanned_at: days(100) })
    await storeFindings(app, digest, 'registry', [], { scanned_at: days(40) })
    const missing = async (query: string) =>
      (await part('images', `namespace=${namespace}&${query}`)).items[0].missing[0]
    assert.equal(await missing(''), 'old_report')
    assert.equal(await missing('older_than_days=39'), 'old_report')
    assert.equal(await missing('older_than_days=41'), 'no_sbom')
    assert.equal((await read(`namespace=${namespace}&older_than_days=0`)).olderThanDays, 1)
  })

  test('GET /coverage 200: findings whose lists were cut, and a check that could not be made', async () => {
    const [namespace, digest] = [newNamespace(), newDigest()]
    await posts('/pod/spec', fresh(namespace, [container('app', digest)]))
    const paths = Array.from({ length: 17 }, (_, n) => `/lib/${n}`)
    await storeFindings(
      app,
      digest,
      'registry',
      [finding('CVE-1'), finding('CVE-2', { file_paths: paths, omitted: 1 })],
      {
        scanned_at: days(1),
      },
    )
    await storeAttestation(app, digest, { verdict: 'unknown', signatures: [unverified('registry_error')] })
    assert.deepEqual((await part('images', `namespace=${namespace}`)).items[0].missing, [
      ...['cut_report', 'no_sbom', 'unknown_signature'],
    ])
  })

  test('GET /coverage 200: platforms as many as are read of an index may be more, so that the report counts as cut', async () => {
    const [namespace, digest] = [newNamespace(), newDigest()]
    await posts('/pod/spec', fresh(namespace, [container('app', digest)]))
    const newest = days(3)
    for (let n = 0; n < 64; n++)
      await storeFindings(app, newDigest(), 'registry', [], {
        ...{ scanned_at: n === 40 ? newest : days(70 - n), index_digest: digest, platform_manifests: {} },
      })
    const [{ missing, report }] = (await part('images', `namespace=${namespace}`)).items
    assert.deepEqual([missing[0], report], ['cut_report', { scannedAt: newest, join: 'platform_manifest' }])
  })

  test('GET /coverage 200: an image that ran is none, and one of several namespaces counts the containers of each', async () => {
    const [here, there, digest, gone] = [newNamespace(), newNamespace(), newDigest(), newDigest()]
    await posts('/pod/spec', fresh(here, [container('app', digest), container('side', digest)]))
    await posts('/pod/spec', fresh(there, [container('app', digest), container('job', gone, { state: 'terminated' })]))
    const of = async (query: string) =>
      (await part('images', `${query}&limit=500`)).items
        .filter((one: Json) => [digest, gone].includes(one.digest))
        .map((one: Json) => [one.digest, one.containers])
    assert.deepEqual(await of(`namespace=${here}`), [[digest, 2]])
    assert.deepEqual(await of(`namespace=${there}`), [[digest, 1]])
    assert.deepEqual(await of(''), [[digest, 3]])
  })
})

describe('containers', () => {
  test('GET /coverage 200: the reason, and the container, pod, node and time that decided', async () => {
    const [namespace, digest] = [newNamespace(), newDigest()]
    const names = ['a', 'b', 'c', 'd', 'e']
    const post = fresh(
      namespace,
      names.map((name) => container(name, digest)),
    )
    await posts('/pod/spec', post)
    const idOf = (name: string) => `${namespace}${name}`.replace('-', '')
    const beat = (name: string, fields = {}) =>
      heartbeat({
        ...{ pod_namespace: namespace, pod_name: post.pod_name, container_name: name, image_digest: digest },
        ...{ container_id: idOf(name), ...fields },
      })
    const [lost, since] = [inSecs(-HOUR), inSecs(-2 * HOUR)]
    await take(app, [
      beat('a'),
      beat('b', { heartbeat_at: lost, events_dropped: 7, heartbeat_secs: 3_600 }),
      beat('b'),
      beat('c', { exec_probe: false, tracking_since: since, node_name: 'node-c' }),
      beat('d', { tracking_since: since }),
    ])
    const { items, totals } = await part('containers', `namespace=${namespace}&include_known=true`)
    assert.deepEqual(
      items.map((one: Json) => [one.container, one.covered, one.reason, one.reasonDetail?.cause ?? null]),
      [
        ['a', true, null, null],
        ['b', false, 'events_dropped', 'events_dropped'],
        ['c', false, 'probes_missing', 'exec_probe_missing'],
        ['d', false, 'capture_gap', 'watched_since'],
        ['e', false, 'no_runtime_data', 'never_watched'],
      ],
    )
    const of = (name: string) => ({
      containerId: idOf(name),
      podName: post.pod_name,
      nodeName: 'node-a',
    })
    assert.deepEqual(items[1].reasonDetail, { cause: 'events_dropped', ...of('b'), at: lost })
    assert.equal(items[2].reasonDetail.nodeName, 'node-c')
    assert.deepEqual(items[3].reasonDetail, { cause: 'watched_since', ...of('d'), at: since })
    assert.deepEqual([totals.total, totals.known, totals.missing.capture_gap], [5, 1, 1])
    // The same reasons as the route of the workload, whose details are the same rows.
    const runtime = await app.get(`/workloads/${namespace}/Deployment/web/runtime`)
    for (const one of runtime.json.coverage) {
      const { reason, reasonDetail } = items.find(({ container: name }: Json) => name === one.containerName)
      assert.deepEqual([one.reason, one.reasonDetail], [reason, reasonDetail])
    }
    assert.equal((await part('containers', `namespace=${namespace}&window_hours=1`)).totals.known, 3)
  })

  test('GET /coverage 200: of several rows that fail a check the detail names the latest, of silent ones the earliest', async () => {
    const [namespace, digest] = [newNamespace(), newDigest()]
    const pods = [0, 1, 2].map(() =>
      fresh(
        namespace,
        ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => container(name, digest)),
      ),
    )
    for (const post of pods) await posts('/pod/spec', post)
    const beat = (n: number, name: string, fields = {}) =>
      heartbeat({
        ...{
          pod_namespace: namespace,
          pod_name: pods[n]!.pod_name,
          container_name: name,
          image_digest: digest,
          ...fields,
        },
      })
    const twice = (n: number, name: string, fields: object) => {
      const container_id = `${namespace}${n}${name}`.replace('-', '')
      const daily = { heartbeat_secs: 86_400, container_id }
      const first = beat(n, name, { ...daily, heartbeat_at: inSecs(-4 * HOUR) })
      return [first, beat(n, name, { ...daily, heartbeat_at: inSecs(-(2 - n) * HOUR), ...fields })]
    }
    const hoursAgo = (hours: number, fields = {}) => ({ heartbeat_at: inSecs(-hours * HOUR), ...fields })
    await take(app, [
      ...[0, 1, 2].flatMap((n) => twice(n, 'a', { lib_probe: false, events_dropped: 1 })),
      ...[3, 5, 4].map((hours, n) => beat(n, 'b', hoursAgo(hours))),
      ...[0, 1].map((n) => beat(n, 'c')),
      ...[3, 5, 4].map((hours, n) => beat(n, 'd', { tracking_since: inSecs(-hours * HOUR) })),
      ...[0, 1, 2].flatMap((n) => [beat(n, 'e'), beat(n, 'f')]),
      // Neither another image nor another workload matters.
      beat(0, 'd', { image_digest: newDigest(), tracking_since: inSecs(-HOUR) }),
      beat(0, 'e', { workload_name: 'other', events_dropped: 1 }),
    ])
    const file = { pod_namespace: namespace, workload_kind: 'Deployment', workload_name: 'web', container_name: 'e' }
    await posts('/runtime/executables', [
      ...[3, 1, 2].map((hours, n) => ({
        ...{
          ...file,
          pod_name: `cut-${n}`,
          image_digest: digest,
          kind: 'exec',
          path: `/tail-${n}`,
          path_complete: false,
        },
        ...{ source: 'ebpf', origin: 'image', first_seen: inSecs(-9 * HOUR), last_seen: inSecs(-hours * HOUR) },
      })),
      ...[3, 1, 2].map((hours, n) => ({
        ...{ ...file, container_name: 'f', pod_name: `early-${n}`, image_digest: '', kind: 'exec', path: `/job-${n}` },
        ...{ source: 'ebpf', origin: 'image', first_seen: inSecs(-9 * HOUR), last_seen: inSecs(-hours * HOUR) },
      })),
    ])
    const { items } = await part('containers', `namespace=${namespace}&limit=500`)
    const named = items
      .filter((one: Json) => one.name === 'web' && one.imageDigest === digest)
      .map(({ container: name, reason, reasonDetail: { cause, podName } }: Json) => [name, reason, cause, podName])
    assert.deepEqual(named, [
      ['a', 'libraries_not_tracked', 'library_probe_missing', pods[2]!.pod_name],
      ['b', 'capture_gap', 'silent', pods[1]!.pod_name],
      ['c', 'capture_gap', 'unwatched_pod', pods[2]!.pod_name],
      ['d', 'capture_gap', 'watched_since', pods[1]!.pod_name],
      ['e', 'incomplete_paths', 'path_cut', 'cut-1'],
      ['f', 'incomplete_paths', 'unattributed_file', 'early-1'],
    ])
  })

  test('GET /coverage 200: a container beside an unwatched pod that was posted without containers is a gap', async () => {
    const [namespace, digest] = [newNamespace(), newDigest()]
    const [watched, unsaid] = [fresh(namespace, [container('app', digest)]), fresh(namespace, undefined)]
    for (const post of [watched, unsaid]) await posts('/pod/spec', post)
    await take(app, [heartbeat({ pod_namespace: namespace, pod_name: watched.pod_name, image_digest: digest })])
    const [item] = (await part('containers', `namespace=${namespace}`)).items
    assert.deepEqual(
      [item.reason, item.reasonDetail.cause, item.reasonDetail.podName],
      ['capture_gap', 'unwatched_pod', unsaid.pod_name],
    )
  })

  test('GET /coverage 200: a container whose image is not resolved has an empty digest', async () => {
    const [namespace, digest] = [newNamespace(), newDigest()]
    const pod = fresh(namespace, [
      container('app', digest),
      container('pulled'),
      container('done', undefined, { state: 'terminated' }),
    ])
    await posts('/pod/spec', pod)
    await take(app, [
      heartbeat({ pod_namespace: namespace, pod_name: pod.pod_name, container_name: 'app', image_digest: '' }),
      heartbeat({
        ...{ pod_namespace: namespace, pod_name: 'bare', workload_kind: null, workload_name: null },
        image_digest: '',
      }),
      heartbeat({ pod_namespace: namespace, pod_name: 'ended', container_name: 'gone', image_digest: '', ended: true }),
    ])
    const { items } = await part('containers', `namespace=${namespace}&include_known=true`)
    assert.deepEqual(
      items.map((one: Json) => [one.kind, one.name, one.container, one.imageDigest, one.missing.join()]),
      [
        ['Deployment', 'web', 'app', '', 'image_not_resolved'],
        ['Deployment', 'web', 'app', digest, 'no_runtime_data'],
        ['Deployment', 'web', 'pulled', '', 'no_runtime_data,image_not_resolved'],
        ['Pod', 'bare', 'app', '', 'image_not_resolved'],
      ],
    )
  })
})

test('GET /coverage 200: nodes that are silent, never said what they are, or lack a probe', async () => {
  const namespace = newNamespace()
  const facts = { provider: 'aws', distro: 'eks', cni: 'cilium', ip_family: 'ipv4', node_os: 'cos' }
  for (const node_name of ['n-a', 'n-b', 'n-lonely']) await posts('/node/facts', { node_name, ...facts })
  const [old, blind] = [
    fresh(namespace, [container('app', newDigest())], { node_name: 'n-a', time_stamp: inSecs(-1_000) }),
    fresh(namespace, [container('app', newDigest())], { node_name: 'n-b' }),
  ]
  for (const post of [old, blind]) await posts('/pod/spec', post)
  await posts('/pod/spec', podPost({ pod_namespace: newNamespace(), node_name: 'n-c', time_stamp: inSecs(-5) }))
  await take(app, [
    heartbeat({
      pod_namespace: namespace,
      pod_name: blind.pod_name,
      node_name: 'n-b',
      lib_probe: false,
      container_id: 'blind',
    }),
  ])
  await posts('/seccomp/denials', { node: 'n-b', capturing: true, denials: [] })
  const of = async (query: string) =>
    codes(
      (await part('nodes', `${query}&limit=500`)).items.filter(({ node }: Json) => node.startsWith('n-')),
      'node',
    )
  const [a, b] = [
    ['n-a', 'silent,no_runtime_data,denials_not_watched'],
    ['n-b', 'probes_missing'],
  ]
  assert.deepEqual(await of(`namespace=${namespace}`), [a, b])
  assert.deepEqual(await of(''), [
    ...[a, b, ['n-c', 'no_facts,no_runtime_data,denials_not_watched']],
    ['n-lonely', 'silent,denials_not_watched'],
  ])
  const [, { reasonDetail }] = (await part('nodes', `namespace=${namespace}`)).items
  assert.deepEqual(
    [reasonDetail.cause, reasonDetail.containerId, reasonDetail.podName],
    ['library_probe_missing', 'blind', blind.pod_name],
  )
  // A pod of the node in another namespace was posted a moment ago.
  await posts('/pod/spec', podPost({ pod_namespace: newNamespace(), node_name: 'n-a', time_stamp: inSecs(-5) }))
  assert.deepEqual(await of(`namespace=${namespace}`), [['n-a', 'no_runtime_data,denials_not_watched'], b])
  await sql`delete from seccomp_denial_node`
})

test('GET /coverage 200: why denials are not known, and the drain or the pod that decided', async () => {
  const namespace = newNamespace()
  await posts('/pod/spec', fresh(namespace, [container('app', newDigest())]))
  const said = async () => {
    const [{ denialsReason, denialsReasonDetail: detail }] = (await part('workloads', `namespace=${namespace}`)).items
    return [denialsReason, detail && [detail.cause, detail.podName, detail.nodeName]]
  }
  assert.deepEqual(await said(), ['no_node_watching', null])
  await posts('/seccomp/denials', { node: 'd-1', capturing: false, denials: [] })
  assert.deepEqual(await said(), ['no_node_watching', ['probe_detached', null, 'd-1']])
  await posts('/seccomp/denials', { node: 'd-2', capturing: true, denials: [] })
  await sql`update seccomp_denial_node set updated_at = updated_at - interval '1 hour' where node_name = 'd-1'`
  assert.deepEqual(await said(), [null, null])
  const lost = {
    podUid: 'u',
    podName: 'lost',
    podNamespace: namespace,
    syscall: 'ptrace',
    action: 'SCMP_ACT_ERRNO',
    count: 1,
  }
  await posts('/seccomp/denials', { node: 'd-2', capturing: true, denials: [lost] })
  assert.deepEqual(await said(), ['unattributed_denials', ['unattributed', 'lost', 'd-2']])
  await sql`
    insert into seccomp_denial (pod_uid, pod_name, pod_namespace, syscall, action, count, first_seen, last_seen)
    select 'many-' || n, 'lost', 'many-' || n, 'ptrace', 'SCMP_ACT_ERRNO', 1, now(), now() from generate_series(1, 1000) n`
  assert.deepEqual(await said(), ['unattributed_in_cluster', null])
  await sql`update seccomp_denial_node set updated_at = updated_at - interval '1 hour'`
  assert.deepEqual(await said(), ['no_node_watching', ['drain_late', null, 'd-2']])
  await sql`truncate seccomp_denial, seccomp_denial_node`
})

test('GET /coverage 200: a workload without a whole capture, and a pod without containers', async () => {
  const namespace = newNamespace()
  const post = podPost({
    pod_namespace: namespace,
    workload_kind: 'Job',
    workload_name: 'j',
    capture_level: 'high',
    time_stamp: inSecs(-5),
  })
  await posts('/pod/spec', post)
  await posts('/pod/syscalls', [
    { pod_name: post.pod_name, pod_namespace: namespace, syscalls: ['read'], arch: 'x86_64', time_stamp: inSecs(-1) },
  ])
  await posts('/pod/spec', podPost({ pod_namespace: namespace, pod_name: `bare-${namespace}`, time_stamp: inSecs(-5) }))
  await posts(
    '/pod/spec',
    podPost({ pod_namespace: namespace, workload_kind: 'Job', workload_name: 'dead', is_dead: true }),
  )
  const { items, totals } = await part('workloads', `namespace=${namespace}`)
  assert.deepEqual(
    items.map((one: Json) => [one.kind, one.name, one.missing[0], one.captureLevel, one.incompletePods]),
    [
      ['Job', 'j', 'capture_incomplete', 'high', 1],
      ['Pod', `bare-${namespace}`, 'no_observations', null, 0],
    ],
  )
  assert.equal(totals.total, 2)
})

describe('pages', () => {
  test('GET /coverage 200: a part by itself, page by page, with its totals on the first page only', async () => {
    const namespace = newNamespace()
    for (const name of ['a', 'b', 'c'])
      await posts('/pod/spec', fresh(namespace, [container('x', newDigest()), container('y')], { workload_name: name }))
    const whole = await read(`namespace=${namespace}&limit=2`)
    for (const one of PARTS) {
      const first = await read(`namespace=${namespace}&limit=2&part=${one}`)
      assert.deepEqual(first[one], whole[one])
      for (const other of PARTS) assert.equal(first[other] === null, other !== one)
      const uncounted = await read(`namespace=${namespace}&limit=2&part=${one}&totals=false`)
      assert.deepEqual(uncounted[one], { ...whole[one], totals: null })
    }
    const pages: string[][] = []
    for (let after = ''; ; ) {
      const page = await part('containers', `namespace=${namespace}&limit=2&after=${after}`)
      pages.push(page.items.map((each: Json) => each.name + each.container))
      assert.equal(page.totals === null, after !== '')
      if (page.nextAfter === null) break
      after = page.nextAfter
    }
    assert.deepEqual(pages, [
      ['ax', 'ay'],
      ['bx', 'by'],
      ['cx', 'cy'],
    ])
  })

  test('GET /coverage 200: of more rows than one statement judges nothing is counted, and the pages go on', async () => {
    const namespace = newNamespace()
    for (const name of ['a', 'b', 'c', 'd', 'e'])
      await posts('/pod/spec', fresh(namespace, [container('x', newDigest()), container('y')], { workload_name: name }))
    const { config } = app.deps
    const question = {
      ...{ namespace, olderThanDays: 30, windowHours: 24, includeKnown: true, limit: 100, staleAfterSecs: 900 },
      ...{ runningWindowSecs: config.imageRunningWindowSecs, attestationRetentionDays: 0, denialRetentionDays: 0 },
      withTotals: true,
    }
    const keyOf: Record<string, string> = { images: 'digest', containers: 'container', workloads: 'name' }
    for (const [one, rows] of [
      ['images', 5],
      ['containers', 10],
      ['workloads', 5],
    ] as const)
      for (const limit of [1, 3, 100]) {
        const found: Json[] = []
        let next: readonly string[] | null = null
        do {
          const page = await readPart(app.db.read, one, { ...question, limit }, next, 2)
          assert.equal(page.totals, null)
          found.push(...page.items.map((item: Json) => `${item.name} ${item[keyOf[one]!]}`))
          next = page.next
        } while (next !== null)
        assert.deepEqual([found.length, new Set(found).size], [rows, rows], `${one} ${limit}`)
      }
    assert.equal((await readPart(app.db.read, 'workloads', question, null, 5)).totals !== null, true)
  })

  test('GET /coverage 200: blank parameters are none, limit is clamped, an unknown namespace has nothing', async () => {
    const { namespace, ...parts } = await read('namespace=%20&after=&limit=0')
    assert.equal(namespace, null)
    assert.equal(parts.images.items.length, 1)
    const empty = await read('namespace=nowhere')
    for (const one of PARTS) assert.deepEqual([empty[one].items, empty[one].totals.total], [[], 0])
  })

  for (const [query, says] of [
    ['part=pods', 'part'],
    ['older_than_days=x', 'older_than_days: expected an integer'],
    ['window_hours=', 'window_hours: expected an integer'],
    ['limit=many', 'limit: expected an integer'],
    ['include_known=1', 'include_known'],
    ['totals=no', 'totals'],
    ['namespace=a%00b', 'namespace: U+0000 is not allowed'],
    ['verdict=x', 'verdict'],
    ['after=x&part=images', 'after: expected the nextAfter of a page of this list'],
    [`after=${writeCursor(['images', 'a'])}`, 'after: expected the nextAfter of a page of this `part`'],
    [`after=${writeCursor(['images', 'a'])}&part=nodes`, 'after: expected the nextAfter of a page of this `part`'],
    [`after=${writeCursor(['images', 'a', 'b'])}&part=images`, 'after: expected'],
    [`after=${writeCursor(['images', 'a\0'])}&part=images`, 'after: expected'],
  ] as const)
    test(`GET /coverage 400: ${query}`, async () => {
      const answer = await app.get(`/coverage?${query}`)
      assert.equal(answer.status, 400)
      assert.ok(answer.text.includes(says), answer.text)
    })
})

test('GET /coverage 401: without a token', async () => {
  assertUnauthorized(await guarded.get('/coverage'))
  assert.equal((await guarded.get('/coverage?limit=1', { token })).status, 200)
})

test('GET /coverage 503: 4 KiB are charged for each row of each part', async () => {
  const { budget } = guarded.deps
  const share = await budget.enter(1_000)
  assertShed(await guarded.get('/coverage?limit=9', { token }), 160, 1_024)
  assertShed(await guarded.get('/coverage?limit=9&part=nodes', { token }), 40, 1_024)
  assert.equal((await guarded.get('/coverage?limit=1&part=nodes', { token })).status, 200)
  share.release()
})

test('GET /coverage 503: the database is busy', async () => {
  await whileRefused(sql, 'workload_container', async () => assertDatabaseBusy(await app.get('/coverage')))
})
