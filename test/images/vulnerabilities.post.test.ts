import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import test, { after } from 'node:test'
import { deflateSync, gzipSync } from 'node:zlib'
import { routes } from '../../handlers/router.ts'
import { createApp } from '../../lib/app/app.ts'
import { loadConfig } from '../../lib/config/index.ts'
import { listen } from '../../lib/http/server/listen.ts'
import { createTokens } from '../../lib/http/tokens.ts'
import { RateLimitedLog } from '../../lib/observability/rate-limited-log.ts'
import { Payloads } from '../../lib/supply-chain/payloads.ts'
import { PayloadReader } from '../../lib/supply-chain/reader.ts'
import { start } from '../../lib/supply-chain/thread.ts'
import { finding, findingsOf, newCve, newImage, SCANNED_AT, scannedAt } from '../supply-chain/payloads.ts'
import { type Answer, startApp, TOKENS } from '../support/app.ts'
import { digestOf } from '../support/images.ts'
import { startLossyApp } from '../support/lossy.ts'
import { assertForbidden, assertUnauthorized, whileLocked } from '../support/routes.ts'
import { until } from '../support/until.ts'

const token = TOKENS.BROKER_TOKEN_SUPPLYCHAIN
const app = await startApp({ ...TOKENS, DB_STATEMENT_TIMEOUT_MS: '20000' })
const { sql } = app
const { server } = await listen(app.app.fetch, [{ host: '127.0.0.1', port: 0 }])
const { port } = server.address() as AddressInfo
after(() => {
  server.closeAllConnections()
  server.close()
})

type Fields = Record<string, unknown>

const path = (digest: string) => `/images/${digest}/vulnerabilities`
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
    await sql<{ row: Fields }[]>`
      select to_json(f) as row from image_finding f where f.digest = ${digest} order by source, severity, vuln_id, package_name`
  ).map(({ row }) => row)
const reportsOf = async (digest: string): Promise<Fields[]> =>
  (
    await sql<
      { row: Fields }[]
    >`select to_json(r) as row from image_report r where r.digest = ${digest} order by source`
  ).map(({ row }) => row)

// ---- Tokens

test('POST /images/{digest}/vulnerabilities 401: no token, or an unknown one', async () => {
  const payload = findingsOf(newImage())
  for (const one of [undefined, 'nobody'])
    assertUnauthorized(
      await app.post(path((payload.image as Fields).digest as string), payload, one ? { token: one } : {}),
    )
})

test('POST /images/{digest}/vulnerabilities 403: a token of another scope, the shared one too, before a byte is read', async () => {
  const digest = newImage()
  for (const one of [TOKENS.BROKER_TOKEN_READ, TOKENS.BROKER_TOKEN_INGEST, TOKENS.BROKER_AUTH_TOKEN]) {
    const answer = await app.request('POST', path(digest), {
      body: '{',
      headers: { 'content-encoding': 'br' },
      token: one,
    })
    assertForbidden(answer, 'supplychain')
  }
  assert.deepEqual(await reportsOf(digest), [])
})

test('POST /images/{digest}/vulnerabilities 403: every client, while authentication is off or only the shared token is set', async () => {
  for (const env of [{}, { BROKER_AUTH_TOKEN: TOKENS.BROKER_AUTH_TOKEN }]) {
    const { authenticate } = createTokens(loadConfig(env))
    const open = createApp({ ...app.deps, authenticate }, routes)
    const headers = { authorization: `Bearer ${TOKENS.BROKER_AUTH_TOKEN}` }
    assert.equal((await open.request(path(newImage()), { method: 'POST', body: '{', headers })).status, 403)
  }
})

// ---- Stored fields

