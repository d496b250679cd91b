import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hoursAgo, storeContainers, storeFiles, storeInstances, storePods } from '../changes/rows.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { container, newDigest, newNamespace, replica } from '../support/images.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'
import { component, finding, storeFindings, storeSbom } from '../support/supply-chain.ts'

const app = await startApp()
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ
const pathOf = (from: string, to: string) => `/images/${from}/diff/${to}`
const read = async (from: string, to: string) => {
  const answer = await app.get(pathOf(from, to))
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
type Gap = { part: string; reason: string; digest: string | null }
const gaps = (diff: { notKnown: Gap[] }, part: string) =>
  diff.notKnown.filter((one) => one.part === part).map(({ reason, digest }) => [reason, digest])
const list = (items: unknown[]) => ({ items, total: items.length, truncated: false })
const deb = (name: string, version: string) =>
  component(name, { version, purl: `pkg:deb/debian/${name}@${version}?arch=amd64`, type: 'deb' })
const pair = () => [newDigest(), newDigest()] as const

test('GET /images/{digest}/diff/{other} 200: of unknown images everything is null with a reason', async () => {
  const [from, to] = pair()
  const signature = (digest: string) => ({ digest, verdict: null, reason: null, signers: [], checkedAt: null })
  assert.deepEqual(await read(from, to), {
    ...{ from, to, components: null, findings: null },
    signatures: { from: signature(from), to: signature(to) },
    files: null,
    notKnown: [
      ...[from, to].sort().map((digest) => ({ part: 'components', reason: 'no_sbom', container: null, digest })),
      ...[from, to].sort().map((digest) => ({ part: 'findings', reason: 'no_report', container: null, digest })),
      ...[from, to].sort().map((digest) => ({ part: 'files', reason: 'no_runtime_data', container: null, digest })),
    ],
  })
})

test('GET /images/{digest}/diff/{other} 200: components that came, went and changed their version; the rest of a purl does not matter', async () => {
  const [from, to] = pair()
  await storeSbom(app, from, 'operator-scanner', [
    deb('openssl', '3.0.1'),
    deb('zlib', '1.2'),
    deb('gone', '1'),
    component('@angular/core', { version: '15', purl: 'pkg:npm/@angular/core@15' }),
    component('plain', { version: '1', type: 'jar' }),
  ])
  await storeSbom(app, to, 'operator-scanner', [
    component('openssl', { version: '3.0.2', purl: 'pkg:deb/debian/openssl@3.0.2?arch=arm64&vcs_url=git@x/y' }),
    deb('zlib', '1.2'),
    deb('new', '2'),
    component('@angular/core', { version: '16', purl: 'pkg:npm/@angular/core@16#sub' }),
    component('plain', { version: '1', type: 'war' }),
  ])
  const { components } = await read(from, to)
  const of = (name: string) => ({ name, purl: `pkg:deb/debian/${name}`, type: null })
  const plain = (type: string) => ({ name: 'plain', purl: null, type, version: '1', count: 1 })
  assert.deepEqual(components, {
    sources: ['operator-scanner'],
    added: list([{ ...of('new'), version: '2', count: 1 }, plain('war')]),
    removed: list([{ ...of('gone'), version: '1', count: 1 }, plain('jar')]),
    changed: list([
      { name: '@angular/core', purl: 'pkg:npm/@angular/core', type: null, from: '15', to: '16', count: 1 },
      { ...of('openssl'), from: '3.0.1', to: '3.0.2', count: 1 },
    ]),
  })
})

/** An index that runs, with an SBOM of each platform. */
async function indexOf(sboms: { manifest: string; platform?: string; components: unknown[] }[]) {
  const digest = newDigest()
  const answer = await app.post('/pod/spec', replica(newNamespace(), [container('app', digest)]))
  assert.equal(answer.status, 200, answer.text)
  for (const { manifest, platform, components } of sboms)
    await storeSbom(app, manifest, 'operator-scanner', components as Parameters<typeof storeSbom>[3], {
      index_digest: digest,
      platform_manifests: platform === undefined ? {} : { [platform]: manifest },
    })
  return digest
}

test('GET /images/{digest}/diff/{other} 200: of two indexes one platform is compared; where none is common it is unknown', async () => {
  const manifests = [0, 1, 2, 3, 4].map(() => newDigest()).sort()
  const amd = (version: string) => [deb('bash', version), deb('intel-microcode', '1')]
  const [AMD, ARM] = ['linux/amd64', 'linux/arm64']
  const [from, to] = [
    await indexOf([
      { manifest: manifests[0]!, platform: AMD, components: amd('1') },
      { manifest: manifests[1]!, platform: ARM, components: [deb('bash', '1')] },
    ]),
    await indexOf([
      { manifest: manifests[2]!, platform: ARM, components: [deb('bash', '2')] },
      { manifest: manifests[3]!, platform: AMD, components: amd('2') },
    ]),
  ]
  const totals = ({ components: { added, removed, changed } }: Awaited<ReturnType<typeof read>>) =>
    [added, removed, changed].map(({ total }) => total)
  assert.deepEqual(totals(await read(from, to)), [0, 0, 1])
  const arm = await indexOf([{ manifest: manifests[4]!, platform: ARM, components: [deb('bash', '3')] }])
  assert.deepEqual(totals(await read(from, arm)), [0, 0, 1])
  // The image of a platform itself, with an index, and with that of another platform.
  assert.deepEqual(totals(await read(manifests[0]!, to)), [0, 0, 1])
  assert.deepEqual(totals(await read(manifests[0]!, manifests[1]!)), [0, 1, 0])
  const onlyAmd = await indexOf([{ manifest: newDigest(), platform: AMD, components: amd('1') }])
  const unnamed = await indexOf([
    { manifest: newDigest(), components: amd('1') },
    { manifest: newDigest(), components: [deb('bash', '1')] },
  ])
  for (const [a, b] of [
    [onlyAmd, arm],
    [from, unnamed],
  ]) {
    const diff = await read(a!, b!)
    assert.deepEqual([diff.components, gaps(diff, 'components')], [null, [['no_common_source', null]]])
  }
})

test('GET /images/{digest}/diff/{other} 200: SBOMs of one source are compared; without a common one it is unknown, not all new', async () => {
  const [from, to] = pair()
  await storeSbom(app, from, 'registry', [deb('a', '1')])
  await storeSbom(app, to, 'operator-scanner', [deb('a', '1'), deb('b', '1')])
  const apart = await read(from, to)
  assert.deepEqual([apart.components, gaps(apart, 'components')], [null, [['no_common_source', null]]])
  await storeSbom(app, to, 'registry', [deb('a', '2')])
  const { components } = await read(from, to)
  assert.deepEqual([components.sources, components.added.total, components.changed.total], [['registry'], 0, 1])
})

test('GET /images/{digest}/diff/{other} 200: a side without an SBOM is unknown', async () => {
  const [from, to] = pair()
  await storeSbom(app, to, 'registry', [deb('a', '1')])
  const diff = await read(from, to)
  assert.deepEqual([diff.components, gaps(diff, 'components')], [null, [['no_sbom', from]]])
  const back = await read(to, from)
  assert.deepEqual([back.components, gaps(back, 'components')], [null, [['no_sbom', from]]])
})

test('GET /images/{digest}/diff/{other} 200: an SBOM without components is known', async () => {
  const [from, to] = pair()
  await storeSbom(app, from, 'registry', [])
  await storeSbom(app, to, 'registry', [deb('a', '1')])
  assert.equal((await read(from, to)).components.added.total, 1)
})

test('GET /images/{digest}/diff/{other} 200: findings that came, went and changed, merged over the sources that both have', async () => {
  const [from, to] = pair()
  const of = (id: string, packageName: string, fields = {}) =>
    finding(id, { package_name: packageName, installed_version: '1', ...fields })
  await storeFindings(app, from, 'operator-scanner', [
    of('CVE-2024-1', 'same'),
    of('CVE-2024-2', 'gone', { severity: 0 }),
    of('CVE-2024-3', 'fixed'),
    of('CVE-2024-4', 'version'),
    of('CVE-2024-5', 'severity', { severity: 3 }),
    of('CVE-2024-6', 'one'),
  ])
  await storeFindings(app, to, 'operator-scanner', [
    of('CVE-2024-1', 'same'),
    of('CVE-2024-3', 'fixed', { fixed_versions: ['2'] }),
    of('CVE-2024-4', 'version', { installed_version: '2' }),
    of('CVE-2024-5', 'severity', { severity: 0 }),
    of('CVE-2024-6', 'other', { kev: true, epss: 0.5 }),
  ])
  // The other image was never looked at by this scanner.
  await storeFindings(app, to, 'db-matcher', [of('CVE-2024-7', 'unseen')])
  const { findings } = await read(from, to)
  const sideOf = (severity: string, installedVersions = ['1'], fixedVersions: string[] = []) => ({
    severity,
    installedVersions,
    fixedVersions,
  })
  const shown = (id: string, packageName: string, before: unknown, after: unknown) => ({
    ...{ id, package: packageName, kev: null, epss: null, from: before, to: after },
  })
  assert.deepEqual(findings, {
    sources: ['operator-scanner'],
    came: list([{ ...shown('CVE-2024-6', 'other', null, sideOf('HIGH')), kev: true, epss: 0.5 }]),
    went: list([
      shown('CVE-2024-2', 'gone', sideOf('CRITICAL'), null),
      { ...shown('CVE-2024-6', 'one', sideOf('HIGH'), null), kev: true, epss: 0.5 },
    ]),
    changed: list([
      shown('CVE-2024-5', 'severity', sideOf('LOW'), sideOf('CRITICAL')),
      shown('CVE-2024-3', 'fixed', sideOf('HIGH'), sideOf('HIGH', ['1'], ['2'])),
      shown('CVE-2024-4', 'version', sideOf('HIGH'), sideOf('HIGH', ['2'])),
    ]),
  })
})

test('GET /images/{digest}/diff/{other} 200: a side without a report, and sides of other scanners, are unknown', async () => {
  const [from, to] = pair()
  await storeFindings(app, to, 'db-matcher', [finding('CVE-2024-1')])
  const diff = await read(from, to)
  assert.deepEqual([diff.findings, gaps(diff, 'findings')], [null, [['no_report', from]]])
  await storeFindings(app, from, 'operator-scanner', [])
  const apart = await read(from, to)
  assert.deepEqual([apart.findings, gaps(apart, 'findings')], [null, [['no_common_source', null]]])
})

test('GET /images/{digest}/diff/{other} 200: lists have at most 500 items, and a total', async () => {
  const [from, to] = pair()
  await storeSbom(app, from, 'registry', [])
  await storeSbom(
    app,
    to,
    'registry',
    Array.from({ length: 501 }, (_, i) => deb(`p${i}`, '1')),
  )
  const { added } = (await read(from, to)).components
  assert.deepEqual([added.items.length, added.total, added.truncated], [500, 501, true])
})

test('GET /images/{digest}/diff/{other} 200: an image and itself', async () => {
  const [one] = pair()
  await storeSbom(app, one, 'registry', [deb('a', '1')])
  await storeFindings(app, one, 'registry', [finding('CVE-2024-1')])
  const { components, findings } = await read(one, one)
  for (const part of [components.added, components.removed, components.changed, findings.came, findings.went])
    assert.equal(part.total, 0)
})

test('GET /images/{digest}/diff/{other} 200: the results of the checks of both', async () => {
  const [from, to] = pair()
  await app.sql`
    insert into image_attestation (digest, repository, verdict, reason, signatures, attestations, verified_signatures,
                                   verified_attestations, signers, verified_predicates, post, checked_at, received_at)
    values (${from}, 'r', 'verified', null, '[]', '[]', '[]', '[]', '[{"kind":"key","keyFingerprint":"aa"}]', '[]', 'p',
            '2026-01-02', '2026-01-02'),
           (${to}, 'r', 'unsigned', 'no_signature', '[]', '[]', '[]', '[]', '[]', '[]', 'p', '2026-01-03', '2026-01-03')`
  const { signatures } = await read(from, to)
  assert.deepEqual(signatures, {
    from: {
      ...{ digest: from, verdict: 'verified', reason: null, signers: [{ kind: 'key', keyFingerprint: 'aa' }] },
      checkedAt: '2026-01-02T00:00:00',
    },
    to: {
      ...{ digest: to, verdict: 'unsigned', reason: 'no_signature', signers: [] },
      checkedAt: '2026-01-03T00:00:00',
    },
  })
})

const DAY = 24
/** Two images that ran one after the other, both watched from their start. */
async function watchedPair(older: object = {}, newer: object = {}) {
  const [from, to] = pair()
  const workload = `w-${from.slice(-8)}`
  await storeContainers(app.sql, [
    { workload, digest: from, first: hoursAgo(20 * DAY), last: hoursAgo(10 * DAY) },
    { workload, digest: to, first: hoursAgo(10 * DAY), last: hoursAgo(0) },
  ])
  await storeInstances(app.sql, [
    { workload, digest: from, covered: hoursAgo(20 * DAY), last: hoursAgo(10 * DAY), ended: true, ...older },
    { workload, digest: to, covered: hoursAgo(10 * DAY), ...newer },
  ])
  const first = hoursAgo(9 * DAY)
  await storeFiles(app.sql, [
    { workload, digest: from, path: '/bin/both', first },
    { workload, digest: to, path: '/bin/both', first },
    { workload, digest: from, path: '/bin/old', first },
    { workload, digest: to, path: '/lib/new.so', entryKind: 'lib', first },
  ])
  return { from, to, workload }
}

test('GET /images/{digest}/diff/{other} 200: files that ran in one of two watched images', async () => {
  const { from, to } = await watchedPair()
  const { files, notKnown } = await read(from, to)
  const paths = ({ items }: { items: { kind: string; path: string }[] }) => items.map(({ kind, path }) => [kind, path])
  assert.deepEqual([paths(files.onlyFrom), paths(files.onlyTo)], [[['exec', '/bin/old']], [['lib', '/lib/new.so']]])
  assert.deepEqual(
    notKnown.filter(({ part }: Gap) => part === 'files'),
    [],
  )
})

test('GET /images/{digest}/diff/{other} 200: files are unknown where either image was not watched, with the first reason', async () => {
  const cases: [reason: string, instance: object][] = [
    ['probes_missing', { exec: false, lib: false }],
    ['libraries_not_tracked', { lib: false }],
    ['events_dropped', { dropped: 1, unsent: 1 }],
    ['events_pending', { unsent: 1, incomplete: true }],
    ['incomplete_paths', { incomplete: true }],
    ['capture_gap', { startMode: 'backfill', covered: hoursAgo(10 * DAY), last: hoursAgo(10 * DAY), ended: true }],
    ['watched_too_short', { covered: hoursAgo(10 * DAY), last: hoursAgo(10 * DAY - 2), ended: true }],
  ]
  for (const [reason, instance] of cases) {
    const { from, to } = await watchedPair(instance)
    const diff = await read(from, to)
    assert.deepEqual([diff.files, gaps(diff, 'files')], [null, [[reason, from]]], reason)
  }
  const { from, to, workload } = await watchedPair({}, { last: hoursAgo(5) })
  assert.deepEqual(gaps(await read(from, to), 'files'), [['capture_gap', to]], 'its agent is late')
  const other = await watchedPair()
  await storeContainers(app.sql, [
    { workload: `${workload}-2`, digest: other.to, first: hoursAgo(9), last: hoursAgo(0) },
  ])
  assert.deepEqual(gaps(await read(other.from, other.to), 'files'), [['capture_gap', other.to]], 'another workload')
  const early = await watchedPair({}, { pod: 'web-early' })
  await storeFiles(app.sql, [{ kind: 'Pod', workload: 'web-early', path: '/tmp/early', first: hoursAgo(9 * DAY) }])
  assert.deepEqual(
    gaps(await read(early.from, early.to), 'files'),
    [['incomplete_paths', early.to]],
    'a file that was posted before the image and the workload of its container were known',
  )
  const blind = await watchedPair()
  await storePods(app.sql, [{ name: `${blind.workload}-p`, workload: blind.workload, containers: ['app'] }])
  assert.deepEqual(
    gaps(await read(blind.from, blind.to), 'files'),
    [blind.from, blind.to].sort().map((digest) => ['capture_gap', digest]),
    'a live pod that nobody watches',
  )
})

test('GET /images/{digest}/diff/{other} 400: no digest, U+0000, and an unknown parameter', async () => {
  const [from, to] = pair()
  for (const [path, name] of [
    [pathOf('x', to), 'digest'],
    [pathOf(from, `${to}%00`), 'other'],
    [pathOf(from, 'sha256:%25_'), 'other'],
    [pathOf(from, `sha256:${'a'.repeat(5_000)}`), 'other'],
    [`${pathOf(from, to)}?limit=1`, 'limit'],
  ] as const) {
    const answer = await app.get(path)
    assert.equal(answer.status, 400, path)
    assert.ok(answer.text.includes(`${name}: `), answer.text)
  }
})

test('GET /images/{digest}/diff/{other} 401: without a token', async () => {
  assertUnauthorized(await guarded.get(pathOf(...pair())))
})

test('GET /images/{digest}/diff/{other} 503: a cancelled statement', async () => {
  await whileRefused(guarded.sql, 'image_component', async () =>
    assertDatabaseBusy(await guarded.get(pathOf(...pair()), { token })),
  )
})

test('GET /images/{digest}/diff/{other} 503: charged 24 MiB', async () => {
  const { budget } = guarded.deps
  const spent = await budget.acquire(budget.totalKib - 1)
  assertShed(await guarded.get(pathOf(...pair()), { token }), 24 * 1_024, budget.totalKib)
  spent()
})
