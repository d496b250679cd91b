import assert from 'node:assert/strict'
import test from 'node:test'
import { gzipSync } from 'node:zlib'
import { routes } from '../../handlers/router.ts'
import { createApp } from '../../lib/app/app.ts'
import { loadConfig } from '../../lib/config/index.ts'
import { createTokens } from '../../lib/http/tokens.ts'
import { component, finding, findingsOf, newImage, pageOf, sbomOf, scannedAt } from '../supply-chain/payloads.ts'
import { type Answer, startApp, TOKENS } from '../support/app.ts'
import { digestOf } from '../support/images.ts'
import { startLossyApp } from '../support/lossy.ts'
import { assertForbidden, assertUnauthorized } from '../support/routes.ts'

const token = TOKENS.BROKER_TOKEN_SUPPLYCHAIN
const app = await startApp(TOKENS)
const { sql } = app

type Fields = Record<string, unknown>

const path = (digest: string) => `/images/${digest}/sbom`
const post = (payload: Fields, digest = (payload.image as Fields).digest as string) =>
  app.post(path(digest), payload, { token })
const send = (digest: string, body: string | Uint8Array, headers: Record<string, string> = {}) =>
  app.request('POST', path(digest), { body, headers, token })

async function assertAnswer(answer: Promise<Answer>, status: number, says: unknown): Promise<void> {
  const { status: was, json, text } = await answer
  assert.equal(was, status, text)
  if (says instanceof RegExp) assert.match(text, says)
  else assert.deepEqual(json, says)
}
const rowsOf = async (digest: string): Promise<Fields[]> =>
  (
    await sql<
      { row: Fields }[]
    >`select to_json(c) as row from image_component c where c.digest = ${digest} order by source, position`
  ).map(({ row }) => row)
const namesOf = async (digest: string) => (await rowsOf(digest)).map(({ name }) => name)
const reportOf = async (digest: string): Promise<Fields | undefined> =>
  (
    await sql<
      { row: Fields }[]
    >`select to_json(r) as row from image_report r where r.digest = ${digest} and kind = 'sbom'`
  )[0]?.row
const some = (prefix: string, n: number) => Array.from({ length: n }, (_, i) => component({ name: `${prefix}${i}` }))
const counter = async (): Promise<number> =>
  Number(/^svc_supplychain_staged_sets_refused_total (\d+)$/m.exec((await app.get('/metrics')).text)?.[1])

test('POST /images/{digest}/sbom 401: no token', async () => {
  assertUnauthorized(await app.post(path(newImage()), sbomOf(newImage())))
})

test('POST /images/{digest}/sbom 403: a token of another scope', async () => {
  for (const one of [TOKENS.BROKER_TOKEN_READ, TOKENS.BROKER_TOKEN_INGEST, TOKENS.BROKER_AUTH_TOKEN])
    assertForbidden(await app.request('POST', path(newImage()), { body: '{', token: one }), 'supplychain')
})

test('POST /images/{digest}/sbom 200: a whole SBOM is stored with its header and its components, in order', async () => {
  const digest = newImage()
  const attestation = {
    mechanism: 'oci-referrer',
    artifact_digest: newImage(),
    media_type: 'm',
    predicate_type: 'p',
    verified: false,
  }
  const full = {
    ...{
      name: 'libssl3',
      version: '3.0.11',
      purl: 'pkg:deb/libssl3',
      type: 'deb',
      class: 'os-pkgs',
      src_name: 'openssl',
      src_version: '3',
    },
    ...{ licenses: ['Apache-2.0', 'MIT'], layer_digest: newImage(), file_paths: ['usr/lib/{libssl}.so'] },
  }
  const fields = {
    source: 'registry',
    format: 'CycloneDX',
    spec_version: '1.6',
    attestation,
    scanner: { name: 'registry', vendor: 'oci-referrer' },
  }
  await assertAnswer(post(sbomOf(digest, [full, { name: 'bare' }, { name: 'bare' }], fields)), 200, {
    status: 'stored',
    items: 3,
  })
  const key = { digest, source: 'registry' }
  const bare = {
    ...{
      name: 'bare',
      version: null,
      purl: null,
      type: null,
      class: null,
      src_name: null,
      src_version: null,
      licenses: [],
    },
    ...{ layer_digest: null, file_paths: [] },
  }
  assert.deepEqual(await rowsOf(digest), [
    { ...key, position: 1, ...full },
    { ...key, position: 2, ...bare },
    { ...key, position: 3, ...bare },
  ])
  const {
    content_hash,
    sbom_format,
    sbom_spec_version,
    sbom_trust,
    attestation: kept,
    item_count,
    scanner_vendor,
  } = (await reportOf(digest))!
  assert.match(content_hash as string, /^whole:[0-9a-f]{64}$/)
  assert.deepEqual(
    [sbom_format, sbom_spec_version, sbom_trust, item_count],
    ['CycloneDX', '1.6', 'attached-unbound', 3],
  )
  assert.deepEqual([kept, scanner_vendor], [attestation, 'oci-referrer'])
})

