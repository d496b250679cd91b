import assert from 'node:assert/strict'
import { test } from 'node:test'
import { supplyChainRefresh } from '../jobs/supply-chain-refresh.ts'
import { SIGNALS } from '../lib/changes/order.ts'
import {
  countFlows,
  hoursAgo,
  storeContainers,
  storeEdges,
  storeFiles,
  storeInstances,
  storePods,
  storeSyscalls,
} from './changes/rows.ts'
import { startApp, TOKENS } from './support/app.ts'
import { newDigest, newNamespace } from './support/images.ts'
import { contained, POD, storeState, workload } from './support/profile-versions.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from './support/routes.ts'
import { finding, storeFindings } from './support/supply-chain.ts'

const app = await startApp({ SUPPLYCHAIN_TIER_UNKNOWN_EXPOSURE_AS_EXPOSED: 'true' })
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const limited = await startApp(
  {
    ...{ RUNTIME_INVENTORY_RETENTION_DAYS: '3', IMAGE_INVENTORY_RETENTION_DAYS: '3' },
    ...{ FLOW_EDGE_RETENTION_DAYS: '30', PROFILE_VERSIONS_RETENTION_DAYS: '20' },
  },
  app,
)
const token = TOKENS.BROKER_TOKEN_READ
const DAY = 24
await countFlows(app.sql)

type Query = Record<string, string | number>
const pathOf = (namespace: string, query: Query = {}) =>
  `/changes?${new URLSearchParams({ namespace, ...query } as Record<string, string>)}`