test('POST /images/{digest}/vulnerabilities 200: a payload is stored with its header and its rows', async () => {
  const digest = newImage()
  const index = newImage()
  const payload = findingsOf(
    {
      ...{
        digest,
        ref: 'registry.test/team/app:v1',
        registry: 'registry.test',
        repository: 'team/app',
        tag: 'v1',
        digest_kind: 'manifest',
      },
      ...{ index_digest: index, platform_manifests: { 'linux/amd64': digest } },
    },
    [
      finding({
        ...{
          id: 'CVE-2026-2',
          package: { name: 'zlib', version: '1.2', type: 'deb', purl: 'pkg:deb/zlib' },
          fixed_version: '1.3',
        },
        ...{
          severity: 'low',
          score: 9.8,
          cvss: { nvd: { v3_score: 9.8 } },
          title: 'é \u2028 "',
          primary_url: 'https://a',
          target: 't',
          class: 'c',
        },
        ...{
          published_at: '2024-01-02T03:04:05.123456Z',
          last_modified_at: '2024-02-03T04:05:06Z',
          file_paths: ['usr/lib/{a,"b"}.so', '\\'],
        },
        ...{ kev: true, kev_date_added: '2024-03-04T00:00:00Z', epss: 0.5, epss_percentile: 0.25 },
      }),
      { id: 'CVE-2026-1', package: { name: 'bare' } },
    ],
    {
      ...{
        source: 'grype',
        scanned_at: '2026-01-01T00:00:00.123456789Z',
        scanner: { name: 'scan', vendor: 'maker', version: '1' },
      },
      ...{
        os: { family: 'debian', name: '12', eosl: true },
        db_updated_at: '2025-05-06T07:08:09Z',
        sbom_sources: ['registry', 'grype'],
      },
      ...{ sbom_trust: 'scanned', observed_in: [{ namespace: 'shop', kind: 'Pod', name: 'web', container: 'app' }] },
    },
  )
  await assertAnswer(post(payload), 200, { status: 'stored', items: 2 })
  const [report, ...others] = await reportsOf(digest)
  const { content_hash, packages_hash, post: id, received_at, ...rest } = report!
  assert.deepEqual(others, [])
  assert.match(content_hash as string, /^[0-9a-f]{64}$/)
  assert.ok(id && received_at)
  assert.equal(packages_hash, null, 'the job has not read it')
  assert.deepEqual(rest, {
    ...{
      digest,
      source: 'db-matcher',
      kind: 'vulnerabilities',
      digest_kind: 'manifest',
      platform_manifests: { 'linux/amd64': digest },
    },
    ...{
      index_digest: index,
      manifest_digests: [digest, index].sort(),
      image_ref: 'registry.test/team/app:v1',
      registry: 'registry.test',
    },
    ...{
      repository: 'team/app',
      normal_repository: 'registry.test/team/app',
      tag: 'v1',
      scanner_name: 'scan',
      scanner_vendor: 'maker',
    },
    ...{
      scanner_version: '1',
      scanned_at: '2026-01-01T00:00:00.123456',
      db_updated_at: '2025-05-06T07:08:09',
      os_family: 'debian',
    },
    ...{
      os_name: '12',
      os_eosl: true,
      observed_in: [{ namespace: 'shop', kind: 'Pod', name: 'web', container: 'app' }],
      sbom_format: null,
    },
    ...{
      sbom_spec_version: null,
      item_count: 2,
      sbom_sources: ['db-matcher', 'registry'],
      sbom_trust: 'scanned',
      attestation: null,
    },
  })
  const none = {
    package_type: null,
    package_purl: null,
    score: null,
    title: null,
    primary_url: null,
    target: null,
    class: null,
  }
  const unknown = {
    published_at: null,
    last_modified_at: null,
    kev: null,
    kev_date_added: null,
    epss: null,
    epss_percentile: null,
  }
  assert.deepEqual(await rowsOf(digest), [
    {
      ...{
        digest,
        source: 'db-matcher',
        severity: 3,
        vuln_id: 'CVE-2026-2',
        package_name: 'zlib',
        installed_version: '1.2',
        package_type: 'deb',
      },
      ...{
        package_purl: 'pkg:deb/zlib',
        fixed_versions: ['1.3'],
        score: 9.8,
        cvss: { nvd: { v3_score: 9.8 } },
        title: 'é  "',
        primary_url: 'https://a',
      },
      ...{
        target: 't',
        class: 'c',
        published_at: '2024-01-02T03:04:05.123456',
        last_modified_at: '2024-02-03T04:05:06',
      },
      ...{
        file_paths: ['usr/lib/{a,"b"}.so', '\\'],
        kev: true,
        kev_date_added: '2024-03-04T00:00:00',
        epss: 0.5,
        epss_percentile: 0.25,
      },
      ...{ aliases: [], omitted: 0, status: null },
    },
    {
      ...{
        digest,
        source: 'db-matcher',
        severity: 5,
        vuln_id: 'CVE-2026-1',
        package_name: 'bare',
        installed_version: '',
        ...none,
        ...unknown,
      },
      ...{ fixed_versions: [], cvss: {}, file_paths: [], aliases: [], omitted: 0, status: null },
    },
  ])
})

