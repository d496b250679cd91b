/**
 * Rows made from SBOMs, without a thread and a database (docs/contract.md#sbom). The parts shared with findings are
 * tested in findings.test.ts.
 */
import assert from 'node:assert/strict'
import test from 'node:test'
import { HttpError } from '../../lib/errors.ts'
import { components, MAX_COMPONENTS } from '../../lib/supply-chain/components.ts'
import { preparePayload } from '../../lib/supply-chain/payload.ts'
import { component, newImage, pageOf, SCANNED_AT, sbomOf, scannedAt } from './payloads.ts'

const image = newImage()

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
type Json = any

function prepare(payload: unknown): { header: Json; page: Json; rows: Json } {
  const bytes = Buffer.from(typeof payload === 'string' ? payload : JSON.stringify(payload))
  const sent = { bytes, isPacked: false, digest: image, maxInflatedBytes: 8_388_608, now: Date.parse(SCANNED_AT) }
  const prepared = preparePayload(components, sent)
  return { ...prepared, rows: JSON.parse(prepared.rows) }
}
const headerOf = (fields: Record<string, unknown>): Json => prepare(sbomOf(image, [], fields)).header
function refused(payload: unknown): [number, string] {
  try {
    prepare(payload)
  } catch (error) {
    if (error instanceof HttpError) return [error.status, error.message]
    throw error
  }
  return [0, 'taken']
}

test('a component with every field keeps every field and its position, repeated ones too', () => {
  const full = {
    ...{
      name: ' libssl3',
      version: '3.0.11',
      purl: 'pkg:deb/debian/libssl3@3.0.11',
      type: 'deb',
      class: 'os-pkgs',
      src_name: 'openssl',
    },
    ...{
      src_version: '3.0.11-1',
      licenses: ['Apache-2.0', ' ', 'MIT', 'MIT'],
      layer_digest: image,
      file_paths: ['b', 'a', 'b'],
    },
  }
  const kept = { ...full, name: 'libssl3', licenses: ['Apache-2.0', 'MIT', 'MIT'], file_paths: ['b', 'a'] }
  const bare = { name: 'bare', licenses: [], file_paths: [] }
  const nulls = Object.fromEntries(Object.keys(full).map((key) => [key, null]))
  const { rows, header, page } = prepare(
    sbomOf(image, [full, { name: 'bare' }, { ...nulls, name: 'bare' }, { ...full, unknown: 1 }]),
  )
  assert.deepEqual(rows, [kept, bare, bare, kept])
  assert.deepEqual([header.item_count, page], [4, null])
})

test('texts are cut to their bytes, and lists to their first entries', () => {
  const long = 'é'.repeat(2_000)
  const texts = ['name', 'version', 'purl', 'type', 'class', 'src_name', 'src_version', 'layer_digest']
  const lists = { licenses: Array(10).fill(long), file_paths: Array.from({ length: 20 }, (_, i) => `${i}${long}`) }
  const [row] = prepare(sbomOf(image, [{ ...Object.fromEntries(texts.map((key) => [key, long])), ...lists }])).rows
  assert.deepEqual(
    texts.map((key) => Buffer.byteLength(row[key])),
    [256, 128, 1024, 64, 64, 256, 128, 136],
  )
  assert.deepEqual([row.licenses.length, row.file_paths.length], [8, 16])
  assert.deepEqual([Buffer.byteLength(row.licenses[0]), Buffer.byteLength(row.file_paths[15])], [128, 1024])
})

test('a component without a name is refused with its position', () => {
  assert.deepEqual(refused(sbomOf(image, [component(), component({ name: '\u0001' })])), [
    422,
    'components[1].name: expected text',
  ])
})

test('a value of another type is refused with its path', () => {
  const bad: Record<string, unknown>[] = [
    { name: 7 },
    { name: null },
    { name: undefined },
    { version: 1 },
    { licenses: 'MIT' },
    { licenses: [1] },
    { file_paths: {} },
  ]
  for (const fields of bad) {
    const [status, message] = refused(sbomOf(image, [component(), component(fields)]))
    assert.equal(status, 400)
    assert.ok(message.startsWith(`Json deserialize error: components[1].${Object.keys(fields)[0]}`), message)
  }
  const page = { set_id: 'x', index: 0, total: 2 }
  const others: Record<string, unknown>[] = [
    ...[
      { components: {} },
      { components: [null] },
      { format: 1 },
      { spec_version: 1.6 },
      { attestation: 'x' },
      { attestation: { verified: 'no' } },
    ],
    ...[
      { page: 1 },
      { page: { ...page, set_id: 1 } },
      { page: { ...page, index: '0' } },
      { page: { ...page, index: 0.5 } },
      { page: { ...page, total: null } },
    ],
    ...[{ page: { index: 0, total: 1 } }, { attestation: { mechanism: 1 } }],
  ]
  for (const fields of others) assert.equal(refused({ ...sbomOf(image), ...fields })[0], 400, JSON.stringify(fields))
})

test('10 000 components are accepted, one more is not', () => {
  const list = (n: number) =>
    JSON.stringify(sbomOf(image, [])).replace('[]', `[${Array(n).fill('{"name":"x"}').join()}]`)
  assert.equal(prepare(list(MAX_COMPONENTS)).header.item_count, MAX_COMPONENTS)
  assert.deepEqual(refused(list(MAX_COMPONENTS + 1)), [413, 'body has more than 10000 components'])
})

