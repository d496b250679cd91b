/** What the database knows of the images of a workload, from posts and passes of the job. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { supplyChainRefresh } from '../../jobs/supply-chain-refresh.ts'
import { type ImageFacts, readImageFacts } from '../../lib/profile/images/facts.ts'
import { HOUR, heartbeat, inSecs } from '../runtime/heartbeats.ts'
import { startApp } from '../support/app.ts'
import { signature, storeAttestation, unverified } from '../support/attestations.ts'
import { container, newDigest, newNamespace, replica } from '../support/images.ts'
import { component, finding, storeFindings, storeSbom } from '../support/supply-chain.ts'
import { inventoryOf } from './inventory.ts'

const app = await startApp()
const { sql } = app

const ok = async (path: string, body: unknown) => {
  const answer = await app.post(path, body)
  assert.equal(answer.status, 200, answer.text)
}
async function pass(): Promise<void> {
  const context = { config: app.deps.config, db: app.db, log: app.deps.log, signal: new AbortController().signal }
  assert.equal((await supplyChainRefresh.run(context)).outcome, 'done')
}
const keyOf = (namespace: string, name = 'web') => ({ namespace, kind: 'Deployment', name })
async function read(namespace: string, retentionDays = 0, name?: string): Promise<ImageFacts> {
  const key = keyOf(namespace, name)
  return readImageFacts(app.db.read, key, await inventoryOf(sql, key), { retentionDays })
}

/** A pod of a Deployment whose containers `app`, `side`, ... run these images; all watched for long. */
async function runs(namespace: string, digests: readonly string[], name = 'web'): Promise<void> {
  const names = ['app', 'side'].slice(0, digests.length)
  const post = replica(
    namespace,
    names.map((one, n) => container(one, digests[n])),
    { workload_name: name },
  )
  await ok('/pod/spec', post)
  const of = {
    pod_namespace: namespace,
    pod_name: post.pod_name,
    workload_name: name,
    tracking_since: inSecs(-60 * HOUR),
  }
  await ok(
    '/runtime/coverage',
    names.map((one, n) => heartbeat({ ...of, container_name: one, image_digest: digests[n] })),
  )
}
const ran = (namespace: string, digest: string, path: string, name = 'web') =>
  ok('/runtime/executables', [
    {
      ...{ pod_namespace: namespace, pod_name: 'web-0', workload_kind: 'Deployment', workload_name: name },
      ...{ container_name: 'app', image_digest: digest, kind: 'exec', path, path_complete: true, source: 'ebpf' },
      ...{ origin: 'image', first_seen: inSecs(-60), last_seen: inSecs(-30) },
    },
  ])
const installed = (name: string, path: string) =>
  component(name, { version: '1', type: 'debian', class: 'os-pkgs', file_paths: [path] })
const of = (name: string, id: string, fields: object = {}) =>
  finding(id, {
    ...{ package_name: name, installed_version: '1', package_type: 'debian', class: 'os-pkgs' },
    ...{ fixed_versions: ['2'], severity: 0, ...fields },
  })
const plain = (groups: ImageFacts['vulnerabilities']) =>
  groups.map(({ severity, tier, count, fixable, inUse, ids }) => [severity, tier, count, fixable, inUse, ids.join()])

test('a workload that runs nothing has no facts', async () => {
  assert.deepEqual(await read('nowhere'), { signatures: [], scanned: [], oldestScanAt: null, vulnerabilities: [] })
})

test('signatures: distinct signers in their order, without those that name nobody, at most eight', async () => {
  const [namespace, one, two, three] = [newNamespace(), newDigest(), newDigest(), newDigest()]
  await runs(namespace, [one, two])
  const key = { signerKind: 'key', issuer: undefined, san: undefined, keyFingerprint: 'ab' } as const
  await storeAttestation(app, one, {
    checked_at: '2026-01-01T00:00:00.5',
    signatures: [
      signature({ issuer: ' ' }),
      signature({ ...key, keyFingerprint: '' }),
      signature({ san: 'b' }),
      signature({ ...key, keyName: 'release' }),
      signature({ san: 'b', keyHint: 'other' }),
      unverified('bad_signature', { issuer: 'i', san: 'unverified' }),
      ...Array.from({ length: 7 }, (_, n) => signature({ san: `a${n}` })),
    ],
  })
  await storeAttestation(app, two, {
    verdict: 'invalid',
    reason: 'bad_signature',
    signatures: [unverified('bad_signature')],
  })
  await storeAttestation(app, three, { signatures: [signature()] })
  const { signatures } = await read(namespace)
  assert.deepEqual(
    signatures.map(({ digest }) => digest),
    [one, two].sort(),
  )
  const verified = signatures.find(({ digest }) => digest === one)!
  assert.deepEqual(
    [verified.verdict, verified.reason, verified.checkedAt],
    ['verified', null, '2026-01-01T00:00:00.500Z'],
  )
  assert.deepEqual(
    verified.signers.map(({ kind, san, keyName, keyFingerprint }) => [kind, san, keyName, keyFingerprint]),
    [
      ['keyless', 'b', null, null],
      ['key', null, 'release', 'ab'],
      ...['a0', 'a1', 'a2', 'a3', 'a4', 'a5'].map((san) => ['keyless', san, null, null]),
    ],
  )
  assert.equal(verified.signerCount, 9)
  const invalid = signatures.find(({ digest }) => digest === two)!
  assert.deepEqual([invalid.verdict, invalid.reason, invalid.signers], ['invalid', 'bad_signature', []])
})