test('POST /images/{digest}/vulnerabilities 200: the longest values of every field can be stored', async () => {
  const digest = newImage()
  const text = JSON.stringify(
    findingsOf(digest, ['@'], {
      observed_in: [{ namespace: '\ud800a\0', name: 'b' }],
      scanned_at: '0001-01-01T00:00:00Z',
    }),
  )
  const numbers =
    '"score":1e300,"epss":1e-60,"epss_percentile":1e-46,"cvss":{"a":{"v2_score":1e308,"v3_score":-1e-300},"\\u0000":{},"b\\ud800":{}}'
  const times = '"published_at":"0001-01-02T00:00:00Z","last_modified_at":"9999-12-31T23:59:59.999999999Z"'
  const odd = `{"id":"\\ud800x\\u0000","package":{"name":"\\ufffe\\uffff","version":"\\\\x00\\u2029"},${numbers},${times},"title":"\\\\u0000 ${'\\u0085'.repeat(3)}"}`
  await assertAnswer(send(digest, text.replace('"@"', odd)), 200, { status: 'stored', items: 1 })
  const [row] = await rowsOf(digest)
  const {
    vuln_id,
    package_name,
    installed_version,
    score,
    epss,
    epss_percentile,
    cvss,
    title,
    published_at,
    last_modified_at,
  } = row!
  assert.deepEqual([vuln_id, package_name, installed_version, title], ['x', '\ufffe\uffff', '\\x00', '\\u0000'])
  assert.deepEqual([score, epss, epss_percentile], [null, 0, 0])
  assert.deepEqual(Object.keys(cvss as object), ['a', 'b'])
  assert.deepEqual([published_at, last_modified_at], ['0001-01-02T00:00:00', '9999-12-31T23:59:59.999999'])
  assert.deepEqual((await reportsOf(digest))[0]!.observed_in, [{ namespace: 'a', kind: '', name: 'b', container: '' }])
})

test('POST /images/{digest}/vulnerabilities 200: a finding is stored by its CVE, with its other ids, its file paths and the number of cut entries', async () => {
  const digest = newImage()
  const [cve, ghsa] = [newCve(), `GHSA-${newCve()}`]
  const places = (n: number) =>
    Array.from({ length: n }, (_, i) => finding({ id: ghsa, aliases: [cve], file_paths: [`p${i}`] }))
  await assertAnswer(
    post(findingsOf(digest, [...places(1_030), finding({ id: cve, aliases: [ghsa.toLowerCase()] })])),
    200,
    {
      status: 'stored',
      items: 1_031,
    },
  )
  const [row, ...others] = await rowsOf(digest)
  assert.deepEqual(
    [row!.vuln_id, row!.aliases, (row!.file_paths as unknown[]).length, row!.omitted, others],
    [cve, [ghsa], 1_024, 6, []],
  )
  assert.deepEqual(
    [...(await sql`select vuln_id, alias from cve_alias where vuln_id = ${cve}`)],
    [{ vuln_id: cve, alias: ghsa }],
  )
  const plain = newImage()
  await assertAnswer(post(findingsOf(plain)), 200, { status: 'stored', items: 1 })
  assert.deepEqual([(await rowsOf(plain))[0]!.aliases, (await rowsOf(plain))[0]!.omitted], [[], 0])
})

test('POST /images/{digest}/vulnerabilities 200: empty and unreadable dates are dropped alone, and unreadable ones are counted', async () => {
  const digest = newImage()
  const counted = async () =>
    (await app.deps.metrics.unreadableTimes.get()).values.find((v) => v.labels.kind === 'vulnerabilities')?.value ?? 0
  const before = await counted()
  const list = [finding({ published_at: '', last_modified_at: 'n/a', kev_date_added: ' ' })]
  await assertAnswer(post(findingsOf(digest, list, { db_updated_at: 'never' })), 200, { status: 'stored', items: 1 })
  const [row] = await rowsOf(digest)
  assert.deepEqual([row!.published_at, row!.last_modified_at, row!.kev_date_added], [null, null, null])
  assert.equal((await reportsOf(digest))[0]!.db_updated_at, null)
  assert.equal((await counted()) - before, 2)
})

test('POST /images/{digest}/vulnerabilities 400: a repeated key in a finding', async () => {
  const digest = newImage()
  const text = JSON.stringify(findingsOf(digest, [finding(), finding()]))
  const twice = text.replace(/}]}$/, ',"severity":"LOW"}]}')
  await assertAnswer(
    send(digest, twice),
    400,
    /^Json deserialize error: vulnerabilities\[1\]: "severity" is there twice$/,
  )
  assert.deepEqual(await reportsOf(digest), [])
})

