import assert from 'node:assert/strict'
import test from 'node:test'
import { gunzipSync } from 'node:zlib'
import { startApp, TOKENS } from '../support/app.ts'
import { digestOf, newDigest } from '../support/images.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'
import { component, storeSbom } from '../support/supply-chain.ts'

const app = await startApp()
const products = await startApp({ WIRE_NAMES: 'kguardian', ANNOTATION_PREFIX: 'other.test' }, app)
const guarded = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0' }, app)
const token = TOKENS.BROKER_TOKEN_READ
const unknown = digestOf('unknown')

const path = (digest: string, query = '') => `/images/${digest}/sbom/cyclonedx${query}`
const read = async (digest: string, query = '', target = app) => {
  const answer = await target.get(path(digest, query))
  assert.equal(answer.status, 200, answer.text)
  return answer
}
const refsOf = async (digest: string, query = '') =>
  (await read(digest, query)).json.components.map((c: { name: string }) => c.name)

test('GET /images/{digest}/sbom/cyclonedx 200: the document, keys in alphabetical order throughout', async () => {
  const digest = newDigest()
  await storeSbom(
    app,
    digest,
    'operator-scanner',
    [
      component('debian', { version: '12', type: 'operating-system' }),
      component('libssl3', {
        version: '3.0.11',
        purl: 'pkg:deb/debian/libssl3@3.0.11',
        type: 'deb',
        class: 'os-pkgs',
        src_name: 'openssl',
        src_version: '3.0.11-1',
        licenses: ['MIT', 'Apache-2.0'],
        layer_digest: unknown,
        file_paths: ['usr/lib/libssl.so.3'],
      }),
      component('bare'),
    ],
    {
      scanned_at: '2024-05-01T10:00:00.5',
      scanner_name: 'scan',
      scanner_version: '2',
      image_ref: 'registry.test/a:v1',
      sbom_trust: 'scanned',
    },
  )
  const answer = await read(digest)
  const property = (name: string, value: string) => ({ name, value })
  const expected = {
    bomFormat: 'CycloneDX',
    components: [
      {
        'bom-ref': 'c0',
        name: 'debian',
        properties: [property('aquasecurity:trivy:PkgType', 'operating-system')],
        type: 'operating-system',
        version: '12',
      },
      {
        'bom-ref': 'c1',
        licenses: [{ license: { name: 'MIT' } }, { license: { name: 'Apache-2.0' } }],
        name: 'libssl3',
        properties: [
          property('aquasecurity:trivy:PkgType', 'deb'),
          property('aquasecurity:trivy:Class', 'os-pkgs'),
          property('aquasecurity:trivy:SrcName', 'openssl'),
          property('aquasecurity:trivy:SrcVersion', '3.0.11-1'),
          property('aquasecurity:trivy:LayerDigest', unknown),
        ],
        purl: 'pkg:deb/debian/libssl3@3.0.11',
        type: 'library',
        version: '3.0.11',
      },
      { 'bom-ref': 'c2', name: 'bare', type: 'library' },
    ],
    metadata: {
      component: { 'bom-ref': digest, name: 'registry.test/a:v1', type: 'container', version: digest },
      properties: [
        property('kguardian:source', 'operator-scanner'),
        property('kguardian:reportDigest', digest),
        property('kguardian:join', 'report_digest'),
        property('kguardian:sbomTrust', 'scanned'),
        property('kguardian:scannedAt', '2024-05-01T10:00:00.500+00:00'),
      ],
      tools: { components: [{ name: 'scan', type: 'application', version: '2' }] },
    },
    specVersion: '1.5',
    version: 1,
  }
  assert.equal(answer.text, JSON.stringify(expected))
  const { headers } = answer
  assert.equal(headers.get('content-type'), 'application/vnd.cyclonedx+json; version=1.5')
  assert.equal(headers.get('content-disposition'), `attachment; filename="${digest.replace(':', '_')}.cdx.json"`)
  assert.equal(headers.get('content-length'), String(answer.text.length))
})

test('GET /images/{digest}/sbom/cyclonedx 200: without components, reference, scanner and trust', async () => {
  const digest = newDigest()
  await storeSbom(app, digest, 'db-matcher', [])
  const { components, metadata } = (await read(digest)).json
  assert.deepEqual([components, metadata.component.name, metadata.properties[3].value], [[], digest, 'n/a'])
  assert.deepEqual(metadata.tools, { components: [{ name: 'db-matcher', type: 'application' }] })
})

