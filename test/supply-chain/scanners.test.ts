/** An image has as many findings and components as the scanners themselves count. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { supplyChainRefresh } from '../../jobs/supply-chain-refresh.ts'
import { SEVERITIES } from '../../lib/supply-chain/severity.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { container, newDigest, newNamespace, replica } from '../support/images.ts'
import {
  countedByGrype,
  countedBySyft,
  ofGrype,
  ofSyft,
  ofTrivy,
  ofTrivyOperator,
  operatorSummary,
} from './scanners.ts'

const app = await startApp(TOKENS)
const supplychain = TOKENS.BROKER_TOKEN_SUPPLYCHAIN
const token = TOKENS.BROKER_TOKEN_READ

async function post(
  digest: string,
  kind: 'vulnerabilities' | 'sbom',
  payload: object,
): Promise<Record<string, unknown>> {
  const answer = await app.post(`/images/${digest}/${kind}`, payload, { token: supplychain })
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
async function get(path: string) {
  const answer = await app.get(path, { token })
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
const findings = async (digest: string, query = ''): Promise<any[]> =>
  (await get(`/images/${digest}/vulnerabilities?limit=500&${query}`)).items

/** How often each value is there. */
function timesOf(values: readonly unknown[]): Record<string, number> {
  const times: Record<string, number> = {}
  for (const value of values) times[String(value)] = (times[String(value)] ?? 0) + 1
  return times
}

/** The number of findings of each severity, by the filter and by the items. */
async function counted(digest: string): Promise<Record<string, number>> {
  const all = await findings(digest)
  const counts: Record<string, number> = {}
  for (const name of SEVERITIES) {
    counts[name] = (await findings(digest, `severity=${name}`)).length
    assert.equal(all.filter(({ severity }) => severity === name).length, counts[name])
  }
  return counts
}

test('a Grype document has the lines of its table: 20 matches, one of them repeated, 8 negligible and 1 unknown', async () => {
  const digest = newDigest()
  assert.deepEqual(await post(digest, 'vulnerabilities', ofGrype(digest)), { status: 'stored', items: 20 })
  assert.deepEqual(await counted(digest), { CRITICAL: 1, HIGH: 4, MEDIUM: 4, LOW: 1, NONE: 8, UNKNOWN: 1 })
  const [twice, ...others] = await findings(digest, 'package=requests')
  assert.deepEqual(
    [twice.id, twice.aliases, twice.fixedVersions, others],
    ['CVE-2024-35195', ['GHSA-9wx4-h78v-vm56'], ['2.32.0'], []],
  )
  assert.deepEqual(
    twice.filePaths.map((path: string) => path.split('/')[1]),
    ['usr', 'opt'],
  )
  assert.deepEqual(
    (await findings(digest, 'kev=true')).map(({ id }) => id),
    ['CVE-2023-4911'],
  )
  assert.deepEqual((await findings(digest, 'epss_min=0.015')).length, 3)
})

// Grype 0.121.2, of alpine.tar, by `-o json=grype-alpine.json -o table`.
test('a Grype document has as many findings of each severity as its table: 4 medium, 2 unknown', async () => {
  assert.deepEqual(countedByGrype('alpine'), { MEDIUM: 4, UNKNOWN: 2 })
  const digest = newDigest()
  assert.deepEqual(await post(digest, 'vulnerabilities', ofGrype(digest, 'grype-alpine')), {
    status: 'stored',
    items: 6,
  })
  assert.deepEqual(await counted(digest), { CRITICAL: 0, HIGH: 0, LOW: 0, NONE: 0, ...countedByGrype('alpine') })
})