test('POST /images/{digest}/vulnerabilities 200: stored, then unchanged, then stale, then replaced by a strictly newer scan', async () => {
  const digest = newImage()
  const at = (seconds: number, ...ids: string[]) =>
    post(
      findingsOf(
        digest,
        ids.map((id) => finding({ id })),
        { scanned_at: scannedAt(seconds) },
      ),
    )
  await assertAnswer(at(10, 'a'), 200, { status: 'stored', items: 1 })
  await assertAnswer(at(10, 'a'), 200, { status: 'unchanged' })
  for (const seconds of [9, 10])
    await assertAnswer(at(seconds, 'b'), 200, { status: 'stale', stored_scanned_at: '2026-01-01T00:00:10' })
  await assertAnswer(at(9), 200, { status: 'stale', stored_scanned_at: '2026-01-01T00:00:10' })
  await assertAnswer(at(10.5, 'b', 'a'), 200, { status: 'stored', items: 2 })
  assert.deepEqual(
    (await rowsOf(digest)).map(({ vuln_id }) => vuln_id),
    ['a', 'b'],
  )
  // The order is part of the content.
  await assertAnswer(at(10.25, 'a', 'b'), 200, { status: 'stale', stored_scanned_at: '2026-01-01T00:00:10.500' })
  await assertAnswer(at(11), 200, { status: 'stored', items: 0 })
  assert.deepEqual(await rowsOf(digest), [])
})

test('POST /images/{digest}/vulnerabilities 200: both names of a source are one source; other sources are kept beside it', async () => {
  const digest = newImage()
  const from = (source: string, id: string) => post(findingsOf(digest, [finding({ id })], { source }))
  await assertAnswer(from('operator-scanner', 'a'), 200, { status: 'stored', items: 1 })
  await assertAnswer(from('trivy-operator', 'a'), 200, { status: 'unchanged' })
  await assertAnswer(from('grype', 'b'), 200, { status: 'stored', items: 1 })
  await assertAnswer(from('db-matcher', 'b'), 200, { status: 'unchanged' })
  await assertAnswer(from('registry', 'c'), 200, { status: 'stored', items: 1 })
  assert.deepEqual(
    (await rowsOf(digest)).map(({ source, vuln_id }) => [source, vuln_id]),
    [
      ['db-matcher', 'b'],
      ['operator-scanner', 'a'],
      ['registry', 'c'],
    ],
  )
})

test('POST /images/{digest}/vulnerabilities 200: repeated findings become one row, and are counted as sent', async () => {
  const digest = newImage()
  const list = [
    finding({ fixed_version: '2', severity: 'LOW' }),
    finding({ fixed_version: '1', severity: 'HIGH' }),
    finding({ id: 'other' }),
  ]
  await assertAnswer(post(findingsOf(digest, list)), 200, { status: 'stored', items: 3 })
  assert.deepEqual(
    (await rowsOf(digest)).map(({ severity, fixed_versions }) => [severity, fixed_versions]),
    [
      [1, ['2', '1']],
      [1, []],
    ],
  )
  assert.equal((await reportsOf(digest))[0]!.item_count, 3)
  await assertAnswer(post(findingsOf(digest, list)), 200, { status: 'unchanged' })
})

test('POST /images/{digest}/vulnerabilities 200: 20 000 findings, replaced by as many others', async () => {
  const digest = newImage()
  for (const second of [1, 2]) {
    const list = Array.from({ length: 20_000 }, (_, i) => ({ id: `CVE-${second}-${i}`, package: { name: 'p' } }))
    const packed = gzipSync(JSON.stringify(findingsOf(digest, list, { scanned_at: scannedAt(second) })))
    // A comparison of each row with each other would exceed the statement timeout.
    await assertAnswer(send(digest, packed, { 'content-encoding': 'gzip' }), 200, { status: 'stored', items: 20_000 })
    const [{ count }] = (await sql`
      select count(*)::int as count from image_finding where digest = ${digest} and vuln_id like ${`CVE-${second}-%`}`) as unknown as [
      { count: number },
    ]
    assert.equal(count, 20_000)
  }
})

test('POST /images/{digest}/vulnerabilities 200: a digest of either algorithm, also with an escaped colon', async () => {
  const digest = newImage()
  await assertAnswer(post(findingsOf(digest), digest.replace(':', '%3A')), 200, { status: 'stored', items: 1 })
  const long = `sha512:${'a'.repeat(128)}`
  await assertAnswer(post(findingsOf(long)), 200, { status: 'stored', items: 1 })
})

