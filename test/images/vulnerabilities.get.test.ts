import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import test from 'node:test'
import { gunzipSync } from 'node:zlib'
import { writeCursor } from '../../lib/http/request/cursor.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { digestOf, newDigest } from '../support/images.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'
import { finding, storeFindings } from '../support/supply-chain.ts'

const app = await startApp()
const products = await startApp({ WIRE_NAMES: 'kguardian' }, app)
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ
const unknown = digestOf('unknown')

type Item = { id: string; package: { name: string }; installedVersion: string; severity: string; sources: string[] }

const page = async (digest: string, query = '', target = app) => {
  const answer = await target.get(`/images/${digest}/vulnerabilities?${query}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const items = async (digest: string, query = '') => (await page(digest, query)).items
const ids = async (digest: string, query = '') => (await items(digest, query)).map(({ id }: { id: string }) => id)
/** The one merged finding of rows by source. */
async function merged(rows: Record<string, Record<string, unknown>>, target = app) {
  const digest = newDigest()
  const id = `CVE-${digest.slice(7, 20)}`
  for (const [source, fields] of Object.entries(rows))
    await storeFindings(target, digest, source, [finding(id, fields)])
  const [item, ...others] = (await page(digest, '', target)).items
  assert.deepEqual(others, [])
  return item
}

test('GET /images/{digest}/vulnerabilities 200: a digest without a report has an empty answer, not a 404', async () => {
  const answer = await app.get(`/images/${unknown}/vulnerabilities`)
  assert.deepEqual(
    [answer.status, answer.text],
    [200, `{"digest":"${unknown}","reports":[],"retiredGuesses":[],"items":[],"nextAfter":null}`],
  )
  assert.equal(answer.headers.get('content-type'), 'application/json')
  assert.equal(answer.headers.get('content-length'), String(answer.text.length))
})

test('GET /images/{digest}/vulnerabilities 200: every field of a report and of a finding, in wire order', async () => {
  const digest = newDigest()
  await app.sql`insert into image values (${digest}, null, '{}', 'repo', now(), now())`
  const known = {
    severity: 0,
    package_type: 'deb',
    package_purl: 'pkg:deb/debian/openssl@3.0.1',
    fixed_versions: ['3.0.2'],
    score: 9.8,
    cvss: { nvd: { v3_score: 9.8 } },
    title: 'a "title" \\ of\u2028third parties',
    primary_url: 'https://advisories.test/1',
    target: 'app (debian 12)',
    class: 'os-pkgs',
    published_at: '2024-01-02T03:04:05',
    last_modified_at: '2024-01-02T03:04:05.120',
    file_paths: ['usr/lib/a'],
    kev: true,
    kev_date_added: '2024-03-04T00:00:00',
    epss: 0.97,
    epss_percentile: 1e-5,
  }
  await storeFindings(app, digest, 'db-matcher', [finding('CVE-1', known)], {
    digest_kind: 'manifest',
    scanned_at: '2024-05-01T10:00:00.123456',
    db_updated_at: '0001-01-01T00:00:00',
    scanner_name: 'scan',
    scanner_version: '1.9',
    os_family: 'debian',
    os_name: '12.5',
    os_eosl: true,
    image_ref: 'registry.test/team/app:v1',
    sbom_sources: ['operator-scanner', 'registry'],
    sbom_trust: 'unverified',
  })
  const found = await page(digest)
  const { receivedAt } = found.reports[0]
  const report = {
    source: 'db-matcher',
    reportDigest: digest,
    join: 'image_id',
    digestKind: 'manifest',
    scannedAt: '2024-05-01T10:00:00.123456',
    dbUpdatedAt: '0001-01-01T00:00:00',
    scannerName: 'scan',
    scannerVersion: '1.9',
    osFamily: 'debian',
    osName: '12.5',
    osEosl: true,
    imageRef: 'registry.test/team/app:v1',
    itemCount: 1,
    sbomFormat: null,
    receivedAt,
    sbomSources: ['operator-scanner', 'registry'],
    sbomTrust: 'unverified',
    attestation: null,
  }
  const item = {
    id: 'CVE-1',
    aliases: [],
    package: { name: 'openssl', type: 'deb', purl: 'pkg:deb/debian/openssl@3.0.1' },
    installedVersion: '3.0.1',
    fixedVersions: ['3.0.2'],
    fixable: true,
    severity: 'CRITICAL',
    score: 9.8,
    cvss: { nvd: { v3_score: 9.8 } },
    title: 'a "title" \\ of\u2028third parties',
    primaryUrl: 'https://advisories.test/1',
    target: 'app (debian 12)',
    class: 'os-pkgs',
    publishedAt: '2024-01-02T03:04:05',
    lastModifiedAt: '2024-01-02T03:04:05.120',
    filePaths: ['usr/lib/a'],
    omitted: 0,
    kev: true,
    kevDateAdded: '2024-03-04T00:00:00',
    epss: 0.97,
    epssPercentile: 1e-5,
    sources: ['db-matcher'],
    reportDigests: [digest],
    inUse: null,
    inUseState: 'unknown',
    inUseDetail: {
      ...{ state: 'unknown', reason: 'no_runtime_data', observedSince: null, windowHours: 24, containers: 0 },
      coverage: 'file',
    },
    tier: 'P0',
    tierFactors: ['in_use:unknown', 'kev', 'epss>=0.1', 'severity:critical', 'exposure:unknown'],
    status: null,
    decision: null,
    decided: false,
  }
  assert.equal(
    JSON.stringify(found),
    JSON.stringify({ digest, reports: [report], retiredGuesses: [], items: [item], nextAfter: null }),
  )
})

test('GET /images/{digest}/vulnerabilities 200: unknown values of a report and of a finding are null', async () => {
  const digest = newDigest()
  await storeFindings(app, digest, 'registry', [finding('CVE-nothing-known')])
  const { reports, items } = await page(digest)
  const nulls = (one: object) => Object.entries(one).flatMap(([key, value]) => (value === null ? [key] : []))
  assert.deepEqual(nulls(reports[0]), [
    ...[
      'dbUpdatedAt',
      'scannerName',
      'scannerVersion',
      'osFamily',
      'osName',
      'imageRef',
      'sbomFormat',
      'sbomTrust',
      'attestation',
    ],
  ])
  assert.deepEqual([reports[0].join, reports[0].osEosl, reports[0].sbomSources], ['report_digest', false, []])
  assert.deepEqual(nulls(items[0]), [
    ...['score', 'title', 'primaryUrl', 'target', 'class', 'publishedAt', 'lastModifiedAt'],
    ...['kev', 'kevDateAdded', 'epss', 'epssPercentile', 'inUse', 'status', 'decision'],
  ])
  assert.deepEqual(
    [items[0].package, items[0].cvss, items[0].filePaths],
    [{ name: 'openssl', type: null, purl: null }, {}, []],
  )
})

test('GET /images/{digest}/vulnerabilities 200: sha512, an escaped colon, an empty report', async () => {
  const digest = `sha512:${createHash('sha512').update('x').digest('hex')}`
  await storeFindings(app, digest, 'registry', [])
  const found = await page(digest.replace(':', '%3A'))
  assert.deepEqual([found.digest, found.reports.length, found.items], [digest, 1, []])
})

// ---- Merging

test('GET /images/{digest}/vulnerabilities 200: the worst severity and the highest score of any source', async () => {
  const item = await merged({
    'operator-scanner': { severity: 2, score: 9.1 },
    'db-matcher': { severity: 3, score: 7.2 },
    registry: {},
  })
  assert.deepEqual([item.severity, item.score], ['HIGH', 9.1])
  assert.deepEqual((await merged({ registry: { severity: 5 }, 'db-matcher': { severity: 4 } })).severity, 'NONE')
})

test('GET /images/{digest}/vulnerabilities 200: fixed versions without repeats, by the first source that gives them, then as text', async () => {
  const item = await merged({
    registry: { fixed_versions: ['8', '9.2', '10.1'] },
    'operator-scanner': { fixed_versions: ['z', '9.2', 'Z'] },
    'db-matcher': { fixed_versions: ['10.1', '9.3'] },
  })
  assert.deepEqual([item.fixedVersions, item.fixable], [['10.1', '9.3', '9.2', 'Z', 'z', '8'], true])
  assert.deepEqual((await merged({ registry: {}, 'db-matcher': {} })).fixable, false)
})

test('GET /images/{digest}/vulnerabilities 200: each descriptive field comes from the first source by name that has it', async () => {
  const item = await merged({
    'operator-scanner': {
      title: 'operator',
      package_type: 'deb',
      published_at: '2024-01-01T00:00:00',
      file_paths: ['o'],
    },
    'db-matcher': { title: 'matcher', file_paths: [] },
    registry: { title: 'registry', package_type: 'x', package_purl: 'pkg:x', class: 'os-pkgs', file_paths: ['r'] },
  })
  const { title, package: of, publishedAt, class: kind, filePaths } = item
  assert.deepEqual(
    [title, of.type, of.purl, publishedAt, kind],
    ['matcher', 'deb', 'pkg:x', '2024-01-01T00:00:00', 'os-pkgs'],
  )
  assert.deepEqual(filePaths, ['o'])
})

test('GET /images/{digest}/vulnerabilities 200: scores are merged by scoring provider; the first source by name counts, completely', async () => {
  const item = await merged({
    registry: { cvss: { nvd: { v2_score: 1 }, ghsa: { v3_score: 3 } } },
    'db-matcher': { cvss: { nvd: { v3_score: 2 } } },
  })
  assert.deepEqual(item.cvss, { nvd: { v3_score: 2 }, ghsa: { v3_score: 3 } })
})

test('GET /images/{digest}/vulnerabilities 200: KEV and EPSS of the vulnerability, from any image', async () => {
  const [here, elsewhere] = [newDigest(), newDigest()]
  await storeFindings(app, here, 'operator-scanner', [
    finding('CVE-facts', { epss: 0.25, epss_percentile: 0.5, kev: false }),
  ])
  const told = { package_name: 'other', kev: true, kev_date_added: '2024-01-01T00:00:00', epss: 0.75 }
  await storeFindings(app, elsewhere, 'db-matcher', [finding('CVE-facts', told), finding('cve-FACTS', { epss: 1 })])
  const [item] = await items(here)
  assert.deepEqual(
    [item.kev, item.kevDateAdded, item.epss, item.epssPercentile],
    [true, '2024-01-01T00:00:00', 0.75, 0.5],
  )
  assert.deepEqual([item.sources, item.reportDigests], [['operator-scanner'], [here]])
})

test('GET /images/{digest}/vulnerabilities 200: vuln_id, package and kev select findings; ids in any case', async () => {
  const digest = newDigest()
  await storeFindings(app, digest, 'operator-scanner', [
    finding('Temp-aBc', { package_name: 'a', kev: true }),
    finding('Temp-aBc', { package_name: 'b', kev: true }),
    finding('Temp-Other', { package_name: 'a', kev: false }),
  ])
  const found = async (query: string) => (await items(digest, query)).map((i: Item) => `${i.id} ${i.package.name}`)
  const both = ['Temp-aBc a', 'Temp-aBc b']
  for (const id of ['Temp-aBc', 'temp-abc', 'TEMP-ABC']) assert.deepEqual(await found(`vuln_id=${id}`), both)
  assert.deepEqual(await found('package=a'), ['Temp-Other a', 'Temp-aBc a'])
  assert.deepEqual(await found('package=b'), ['Temp-aBc b'])
  assert.deepEqual([await found('kev=true'), await found('kev=false')], [both, ['Temp-Other a']])
})

test('GET /images/{digest}/vulnerabilities 200: only the same id, package and version are the same finding', async () => {
  const digest = newDigest()
  const rows = [
    finding('a'),
    finding('A'),
    finding('a', { package_name: 'x' }),
    finding('a', { installed_version: '' }),
  ]
  await storeFindings(app, digest, 'operator-scanner', rows)
  await storeFindings(app, digest, 'registry', rows.slice(0, 1))
  const found = (await items(digest)).map((i: Item) => [i.id, i.package.name, i.installedVersion, i.sources.length])
  assert.deepEqual(found, [
    ['A', 'openssl', '3.0.1', 1],
    ['a', 'openssl', '', 1],
    ['a', 'openssl', '3.0.1', 2],
    ['a', 'x', '3.0.1', 1],
  ])
})

test('GET /images/{digest}/vulnerabilities 200: payloads of several digests answer for the running one, each with its join', async () => {
  const [running, index] = [newDigest(), newDigest()]
  await app.sql`insert into image values (${running}, null, '{}', 'repo', now(), now())`
  await storeFindings(app, index, 'operator-scanner', [finding('CVE-1')], {
    platform_manifests: { 'linux/amd64': running },
  })
  await storeFindings(app, running, 'db-matcher', [finding('CVE-1')])
  const found = await page(running)
  const reports = found.reports.map((r: Record<string, string>) => [r.source, r.reportDigest, r.join])
  assert.deepEqual(reports, [
    ['db-matcher', running, 'image_id'],
    ['operator-scanner', index, 'platform_manifest'],
  ])
  assert.deepEqual([found.items.length, found.items[0].reportDigests], [1, [running, index].sort()])
  assert.deepEqual((await page(index)).reports[0].join, 'report_digest')
})

test('GET /images/{digest}/vulnerabilities 200: product names of sources, in the order of the neutral names', async () => {
  const digest = newDigest()
  await storeFindings(products, digest, 'operator-scanner', [finding('CVE-1')])
  await storeFindings(products, digest, 'registry', [finding('CVE-1')])
  await storeFindings(products, digest, 'db-matcher', [finding('CVE-1')], {
    sbom_sources: ['db-matcher', 'operator-scanner', 'registry'],
  })
  const { reports, items } = await page(digest, '', products)
  const names = ['grype', 'trivy-operator', 'registry']
  assert.deepEqual(
    [reports.map((r: { source: string }) => r.source), reports[0].sbomSources, items[0].sources],
    [names, names, names],
  )
})

// ---- Order, pages, filters

test('GET /images/{digest}/vulnerabilities 200: the most severe first, then by id, package and version, in pages', async () => {
  const digest = newDigest()
  const rows = [0, 1, 2, 3, 4, 5].flatMap((severity) =>
    ['CVE-2', 'CVE-10'].flatMap((id) =>
      ['b', 'a'].map((name) => finding(`${id}-${severity}`, { severity, package_name: name })),
    ),
  )
  await storeFindings(app, digest, 'operator-scanner', rows)
  const expected = ['CRITICAL', 'HIGH', 'MEDIUM', 'LOW', 'NONE', 'UNKNOWN'].flatMap((severity, n) =>
    ['CVE-10', 'CVE-2'].flatMap((id) => ['a', 'b'].map((name) => `${severity} ${id}-${n} ${name}`)),
  )
  for (const limit of [1, 5, 24, 500]) {
    const seen: string[] = []
    for (let after = ''; ; ) {
      const found = await page(digest, `limit=${limit}${after}`)
      assert.ok(found.items.length <= limit && seen.length < expected.length, 'the list does not end')
      assert.equal(found.reports.length, 1, 'every page has the reports')
      seen.push(...found.items.map((i: Item) => `${i.severity} ${i.id} ${i.package.name}`))
      if (found.nextAfter === null) break
      assert.match(found.nextAfter, /^[\w-]+$/)
      after = `&after=${found.nextAfter}`
    }
    assert.deepEqual(seen, expected, `limit ${limit}`)
  }
})

test('GET /images/{digest}/vulnerabilities 200: 100 findings by default; limit is clamped to 1..500', async () => {
  const digest = newDigest()
  await storeFindings(
    app,
    digest,
    'operator-scanner',
    Array.from({ length: 501 }, (_, n) => finding(`CVE-${n}`)),
  )
  for (const [query, expected] of [
    ['', 100],
    ['limit=0', 1],
    ['limit=-7', 1],
    ['limit=501', 500],
    ['limit=99999999999', 500],
  ] as const)
    assert.equal((await items(digest, query)).length, expected, query)
})

test('GET /images/{digest}/vulnerabilities 200: filters apply to the merged finding', async () => {
  const digest = newDigest()
  const f = (id: string, severity: number, fixed_versions: string[] = []) => finding(id, { severity, fixed_versions })
  await storeFindings(app, digest, 'operator-scanner', [f('1', 0, ['2']), f('2', 1), f('3', 3, ['2']), f('4', 2)])
  await storeFindings(app, digest, 'db-matcher', [f('4', 1, ['3']), f('5', 4)])
  for (const [query, expected] of [
    ['severity=CRITICAL', ['1']],
    ['severity=low,%20HIGH%20', ['2', '4', '3']],
    ['severity=MEDIUM', []],
    ['severity=', ['1', '2', '4', '3', '5']],
    ['severity=NONE,CRITICAL,LOW', ['1', '3', '5']],
    ['fixable=true', ['1', '4', '3']],
    ['fixable=false', ['2', '5']],
    ['fixable=true&severity=HIGH,NONE', ['4']],
    ['source=operator-scanner', ['1', '2', '4', '3']],
    ['source=trivy-operator&severity=MEDIUM&fixable=false', ['4']],
    ['source=grype', ['4', '5']],
    ['source=%20', ['1', '2', '4', '3', '5']],
  ] as const)
    assert.deepEqual(await ids(digest, query), expected, query)
  const one = await page(digest, 'source=db-matcher&limit=1')
  assert.deepEqual([one.reports.length, one.reports[0].source, one.items[0].sources], [1, 'db-matcher', ['db-matcher']])
})

test('GET /images/{digest}/vulnerabilities 200: a source without data, or an unknown one, gives an empty list', async () => {
  const digest = newDigest()
  await storeFindings(app, digest, 'operator-scanner', [finding('CVE-1')])
  for (const source of ['registry', 'somebody', 'Operator-Scanner', ' operator-scanner'])
    assert.deepEqual(await page(digest, `source=${source}`), {
      digest,
      reports: [],
      retiredGuesses: [],
      items: [],
      nextAfter: null,
    })
})

test('GET /images/{digest}/vulnerabilities 200: a payload that is replaced between two pages moves no row across their border', async () => {
  const digest = newDigest()
  const numbered = (numbers: number[]) => numbers.map((n) => finding(`CVE-${n}`))
  await storeFindings(app, digest, 'operator-scanner', numbered([1, 2, 3, 4, 5, 6]))
  const first = await page(digest, 'limit=3')
  await storeFindings(app, digest, 'operator-scanner', numbered([0, 2, 4, 6, 7]))
  assert.deepEqual(await ids(digest, `limit=3&after=${first.nextAfter}`), ['CVE-4', 'CVE-6', 'CVE-7'])
})

test('GET /images/{digest}/vulnerabilities 200: a cursor of a severity that the filter excludes, and one behind the last row', async () => {
  const digest = newDigest()
  await storeFindings(
    app,
    digest,
    'operator-scanner',
    [0, 2, 4].map((severity) => finding('CVE-1', { severity, package_name: `p${severity}` })),
  )
  const after = (severity: number) => `after=${writeCursor([severity, 'CVE-1', 'p9', ''])}`
  assert.deepEqual((await items(digest, `severity=CRITICAL,NONE&${after(1)}`)).length, 1)
  assert.deepEqual((await items(digest, `severity=CRITICAL&${after(1)}`)).length, 0)
  assert.deepEqual((await items(digest, after(4))).length, 0)
})

test('GET /images/{digest}/vulnerabilities 200: a large page is compressed on request; HEAD has the headers alone', async () => {
  const digest = newDigest()
  const title = 'text '.repeat(100)
  await storeFindings(
    app,
    digest,
    'operator-scanner',
    Array.from({ length: 50 }, (_, n) => finding(`CVE-${n}`, { title })),
  )
  const path = `/images/${digest}/vulnerabilities`
  const plain = await app.get(path)
  const packed = await app.app.request(path, { headers: { 'accept-encoding': 'gzip' } })
  assert.equal(packed.headers.get('content-encoding'), 'gzip')
  assert.equal(gunzipSync(await packed.arrayBuffer()).toString(), plain.text)
  const head = await app.request('HEAD', path)
  assert.deepEqual(
    [head.status, head.text, head.headers.get('content-length')],
    [200, '', String(Buffer.byteLength(plain.text))],
  )
})

// ---- Refusals

for (const [query, field] of [
  ...['limit=abc', 'limit=', 'limit=1.5'].map((query) => [query, 'limit']),
  ...['severity=SEVERE', 'severity=HIGH,SEVERE', 'severity=a%00'].map((query) => [query, 'severity']),
  ...['fixable=maybe', 'fixable=TRUE', 'fixable=1', 'fixable='].map((query) => [query, 'fixable']),
  ['source=a%00b', 'source'],
  ...[
    'not a cursor',
    '3.4812',
    writeCursor([1, 'a', 'b']),
    writeCursor([6, 'a', 'b', 'c']),
    writeCursor([1, 'a\0', 'b', 'c']),
  ].map((after) => [`after=${after}`, 'after']),
] as [string, string][]) {
  test(`GET /images/{digest}/vulnerabilities 400: ${query}`, async () => {
    const answer = await app.get(`/images/${unknown}/vulnerabilities?${query}`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, new RegExp(`^Query deserialize error: ${field}: `))
  })
}

test('GET /images/{digest}/vulnerabilities 400: an invalid digest', async () => {
  for (const bad of ['latest', 'sha256:abc', unknown.toUpperCase(), `md5:${'a'.repeat(32)}`, 'a%00b']) {
    const answer = await app.get(`/images/${bad}/vulnerabilities`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, /^Path deserialize error: digest: expected sha256: and 64 /)
  }
})

test('GET /images/{digest}/vulnerabilities 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get(`/images/${unknown}/vulnerabilities`))
  assertUnauthorized(await guarded.get('/images/latest/vulnerabilities', { token: 'unknown' }))
})

test('GET /images/{digest}/vulnerabilities 200: any token may read', async () => {
  for (const one of Object.values(TOKENS))
    assert.equal((await guarded.get(`/images/${unknown}/vulnerabilities`, { token: one })).status, 200)
})

test('GET /images/{digest}/vulnerabilities 503: refused when the read budget is used up; 20 KiB for each finding and one more', async () => {
  const { budget } = guarded.deps
  for (const [query, kib] of [
    ['', 101 * 20],
    ['?limit=1', 40],
    ['?limit=9999', 501 * 20],
  ] as const) {
    const release = await budget.acquire(budget.totalKib - kib + 1)
    assertShed(await guarded.get(`/images/${unknown}/vulnerabilities${query}`, { token }), kib, budget.totalKib)
    release()
  }
  assert.equal((await guarded.get(`/images/${unknown}/vulnerabilities`, { token })).status, 200)
})

test('GET /images/{digest}/vulnerabilities 503: the table is locked for longer than a statement may take', async () => {
  const path = `/images/${unknown}/vulnerabilities`
  await whileRefused(guarded.sql, 'image_report', async () => assertDatabaseBusy(await guarded.get(path, { token })))
  assert.equal((await guarded.get(path, { token })).status, 200)
})