const read = async (namespace: string, query: Query = {}, of = app) => {
  const answer = await of.get(pathOf(namespace, query))
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
async function pass(): Promise<void> {
  const context = { config: app.deps.config, db: app.db, log: app.deps.log, signal: new AbortController().signal }
  assert.equal((await supplyChainRefresh.run(context)).outcome, 'done')
}
type Item = {
  name: string
  signals: string[]
  changes: number
  counts: Record<string, unknown>
  facts: Record<string, unknown[]>
  notKnown: { part: string; reason: string }[]
}
const names = ({ items }: { items: Item[] }) => items.map(({ name }) => name)
const reasons = ({ notKnown }: Item, part: string) =>
  notKnown.filter((one) => one.part === part).map(({ reason }) => reason)

/** A workload that is recorded since ten days: its container is watched, and it had an edge and a version. */
async function known(namespace: string, name: string, of = app): Promise<{ digest: string }> {
  const digest = newDigest()
  const names = { namespace, workload: name }
  await storeContainers(of.sql, [{ ...names, digest, first: hoursAgo(10 * DAY), last: hoursAgo(0) }])
  await storeInstances(of.sql, [{ ...names, digest, covered: hoursAgo(10 * DAY) }])
  await storeEdges(of.sql, [{ ...names, ip: '10.1.1.1', first: hoursAgo(10 * DAY), last: hoursAgo(9 * DAY) }])
  await storeSyscalls(of.sql, {
    ...names,
    names: ['read'],
    firstSeen: [hoursAgo(10 * DAY)],
    updated: hoursAgo(10 * DAY),
  })
  await state(namespace, name, { privileged: false }, 10, of)
  return { digest }
}

/** The next version of the profile of a workload, some days ago. */
async function state(namespace: string, name: string, fields: object, days: number, of = app): Promise<void> {
  const containers = { app: contained(fields) }
  const podSecurity = { level: 'baseline' as const, pod: POD, containers }
  const { revision } = await storeState(of.db.job, workload(namespace, name), { snapshot: { podSecurity } })
  await of.sql`
    update workload_profile_version set created_at = now() at time zone 'utc' - make_interval(days => ${days}::int)
    where pod_namespace = ${namespace} and workload_name = ${name} and revision = ${revision!}::int`
}

/** Another image since two days. */
async function release(namespace: string, name: string, before: string, of = app): Promise<string> {
  const digest = newDigest()
  await of.sql`
    update workload_container set last_seen = now() at time zone 'utc' - interval '2 days', state = 'terminated'
    where pod_namespace = ${namespace} and workload_name = ${name} and image_digest = ${before}`
  const names = { namespace, workload: name }
  await storeContainers(of.sql, [{ ...names, digest, first: hoursAgo(2 * DAY), last: hoursAgo(0) }])
  await storeInstances(of.sql, [{ ...names, digest, covered: hoursAgo(2 * DAY) }])
  return digest
}

const NOTHING = {
  ...{ newImages: 0, untrustedImages: 0, uncheckedImages: 0 },
  findingsCame: { P0: 0, P1: 0, P2: 0, Background: 0 },
  ...{ urgentFindingsInUse: 0, findingsWent: 0, newEdges: 0, exposingEdges: 0, outsideEdges: 0 },
  ...{ unshippedFiles: 0, newSyscalls: 0, weakened: 0 },
}
const NO_FACTS = { images: [], signatures: [], findings: [], edges: [], files: [], syscalls: [], weakened: [] }

test('GET /changes 200: a workload without a change, and a namespace without workloads', async () => {
  const namespace = newNamespace()
  assert.deepEqual(
    { ...(await read(namespace)), from: null, to: null },
    {
      ...{ namespace, from: null, to: null, items: [], total: 0, truncated: false, nextAfter: null },
    },
  )
  await known(namespace, 'calm')
  const page = await read(namespace)
  assert.deepEqual(page.items, [
    { kind: 'Deployment', name: 'calm', signals: [], changes: 0, counts: NOTHING, facts: NO_FACTS, notKnown: [] },
  ])
  assert.equal((Date.parse(`${page.to}Z`) - Date.parse(`${page.from}Z`)) / 3_600_000, 7 * DAY)
})

test('GET /changes 200: each signal, the most telling first, with its facts', async () => {
  const namespace = newNamespace()
  const of = async (name: string) => ({ name, ...(await known(namespace, name)) })
  // By name the order would be the reverse one.
  const [image, urgent, weak, file, edge, unsigned, used] = [
    ...[await of('a-image'), await of('b-urgent'), await of('c-weak'), await of('d-file'), await of('e-edge')],
    ...[await of('f-unsigned'), await of('g-used')],
  ] as const
  const FILE = ['/usr/lib/x.so']
  const scanned = async (digest: string, id: string | null, fields = {}) => {
    const found = id === null ? [] : [finding(id, { package_name: 'lib', class: 'os-pkgs', ...fields })]
    await storeFindings(app, digest, 'operator-scanner', found)
  }
  const after: Record<string, string> = {}
  for (const one of [image, urgent, unsigned, used]) {
    after[one.name] = await release(namespace, one.name, one.digest)
    await scanned(one.digest, null)
  }
  await scanned(after[image.name]!, 'CVE-2024-1', { severity: 3 })
  await scanned(after[urgent.name]!, 'CVE-2024-2', { severity: 0 })
  await scanned(after[unsigned.name]!, null)
  await scanned(after[used.name]!, 'CVE-2024-3', { severity: 0, kev: true, file_paths: FILE })
  await storeFiles(app.sql, [
    {
      ...{ namespace, workload: used.name, digest: after[used.name]!, path: FILE[0]!, entryKind: 'lib' },
      first: hoursAgo(DAY),
    },
    { namespace, workload: file.name, path: '/tmp/x', origin: 'memfd', first: hoursAgo(DAY) },
    { namespace, workload: file.name, path: '/bin/sh', first: hoursAgo(DAY) },
    // It ran before, as a file of the image.
    { namespace, workload: file.name, path: '/tmp/y', digest: 'a', first: hoursAgo(9 * DAY) },
    { namespace, workload: file.name, path: '/tmp/y', digest: 'b', origin: 'deleted', first: hoursAgo(DAY) },
  ])
  await app.sql`
    insert into image_attestation (digest, repository, verdict, signatures, attestations, verified_signatures,
                                   verified_attestations, signers, verified_predicates, post, checked_at, received_at)
    select d, 'r', v, '[]', '[]', '[]', '[]', '[]', '[]', 'p', '2026-01-02', '2026-01-02'
    from (values (${after[unsigned.name]!}, 'unsigned'), (${after[image.name]!}, 'verified')) x(d, v)`
  const recent = { first: hoursAgo(DAY), last: hoursAgo(DAY) }
  await storeEdges(app.sql, [
    { namespace, workload: edge.name, ip: '8.8.8.8', isPublic: true, ...recent },
    {
      namespace,
      workload: edge.name,
      type: 'INGRESS',
      peerKind: 'pod',
      peerNamespace: 'other',
      peerWorkload: 'w',
      ...recent,
    },
    { namespace, workload: edge.name, ip: '10.0.0.7', ...recent },
  ])
  await state(namespace, weak.name, { privileged: true }, 1)
  await app.sql`
    update workload_syscalls_seen
    set names = '{bpf,read}', first_seen = array[now() at time zone 'utc' - interval '1 day', first_seen[1]],
        images = '{0,0}'
    where pod_namespace = ${namespace} and workload_name = ${weak.name}`
  await pass()
  const page = await read(namespace)
  assert.deepEqual(
    names(page),
    [used, unsigned, edge, file, weak, urgent, image].map(({ name }) => name),
  )
  const items = new Map((page.items as Item[]).map((one) => [one.name, one]))
  const shown = ({ name }: { name: string }) => items.get(name)!
  assert.deepEqual(shown(used).signals, ['urgentFindingsInUse', 'urgentFindings', 'newImage'])
  assert.deepEqual(shown(used).facts.findings, [{ id: 'CVE-2024-3', severity: 'CRITICAL', tier: 'P0', inUse: true }])
  assert.deepEqual(shown(unsigned).signals, ['untrustedImage', 'newImage'])
  assert.deepEqual(shown(unsigned).facts.signatures, [{ digest: after[unsigned.name], verdict: 'unsigned' }])
  assert.deepEqual(shown(edge).signals, ['newExposure'])
  const { newEdges, exposingEdges, outsideEdges } = shown(edge).counts
  assert.deepEqual([newEdges, exposingEdges, outsideEdges, shown(edge).changes], [3, 1, 1, 3])
  const peers = shown(edge).facts.edges as { peer: { kind: string } }[]
  assert.deepEqual(
    peers.map(({ peer }) => peer.kind),
    ['pod', 'external', 'unresolved'],
  )
  assert.deepEqual(shown(file).signals, ['unshippedFiles'])
  assert.deepEqual(shown(file).counts, { ...NOTHING, unshippedFiles: 1 })
  assert.deepEqual(
    (shown(file).facts.files as { path: string }[]).map(({ path }) => path),
    ['/tmp/x'],
  )
  assert.deepEqual(shown(weak).signals, ['confinementWeakened'])
  assert.deepEqual(shown(weak).counts, { ...NOTHING, weakened: 1, newSyscalls: 1 })
  assert.deepEqual(
    (shown(weak).facts.syscalls as { name: string }[]).map(({ name }) => name),
    ['bpf'],
  )
  assert.deepEqual(shown(urgent).signals, ['urgentFindings', 'newImage'])
  assert.deepEqual(shown(image).signals, ['newImage'])
  assert.deepEqual(shown(image).counts, {
    ...NOTHING,
    ...{ newImages: 1, findingsCame: { P0: 0, P1: 0, P2: 1, Background: 0 } },
  })
  assert.deepEqual([shown(urgent).counts.uncheckedImages, shown(image).counts.uncheckedImages], [1, 0])
  assert.deepEqual([...new Set(page.items.flatMap(({ signals }: Item) => signals))].sort(), SIGNALS.toSorted())
})

test('GET /changes 200: findings that went, and images that have no report, or none of one scanner, are unknown', async () => {
  const namespace = newNamespace()
  const found = async (digest: string, source: string, ...ids: string[]) =>
    storeFindings(
      app,
      digest,
      source,
      ids.map((id) => finding(id)),
    )
  const after: string[] = []
  for (const name of ['a-went', 'b-none', 'c-other']) {
    const { digest } = await known(namespace, name)
    await found(digest, 'operator-scanner', 'CVE-2024-1', 'CVE-2024-2')
    after.push(await release(namespace, name, digest))
  }
  await found(after[0]!, 'operator-scanner', 'CVE-2024-2')
  await found(after[0]!, 'db-matcher', 'CVE-2024-3')
  await found(after[2]!, 'db-matcher', 'CVE-2024-1')
  await pass()
  const { items } = await read(namespace)
  const of = (name: string): Item => items.find((one: Item) => one.name === name)
  assert.deepEqual([of('a-went').counts.findingsWent, of('a-went').counts.findingsCame], [1, NOTHING.findingsCame])
  for (const [name, reason] of [
    ['b-none', 'no_report'],
    ['c-other', 'no_common_source'],
  ] as const) {
    const { findingsCame, findingsWent, urgentFindingsInUse } = of(name).counts
    assert.deepEqual([findingsCame, findingsWent, urgentFindingsInUse], [null, null, null])
    assert.deepEqual(reasons(of(name), 'findings'), [reason])
  }
})

test('GET /changes 200: what is older than its record is unknown, and counts as no change', async () => {
  const namespace = newNamespace()
  const names = { namespace, workload: 'young' }
  const digest = newDigest()
  await storeContainers(app.sql, [{ ...names, digest, first: hoursAgo(2 * DAY), last: hoursAgo(0) }])
  await storeInstances(app.sql, [{ ...names, digest, covered: hoursAgo(2 * DAY) }])
  await storeFiles(app.sql, [{ ...names, digest, path: '/tmp/x', origin: 'memfd', first: hoursAgo(DAY) }])
  await storeEdges(app.sql, [{ ...names, ip: '8.8.8.8', isPublic: true, first: hoursAgo(DAY), last: hoursAgo(DAY) }])
  await storeSyscalls(app.sql, { ...names, names: ['read'], firstSeen: [hoursAgo(DAY)] })
  await state(namespace, 'young', { privileged: true }, 1)
  const [item] = (await read(namespace)).items as [Item]
  assert.deepEqual(item.counts, Object.fromEntries(Object.keys(NOTHING).map((key) => [key, null])))
  assert.deepEqual([item.signals, item.changes, item.facts], [[], 0, NO_FACTS])
  assert.deepEqual(
    item.notKnown.map(({ part, reason }) => [part, reason]),
    ['images', 'findings', 'edges', 'files', 'syscalls', 'confinement'].map((part) => [part, 'not_recorded_then']),
  )
  const [later] = (await read(namespace, { since: '30h' })).items as [Item]
  assert.deepEqual(later.signals, ['newExposure', 'unshippedFiles'])
})

test('GET /changes 200: a workload that the inventory does not know, and images that came back', async () => {
  const namespace = newNamespace()
  await storeState(app.db.job, workload(namespace, 'profiled'))
  const { digest } = await known(namespace, 'back')
  const other = await release(namespace, 'back', digest)
  // The first image runs again: the other one came and went.
  await app.sql`
    update workload_container set first_seen = now() at time zone 'utc' - interval '3 days',
                                  last_seen = now() at time zone 'utc' - interval '2 days'
    where pod_namespace = ${namespace} and image_digest = ${other}`
  await app.sql`
    update workload_container set last_seen = now() at time zone 'utc'
    where pod_namespace = ${namespace} and image_digest = ${digest}`
  const { items, total } = await read(namespace)
  const of = (name: string): Item => items.find((one: Item) => one.name === name)
  assert.deepEqual([of('back').counts.newImages, of('back').signals, total], [0, [], 2])
  assert.deepEqual(reasons(of('profiled'), 'images'), ['no_inventory'])
})

test('GET /changes 200: pages in their order, of one range, each workload once', async () => {
  const namespace = newNamespace()
  for (const name of ['d', 'b', 'a', 'c']) {
    const { digest } = await known(namespace, name)
    if (name !== 'b') await release(namespace, name, digest)
  }
  await storeEdges(app.sql, [{ namespace, workload: 'c', ip: '10.0.0.8', first: hoursAgo(DAY), last: hoursAgo(DAY) }])
  const whole = await read(namespace)
  assert.deepEqual(names(whole), ['c', 'a', 'd', 'b'])
  assert.equal(whole.nextAfter, null)
  const seen: Item[] = []
  let after: string | null = ''
  let first: { from: string; to: string } | null = null
  while (after !== null) {
    const page: { items: Item[]; nextAfter: string | null; total: number; from: string; to: string } = await read(
      namespace,
      {
        limit: 1,
        after,
      },
    )
    first ??= page
    assert.deepEqual([page.from, page.to, page.total, page.items.length], [first.from, first.to, 4, 1])
    assert.ok(seen.length < 4, 'no page repeats an item')
    seen.push(...page.items)
    after = page.nextAfter
  }
  assert.deepEqual(seen, whole.items)
})

test('GET /changes 200: the limit is moved into its range', async () => {
  const namespace = newNamespace()
  for (const name of ['a', 'b'])
    await storeContainers(app.sql, [
      { namespace, workload: name, digest: newDigest(), first: hoursAgo(9), last: hoursAgo(0) },
    ])
  assert.equal((await read(namespace, { limit: 0 })).items.length, 1)
  assert.equal((await read(namespace, { limit: 9_999 })).items.length, 2)
})

test('GET /changes 200: of more than 500 workloads the first are looked at', async () => {
  const namespace = newNamespace()
  const digest = newDigest()
  const first = hoursAgo(10 * DAY)
  await storeContainers(
    app.sql,
    Array.from({ length: 501 }, (_, i) => ({ namespace, workload: `w-${i}`, digest, first, last: hoursAgo(0) })),
  )
  const { items, total, truncated } = await read(namespace, { limit: 200 })
  assert.deepEqual([items.length, total, truncated], [200, 501, true])
})

test('GET /changes 200: live pods that nobody watches make new files unknown', async () => {
  const namespace = newNamespace()
  await known(namespace, 'web')
  await storePods(app.sql, [{ name: `${namespace}-p`, namespace, containers: ['app'] }])
  const [item] = (await read(namespace)).items as [Item]
  assert.deepEqual([item.counts.unshippedFiles, reasons(item, 'files')], [null, ['capture_gap']])
})

test('GET /changes 400: without a namespace, a bad time, limit or cursor, and an unknown parameter', async () => {
  const cursor = (...keys: unknown[]) => Buffer.from(JSON.stringify(keys)).toString('base64url')
  const times = ['2026-01-01T00:00:00', '2026-01-02T00:00:00']
  for (const [path, name] of [
    ['/changes', 'namespace'],
    ['/changes?namespace=%20', 'namespace'],
    ['/changes?namespace=a%00', 'namespace'],
    [pathOf('a', { since: 'x' }), 'since'],
    [pathOf('a', { since: '%_' }), 'since'],
    [pathOf('a', { since: '1'.repeat(5_000) }), 'since'],
    [pathOf('a', { since: '2999-01-01T00:00:00Z' }), 'since'],
    [pathOf('a', { limit: 'x' }), 'limit'],
    [pathOf('a', { after: 'x!' }), 'after'],
    [pathOf('a', { after: cursor(...times, 128, 0, 'K', 'n') }), 'after'],
    [pathOf('a', { after: cursor(...times, 1, 0, 'K', 'n\0') }), 'after'],
    [pathOf('a', { after: cursor('2026', times[1], 1, 0, 'K', 'n') }), 'after'],
    [pathOf('a', { to: '1d' }), 'to'],
  ] as const) {
    const answer = await app.get(path)
    assert.equal(answer.status, 400, path)
    assert.ok(answer.text.includes(`${name}: `), answer.text)
  }
})

test('GET /changes 400: since is at most as far back as the longest retention time', async () => {
  assert.equal((await limited.get(pathOf('a', { since: '29d' }))).status, 200)
  const answer = await limited.get(pathOf('a', { since: '31d' }))
  assert.equal(answer.status, 400)
  assert.equal(
    answer.text,
    'Query deserialize error: since: expected a time of the last 30 days: nothing is kept for longer',
  )
  // Something is kept for ever.
  assert.equal((await app.get(pathOf('a', { since: '5000d' }))).status, 200)
})

test('GET /changes 200: a namespace is compared exactly, with any text', async () => {
  const namespace = `${newNamespace()}%_'"é`
  await storeContainers(app.sql, [{ namespace, digest: newDigest(), first: hoursAgo(9), last: hoursAgo(0) }])
  assert.equal((await read(namespace)).total, 1)
  assert.equal((await read(namespace.replace('%', 'x'))).total, 0)
})

test('GET /changes 401: without a token', async () => {
  assertUnauthorized(await guarded.get(pathOf('shop')))
})

test('GET /changes 503: a cancelled statement', async () => {
  await whileRefused(guarded.sql, 'workload_container', async () =>
    assertDatabaseBusy(await guarded.get(pathOf('shop'), { token })),
  )
})

test('GET /changes 503: charged 32 MiB', async () => {
  const { budget } = guarded.deps
  const spent = await budget.acquire(budget.totalKib - 1)
  assertShed(await guarded.get(pathOf('shop'), { token }), 32 * 1_024, budget.totalKib)
  spent()
})