test('POST /images/{digest}/vulnerabilities 200: the same payload from many concurrent posts is stored once', async () => {
  const payload = findingsOf(newImage(), [finding({ id: newCve() })])
  const answers = await Promise.all(Array.from({ length: 6 }, () => post(payload)))
  assert.deepEqual(answers.map(({ json }) => json.status).sort(), ['stored', ...Array(5).fill('unchanged')])
})

// ---- Body

test('POST /images/{digest}/vulnerabilities 200: plain, identity, gzip and x-gzip, also of several members, whatever the content type', async () => {
  const spellings: [string | undefined, string, boolean][] = [
    [undefined, 'application/json', false],
    ['', 'text/plain', false],
    [' Identity', '', false],
    ['gzip', 'application/json', true],
    ['X-GZIP', 'application/octet-stream', true],
  ]
  for (const [coding, type, isPacked] of spellings) {
    const digest = newImage()
    const text = JSON.stringify(findingsOf(digest))
    const members = Buffer.concat([gzipSync(text.slice(0, 9)), gzipSync(text.slice(9))])
    const headers = { 'content-type': type, ...(coding === undefined ? {} : { 'content-encoding': coding }) }
    await assertAnswer(send(digest, isPacked ? members : text, headers), 200, { status: 'stored', items: 1 })
  }
})

test('POST /images/{digest}/vulnerabilities 415: another content coding', async () => {
  for (const coding of ['deflate', 'br', 'zstd', 'gzip, gzip']) {
    const answer = await send(newImage(), deflateSync('{}'), { 'content-encoding': coding })
    assert.deepEqual([answer.status, answer.headers.get('accept-encoding')], [415, 'x-gzip, gzip, identity'])
    assert.equal(answer.text, `content-encoding ${coding} is not known: expected identity or gzip or x-gzip`)
  }
})

test('POST /images/{digest}/vulnerabilities 400: gzip that is damaged, truncated, or followed by other bytes', async () => {
  const digest = newImage()
  const text = JSON.stringify(findingsOf(digest))
  const packed = gzipSync(text)
  for (const body of [
    text,
    packed.subarray(0, -9),
    Buffer.concat([packed, Buffer.alloc(1)]),
    Buffer.concat([packed, Buffer.from('x')]),
    '',
  ])
    await assertAnswer(send(digest, body, { 'content-encoding': 'gzip' }), 400, /^the body is not valid gzip: /)
  assert.deepEqual(await reportsOf(digest), [])
})

test('POST /images/{digest}/vulnerabilities 400: malformed JSON or a wrong type, by its path', async () => {
  const digest = newImage()
  const payload = findingsOf(digest)
  const text = JSON.stringify(payload)
  for (const body of ['', text.slice(0, -1), `${text}x`, `${text}{}`, 'null', '[]', Buffer.from([0xff])])
    await assertAnswer(send(digest, body), 400, /^Json deserialize error: /)
  await assertAnswer(
    send(digest, text.replace('{', '{"source":"registry",')),
    400,
    /^Json deserialize error: "source" is there twice$/,
  )
  await assertAnswer(
    post({ ...payload, image: { digest: 7 } }, digest),
    400,
    /^Json deserialize error: image\.digest: /,
  )
  await assertAnswer(
    post(findingsOf(digest, [finding(), finding({ package: 'zlib' })])),
    400,
    /^Json deserialize error: vulnerabilities\[1\]\.package: /,
  )
  assert.deepEqual(await reportsOf(digest), [])
})

test('POST /images/{digest}/vulnerabilities 400: an invalid digest', async () => {
  for (const bad of ['sha256:12', `sha256:${'A'.repeat(64)}`, `sha1:${'a'.repeat(40)}`, 'v1'])
    await assertAnswer(post(findingsOf(newImage()), bad), 400, /^Path deserialize error: digest: /)
})