test('signatures: an expired result counts as never checked', async () => {
  const [namespace, digest] = [newNamespace(), newDigest()]
  await runs(namespace, [digest])
  await storeAttestation(app, digest, { checked_at: inSecs(-3 * 24 * HOUR) })
  assert.equal((await read(namespace, 4)).signatures.length, 1)
  assert.equal((await read(namespace, 2)).signatures.length, 0)
})

test('a report counts once the summary has it; without findings it counts too, an SBOM alone does not', async () => {
  const [namespace, one, two] = [newNamespace(), newDigest(), newDigest()]
  await runs(namespace, [one, two])
  await storeSbom(app, one, 'registry', [installed('bash', '/usr/bin/bash')])
  await pass()
  await storeFindings(app, one, 'db-matcher', [of('bash', 'CVE-1')], { scanned_at: '2026-01-02T00:00:00' })
  assert.deepEqual((await read(namespace)).scanned, [], 'not counted yet')
  await pass()
  const first = await read(namespace)
  assert.deepEqual(
    [first.scanned, first.oldestScanAt, plain(first.vulnerabilities).length],
    [[one], '2026-01-02T00:00:00Z', 1],
  )
  await storeFindings(app, two, 'db-matcher', [], { scanned_at: '2026-01-01T00:00:00' })
  await pass()
  const second = await read(namespace)
  assert.deepEqual([[...second.scanned].sort(), second.oldestScanAt], [[one, two].sort(), '2026-01-01T00:00:00Z'])
})

test('vulnerabilities: distinct over images, by the tier that they have in the containers of this workload', async () => {
  const [namespace, other, one, two] = [newNamespace(), newNamespace(), newDigest(), newDigest()]
  await runs(namespace, [one, two])
  await runs(other, [one])
  const packages = ['bash', 'curl', 'perl'].map((name) => installed(name, `/usr/bin/${name}`))
  await storeSbom(app, one, 'registry', [...packages, installed('dash', '/bin/dash')])
  await storeSbom(app, two, 'registry', packages)
  await storeFindings(app, one, 'db-matcher', [
    of('bash', 'USED', { severity: 1, score: 7 }),
    of('bash', 'USED-2', { severity: 1, score: 9, fixed_versions: [] }),
    of('curl', 'UNUSED'),
    of('perl', 'BOTH', { severity: 2 }),
    of('npm', 'MAYBE', { package_type: 'node-pkg', class: 'lang-pkgs' }),
    of('dash', 'HOT', { severity: 3, kev: true }),
  ])
  await storeFindings(app, two, 'db-matcher', [of('perl', 'BOTH', { severity: 2 }), of('curl', 'UNUSED')])
  await ran(namespace, one, '/usr/bin/bash')
  await ran(namespace, one, '/bin/dash')
  await ran(other, one, '/usr/bin/curl')
  await pass()
  const facts = await read(namespace)
  assert.deepEqual([...facts.scanned].sort(), [one, two].sort())
  assert.deepEqual(plain(facts.vulnerabilities), [
    [3, 0, 1, 1, 1, 'HOT'],
    [0, 2, 1, 1, 0, 'MAYBE'],
    [1, 2, 2, 1, 2, 'USED-2,USED'],
    [0, 4, 1, 1, 0, 'UNUSED'],
    [2, 4, 1, 1, 0, 'BOTH'],
  ])
  assert.deepEqual(
    plain((await read(other)).vulnerabilities),
    [
      [0, 2, 2, 2, 1, 'MAYBE,UNUSED'],
      [1, 4, 2, 1, 0, 'USED-2,USED'],
      [2, 4, 1, 1, 0, 'BOTH'],
      [3, 4, 1, 1, 0, 'HOT'],
    ],
    'use by another workload is not use by this one',
  )
  await storeFindings(app, one, 'operator-scanner', [of('curl', 'NEW')])
  const stale = await read(namespace)
  assert.deepEqual(
    stale.vulnerabilities.filter(({ tier }) => tier === 4).flatMap(({ ids }) => ids),
    [],
    'a new report leaves nothing unused until it is counted',
  )
})

test('vulnerabilities: a container that is not watched, or not judged yet, may use every package', async () => {
  const [namespace, digest] = [newNamespace(), newDigest()]
  await runs(namespace, [digest])
  await storeSbom(app, digest, 'registry', [installed('bash', '/usr/bin/bash')])
  await storeFindings(app, digest, 'db-matcher', [
    of('bash', 'CVE-1'),
    ...Array.from({ length: 6 }, (_, n) => of('x', `X-${n}`)),
  ])
  await pass()
  const tiers = async () => plain((await read(namespace)).vulnerabilities)
  const x = [0, 2, 6, 6, 0, 'X-0,X-1,X-2,X-3,X-4']
  assert.deepEqual(await tiers(), [x, [0, 4, 1, 1, 0, 'CVE-1']])
  await sql`delete from container_use where pod_namespace = ${namespace}`
  assert.deepEqual(await tiers(), [[0, 2, 7, 7, 0, 'CVE-1,X-0,X-1,X-2,X-3']])
})

test('vulnerabilities: an image in two containers, of which only one was watched, may be in use', async () => {
  const [namespace, digest] = [newNamespace(), newDigest()]
  await runs(namespace, [digest, digest])
  await storeSbom(app, digest, 'registry', [installed('bash', '/usr/bin/bash')])
  await storeFindings(app, digest, 'db-matcher', [of('bash', 'CVE-1')])
  await pass()
  const tiers = async () => plain((await read(namespace)).vulnerabilities)
  assert.deepEqual(await tiers(), [[0, 4, 1, 1, 0, 'CVE-1']])
  await sql`update container_use set reason = 'capture_gap' where pod_namespace = ${namespace} and container_name = 'side'`
  assert.deepEqual(await tiers(), [[0, 2, 1, 1, 0, 'CVE-1']])
})