test('POST /images/{digest}/sbom 200: stored, then unchanged, then stale, then replaced by a strictly newer scan', async () => {
  const digest = newImage()
  const at = (seconds: number, list: unknown[]) => post(sbomOf(digest, list, { scanned_at: scannedAt(seconds) }))
  await assertAnswer(at(10, some('a', 2)), 200, { status: 'stored', items: 2 })
  for (const seconds of [10, 9, 10]) await assertAnswer(at(seconds, some('a', 2)), 200, { status: 'unchanged' })
  for (const list of [some('b', 1), []])
    await assertAnswer(at(10, list), 200, { status: 'stale', stored_scanned_at: '2026-01-01T00:00:10' })
  await assertAnswer(at(11, some('b', 1)), 200, { status: 'stored', items: 1 })
  assert.deepEqual(await namesOf(digest), ['b0'])
  await assertAnswer(at(12, []), 200, { status: 'stored', items: 0 })
})

test('POST /images/{digest}/sbom 200: findings and SBOM of one image and source do not replace each other', async () => {
  const digest = newImage()
  const findings = app.post(
    `/images/${digest}/vulnerabilities`,
    findingsOf(digest, [finding()], { scanned_at: scannedAt(50) }),
    { token },
  )
  await assertAnswer(findings, 200, { status: 'stored', items: 1 })
  await assertAnswer(post(sbomOf(digest, some('a', 2))), 200, { status: 'stored', items: 2 })
  const [{ count }] =
    (await sql`select count(*)::int as count from image_finding where digest = ${digest}`) as unknown as [
      { count: number },
    ]
  assert.equal(count, 1)
})

test('POST /images/{digest}/sbom 200: 10 000 components, compressed', async () => {
  const digest = newImage()
  const packed = gzipSync(JSON.stringify(sbomOf(digest, some('c', 10_000))))
  await assertAnswer(send(digest, packed, { 'content-encoding': 'x-gzip' }), 200, { status: 'stored', items: 10_000 })
  assert.equal((await rowsOf(digest)).length, 10_000)
})

test('POST /images/{digest}/sbom 202: pages of a set are held until the last arrives, then stored in order', async () => {
  const digest = newImage()
  await assertAnswer(post(sbomOf(digest, some('old', 1), { scanned_at: scannedAt(-1) })), 200, {
    status: 'stored',
    items: 1,
  })
  await assertAnswer(post(pageOf(digest, 'set', 2, 3, some('c', 1))), 202, { status: 'staged', received: 1, total: 3 })
  await assertAnswer(post(pageOf(digest, 'set', 0, 3, some('a', 2))), 202, { status: 'staged', received: 2, total: 3 })
  await assertAnswer(post(pageOf(digest, 'set', 0, 3, some('a', 2))), 200, {
    status: 'duplicate_page',
    received: 2,
    total: 3,
  })
  assert.deepEqual(await namesOf(digest), ['old0'])
  await assertAnswer(post(pageOf(digest, 'set', 1, 3, some('b', 2))), 200, { status: 'stored', items: 5 })
  assert.deepEqual(await namesOf(digest), ['a0', 'a1', 'b0', 'b1', 'c0'])
  for (const index of [0, 1, 2])
    await assertAnswer(post(pageOf(digest, 'set', index, 3, some('a', 1))), 200, { status: 'unchanged' })
  const { content_hash, item_count } = (await reportOf(digest))!
  assert.deepEqual([content_hash, item_count], ['set:set', 5])
})