test('POST /images/{digest}/vulnerabilities 413: more than 1 MiB as sent, 8 MiB as unpacked, or 20 000 findings', async () => {
  const digest = newImage()
  const filled = (bytes: number) => {
    const text = JSON.stringify(findingsOf(digest, [], { filler: '' }))
    return text.replace('"filler":""', `"filler":"${'x'.repeat(bytes - text.length)}"`)
  }
  const gzip = { 'content-encoding': 'gzip' }
  await assertAnswer(send(digest, filled(1_048_577)), 413, /^body is larger than 1048576 bytes$/)
  await assertAnswer(
    send(digest, gzipSync(filled(8_388_609)), gzip),
    413,
    /^the body inflates to more than 8388608 bytes$/,
  )
  await assertAnswer(send(digest, gzipSync(Buffer.alloc(200_000_000)), gzip), 413, /^the body inflates/)
  const list = Array(20_001).fill({ id: 'x', package: { name: 'p' } })
  await assertAnswer(
    send(digest, gzipSync(JSON.stringify(findingsOf(digest, list))), gzip),
    413,
    /^body has more than 20000 vulnerabilities$/,
  )
  assert.deepEqual(await reportsOf(digest), [])
  await assertAnswer(send(digest, filled(1_048_576)), 200, { status: 'stored', items: 0 })
  await assertAnswer(send(digest, gzipSync(filled(8_388_608)), gzip), 200, { status: 'unchanged' })
})

test('POST /images/{digest}/vulnerabilities 422: a broken contract', async () => {
  const digest = newImage()
  const bad: [Fields, RegExp][] = [
    [{ schema_version: 2 }, /^schema_version: /],
    [{ image: { digest: newImage() } }, /^image\.digest: /],
    [{ source: 'clair' }, /^source: /],
    [{ scanned_at: new Date(Date.now() + 120_000).toISOString() }, /^scanned_at: /],
    [{ vulnerabilities: [finding(), finding({ id: ' ' })] }, /^vulnerabilities\[1\]\.id: /],
  ]
  for (const [fields, says] of bad) await assertAnswer(post({ ...findingsOf(digest), ...fields }, digest), 422, says)
  assert.deepEqual(await reportsOf(digest), [])
  await assertAnswer(post(findingsOf(digest, [], { scanned_at: new Date(Date.now() + 30_000).toISOString() })), 200, {
    status: 'stored',
    items: 0,
  })
})

// ---- Slow senders, over a socket

const head = (digest: string, headers: string) =>
  `POST ${path(digest)} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${token}\r\n${headers}\r\n`

/** Sends a request without a timer, since the timers of these tests are mocked. */
async function spin(until: () => boolean): Promise<void> {
  for (const limit = Date.now() + 60_000; !until(); await new Promise((resolve) => setImmediate(resolve)))
    assert.ok(Date.now() < limit, 'not within 60 s')
}

test('POST /images/{digest}/vulnerabilities 413: a body that is announced as too large, before it is sent', async () => {
  for (const coding of ['', 'content-encoding: gzip\r\n']) {
    const socket = connect(port, '127.0.0.1')
    socket.write(head(newImage(), `${coding}content-length: 1048577\r\n`))
    const [answer] = (await once(socket, 'data')) as [Buffer]
    assert.match(answer.toString(), /^HTTP\/1\.1 413 /)
    socket.destroy()
  }
})

test('POST /images/{digest}/vulnerabilities 408: a body that is incomplete after 30 s; the connection is closed', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const digest = newImage()
  const text = JSON.stringify(findingsOf(digest))
  for (const length of [`content-length: ${text.length}`, 'transfer-encoding: chunked']) {
    const socket = connect(port, '127.0.0.1')
    let answer = ''
    socket.on('data', (bytes) => {
      answer += bytes
    })
    const closed = once(socket, 'close')
    socket.write(head(digest, `${length}\r\n`) + (length.includes('chunked') ? '5\r\n{"sch\r\n' : text.slice(0, 20)))
    await spin(() => app.deps.incomingBodies.bytes > 0)
    const held = app.deps.incomingBodies.bytes
    t.mock.timers.tick(29_999)
    // Single bytes do not extend the time.
    socket.write(length.includes('chunked') ? '1\r\ne\r\n' : text.slice(20, 21))
    await spin(() => app.deps.incomingBodies.bytes > held)
    assert.equal(answer, '')
    t.mock.timers.tick(1)
    await spin(() => answer.includes('seconds'))
    assert.match(answer, /^HTTP\/1\.1 408 /)
    assert.match(answer, /\r\nconnection: close\r\n/i)
    assert.match(answer, /\r\n\r\nthe body did not arrive within 30 seconds$/)
    assert.equal(app.deps.incomingBodies.bytes, 0)
    t.mock.timers.tick(60_000)
    await closed
  }
  assert.deepEqual(await reportsOf(digest), [])
})

