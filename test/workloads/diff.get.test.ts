import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  countFlows,
  hoursAgo,
  storeContainers,
  storeEdges,
  storeFiles,
  storeInstances,
  storePods,
  storeSyscalls,
} from '../changes/rows.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { container, newDigest, newNamespace, replica } from '../support/images.ts'
import { contained, POD, storeState, workload } from '../support/profile-versions.ts'
import { assertDatabaseBusy, assertNoData, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'
import { component, finding, storeFindings, storeSbom } from '../support/supply-chain.ts'
import { BAD_PATHS } from './profile-errors.ts'

const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const short = await startApp(
  {
    IMAGE_INVENTORY_RETENTION_DAYS: '3',
    RUNTIME_INVENTORY_RETENTION_DAYS: '3',
    FLOW_EDGE_RETENTION_DAYS: '3',
  },
  app,
)
const token = TOKENS.BROKER_TOKEN_READ
const DAY = 24
await countFlows(app.sql)
await countFlows(short.sql)

interface Key {
  namespace: string
  kind?: string
  name?: string
}
const pathOf = ({ namespace, kind = 'Deployment', name = 'web' }: Key, query = '') =>
  `/workloads/${[namespace, kind, name].map(encodeURIComponent).join('/')}/diff${query}`
const read = async (key: Key, query = '', of = app) => {
  const answer = await of.get(pathOf(key, query))
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
type Gap = { part: string; reason: string; container: string | null; digest: string | null }
const reasons = (diff: { notKnown: Gap[] }, part: string) =>
  diff.notKnown.filter((one) => one.part === part).map(({ reason }) => reason)
const list = (items: unknown[]) => ({ items, total: items.length, truncated: false })

/** A workload that ran one image from ten days ago, and another one since two days ago. */
async function released(of = app) {
  const namespace = newNamespace()
  const [before, after, side] = [newDigest(), newDigest(), newDigest()]
  await storeContainers(of.sql, [
    { namespace, digest: before, first: hoursAgo(10 * DAY), last: hoursAgo(2 * DAY), state: 'terminated' },
    { namespace, digest: after, first: hoursAgo(2 * DAY), last: hoursAgo(0) },
    { namespace, container: 'side', digest: side, first: hoursAgo(10 * DAY), last: hoursAgo(0) },
  ])
  return { key: { namespace }, namespace, before, after, side }
}

test('GET /workloads/{namespace}/{kind}/{name}/diff 200: images by container, rollouts, and every key in order', async () => {
  const { key, before, after, side } = await released()
  const diff = await read(key)
  assert.deepEqual(Object.keys(diff), [
    ...['namespace', 'kind', 'name', 'from', 'to', 'images', 'components', 'findings', 'signatures', 'edges'],
    ...['files', 'syscalls', 'confinement', 'notKnown'],
  ])
  const [{ at }] = diff.images.rollouts.items
  assert.deepEqual(diff.images, {
    fromSeenAt: diff.from,
    toSeenAt: diff.to,
    containers: [
      { container: 'app', from: [before], to: [after] },
      { container: 'side', from: [side], to: [side] },
    ],
    rollouts: list([{ at, container: 'app', digest: after, imageRef: `registry.test/app:${after.slice(0, 12)}` }]),
  })
  const signature = (digest: string) => ({ digest, verdict: null, reason: null, signers: [], checkedAt: null })
  assert.deepEqual(diff.signatures, { before: [signature(before)], after: [signature(after)] })
  // The image of both times has no report either, and changes nothing.
  assert.deepEqual(
    diff.notKnown.map(({ part, reason, digest }: Gap) => [part, reason, digest]),
    [
      ...[before, after].sort().map((digest) => ['components', 'no_sbom', digest]),
      ...[before, after].sort().map((digest) => ['findings', 'no_report', digest]),
      ['edges', 'not_recorded_then', null],
      ...['app', 'side'].map(() => ['files', 'no_runtime_data', null]),
      ['syscalls', 'no_syscalls', null],
      ['confinement', 'no_versions', null],
    ],
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 200: containers that ended together are all there, however their rows were written', async () => {
  const namespace = newNamespace()
  const [job, proxy, old] = [newDigest(), newDigest(), newDigest()]
  // The state of the job changed as it ended; the row of the proxy was not due again.
  await storeContainers(app.sql, [
    { namespace, digest: old, first: hoursAgo(10 * DAY), last: hoursAgo(5.1), state: 'terminated' },
    { namespace, digest: job, first: hoursAgo(9 * DAY), last: hoursAgo(5), state: 'terminated' },
    { namespace, container: 'proxy', digest: proxy, first: hoursAgo(9 * DAY), last: hoursAgo(5.08) },
    { namespace, container: 'gone', digest: newDigest(), first: hoursAgo(9 * DAY), last: hoursAgo(5.2) },
  ])
  const { images } = await read({ namespace })
  assert.deepEqual(
    images.containers.map(({ container, to }: { container: string; to: string[] }) => [container, to]),
    [
      ['app', [job]],
      ['gone', []],
      ['proxy', [proxy]],
    ],
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 200: components and findings between the images of one side only', async () => {
  const { key, before, after, side } = await released()
  for (const [digest, version, id] of [
    [before, '1', 'CVE-2024-1'],
    [after, '2', 'CVE-2024-2'],
    [side, '1', 'CVE-2024-2'],
  ] as const) {
    await storeSbom(app, digest, 'operator-scanner', [component('lib', { version }), component('same')])
    await storeFindings(app, digest, 'operator-scanner', [finding(id), finding('CVE-2024-9')])
  }
  const { components, findings } = await read(key)
  const part = { name: 'lib', purl: null, type: '' }
  assert.deepEqual(components, {
    sources: ['operator-scanner'],
    added: list([]),
    removed: list([]),
    changed: list([{ ...part, from: '1', to: '2', count: 1 }]),
  })
  const ids = ({ items }: { items: { id: string; tier: unknown; inUse: unknown }[] }) =>
    items.map(({ id, tier, inUse }) => [id, tier, inUse])
  assert.deepEqual(
    [ids(findings.came), ids(findings.went), ids(findings.changed)],
    [[['CVE-2024-2', null, null]], [['CVE-2024-1', null, null]], []],
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 200: an unchanged workload has empty lists, although nobody scanned it', async () => {
  const namespace = newNamespace()
  await storeContainers(app.sql, [{ namespace, digest: newDigest(), first: hoursAgo(10 * DAY), last: hoursAgo(0) }])
  const { components, findings, signatures, images, notKnown } = await read({ namespace })
  assert.deepEqual(components, { sources: [], added: list([]), removed: list([]), changed: list([]) })
  assert.deepEqual(findings, { sources: [], came: list([]), went: list([]), changed: list([]) })
  assert.deepEqual([signatures, images.rollouts.total], [{ before: [], after: [] }, 0])
  assert.deepEqual(reasons({ notKnown }, 'components'), [])
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 200: what is older than the record of a workload is unknown, never new', async () => {
  const namespace = newNamespace()
  await storeContainers(app.sql, [{ namespace, digest: newDigest(), first: hoursAgo(2 * DAY), last: hoursAgo(0) }])
  await storeInstances(app.sql, [{ namespace, covered: hoursAgo(2 * DAY) }])
  await storeFiles(app.sql, [{ namespace, path: '/tmp/x', origin: 'writableLayer', first: hoursAgo(DAY) }])
  await storeEdges(app.sql, [
    { namespace, ip: '1.1.1.1', isPublic: true, first: hoursAgo(DAY), last: hoursAgo(DAY) },
    { namespace: 'elsewhere', ip: '1.1.1.1', first: hoursAgo(99 * DAY), last: hoursAgo(DAY) },
  ])
  await storeSyscalls(app.sql, { namespace, names: ['read'], firstSeen: [hoursAgo(DAY)] })
  await storeState(app.db.job, workload(namespace, 'web'))
  const diff = await read({ namespace })
  for (const part of ['images', 'components', 'findings', 'signatures', 'edges', 'files', 'syscalls', 'confinement']) {
    assert.equal(diff[part], null, part)
    assert.deepEqual(reasons(diff, part), ['not_recorded_then'], part)
  }
  // From a time on at which it was recorded, the same facts are new.
  const later = await read({ namespace }, '?from=30h')
  assert.deepEqual(
    [
      later.edges.firstSeen.total,
      later.files.firstRun.total,
      later.images.rollouts.total,
      later.components.added.total,
    ],
    [1, 1, 0, 0],
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 200: before the retention time it is unknown', async () => {
  const { key, namespace } = await released(short)
  await storeInstances(short.sql, [{ namespace, covered: hoursAgo(10 * DAY) }])
  await storeEdges(short.sql, [{ namespace, ip: '10.0.0.2', first: hoursAgo(10 * DAY), last: hoursAgo(1) }])
  const diff = await read(key, '', short)
  for (const part of ['images', 'components', 'findings', 'signatures', 'edges'])
    assert.deepEqual([diff[part], ...reasons(diff, part)], [null, 'before_retention'], part)
  assert.deepEqual([diff.files, ...reasons(diff, 'files')], [null, 'before_retention', 'before_retention'])
  const later = await read(key, '?from=2d', short)
  assert.notEqual(later.images, null)
  assert.notEqual(later.edges, null)
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 200: a job that did not run at the time has the images that it ran last', async () => {
  const namespace = newNamespace()
  const [before, after] = [newDigest(), newDigest()]
  const kind = 'CronJob'
  await storeContainers(app.sql, [
    { namespace, kind, digest: before, first: hoursAgo(9 * DAY), last: hoursAgo(8 * DAY), state: 'terminated' },
    { namespace, kind, digest: after, first: hoursAgo(3 * DAY), last: hoursAgo(2 * DAY), state: 'terminated' },
  ])
  const { images, from, to } = await read({ namespace, kind })
  assert.deepEqual(images.containers, [{ container: 'app', from: [before], to: [after] }])
  assert.ok(images.fromSeenAt < from && images.toSeenAt < to)
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 200: an image runs as long as its last pod lives', async () => {
  const namespace = newNamespace()
  const digest = newDigest()
  await app.post('/pod/spec', replica(namespace, [container('app', digest)]))
  await app.sql`
    update workload_container set first_seen = now() at time zone 'utc' - interval '9 days',
                                  last_seen = now() at time zone 'utc' - interval '2 days'
    where pod_namespace = ${namespace}`
  const { images, to } = await read({ namespace })
  assert.deepEqual([images.containers, images.toSeenAt], [[{ container: 'app', from: [digest], to: [digest] }], to])
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 200: edges first seen, gone quiet, and those that may be in use', async () => {
  const { key, namespace } = await released()
  await storePods(app.sql, [
    { name: `${namespace}-live`, namespace },
    { name: `${namespace}-dead`, namespace, isDead: true },
    { name: `${namespace}-swept`, namespace, isDead: true, isSwept: true },
  ])
  const old = { namespace, first: hoursAgo(20 * DAY), last: hoursAgo(9 * DAY) }
  const of = (port: string, ...pods: string[]) => ({
    ...{ ...old, ip: '10.9.9.9', port },
    reporters: pods.map((pod) => `${namespace}-${pod}`),
  })
  await storeEdges(app.sql, [
    of('1', 'dead', 'deleted'),
    of('2', 'dead', 'live'),
    of('3', 'swept'),
    { ...of('4', 'dead'), last: hoursAgo(DAY) },
    { ...of('5', 'live'), first: hoursAgo(DAY), last: hoursAgo(DAY), ip: '8.8.8.8', isPublic: true },
    // The same edge, reported before the workload of the pod was known, and of a peer pod.
    { ...of('6', 'live'), first: hoursAgo(DAY), last: hoursAgo(DAY) },
    { ...of('6', 'live'), kind: null, workload: null, pod: `${namespace}-live` },
  ])
  const { edges } = await read(key)
  const ports = ({ items }: { items: { port: string }[] }) => items.map(({ port }) => port)
  assert.deepEqual([ports(edges.firstSeen), ports(edges.goneQuiet), edges.maybeQuiet], [['5'], ['1'], 2])
  assert.deepEqual(
    { ...edges.firstSeen.items[0], firstSeenAt: null, lastNewAt: null },
    {
      ...{ direction: 'egress', protocol: 'TCP', port: '5', verdict: 'ALLOW' },
      peer: {
        ...{ kind: 'external', namespace: null, workloadKind: null, workloadName: null, name: null, ip: '8.8.8.8' },
      },
      ...{ firstSeenAt: null, lastNewAt: null },
    },
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 200: flows that are not counted yet are seen, and until the first count nothing is known', async () => {
  const { key, namespace } = await released()
  await storeEdges(app.sql, [{ namespace: 'elsewhere', ip: '1.1.1.1', first: hoursAgo(99 * DAY), last: hoursAgo(1) }])
  await app.sql`
    insert into flow_edge_pending (uuid, time_stamp, traffic_type, pod_namespace, pod_workload_kind, pod_workload_name,
                                   traffic_in_out_ip, is_public, port, ip_protocol, decision, counted_at)
    values (${namespace}, now() at time zone 'utc' - interval '1 minute', 'EGRESS', ${namespace}, 'Deployment', 'web',
            '9.9.9.9', true, '53', 'UDP', 'ALLOW', now())`
  const { edges } = await read(key)
  assert.deepEqual([edges.firstSeen.items[0].peer.ip, edges.firstSeen.total], ['9.9.9.9', 1])
  await guarded.sql`update flow_edge_cursor set as_of = null`
  const other = await released(guarded)
  const { json } = await guarded.get(pathOf(other.key), { token })
  assert.deepEqual(reasons(json, 'edges'), ['not_counted'])
})

/** A watched workload: its container was watched since before the range, and the instance of now from its start. */
async function watched(instance: object = {}) {
  const scene = await released()
  const { namespace, before, after, side } = scene
  await storeInstances(app.sql, [
    { namespace, digest: before, covered: hoursAgo(10 * DAY), last: hoursAgo(2 * DAY), ended: true },
    { namespace, digest: after, covered: hoursAgo(2 * DAY), ...instance },
    { namespace, container: 'side', digest: side, covered: hoursAgo(10 * DAY) },
  ])
  return scene
}

test('GET /workloads/{namespace}/{kind}/{name}/diff 200: files that first ran in the range, over all images, the most suspicious first', async () => {
  const { key, namespace, before, after } = await watched()
  const first = hoursAgo(DAY)
  await storeFiles(app.sql, [
    { namespace, digest: before, path: '/bin/both', first: hoursAgo(9 * DAY) },
    { namespace, digest: after, path: '/bin/both', first },
    { namespace, digest: after, path: '/bin/new', first },
    { namespace, digest: after, path: '/tmp/x', first, origin: 'writableLayer' },
    { namespace, digest: after, path: '/bin/both', entryKind: 'lib', first },
    { namespace, container: 'side', path: '/bin/both', first: hoursAgo(8 * DAY) },
  ])
  const { files, notKnown } = await read(key)
  const shown = ({ container: of, kind, path, origin, digests }: Record<string, unknown>) => [
    of,
    kind,
    path,
    origin,
    digests,
  ]
  assert.deepEqual(files.firstRun.items.map(shown), [
    ['app', 'exec', '/tmp/x', 'writableLayer', [after]],
    ['app', 'exec', '/bin/new', 'image', [after]],
    ['app', 'lib', '/bin/both', 'image', [after]],
  ])
  assert.deepEqual([files.firstRun.total, reasons({ notKnown }, 'files')], [3, []])
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 200: files of a container that was not watched are unknown, and the others are known', async () => {
  const cases: [reason: string, instance: object][] = [
    ['probes_missing', { exec: false, lib: false }],
    ['libraries_not_tracked', { lib: false, dropped: 1 }],
    ['events_dropped', { dropped: 1, unsent: 1 }],
    ['events_pending', { unsent: 1, incomplete: true }],
    ['incomplete_paths', { incomplete: true, startMode: 'backfill' }],
    ['capture_gap', { startMode: 'backfill' }],
    ['capture_gap', { tracking: hoursAgo(2 * DAY), covered: hoursAgo(DAY) }],
  ]
  for (const [reason, instance] of cases) {
    const { key, namespace, after } = await watched(instance)
    await storeFiles(app.sql, [
      { namespace, digest: after, path: '/bin/new', first: hoursAgo(DAY) },
      { namespace, container: 'side', path: '/bin/other', first: hoursAgo(DAY) },
    ])
    const { files, notKnown } = await read(key)
    assert.deepEqual(
      [
        files.firstRun.items.map(({ path }: { path: string }) => path),
        notKnown.filter(({ part }: Gap) => part === 'files'),
      ],
      [['/bin/other'], [{ part: 'files', reason, container: 'app', digest: null }]],
      reason,
    )
  }
  const lost = await watched({ pod: 'web-lost', last: hoursAgo(5) })
  await storePods(app.sql, [{ name: 'web-lost', namespace: lost.namespace, isDead: true, isSwept: true }])
  await storeFiles(app.sql, [{ namespace: lost.namespace, digest: lost.after, path: '/bin/new', first: hoursAgo(DAY) }])
  const seen = await read(lost.key)
  assert.deepEqual(
    [seen.files.firstRun.total, seen.notKnown.filter(({ part }: Gap) => part === 'files')],
    [1, [{ part: 'files', reason: 'capture_gap', container: 'app', digest: null }]],
    'an agent that fell silent',
  )
  const early = await watched({ pod: 'web-early' })
  const names = { namespace: early.namespace, kind: 'Pod', workload: 'web-early' }
  await storeFiles(app.sql, [{ ...names, path: '/tmp/early', origin: 'writableLayer', first: hoursAgo(DAY) }])
  assert.deepEqual(
    (await read(early.key)).notKnown.filter(({ part }: Gap) => part === 'files'),
    [{ part: 'files', reason: 'incomplete_paths', container: 'app', digest: null }],
    'a file that was posted before the workload of its pod was known',
  )
  const { key, namespace } = await watched()
  await storePods(app.sql, [{ name: `${namespace}-blind`, namespace, containers: ['side'] }])
  const { notKnown } = await read(key)
  assert.deepEqual(
    notKnown.filter(({ part }: Gap) => part === 'files').map(({ container: of, reason }: Gap) => [of, reason]),
    [['side', 'capture_gap']],
    'a live pod that nobody watches',
  )
  const more = await watched()
  await storePods(app.sql, [{ name: `${more.namespace}-more`, namespace: more.namespace, containers: ['pulled'] }])
  const answer = await read(more.key)
  assert.deepEqual(
    answer.notKnown.filter(({ part }: Gap) => part === 'files').map(({ container: of, reason }: Gap) => [of, reason]),
    [['pulled', 'no_runtime_data']],
    'a container whose image is not resolved',
  )
  assert.equal(answer.files.firstRun.total, 0)
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 200: syscalls first seen, and those that only the image before made', async () => {
  const { key, namespace, before, after, side } = await released()
  await storeSyscalls(app.sql, {
    namespace,
    names: ['bpf', 'openat', 'ptrace', 'read'],
    firstSeen: [hoursAgo(DAY), null, hoursAgo(9 * DAY), hoursAgo(9 * DAY)],
    images: [0b010, 0, 0b001, 0b111],
    digests: [before, after, side],
  })
  const { syscalls } = await read(key)
  assert.deepEqual(
    [syscalls.firstSeen.items.map(({ name }: { name: string }) => name), syscalls.onlyBefore, syscalls.isComplete],
    [['bpf'], list(['ptrace']), true],
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 200: an incomplete capture does not say what only the image before made; a reset set says nothing', async () => {
  const { key, namespace } = await released()
  const seen = { names: ['read'], firstSeen: [hoursAgo(9 * DAY)] }
  await storeSyscalls(app.sql, { namespace, ...seen, isComplete: false })
  const diff = await read(key)
  assert.deepEqual(
    [diff.syscalls.onlyBefore, diff.syscalls.isComplete, reasons(diff, 'syscallsOnlyBefore')],
    [null, false, ['capture_incomplete']],
  )
  const other = await released()
  await storeSyscalls(app.sql, { namespace: other.namespace, ...seen, reset: hoursAgo(DAY) })
  const reset = await read(other.key)
  assert.deepEqual([reset.syscalls, reasons(reset, 'syscalls')], [null, ['reset_since']])
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 200: confinement between the versions at both times', async () => {
  const namespace = newNamespace()
  const key = workload(namespace, 'web')
  const cr = (defaultAction: string) => ({ name: 'web', hash: 'h', defaultAction })
  const state = (fields: object, action: string) => ({
    snapshot: {
      podSecurity: { level: 'baseline' as const, pod: POD, containers: { app: contained(fields) } },
      syscalls: { syscalls: ['read'], captureLevel: 'full', cr: cr(action) },
    },
  })
  const states = [
    [{ privileged: false }, 'SCMP_ACT_ERRNO', 20],
    [{ allowPrivilegeEscalation: false }, 'SCMP_ACT_ERRNO', 9],
    [{ privileged: true }, 'SCMP_ACT_LOG', 2],
    [{}, 'SCMP_ACT_ERRNO', 1],
  ] as const
  for (const [n, [fields, action, days]] of states.entries()) {
    await storeState(app.db.job, key, state(fields, action))
    await app.sql`
      update workload_profile_version set created_at = now() at time zone 'utc' - make_interval(days => ${days}::int)
      where pod_namespace = ${namespace} and revision = ${n + 1}::int`
  }
  const { confinement } = await read(key, '?to=36h')
  assert.deepEqual(confinement, {
    fromRevision: 2,
    toRevision: 3,
    podSecurity: {
      containers: [
        {
          fields: [
            { field: 'securityContext.allowPrivilegeEscalation', from: false, to: null },
            { field: 'securityContext.privileged', from: null, to: true },
          ],
          name: 'app',
        },
      ],
      ...{ containersAdded: [], containersRemoved: [], level: null, pod: [] },
    },
    seccompProfile: { from: cr('SCMP_ACT_ERRNO'), to: cr('SCMP_ACT_LOG') },
    weakened: [
      {
        ...{ container: 'app', newlyFailing: ['privileged', 'privilegeEscalation'] },
        ...{ levelFrom: 'baseline', levelTo: 'privileged' },
      },
    ],
    isSeccompWeakened: true,
  })
  const same = await read(key, '?from=12h')
  assert.deepEqual([same.confinement.fromRevision, same.confinement.toRevision, same.confinement.weakened], [4, 4, []])
  await app.sql`delete from workload_profile_version where pod_namespace = ${namespace} and revision < 3`
  assert.deepEqual(reasons(await read(key), 'confinement'), ['before_retention'])
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 200: confinement of a job between its runs is that of the last one', async () => {
  const namespace = newNamespace()
  const key = workload(namespace, 'web')
  const ran = (fields: object) => ({ level: 'baseline' as const, pod: POD, containers: { app: contained(fields) } })
  const between = { level: null, pod: null, containers: {} }
  const states = [
    [ran({ privileged: false }), 9],
    [between, 8],
    [ran({ privileged: true }), 2],
    [between, 1],
  ] as const
  for (const [n, [podSecurity, days]] of states.entries()) {
    await storeState(app.db.job, key, { snapshot: { podSecurity } })
    await app.sql`
      update workload_profile_version set created_at = now() at time zone 'utc' - make_interval(days => ${days}::int)
      where pod_namespace = ${namespace} and revision = ${n + 1}::int`
  }
  const { confinement, notKnown } = await read(key)
  assert.deepEqual([confinement.fromRevision, confinement.toRevision, confinement.podSecurity.level], [1, 3, null])
  assert.deepEqual(
    confinement.weakened.map(({ container, newlyFailing }: { container: string; newlyFailing: string[] }) => [
      container,
      newlyFailing,
    ]),
    [['app', ['privileged']]],
  )
  assert.deepEqual(reasons({ notKnown }, 'confinement'), [])
  await app.sql`delete from workload_profile_version where pod_namespace = ${namespace} and revision = 1`
  assert.deepEqual(reasons(await read(key), 'confinement'), ['no_inventory'])
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 200: a reset of the syscalls takes no seccomp profile away', async () => {
  const namespace = newNamespace()
  const key = workload(namespace, 'web')
  const cr = { name: 'web', hash: 'h', defaultAction: 'SCMP_ACT_ERRNO' }
  const podSecurity = { level: 'baseline' as const, pod: POD, containers: { app: contained() } }
  const applied = { syscalls: ['read'], captureLevel: 'full', cr }
  for (const syscalls of [applied, { syscalls: null, captureLevel: null, cr: null }])
    await storeState(app.db.job, key, { snapshot: { podSecurity, syscalls } })
  await app.sql`
    update workload_profile_version set created_at = created_at - interval '9 days'
    where pod_namespace = ${namespace} and revision = 1`
  const diff = await read(key)
  assert.deepEqual([diff.confinement.seccompProfile, diff.confinement.isSeccompWeakened], [null, false])
  assert.deepEqual(reasons(diff, 'confinement'), ['no_syscalls'])
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 200: the range is seven days, and never ends in the future', async () => {
  const { key } = await released()
  const span = ({ from, to }: { from: string; to: string }) =>
    (Date.parse(`${to}Z`) - Date.parse(`${from}Z`)) / 3_600_000
  assert.equal(span(await read(key)), 7 * DAY)
  assert.equal(span(await read(key, '?to=2d&from=')), 7 * DAY)
  assert.equal(span(await read(key, '?to=1d&from=2d')), DAY)
  const { to, from } = await read(key, '?to=2999-01-01T00:00:00Z&from=2026-01-01T01:00:00%2B01:00')
  assert.ok(to < '2999')
  assert.equal(from, '2026-01-01T00:00:00')
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 404: nothing is known of the workload', async () => {
  assertNoData(await app.get(pathOf({ namespace: newNamespace() })))
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 400: a bad path, time or order, and an unknown parameter', async () => {
  const refused = async (path: string, name: string) => {
    const answer = await app.get(path)
    assert.equal(answer.status, 400, path)
    assert.ok(answer.text.includes(`${name}: `), answer.text)
  }
  for (const [key, part] of BAD_PATHS) await refused(pathOf(key), part)
  const { key } = await released()
  for (const text of ['x', '%25', '7', '-1d', '2026-02-30T00:00:00Z', '2026-01-01T00:00:00Z%00', '1'.repeat(5_000)])
    for (const name of ['from', 'to']) await refused(pathOf(key, `?${name}=${text}`), name)
  await refused(pathOf(key, '?from=1d&to=1d'), 'from')
  await refused(pathOf(key, '?from=1d&to=2d'), 'from')
  await refused(pathOf(key, '?from=2999-01-01T00:00:00Z'), 'from')
  await refused(pathOf(key, '?since=1d'), 'since')
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 401: without a token', async () => {
  assertUnauthorized(await guarded.get(pathOf({ namespace: 'shop' })))
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 503: a cancelled statement', async () => {
  const { key } = await released(guarded)
  await whileRefused(guarded.sql, 'runtime_executable', async () =>
    assertDatabaseBusy(await guarded.get(pathOf(key), { token })),
  )
})

test('GET /workloads/{namespace}/{kind}/{name}/diff 503: charged 24 MiB', async () => {
  const { budget } = guarded.deps
  const spent = await budget.acquire(budget.totalKib - 1)
  assertShed(await guarded.get(pathOf({ namespace: 'shop' }), { token }), 24 * 1_024, budget.totalKib)
  spent()
})