test('POST /images/{digest}/sbom 200: a set of one page is a whole SBOM', async () => {
  const digest = newImage()
  await assertAnswer(post(pageOf(digest, 'one', 0, 1, some('a', 2))), 200, { status: 'stored', items: 2 })
  await assertAnswer(post(sbomOf(digest, some('a', 2))), 200, { status: 'unchanged' })
})

test('POST /images/{digest}/sbom 200: a set that is not newer than another is stale', async () => {
  const digest = newImage()
  await assertAnswer(post(pageOf(digest, 'new', 0, 2, some('n', 1), { scanned_at: scannedAt(20.25) })), 202, {
    status: 'staged',
    received: 1,
    total: 2,
  })
  const stale = { status: 'stale', stored_scanned_at: '2026-01-01T00:00:20.250' }
  await assertAnswer(post(pageOf(digest, 'old', 0, 2, some('o', 1), { scanned_at: scannedAt(20) })), 200, stale)
})

test('POST /images/{digest}/sbom 400: malformed JSON or gzip, a wrong type, an invalid digest', async () => {
  const digest = newImage()
  const text = JSON.stringify(sbomOf(digest))
  for (const body of ['', text.slice(0, -1), `${text}!`, '{"schema_version":1', '[]'])
    await assertAnswer(send(digest, body), 400, /^Json deserialize error: /)
  await assertAnswer(
    send(digest, gzipSync(text).subarray(0, 60), { 'content-encoding': 'gzip' }),
    400,
    /^the body is not valid gzip/,
  )
  await assertAnswer(
    post(sbomOf(digest, [component(), { name: 7 }])),
    400,
    /^Json deserialize error: components\[1\]\.name: /,
  )
  await assertAnswer(
    post(sbomOf(digest, [], { page: { set_id: 'x', index: 0.5, total: 2 } })),
    400,
    /^Json deserialize error: page\.index: /,
  )
  await assertAnswer(post(sbomOf(digest), 'sha256:zz'), 400, /^Path deserialize error: digest: /)
  assert.equal(await reportOf(digest), undefined)
})

test('POST /images/{digest}/sbom 413: more bytes or components than a body may have', async () => {
  const digest = newImage()
  await assertAnswer(send(digest, ' '.repeat(1_048_577)), 413, /^body is larger than 1048576 bytes$/)
  await assertAnswer(
    send(digest, gzipSync(Buffer.alloc(8_388_609, ' ')), { 'content-encoding': 'gzip' }),
    413,
    /^the body inflates/,
  )
  const packed = gzipSync(JSON.stringify(sbomOf(digest, some('c', 10_001))))
  await assertAnswer(send(digest, packed, { 'content-encoding': 'gzip' }), 413, /^body has more than 10000 components$/)
})

test('POST /images/{digest}/sbom 415: another content coding', async () => {
  assert.equal((await send(newImage(), '{}', { 'content-encoding': 'br' })).status, 415)
})