test('GET /images/{digest}/sbom/cyclonedx 200: product names of sources; names of properties stay', async () => {
  const digest = newDigest()
  await storeSbom(products, digest, 'operator-scanner', [])
  const { metadata } = (await read(digest, '', products)).json
  assert.deepEqual(metadata.properties[0], { name: 'kguardian:source', value: 'trivy-operator' })
  assert.equal(metadata.tools.components[0].name, 'trivy-operator')
})

test('GET /images/{digest}/sbom/cyclonedx 200: the SBOM that the SBOM route returns, under the digest of the path', async () => {
  const [running, index] = [newDigest(), newDigest()]
  await app.sql`insert into image values (${running}, null, '{}', 'repo', now(), now())`
  await storeSbom(app, running, 'registry', [component('r')])
  await storeSbom(app, index, 'operator-scanner', [component('o')], { platform_manifests: { 'linux/amd64': running } })
  const { components, metadata } = (await read(running)).json
  const properties = metadata.properties.map(({ value }: { value: string }) => value)
  assert.deepEqual([components[0].name, metadata.component.version], ['o', running])
  assert.deepEqual(properties.slice(0, 3), ['operator-scanner', index, 'platform_manifest'])
  assert.deepEqual(await refsOf(running, '?source=registry'), ['r'])
  assert.deepEqual(await refsOf(running, '?source=trivy-operator'), ['o'])
  assert.deepEqual(await refsOf(running, '?source='), ['o'])
})

test('GET /images/{digest}/sbom/cyclonedx 200: a large document is compressed on request; HEAD has the headers alone', async () => {
  const digest = newDigest()
  const many = Array.from({ length: 2_500 }, (_, i) => component(`component-${i}`, { licenses: [`license-${i}`] }))
  await storeSbom(app, digest, 'operator-scanner', many)
  const plain = await read(digest)
  assert.deepEqual(
    plain.json.components.map((c: Record<string, string>) => `${c['bom-ref']} ${c.name}`),
    many.map(({ name }, i) => `c${i} ${name}`),
  )
  const packed = await app.get(path(digest), { headers: { 'accept-encoding': 'gzip' } })
  assert.equal(packed.headers.get('content-encoding'), 'gzip')
  assert.equal(packed.headers.get('content-type'), 'application/vnd.cyclonedx+json; version=1.5')
  const raw = await app.app.request(path(digest), { headers: { 'accept-encoding': 'gzip' } })
  assert.equal(gunzipSync(await raw.arrayBuffer()).toString(), plain.text)
  const head = await app.request('HEAD', path(digest))
  assert.deepEqual(
    [head.status, head.text, head.headers.get('content-length')],
    [200, '', String(Buffer.byteLength(plain.text))],
  )
})

test('GET /images/{digest}/sbom/cyclonedx 200: a document comes from one payload, however often it is replaced meanwhile', async () => {
  const digest = newDigest()
  const store = (n: number) =>
    storeSbom(
      app,
      digest,
      'operator-scanner',
      Array.from({ length: 1_000 + n * 400 }, () => component(`of-${n}`)),
      { scanner_version: `of-${n}` },
    )
  await store(0)
  let isOver = false
  const seen = new Set<string>()
  const reads = (async () => {
    while (!isOver) {
      const { components, metadata } = (await read(digest)).json
      const version = metadata.tools.components[0].version as string
      seen.add(version)
      assert.equal(components.length, 1_000 + Number(version.slice(3)) * 400)
      assert.ok(components.every((c: { name: string }) => c.name === version))
    }
  })()
  for (let n = 1; n <= 8; n++) await store(n)
  isOver = true
  await reads
  assert.ok(seen.size > 1, 'no document was read between two payloads')
})

test('GET /images/{digest}/sbom/cyclonedx 404: no SBOM, or none of the source', async () => {
  const digest = newDigest()
  await storeSbom(app, digest, 'operator-scanner', [])
  for (const asked of [
    path(unknown),
    path(unknown, '?source=registry'),
    path(digest, '?source=registry'),
    path(digest, '?source=nobody'),
  ]) {
    const answer = await app.get(asked)
    assert.deepEqual([answer.status, answer.text], [404, 'No SBOM for this image'])
    assert.match(answer.headers.get('content-type')!, /^text\/plain/)
    assert.equal(answer.headers.has('content-disposition'), false)
  }
})