// Trivy 0.74.0 prints these totals: `trivy convert --format table trivy.json`. It refuses empty dates, which only reports
// in a cluster have, so they were left out for that run.
test('a Trivy document has the totals of its targets: 11 and 5, one of them repeated, with empty dates and other ids', async () => {
  const digest = newDigest()
  assert.deepEqual(await post(digest, 'vulnerabilities', ofTrivy(digest)), { status: 'stored', items: 16 })
  assert.deepEqual(await counted(digest), { CRITICAL: 1, HIGH: 4, MEDIUM: 3, LOW: 6, NONE: 0, UNKNOWN: 1 })
  const all = await findings(digest)
  assert.deepEqual(
    all.filter(({ publishedAt }) => publishedAt === null).map(({ id }) => id),
    ['TEMP-0841856-B18BAF', 'CVE-2025-99999'],
  )
  const [requests] = await findings(digest, 'vuln_id=ghsa-9wx4-h78v-vm56')
  assert.deepEqual([requests.id, requests.filePaths.length, requests.omitted], ['CVE-2024-35195', 2, 0])
})

// trivy-operator 0.32.0 counted these: its own code made the reports and their summaries.
for (const [document, targets] of [
  ['trivy-operator', { 'registry.test/team/app:v1 (debian 12.5)': 11, Python: 4 }],
  ['trivy-operator-default', { null: 15 }],
] as const) {
  test(`a VulnerabilityReport (${document}) has the counts of its own summary, less the entry that it repeats`, async () => {
    const summary = operatorSummary(document)
    assert.deepEqual(summary, { CRITICAL: 1, HIGH: 4, MEDIUM: 4, LOW: 6, NONE: 0, UNKNOWN: 1 })
    const digest = newDigest()
    const payload = ofTrivyOperator(digest, document)
    assert.deepEqual(await post(digest, 'vulnerabilities', payload), { status: 'stored', items: 16 })
    assert.deepEqual(await counted(digest), { ...summary, MEDIUM: summary.MEDIUM! - 1 })
    const all = await findings(digest)
    assert.deepEqual(
      all.filter(({ publishedAt }) => publishedAt === null).map(({ id }) => id),
      ['TEMP-0841856-B18BAF', 'CVE-2025-99999'],
    )
    assert.deepEqual(timesOf(all.map(({ target }) => target)), targets)
    const [requests, ...others] = all.filter(({ package: { name } }) => name === 'requests')
    assert.deepEqual(
      [requests.severity, requests.fixedVersions, requests.score, requests.filePaths.length, others],
      ['MEDIUM', ['2.32.0'], 4.6, document === 'trivy-operator' ? 2 : 0, []],
    )
  })
}

// Syft 1.57.0, by `syft scan oci-archive:debian.tar -o json=syft-debian.json -o table`, and so for alpine.tar.
test('a Syft document has as many components of each type as Syft lists packages: 20 of Debian, 6 of Alpine', async () => {
  assert.deepEqual(countedBySyft('debian'), { npm: 2, 'go-module': 4, deb: 9, python: 5 })
  assert.deepEqual(countedBySyft('alpine'), { apk: 6 })
  for (const [image, packages] of [
    ['debian', 20],
    ['alpine', 6],
  ] as const) {
    const digest = newDigest()
    assert.deepEqual(await post(digest, 'sbom', ofSyft(digest, image)), { status: 'stored', items: packages })
    const { items, report } = await get(`/images/${digest}/sbom?limit=500`)
    assert.deepEqual([items.length, report.itemCount, report.sbomTrust], [packages, packages, 'attached-unbound'])
    assert.equal(report.sbomFormat, 'syft-json')
    const counts: Record<string, number> = {}
    for (const { type } of items) counts[type] = (counts[type] ?? 0) + 1
    assert.deepEqual(counts, countedBySyft(image))
  }
})