test('the content of a whole SBOM is its components in order, that of a set its name', () => {
  const hashOf = (payload: unknown) => prepare(payload).header.content_hash
  const list = [component(), component({ name: 'zlib' })]
  const hash = hashOf(sbomOf(image, list))
  assert.match(hash, /^whole:[0-9a-f]{64}$/)
  assert.equal(hashOf(sbomOf(image, list, { scanned_at: scannedAt(-5), format: 'SPDX' })), hash)
  assert.equal(hashOf(pageOf(image, 'x', 0, 1, list)), hash)
  for (const other of [list.toReversed(), list.slice(1), []]) assert.notEqual(hashOf(sbomOf(image, other)), hash)
  for (const some of [list, []]) assert.equal(hashOf(pageOf(image, 'A.z_0:9-', 1, 3, some)), 'set:A.z_0:9-')
})

test('a page has its position in its set; a set of one page is a whole SBOM', () => {
  assert.deepEqual(prepare(pageOf(image, 'x', 127, 128, [])).page, { set_id: 'x', index: 127, total: 128 })
  assert.equal(prepare(pageOf(image, 'x', 0, 1, [])).page, null)
  assert.equal(prepare(sbomOf(image, [], { page: null })).page, null)
  const bad: [set: string, index: number, total: number, says: RegExp][] = [
    ['x', -1, 2, /^page\.index: expected 0 to 1$/],
    ['x', 2, 2, /^page\.index/],
    ['x', 1, 1, /^page\.index: expected 0 to 0$/],
    ['x', 0, 0, /^page\.total: expected 1 to 128$/],
    ['x', 0, 129, /^page\.total/],
    ['', 0, 2, /^page\.set_id: expected 1 to 128 of/],
    ['a b', 0, 2, /^page\.set_id/],
    ['a/b', 0, 2, /^page\.set_id/],
    ['x\n', 0, 2, /^page\.set_id/],
    ['x'.repeat(129), 0, 2, /^page\.set_id/],
  ]
  for (const [set, index, total, says] of bad) {
    const [status, message] = refused(pageOf(image, set, index, total, []))
    assert.equal(status, 422)
    assert.match(message, says)
  }
  assert.equal(refused(pageOf(image, 'x'.repeat(128), 0, 2, []))[0], 0)
})

test('the page is checked last: a component without a name is reported first', () => {
  const bad = pageOf(image, '', 0, 2, [{ name: '' }])
  assert.match(refused(bad)[1], /^components\[0\]\.name/)
  assert.match(refused({ ...bad, scanned_at: scannedAt(61) })[1], /^scanned_at/)
})

test('the header has format and version, and no fields of findings', () => {
  const header = headerOf({
    format: ' CycloneDX ',
    spec_version: `1.${'6'.repeat(99)}`,
    os: { family: 'debian' },
    db_updated_at: 'x',
    sbom_sources: ['registry'],
  })
  assert.deepEqual([header.sbom_format, header.sbom_spec_version.length], ['CycloneDX', 64])
  assert.deepEqual(
    [header.os_family, header.os_eosl, header.db_updated_at, header.sbom_sources],
    [null, false, null, []],
  )
  assert.deepEqual([headerOf({}).sbom_format, headerOf({}).sbom_spec_version], [null, null])
})

test('a registry SBOM without a trust has the weakest, others have none', () => {
  for (const [source, sbom_trust, trust] of [
    ['registry', undefined, 'attached-unbound'],
    ['registry', ' ', 'attached-unbound'],
    ['registry', 'signed-by-me', 'attached-unbound'],
    ['registry', 'unverified', 'unverified'],
    ['operator-scanner', undefined, null],
    ['grype', null, null],
    ['operator-scanner', 'trust me', 'attached-unbound'],
    ['operator-scanner', 'scanned', 'scanned'],
  ])
    assert.equal(headerOf({ source, sbom_trust }).sbom_trust, trust, `${source} ${sbom_trust}`)
  assert.equal(headerOf({ source: 'registry', sbomTrust: 'unverified' }).sbom_trust, 'unverified')
})

test('the attestation is stored for registry SBOMs only', () => {
  const attestation = {
    ...{
      mechanism: 'oci-referrer',
      artifact_digest: image,
      media_type: 'application/vnd.in-toto+json',
      predicate_type: 'https://spdx.dev/Document',
    },
    verified: true,
  }
  const of = (sent: unknown, source = 'registry') => headerOf({ attestation: sent, source }).attestation
  assert.deepEqual(of({ ...attestation, payload_sha256: 'a'.repeat(64) }), attestation)
  assert.deepEqual(of({ ...attestation, artifact_digest: 'sha256:1' }), { ...attestation, artifact_digest: null })
  assert.deepEqual(of({}), {
    mechanism: null,
    artifact_digest: null,
    media_type: null,
    predicate_type: null,
    verified: false,
  })
  const long = 'x'.repeat(300)
  const cut = of({ mechanism: long, media_type: long, predicate_type: long })
  assert.deepEqual([cut.mechanism.length, cut.media_type.length, cut.predicate_type.length], [64, 256, 256])
  for (const source of ['operator-scanner', 'db-matcher']) assert.equal(of(attestation, source), null)
  assert.equal(of(null), null)
})