test('GET /images/{digest}/sbom/cyclonedx 400: an invalid digest, U+0000 in a source', async () => {
  for (const bad of ['latest', 'sha256:abc', unknown.toUpperCase(), 'a%00b']) {
    const answer = await app.get(path(bad))
    assert.equal(answer.status, 400)
    assert.match(answer.text, /^Path deserialize error: digest: expected sha256: and 64 /)
  }
  const answer = await app.get(path(unknown, '?source=a%00b'))
  assert.deepEqual([answer.status, answer.text], [400, 'Query deserialize error: source: U+0000 is not allowed'])
})

test('GET /images/{digest}/sbom/cyclonedx 401: no token, or an unknown one', async () => {
  assertUnauthorized(await guarded.get(path(unknown)))
  assertUnauthorized(await guarded.get(path('latest'), { token: 'unknown' }))
})

test('GET /images/{digest}/sbom/cyclonedx 404: any token may read', async () => {
  for (const one of Object.values(TOKENS)) assert.equal((await guarded.get(path(unknown), { token: one })).status, 404)
})

for (const count of [4_999, 5_000, 5_001, 10_000, 12_001])
  test(`GET /images/{digest}/sbom/cyclonedx 200: ${count} components in pages of 5 000, each once and in order`, async () => {
    const digest = newDigest()
    await storeSbom(
      app,
      digest,
      'registry',
      Array.from({ length: count }, (_, i) => component(`c${i}`)),
    )
    const { components, specVersion } = (await read(digest)).json
    assert.deepEqual(
      components.map((one: { name: string; 'bom-ref': string }) => [one.name, one['bom-ref']]),
      Array.from({ length: count }, (_, i) => [`c${i}`, `c${i}`]),
    )
    assert.equal(specVersion, '1.5')
  })

test('GET /images/{digest}/sbom/cyclonedx 200: an SBOM that is replaced between two pages is cut off, never mixed; a repeated scan changes nothing', async () => {
  const many = (name: string) => Array.from({ length: 12_000 }, (_, i) => component(`${name}${i}`))
  for (const [name, isCut] of [
    ['other', true],
    ['c', false],
  ] as const) {
    const digest = newDigest()
    await storeSbom(app, digest, 'registry', many('c'), { scanned_at: '2026-01-01T00:00:00', content_hash: 'c' })
    const answer = await app.app.request(path(digest))
    const reader = answer.body!.getReader()
    const texts: string[] = []
    texts.push(Buffer.from((await reader.read()).value!).toString())
    const status = isCut ? 'stored' : 'unchanged'
    await storeSbom(
      app,
      digest,
      'registry',
      many(name),
      { scanned_at: '2026-01-02T00:00:00', content_hash: name },
      status,
    )
    const rest = async () => {
      for (;;) {
        const { value, done } = await reader.read()
        if (done) return JSON.parse(texts.join(''))
        texts.push(Buffer.from(value).toString())
      }
    }
    if (isCut) await assert.rejects(rest(), /replaced/)
    else assert.equal((await rest()).components.length, 12_000)
    assert.equal(texts.join('').includes('other'), false)
  }
})

test('GET /images/{digest}/sbom/cyclonedx 503: refused when the read budget is used up; 20 KiB for each component, and for none', async () => {
  const { budget } = guarded.deps
  for (const [count, kib] of [
    [0, 20],
    [1, 20],
    [7, 140],
    [20_000, budget.totalKib],
  ] as const) {
    const digest = newDigest()
    await storeSbom(
      guarded,
      digest,
      'registry',
      Array.from({ length: count }, (_, i) => component(`c${i}`)),
    )
    const release = await budget.acquire(budget.totalKib - kib + 1)
    assertShed(await guarded.get(path(digest), { token }), kib, budget.totalKib)
    release()
    assert.equal((await guarded.get(path(digest), { token })).status, 200)
    assert.equal(budget.availableKib, budget.totalKib)
  }
})

test('GET /images/{digest}/sbom/cyclonedx 503: a table is locked for longer than a statement may take', async () => {
  const digest = newDigest()
  await storeSbom(guarded, digest, 'registry', [component('c')])
  for (const table of ['image_report', 'image_component'])
    await whileRefused(guarded.sql, table, async () => assertDatabaseBusy(await guarded.get(path(digest), { token })))
  assert.equal((await guarded.get(path(digest), { token })).status, 200)
})