test('a component of a Syft document has its package URL, source and licences, and null for empty values', async () => {
  const digest = newDigest()
  await post(digest, 'sbom', ofSyft(digest, 'debian'))
  const { items } = await get(`/images/${digest}/sbom?limit=500`)
  const componentsNamed = (wanted: string) =>
    items
      .filter(({ name }: { name: string }) => name === wanted)
      .map(({ version, purl, srcName, srcVersion, licenses }: Record<string, unknown>) => [
        version,
        purl,
        srcName,
        srcVersion,
        licenses,
      ])
  const os = 'arch=amd64&distro=debian-12.5'
  assert.deepEqual(componentsNamed('mount'), [
    [
      '2.38.1-5+b1',
      `pkg:deb/debian/mount@2.38.1-5%2Bb1?${os}&upstream=util-linux%402.38.1-5`,
      'util-linux',
      '2.38.1-5',
      ['GPL-2'],
    ],
  ])
  assert.deepEqual(componentsNamed('zlib1g'), [
    ['1:1.2.13.dfsg-1', `pkg:deb/debian/zlib1g@1%3A1.2.13.dfsg-1?${os}&upstream=zlib`, 'zlib', null, ['Zlib']],
  ])
  assert.deepEqual(componentsNamed('@babel/traverse'), [
    ['7.22.5', 'pkg:npm/%40babel/traverse@7.22.5', null, null, ['MIT']],
  ])
  assert.deepEqual(componentsNamed('app.test/server'), [['UNKNOWN', 'pkg:golang/app.test/server', null, null, []]])
  assert.deepEqual(
    items
      .filter(({ name }: { name: string }) => name === 'requests')
      .map(({ filePaths }: { filePaths: string[] }) => filePaths[0]),
    ['/opt/app/lib/python3.11/site-packages', '/usr/lib/python3/dist-packages'].map(
      (folder) => `${folder}/requests-2.31.0.dist-info/METADATA`,
    ),
  )
})

test('two scanners with different ids for a vulnerability give one finding, in every list and count', async () => {
  const [digest, namespace] = [newDigest(), newNamespace()]
  const pod = await app.post('/pod/spec', replica(namespace, [container('app', digest)]), {
    token: TOKENS.BROKER_TOKEN_INGEST,
  })
  assert.equal(pod.status, 200, pod.text)
  await post(digest, 'vulnerabilities', ofGrype(digest))
  await post(digest, 'vulnerabilities', ofTrivy(digest))
  const both = await findings(digest)
  const keys = both.map(({ id, package: { name }, installedVersion }) => `${id} ${name} ${installedVersion}`)
  assert.equal(new Set(keys).size, keys.length)
  // 19 and 15 findings, 13 of them in both: 9 of the operating system, requests, zipp, python-multipart, and the
  // unknown one.
  assert.equal(both.length, 19 + 15 - 13)
  for (const [name, ghsa] of [
    ['requests', 'GHSA-9wx4-h78v-vm56'],
    ['zipp', 'GHSA-jfmj-5v4g-7637'],
    ['python-multipart', 'GHSA-2jv5-9r88-3w3p'],
  ] as const) {
    const [one, ...others] = await findings(digest, `package=${name}`)
    assert.deepEqual([one.sources, one.aliases, others], [['db-matcher', 'operator-scanner'], [ghsa], []])
    const exposure = await get(`/vulnerabilities/${ghsa}/exposure`)
    assert.deepEqual([exposure.aliases, exposure.images.length, exposure.images[0].packages.length], [[one.id], 1, 1])
  }
  const { deps, db } = app
  await supplyChainRefresh.run({ config: deps.config, db, log: deps.log, signal: new AbortController().signal })
  const listed = (await get(`/vulnerabilities?namespace=${namespace}&limit=500`)).items
  assert.deepEqual(listed.map(({ id }: { id: string }) => id).sort(), [...new Set(both.map(({ id }) => id))].sort())
  const [found, ...rest] = (await get(`/vulnerabilities?vuln_id=GHSA-9WX4-h78v-vm56&package=requests`)).items
  assert.deepEqual(
    [found.id, found.aliases, found.images, found.packageCount, rest],
    ['CVE-2024-35195', ['GHSA-9wx4-h78v-vm56'], 1, 1, []],
  )
})
