import assert from 'node:assert/strict'
import test from 'node:test'
import { gunzipSync } from 'node:zlib'
import { startApp, TOKENS } from '../support/app.ts'
import { digestOf, newDigest } from '../support/images.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'
import { component, storeFindings, storeSbom } from '../support/supply-chain.ts'

const app = await startApp()
const products = await startApp({ WIRE_NAMES: 'kguardian' }, app)
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ
const unknown = digestOf('unknown')

type Item = { id: number; name: string }
type Report = { source: string; reportDigest: string; join: string }

const page = async (digest: string, query = '', target = app) => {
  const answer = await target.get(`/images/${digest}/sbom?${query}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const names = async (digest: string, query = '') => (await page(digest, query)).items.map(({ name }: Item) => name)
const many = (n: number) => Array.from({ length: n }, (_, i) => component(`c${i}`))

/** Nobody watches these images. */
const unknownUse = (coverage: string) => ({
  inUse: null,
  inUseState: 'unknown',
  inUseDetail: {
    ...{ state: 'unknown', reason: 'no_runtime_data', observedSince: null, windowHours: 24, containers: 0 },
    coverage,
  },
})

test('GET /images/{digest}/sbom 200: a digest without an SBOM has an empty answer, with findings or without', async () => {
  const digest = newDigest()
  await storeFindings(app, digest, 'operator-scanner', [])
  for (const one of [unknown, digest]) {
    const answer = await app.get(`/images/${one}/sbom`)
    assert.deepEqual(
      [answer.status, answer.text],
      [200, `{"digest":"${one}","reports":[],"retiredGuesses":[],"report":null,"items":[],"nextAfter":null}`],
    )
  }
})

test('GET /images/{digest}/sbom 200: every field of a report and of a component, in wire order', async () => {
  const digest = newDigest()
  await app.sql`insert into image values (${digest}, null, '{}', 'repo', now(), now())`
  const attestation = {
    mechanism: 'oci-referrer',
    artifact_digest: unknown,
    media_type: 'application/vnd.in-toto+json',
    predicate_type: 'https://spdx.dev/Document',
    verified: false,
  }
  const known = {
    version: '3.0.11',
    purl: 'pkg:deb/debian/libssl3@3.0.11',
    type: 'deb',
    class: 'os-pkgs',
    src_name: 'openssl',
    src_version: '3.0.11-1',
    licenses: ['MIT', 'Apache-2.0'],
    layer_digest: unknown,
    file_paths: ['usr/lib/libssl.so.3'],
  }
  await storeSbom(app, digest, 'registry', [component('libssl3', known), component('"bare"')], {
    scanned_at: '2024-05-01T10:00:00.1',
    scanner_name: 'registry',
    image_ref: 'registry.test/team/app:v1',
    sbom_format: 'SPDX',
    sbom_trust: 'unverified',
    attestation,
  })
  const found = await page(digest)
  const report = {
    source: 'registry',
    reportDigest: digest,
    join: 'image_id',
    digestKind: 'unknown',
    scannedAt: '2024-05-01T10:00:00.100',
    dbUpdatedAt: null,
    scannerName: 'registry',
    scannerVersion: null,
    osFamily: null,
    osName: null,
    osEosl: false,
    imageRef: 'registry.test/team/app:v1',
    itemCount: 2,
    sbomFormat: 'SPDX',
    receivedAt: found.report.receivedAt,
    sbomSources: [],
    sbomTrust: 'unverified',
    attestation,
  }
  const items = [
    {
      id: 1,
      name: 'libssl3',
      version: '3.0.11',
      purl: 'pkg:deb/debian/libssl3@3.0.11',
      type: 'deb',
      class: 'os-pkgs',
      srcName: 'openssl',
      srcVersion: '3.0.11-1',
      licenses: ['MIT', 'Apache-2.0'],
      layerDigest: unknown,
      filePaths: ['usr/lib/libssl.so.3'],
      ...unknownUse('file'),
    },
    {
      id: 2,
      name: '"bare"',
      version: null,
      purl: null,
      type: null,
      class: null,
      srcName: null,
      srcVersion: null,
      licenses: [],
      layerDigest: null,
      filePaths: [],
      ...unknownUse('interpreted'),
    },
  ]
  assert.equal(
    JSON.stringify(found),
    JSON.stringify({ digest, reports: [report], retiredGuesses: [], report, items, nextAfter: null }),
  )
})

test('GET /images/{digest}/sbom 200: an attestation with few known values has all its keys', async () => {
  const digest = newDigest()
  await storeSbom(app, digest, 'registry', [], { attestation: { mechanism: 'oci-referrer' } })
  const expected = {
    mechanism: 'oci-referrer',
    artifact_digest: null,
    media_type: null,
    predicate_type: null,
    verified: false,
  }
  assert.deepEqual((await page(digest)).report.attestation, expected)
})

test('GET /images/{digest}/sbom 200: the operator scanner first, then the matcher, the registry last; reports in that order', async () => {
  const digest = newDigest()
  const chosen = async (query = '') => {
    const { report, reports, items } = await page(digest, query)
    return [report?.source ?? null, items.map(({ name }: Item) => name), reports.map(({ source }: Report) => source)]
  }
  await storeSbom(app, digest, 'registry', [component('r')])
  assert.deepEqual(await chosen(), ['registry', ['r'], ['registry']])
  await storeSbom(app, digest, 'db-matcher', [component('m')])
  assert.deepEqual(await chosen(), ['db-matcher', ['m'], ['db-matcher', 'registry']])
  await storeSbom(app, digest, 'operator-scanner', [component('o')])
  const all = ['operator-scanner', 'db-matcher', 'registry']
  for (const [query, source, names] of [
    ['', 'operator-scanner', ['o']],
    ['source=', 'operator-scanner', ['o']],
    ['source=registry', 'registry', ['r']],
    ['source=grype', 'db-matcher', ['m']],
    ['source=trivy-operator', 'operator-scanner', ['o']],
    ['source=somebody', null, []],
  ] as const)
    assert.deepEqual(await chosen(query), [source, names, all], query)
})

test('GET /images/{digest}/sbom 200: a source without an SBOM has no report and no items, never those of another source', async () => {
  const digest = newDigest()
  await storeSbom(app, digest, 'operator-scanner', many(1))
  const { report, reports, items, nextAfter } = await page(digest, 'source=registry')
  assert.deepEqual([report, reports.length, items, nextAfter], [null, 1, [], null])
})

test('GET /images/{digest}/sbom 200: within a source the best join counts, then the newest scan', async () => {
  const [running, old, young] = [newDigest(), newDigest(), newDigest()]
  await app.sql`insert into image values (${running}, null, '{}', 'repo', now(), now())`
  const chosen = async () => {
    const { report, reports, items } = await page(running)
    return [reports.length, report.reportDigest, report.join, items[0].name]
  }
  const linked = { platform_manifests: { 'linux/amd64': running } }
  await storeSbom(app, young, 'operator-scanner', [component('young')], {
    ...linked,
    scanned_at: '2025-01-02T00:00:00',
  })
  await storeSbom(app, old, 'operator-scanner', [component('old')], { ...linked, scanned_at: '2025-01-01T00:00:00' })
  assert.deepEqual(await chosen(), [1, young, 'platform_manifest', 'young'])
  await storeSbom(app, running, 'operator-scanner', [component('own')], { scanned_at: '2024-01-01T00:00:00' })
  assert.deepEqual(await chosen(), [1, running, 'image_id', 'own'])
})

test('GET /images/{digest}/sbom 200: product names of sources', async () => {
  const digest = newDigest()
  await storeSbom(products, digest, 'operator-scanner', many(1))
  await storeSbom(products, digest, 'db-matcher', [component('m')])
  const { report, reports } = await page(digest, '', products)
  assert.deepEqual(
    [report.source, reports.map(({ source }: Report) => source)],
    ['trivy-operator', ['trivy-operator', 'grype']],
  )
  assert.deepEqual((await page(digest, 'source=db-matcher', products)).report.source, 'grype')
})

test('GET /images/{digest}/sbom 200: components in posted order, paged by id; 100 by default, 500 at most', async () => {
  const digest = newDigest()
  await storeSbom(app, digest, 'operator-scanner', many(620))
  const all = many(620).map(({ name }) => name)
  for (const [query, size, nextAfter] of [
    ['', 100, 100],
    ['limit=0', 1, 1],
    ['limit=-3', 1, 1],
    ['limit=500', 500, 500],
    ['limit=9999', 500, 500],
    ['limit=2&after=617', 2, 619],
    ['limit=3&after=617', 3, null],
    ['after=618', 2, null],
    ['after=620', 0, null],
    ['after=99999999999999999999', 0, null],
  ] as const) {
    const found = await page(digest, query)
    assert.deepEqual([found.items.length, found.nextAfter], [size, nextAfter], query)
    assert.equal(found.report.itemCount, 620)
  }
  for (const start of ['-5', '0', '-0', '%2B0', '-99999999999999999999'])
    assert.deepEqual(await names(digest, `after=${start}&limit=2`), ['c0', 'c1'], start)
  const seen: string[] = []
  for (let after: number | null = 0; after !== null; ) {
    assert.ok(seen.length < all.length, 'the list does not end')
    const found = await page(digest, `limit=250&after=${after}`)
    seen.push(...found.items.map(({ name }: Item) => name))
    after = found.nextAfter
  }
  assert.deepEqual(seen, all)
})

test('GET /images/{digest}/sbom 200: a large page is compressed on request; HEAD has the headers alone', async () => {
  const digest = newDigest()
  await storeSbom(app, digest, 'operator-scanner', many(100))
  const path = `/images/${digest}/sbom`
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

for (const [query, field] of [
  ...['limit=abc', 'limit=', 'limit=1.5'].map((query) => [query, 'limit']),
  ...['after=x', 'after=1.5', 'after=1e3', 'after=%001'].map((query) => [query, 'after']),
  ['source=a%00b', 'source'],
] as [string, string][]) {
  test(`GET /images/{digest}/sbom 400: ${query}`, async () => {
    const answer = await app.get(`/images/${unknown}/sbom?${query}`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, new RegExp(`^Query deserialize error: ${field}: `))
  })
}

test('GET /images/{digest}/sbom 400: an invalid digest', async () => {
  for (const bad of ['latest', 'sha256:abc', unknown.toUpperCase(), 'a%00b']) {
    const answer = await app.get(`/images/${bad}/sbom`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, /^Path deserialize error: digest: expected sha256: and 64 /)
  }
})

test('GET /images/{digest}/sbom 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get(`/images/${unknown}/sbom`))
  assertUnauthorized(await guarded.get('/images/latest/sbom', { token: 'unknown' }))
})

test('GET /images/{digest}/sbom 200: any token may read', async () => {
  for (const one of Object.values(TOKENS))
    assert.equal((await guarded.get(`/images/${unknown}/sbom`, { token: one })).status, 200)
})

test('GET /images/{digest}/sbom 503: refused when the read budget is used up; 20 KiB for each component and one more', async () => {
  const { budget } = guarded.deps
  for (const [query, kib] of [
    ['', 101 * 20],
    ['?limit=1', 40],
    ['?limit=9999', 501 * 20],
  ] as const) {
    const release = await budget.acquire(budget.totalKib - kib + 1)
    assertShed(await guarded.get(`/images/${unknown}/sbom${query}`, { token }), kib, budget.totalKib)
    release()
  }
  assert.equal((await guarded.get(`/images/${unknown}/sbom`, { token })).status, 200)
})

test('GET /images/{digest}/sbom 503: the table is locked for longer than a statement may take', async () => {
  const path = `/images/${unknown}/sbom`
  await whileRefused(guarded.sql, 'image_report', async () => assertDatabaseBusy(await guarded.get(path, { token })))
  assert.equal((await guarded.get(path, { token })).status, 200)
})