test('POST /images/{digest}/vulnerabilities 200: a null or missing list counts as empty, and is logged', async () => {
  for (const [list, lines] of [
    [[], 0],
    [null, 1],
    [undefined, 1],
  ] as const) {
    const own = await startApp(TOKENS)
    const payload: Fields = { ...findingsOf(newImage()), vulnerabilities: list }
    const answer = await own.post(path((payload.image as Fields).digest as string), payload, { token })
    assert.deepEqual(answer.json, { status: 'stored', items: 0 })
    const said = own.logged.filter(
      ({ msg }) => msg === 'payloads of vulnerabilities whose list is null or left out were taken as empty',
    )
    assert.deepEqual(
      said.map(({ payloads }) => payloads),
      lines === 0 ? [] : [1],
    )
  }
})

// ---- Queue

/** Number of the largest bodies that fit; more of small ones do. */
const MAX_WAITING_PAYLOADS = 8
const large = (payload: Fields): Fields => ({ ...payload, unknown: 'x'.repeat(1_040_000) })

/** Posts over a socket of its own. */
function sender(payload: Fields) {
  const digest = (payload.image as Fields).digest as string
  const sent = request({ port, path: path(digest), method: 'POST', headers: { authorization: `Bearer ${token}` } })
  sent.on('error', () => {})
  sent.end(JSON.stringify(payload))
  const answer = once(sent, 'response') as Promise<[IncomingMessage]>
  answer.catch(() => {})
  return { sent, answer }
}

test('POST /images/{digest}/vulnerabilities 503: one is stored, eight of the largest wait, and the next gets Retry-After', async () => {
  const { payloads, incomingBodies } = app.deps
  const digests = Array.from({ length: MAX_WAITING_PAYLOADS + 1 }, newImage)
  let answers: Promise<Answer>[] = []
  await whileLocked(sql, 'image_report', async () => {
    answers = digests.map((digest) => post(large(findingsOf(digest))))
    await until('all others wait', () => payloads.waiting === MAX_WAITING_PAYLOADS)
    const held = incomingBodies.bytes
    assert.ok(held > 0)
    for (const one of [
      post(large(findingsOf(newImage()))),
      app.post(`/images/${digests[0]}/sbom`, large({}), { token }),
    ]) {
      const answer = await one
      assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '5'])
      assert.equal(answer.text, '8 payloads are waiting to be stored; retry in 5 seconds')
    }
    assert.equal(incomingBodies.bytes, held)
    assert.match((await app.get('/metrics')).text, /^broker_supplychain_queue_length 8$/m)
  })
  for (const answer of await Promise.all(answers)) assert.deepEqual(answer.json, { status: 'stored', items: 1 })
  assert.deepEqual([payloads.waiting, incomingBodies.bytes], [0, 0])
})

test('POST /images/{digest}/vulnerabilities 200: a hundred small ones wait at once', async () => {
  const { payloads } = app.deps
  const digests = Array.from({ length: 101 }, newImage)
  let answers: Promise<Answer>[] = []
  await whileLocked(sql, 'image_report', async () => {
    answers = digests.map((digest) => post(findingsOf(digest)))
    await until('all others wait', () => payloads.waiting === 100)
  })
  for (const answer of await Promise.all(answers)) assert.deepEqual(answer.json, { status: 'stored', items: 1 })
})

test('POST /images/{digest}/vulnerabilities 200: a client that disconnects while its body waits frees the room, and nothing of it is stored', async () => {
  const { payloads } = app.deps
  const gone = newImage()
  const digests = Array.from({ length: MAX_WAITING_PAYLOADS }, newImage)
  let answers: Promise<Answer>[] = []
  await whileLocked(sql, 'image_report', async () => {
    answers = [post(large(findingsOf(digests[0]!)))]
    const leaver = sender(large(findingsOf(gone)))
    await until('it waits', () => payloads.waiting === 1)
    answers.push(...digests.slice(1).map((digest) => post(large(findingsOf(digest)))))
    await until('the others wait', () => payloads.waiting === MAX_WAITING_PAYLOADS)
    leaver.sent.destroy()
    await until('its room is free', () => payloads.waiting === MAX_WAITING_PAYLOADS - 1)
    answers.push(post(large(findingsOf(newImage()))))
    await until('another has it', () => payloads.waiting === MAX_WAITING_PAYLOADS)
  })
  for (const answer of await Promise.all(answers)) assert.equal(answer.status, 200)
  assert.deepEqual(await reportsOf(gone), [])
})

// ---- Faults