test('POST /images/{digest}/sbom 422: a broken contract, contradicting pages, and more components than a set may have', async () => {
  const digest = newImage()
  const bad: [Fields, RegExp][] = [
    [{ schema_version: 2 }, /^schema_version: /],
    [{ image: { digest: newImage() } }, /^image\.digest: /],
    [{ source: 'syft' }, /^source: /],
    [{ scanned_at: new Date(Date.now() + 120_000).toISOString() }, /^scanned_at: /],
    [{ components: [component(), { name: ' ' }] }, /^components\[1\]\.name: /],
    [{ page: { set_id: 'a b', index: 0, total: 2 } }, /^page\.set_id: /],
  ]
  for (const [fields, says] of bad) await assertAnswer(post({ ...sbomOf(digest), ...fields }, digest), 422, says)
  assert.equal(await reportOf(digest), undefined)
  await assertAnswer(post(pageOf(digest, 'x', 0, 2, some('a', 1))), 202, { status: 'staged', received: 1, total: 2 })
  await assertAnswer(post(pageOf(digest, 'x', 1, 3, some('b', 1))), 422, /^page\.total: the pages before said 2$/)
  await assertAnswer(post(pageOf(digest, 'x', 1, 2, some('b', 1))), 200, { status: 'stored', items: 2 })

  const large = newImage()
  const page = async (index: number) => {
    const packed = gzipSync(JSON.stringify(pageOf(large, 'large', index, 6, some('c', 10_000))))
    return send(large, packed, { 'content-encoding': 'gzip' })
  }
  for (let index = 0; index < 5; index++)
    await assertAnswer(page(index), 202, { status: 'staged', received: index + 1, total: 6 })
  await assertAnswer(page(5), 422, /^components: 60000 in all pages are too many; the set is dropped$/)
  const [{ count }] = (await sql`select count(*)::int as count from sbom_page where digest = ${large}`) as unknown as [
    { count: number },
  ]
  assert.equal(count, 0)
})

test('POST /images/{digest}/sbom 429: a new set beyond the limit, which is counted', async () => {
  await sql`delete from sbom_page`
  const before = await counter()
  const digests = Array.from({ length: 65 }, newImage)
  for (const digest of digests.slice(1))
    await assertAnswer(post(pageOf(digest, 'x', 0, 2, [])), 202, { status: 'staged', received: 1, total: 2 })
  const refused = await post(pageOf(digests[0]!, 'x', 0, 2, []))
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '60'])
  assert.equal(refused.text, 'too many SBOMs are half sent; retry in 60 seconds')
  assert.equal(await counter(), before + 1)
  await assertAnswer(post(pageOf(digests[1]!, 'x', 1, 2, [])), 200, { status: 'stored', items: 0 })
  await assertAnswer(post(pageOf(digests[0]!, 'x', 0, 2, [])), 202, { status: 'staged', received: 1, total: 2 })
  await sql`delete from sbom_page`
})

test('the counter of refused sets has the name of either naming scheme, and is exported before its first event', async () => {
  const other = await startApp({ WIRE_NAMES: 'kguardian' })
  assert.match((await other.get('/metrics')).text, /^kguardian_supplychain_staged_sets_refused_total 0$/m)
  assert.match((await app.get('/metrics')).text, /^svc_supplychain_staged_sets_refused_total \d+$/m)
})

test('POST /images/{digest}/sbom 200: a page or an SBOM whose answer was lost gets its first outcome, not duplicate_page', async () => {
  const lossy = await startLossyApp()
  const { authenticate } = createTokens(loadConfig(TOKENS))
  const tested = createApp({ ...lossy.deps, authenticate }, routes)
  const ask = async (payload: Fields) => {
    const headers = { authorization: `Bearer ${token}` }
    const url = path((payload.image as Fields).digest as string)
    const answer = await tested.request(url, { method: 'POST', body: JSON.stringify(payload), headers })
    return [answer.status, await answer.json()]
  }
  const digest = digestOf('lost sbom')
  for (const fates of [
    ['answered', 'answer lost'],
    ['answer lost', 'answered', 'question lost', 'answer lost'],
  ] as const) {
    const seconds = fates.length * 10
    const page = (index: number) =>
      pageOf(digest, `set-${seconds}`, index, 2, some('p', 1), { scanned_at: scannedAt(seconds) })
    lossy.lose('select store_sbom(', ...fates)
    assert.deepEqual(await ask(page(0)), [202, { status: 'staged', received: 1, total: 2 }])
    assert.equal(lossy.toCome, 0)
    lossy.lose('select store_sbom(', ...fates)
    assert.deepEqual(await ask(page(1)), [200, { status: 'stored', items: 2 }])
    assert.equal(lossy.toCome, 0)
    const whole = sbomOf(digest, some('w', 2), { scanned_at: scannedAt(seconds + 1) })
    lossy.lose('select store_sbom(', ...fates)
    assert.deepEqual(await ask(whole), [200, { status: 'stored', items: 2 }])
    assert.deepEqual(await ask(whole), [200, { status: 'unchanged' }])
  }
})