test('POST /images/{digest}/vulnerabilities 500: a failing thread fails one payload only', async () => {
  const thread = new URL('../supply-chain/threads/hostile.ts', import.meta.url)
  const fates = ['throw', 'memory', 'well']
  const reader = new PayloadReader({ startThread: () => start(thread, { maxOldGenerationSizeMb: 32 }) })
  const read = reader.read.bind(reader)
  reader.read = (kind, sent) => read(kind, { ...sent, digest: fates.shift()! })
  const { metrics } = app.deps
  const payloads = new Payloads({ reader, maxInflatedBytes: 1, metrics, lines: new RateLimitedLog(app.deps.log) })
  const failing = createApp({ ...app.deps, payloads }, routes)
  const ask = async () => {
    const digest = newImage()
    const answer = await failing.request(path(digest), {
      method: 'POST',
      body: JSON.stringify(findingsOf(digest)),
      headers: { authorization: `Bearer ${token}` },
    })
    return [answer.status, (await answer.text()).replace(/[\w-]+$/, 'id')]
  }
  for (let i = 0; i < 2; i++) assert.deepEqual(await ask(), [500, 'internal error, request id'])
  // It answers with rows that PostgreSQL refuses.
  assert.equal((await ask())[0], 500)
  assert.deepEqual(fates, [])
  const { values } = await metrics.payloads.get()
  assert.equal(values.find(({ labels }) => labels.outcome === 'failed')?.value, 3)
  assert.equal(app.deps.incomingBodies.bytes, 0)
})

test('POST /images/{digest}/vulnerabilities 503: the database is unreachable', async () => {
  const away = createApp({ ...app.deps, db: await endedDatabase() }, routes)
  const digest = newImage()
  const headers = { authorization: `Bearer ${token}` }
  const answer = await away.request(path(digest), { method: 'POST', body: JSON.stringify(findingsOf(digest)), headers })
  assert.equal(answer.status, 503)
  assert.ok(answer.headers.get('retry-after'))
})

async function endedDatabase() {
  const { db } = await startLossyApp()
  await db.end(0)
  return db
}

test('POST /images/{digest}/vulnerabilities 200: a payload whose answer was lost is stored, not unchanged', async () => {
  const lossy = await startLossyApp()
  const { authenticate } = createTokens(loadConfig(TOKENS))
  const tested = createApp({ ...lossy.deps, authenticate }, routes)
  const ask = async (payload: Fields) => {
    const headers = { authorization: `Bearer ${token}` }
    const answer = await tested.request(path((payload.image as Fields).digest as string), {
      method: 'POST',
      body: JSON.stringify(payload),
      headers,
    })
    return [answer.status, await answer.json()]
  }
  const STORE = 'select store_findings('
  // The first statement asks whether the rows are wanted, the second sends them.
  for (const [n, fates] of (
    [
      ['answered', 'answer lost'],
      ['answer lost', 'answered', 'answer lost', 'answer lost'],
      ['question lost', 'answered', 'question lost'],
    ] as const
  ).entries()) {
    const payload = findingsOf(digestOf(`lost ${n}`))
    lossy.lose(STORE, ...fates)
    assert.deepEqual(await ask(payload), [200, { status: 'stored', items: 1 }])
    assert.equal(lossy.toCome, 0)
    assert.deepEqual(await ask(payload), [200, { status: 'unchanged' }])
    lossy.lose(STORE, 'answer lost')
    assert.deepEqual(await ask({ ...payload, scanned_at: scannedAt(5) }), [200, { status: 'unchanged' }])
    assert.deepEqual(await ask(findingsOf(digestOf(`lost ${n}`), [], { scanned_at: SCANNED_AT })), [
      200,
      { status: 'stale', stored_scanned_at: '2026-01-01T00:00:05' },
    ])
  }
})

test('the outcomes of payloads are counted', async () => {
  const { text } = await app.get('/metrics')
  const of = (outcome: string) =>
    Number(
      new RegExp(
        `^broker_supplychain_payloads_total\\{kind="vulnerabilities",outcome="${outcome}"\\} (\\d+)$`,
        'm',
      ).exec(text)?.[1],
    )
  for (const outcome of ['stored', 'unchanged', 'stale', 'refused', 'failed']) assert.ok(of(outcome) > 0, outcome)
})

test('the memory of a body is released, whatever the outcome', () => {
  assert.equal(app.deps.incomingBodies.bytes, 0)
  assert.equal(app.deps.payloads.waiting, 0)
})
