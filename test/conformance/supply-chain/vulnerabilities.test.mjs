// Image vulnerabilities: POST and GET /images/{digest}/vulnerabilities.

import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { deflateSync, gzipSync } from 'node:zlib'
import { startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'
import {
  at,
  authEnv,
  container,
  cve,
  digest,
  digest512,
  finding,
  findingKeys,
  fromNow,
  micros,
  naive,
  ok,
  padded,
  pod,
  rawPost,
  refused,
  reportKeys,
  sameKeys,
  sameTime,
  session,
  severities,
  tokens,
  vulns,
} from '../lib/supply-chain.mjs'

let b, s
before(async () => {
  b = await startBroker({ env: authEnv })
  s = session(b)
})
after(() => b?.stop())

const path = (d) => `/images/${d}/vulnerabilities`
const one = async (d, params) => {
  const r = ok(await s.getVulns(d, params))
  assert.equal(r.json.items.length, 1, r.text)
  return r.json.items[0]
}
const ids = (r) => r.json.items.map((i) => i.id)

// ---------------------------------------------------------------- who may

check('vulnerabilities: ingest needs a token with the scope supplychain', async () => {
  const p = vulns(digest('scope'), [finding()])
  for (const token of [undefined, 'nobody-knows-this-token-0123']) {
    const r = await b.post(path(p.image.digest), p, { bearer: token })
    assert.equal(r.status, 401)
    assert.equal(r.headers.get('www-authenticate'), 'Bearer')
    assert.equal(r.text, 'missing or invalid bearer token')
  }
  for (const token of [tokens.read, tokens.ingest]) {
    const r = await b.post(path(p.image.digest), p, { bearer: token })
    assert.equal(r.status, 403)
    assert.equal(r.text, "token lacks the 'supplychain' scope")
  }
  assert.deepEqual(ok(await s.getVulns(p.image.digest)).json.reports, [], 'nothing was written')
  ok(await s.postVulns(p))
})

check('vulnerabilities: with auth off, or with only the legacy shared token, ingest answers 403', async () => {
  const p = vulns(digest('auth-off'), [finding()])
  const shared = 'conformance-legacy-shared-0123456789'
  const [open, legacy] = await Promise.all([startBroker(), startBroker({ env: { BROKER_AUTH_TOKEN: shared } })])
  try {
    refused(await open.post(path(p.image.digest), p), 403)
    assert.deepEqual(ok(await open.get(path(p.image.digest))).json.reports, [])
    refused(await legacy.post(path(p.image.digest), p, { bearer: shared }), 403)
    assert.equal((await legacy.post(path(p.image.digest), p)).status, 401)
  } finally {
    await Promise.all([open.stop(), legacy.stop()])
  }
})

check(
  'vulnerabilities: with read and ingest tokens but none for the supply chain, ingest answers 403, SBOMs too',
  async () => {
    const own = await startBroker({ env: { BROKER_TOKEN_READ: tokens.read, BROKER_TOKEN_INGEST: tokens.ingest } })
    try {
      const d = digest('no-token')
      for (const kind of ['vulnerabilities', 'sbom']) {
        for (const bearer of [tokens.read, tokens.ingest])
          refused(await own.post(`/images/${d}/${kind}`, vulns(d, [finding()]), { bearer }), 403)
        for (const bearer of [undefined, tokens.supplychain])
          assert.equal((await own.post(`/images/${d}/${kind}`, vulns(d, [finding()]), { bearer })).status, 401)
      }
      assert.deepEqual(ok(await own.get(path(d), { bearer: tokens.read })).json.reports, [])
    } finally {
      await own.stop()
    }
  },
)

check('vulnerabilities: the read needs the scope read, which the supply-chain token carries too', async () => {
  const d = digest('read-scope')
  assert.equal((await b.get(path(d))).status, 401)
  for (const token of [tokens.read, tokens.supplychain]) ok(await b.get(path(d), { bearer: token }))
})

// ---------------------------------------------------------------- what is stored and served

check('vulnerabilities: a payload is stored and served with every field of report and finding', async () => {
  const d = digest('all-fields')
  await s.run(pod({ ns: 'vulns-all-fields', containers: [container(d)] }))
  const id = cve()
  const started = Date.now()
  const r = ok(
    await s.postVulns(
      vulns(
        {
          digest: d,
          ref: 'registry.test/team/app:v1',
          registry: 'registry.test',
          repository: 'team/app',
          tag: 'v1',
          digest_kind: 'manifest',
        },
        [
          finding({
            id,
            package: { name: 'zlib', version: '1.2.11', type: 'deb', purl: 'pkg:deb/debian/zlib@1.2.11' },
            fixed_version: '1.2.12',
            severity: 'CRITICAL',
            score: 9.8,
            cvss: { nvd: { v3_score: 9.8, v3_vector: 'CVSS:3.1/AV:N' }, ghsa: { v2_score: 7.5 } },
            title: 'heap overflow',
            primary_url: 'https://advisories.test/1',
            target: 'app (debian 12)',
            class: 'os-pkgs',
            published_at: '2024-01-02T03:04:05Z',
            last_modified_at: '2024-02-03T04:05:06Z',
            file_paths: ['usr/lib/libz.so'],
          }),
        ],
        {
          scanned_at: at(5),
          scanner: { name: 'scan', vendor: 'maker', version: '1.9' },
          os: { family: 'debian', name: '12.5', eosl: true },
        },
      ),
    ),
  )
  assert.deepEqual(r.json, { status: 'stored', items: 1 })

  const got = ok(await s.getVulns(d)).json
  sameKeys(got, ['digest', 'reports', 'retiredGuesses', 'items', 'nextAfter'], 'the answer')
  assert.equal(got.digest, d)
  assert.equal(got.nextAfter, null)
  assert.equal(got.reports.length, 1)
  const [report] = got.reports
  sameKeys(report, reportKeys, 'a report')
  const { scannedAt, receivedAt, ...rest } = report
  sameTime(scannedAt, at(5), 'scannedAt')
  assert.ok(Math.abs(Number(micros(receivedAt) / 1000n) - started) < 120_000, 'receivedAt is about now')
  assert.deepEqual(rest, {
    source: 'operator-scanner',
    reportDigest: d,
    join: 'image_id',
    digestKind: 'manifest',
    dbUpdatedAt: null,
    scannerName: 'scan',
    scannerVersion: '1.9',
    osFamily: 'debian',
    osName: '12.5',
    osEosl: true,
    imageRef: 'registry.test/team/app:v1',
    itemCount: 1,
    sbomFormat: null,
    sbomSources: [],
    sbomTrust: null,
    attestation: null,
  })
  const [item] = got.items
  sameKeys(item, findingKeys, 'a finding')
  assert.deepEqual(item, {
    id,
    aliases: [],
    package: { name: 'zlib', type: 'deb', purl: 'pkg:deb/debian/zlib@1.2.11' },
    installedVersion: '1.2.11',
    fixedVersions: ['1.2.12'],
    fixable: true,
    severity: 'CRITICAL',
    score: 9.8,
    cvss: { nvd: { v3_score: 9.8, v3_vector: 'CVSS:3.1/AV:N' }, ghsa: { v2_score: 7.5 } },
    title: 'heap overflow',
    primaryUrl: 'https://advisories.test/1',
    target: 'app (debian 12)',
    class: 'os-pkgs',
    publishedAt: item.publishedAt,
    lastModifiedAt: item.lastModifiedAt,
    filePaths: ['usr/lib/libz.so'],
    omitted: 0,
    kev: null,
    kevDateAdded: null,
    epss: null,
    epssPercentile: null,
    sources: ['operator-scanner'],
    reportDigests: [d],
    // Nobody watches the image.
    inUse: null,
    inUseState: 'unknown',
    inUseDetail: item.inUseDetail,
    tier: item.tier,
    tierFactors: item.tierFactors,
    // The scanner said nothing about a fix, and nobody has decided.
    status: null,
    decision: null,
    decided: false,
  })
  assert.deepEqual(
    [item.inUseDetail.state, item.inUseDetail.reason, item.inUseDetail.coverage],
    ['unknown', 'no_runtime_data', 'file'],
  )
  sameTime(item.publishedAt, '2024-01-02T03:04:05Z', 'publishedAt')
  sameTime(item.lastModifiedAt, '2024-02-03T04:05:06Z', 'lastModifiedAt')
})

check('vulnerabilities: a report without scanner, os and image facts has nulls, not gaps', async () => {
  const d = digest('bare-report')
  ok(await s.postVulns(vulns(d, [])))
  const [report] = ok(await s.getVulns(d)).json.reports
  sameKeys(report, reportKeys, 'a report')
  for (const key of [
    'dbUpdatedAt',
    'scannerName',
    'scannerVersion',
    'osFamily',
    'osName',
    'imageRef',
    'sbomFormat',
    'sbomTrust',
    'attestation',
  ]) {
    assert.equal(report[key], null, key)
  }
  assert.equal(report.osEosl, false)
  assert.equal(report.digestKind, 'unknown')
  assert.equal(report.itemCount, 0)
})

check('vulnerabilities: db_updated_at, sbom_sources and sbom_trust of a matcher payload are served', async () => {
  const d = digest('matcher-report')
  ok(
    await s.postVulns(
      vulns(d, [finding()], {
        source: 'db-matcher',
        db_updated_at: '2025-05-06T07:08:09Z',
        sbom_sources: ['registry', ' operator-scanner ', 'registry', 'somebody'],
        sbom_trust: 'unverified',
      }),
    ),
  )
  const [report] = ok(await s.getVulns(d)).json.reports
  sameTime(report.dbUpdatedAt, '2025-05-06T07:08:09Z', 'dbUpdatedAt')
  assert.deepEqual(report.sbomSources, ['operator-scanner', 'registry'])
  assert.equal(report.sbomTrust, 'unverified')
})

check('vulnerabilities: an unknown sbom_trust is stored as attached-unbound', async () => {
  for (const [trust, stored] of [
    ['golden', 'attached-unbound'],
    ['attached-unbound', 'attached-unbound'],
    ['scanned', 'scanned'],
    ['verified', 'verified'],
    [' ', null],
  ]) {
    const d = digest(`trust-${trust}`)
    ok(await s.postVulns(vulns(d, [], { source: 'db-matcher', sbom_trust: trust })))
    assert.equal(ok(await s.getVulns(d)).json.reports[0].sbomTrust, stored, trust)
  }
})

check('vulnerabilities: an image nobody reported on reads as empty, a malformed digest as 400', async () => {
  const d = digest('never-reported')
  assert.deepEqual(ok(await s.getVulns(d)).json, {
    digest: d,
    reports: [],
    retiredGuesses: [],
    items: [],
    nextAfter: null,
  })
  for (const bad of ['sha256:abc', `sha256:${'A'.repeat(64)}`, `md5:${'a'.repeat(32)}`, 'latest'])
    refused(await s.getVulns(bad), 400)
})

// ---------------------------------------------------------------- the body

check('vulnerabilities: a body may be plain, identity, gzip or x-gzip, whatever its content type', async () => {
  const send = async (label, headers, squeeze) => {
    const p = vulns(digest(`encoding-${label}`), [finding(), finding()])
    const bytes = Buffer.from(JSON.stringify(p))
    const r = await s.supply.request('POST', path(p.image.digest), {
      raw: true,
      headers,
      body: squeeze ? gzipSync(bytes) : bytes,
    })
    assert.deepEqual(ok(r).json, { status: 'stored', items: 2 }, label)
    assert.equal(ok(await s.getVulns(p.image.digest)).json.items.length, 2)
  }
  await send('plain', { 'content-type': 'application/json' }, false)
  await send('text', { 'content-type': 'text/plain' }, false)
  await send('identity', { 'content-type': 'application/json', 'content-encoding': 'identity' }, false)
  await send('gzip', { 'content-type': 'application/json', 'content-encoding': 'gzip' }, true)
  await send('x-gzip', { 'content-type': 'application/octet-stream', 'content-encoding': 'x-gzip' }, true)
})

check('vulnerabilities: any other content encoding is 415', async () => {
  const p = vulns(digest('encoding-other'), [finding()])
  for (const encoding of ['deflate', 'br', 'zstd', 'compress']) {
    refused(
      await s.supply.request('POST', path(p.image.digest), {
        raw: true,
        headers: { 'content-type': 'application/json', 'content-encoding': encoding },
        body: deflateSync(JSON.stringify(p)),
      }),
      415,
    )
  }
})

check('vulnerabilities: broken gzip is 400', async () => {
  const p = vulns(digest('broken-gzip'), [finding()])
  const good = gzipSync(JSON.stringify(p))
  const flipped = Buffer.from(good)
  flipped[flipped.length - 6] ^= 0xff
  for (const body of [
    Buffer.from(JSON.stringify(p)),
    good.subarray(0, good.length - 9),
    flipped,
    Buffer.from('not gzip at all'),
  ]) {
    refused(
      await s.supply.request('POST', path(p.image.digest), {
        raw: true,
        headers: { 'content-encoding': 'gzip' },
        body,
      }),
      400,
    )
  }
  assert.deepEqual(ok(await s.getVulns(p.image.digest)).json.reports, [])
})

check('vulnerabilities: broken JSON, trailing bytes, a missing key or a wrong type is 400', async () => {
  const p = vulns(digest('broken-json'), [finding()])
  const text = JSON.stringify(p)
  const raw = (body) =>
    s.supply.request('POST', path(p.image.digest), { raw: true, headers: { 'content-type': 'application/json' }, body })
  for (const body of [text.slice(0, -1), `${text}x`, `${text}{}`, 'null', '[]', '"text"', '{'])
    refused(await raw(body), 400)
  for (const key of ['schema_version', 'image', 'source', 'scanned_at'])
    refused(await s.supply.post(path(p.image.digest), { ...p, [key]: undefined }), 400)
  const wrong = [
    { schema_version: '1' },
    { schema_version: 1.5 },
    { image: 'x' },
    { image: {} },
    { source: 7 },
    { scanned_at: 1_700_000_000 },
    { scanned_at: 'yesterday' },
    { scanned_at: '2025-01-02T03:04:05' },
    { vulnerabilities: {} },
    { vulnerabilities: ['x'] },
    { vulnerabilities: [finding({ id: 7 })] },
    { vulnerabilities: [finding({ package: 'zlib' })] },
    { observed_in: 'web' },
  ]
  for (const part of wrong) refused(await s.supply.post(path(p.image.digest), { ...p, ...part }), 400)
  assert.deepEqual(ok(await s.getVulns(p.image.digest)).json.reports, [], 'nothing was written')
})

check('vulnerabilities: unknown keys are ignored, null lists and maps are empty', async () => {
  const d = digest('nulls')
  const r = await s.postVulns({
    ...vulns({ digest: d, platform_manifests: null, colour: 'red' }, null),
    observed_in: null,
    sbom_sources: null,
    mood: ['fine'],
  })
  assert.deepEqual(ok(r).json, { status: 'stored', items: 0 })
  const e = digest('absent-list')
  const { vulnerabilities: _, ...without } = vulns(e)
  assert.deepEqual(ok(await s.postVulns(without)).json, { status: 'stored', items: 0 })
})

check('vulnerabilities: a body above 1 MiB on the wire is refused before it is read', async () => {
  const d = digest('wire-limit')
  const r = await rawPost(b, path(d), { headers: { 'content-length': '1048577' }, timeoutMs: 20_000 })
  refused(r, 413)
  refused(
    await rawPost(b, path(d), {
      headers: { 'content-length': '1048577', 'content-encoding': 'gzip' },
      timeoutMs: 20_000,
    }),
    413,
  )
})

check('vulnerabilities: gzip that inflates past 8 MiB is 413, up to it is accepted', async () => {
  const p = vulns(digest('inflated'), [finding()])
  refused(await s.gzipped(path(p.image.digest), padded(p, 8_388_608 + 1)), 413)
  assert.deepEqual(ok(await s.getVulns(p.image.digest)).json.reports, [])
  assert.equal(ok(await s.gzipped(path(p.image.digest), padded(p, 8_388_608))).json.status, 'stored')
})

check('vulnerabilities: 20 000 findings are stored, 20 001 are 413', async () => {
  const many = (n) =>
    Array.from({ length: n }, (_, i) => ({
      id: `CVE-2030-${10_000 + i}`,
      package: { name: 'p', version: '1' },
      severity: 'LOW',
    }))
  const d = digest('too-many')
  refused(await s.postVulnsGzip(vulns(d, many(20_001))), 413)
  assert.deepEqual(ok(await s.getVulns(d)).json.reports, [])
  assert.deepEqual(ok(await s.postVulnsGzip(vulns(d, many(20_000)))).json, { status: 'stored', items: 20_000 })
  assert.equal(ok(await s.getVulns(d, { limit: 1 })).json.reports[0].itemCount, 20_000)
})

check('vulnerabilities: a body that does not arrive within 30 s is 408', async () => {
  const text = JSON.stringify(vulns(digest('slow'), [finding()]))
  const r = await rawPost(b, path(digest('slow')), {
    headers: { 'content-length': String(text.length) },
    pieces: [text.slice(0, 20)],
    timeoutMs: 50_000,
  })
  assert.equal(r.status, 408)
  assert.deepEqual(ok(await s.getVulns(digest('slow'))).json.reports, [])
})

// ---------------------------------------------------------------- the contract

check('vulnerabilities: the digest of the path is checked and must equal image.digest', async () => {
  const d = digest('path')
  const p = vulns(d, [finding()])
  for (const bad of ['sha256:12', `sha256:${'A'.repeat(64)}`, `sha1:${'a'.repeat(40)}`, 'v1'])
    refused(await s.supply.post(path(bad), p), 400)
  refused(await s.supply.post(path(digest('other-path')), p), 422)
  ok(await s.supply.post(path(d.replace(':', '%3A')), p))
  assert.equal(ok(await s.reader.get(path(d.replace(':', '%3A')))).json.digest, d)
  const long = digest512('path')
  ok(await s.postVulns(vulns(long, [finding()])))
  assert.equal(ok(await s.getVulns(long)).json.items.length, 1)
})

check('vulnerabilities: an unknown schema_version or source is 422', async () => {
  const d = digest('contract')
  for (const v of [0, 2, -1, 99]) refused(await s.postVulns(vulns(d, [finding()], { schema_version: v })), 422)
  for (const source of ['clair', 'node', '', 'Operator-Scanner', 'registry '])
    refused(await s.postVulns(vulns(d, [finding()], { source })), 422)
  assert.deepEqual(ok(await s.getVulns(d)).json.reports, [])
})

check('vulnerabilities: scanned_at may be 30 s ahead, not two minutes', async () => {
  const d = digest('skew')
  refused(await s.postVulns(vulns(d, [finding()], { scanned_at: fromNow(120) })), 422)
  assert.equal(ok(await s.postVulns(vulns(d, [finding()], { scanned_at: fromNow(30) }))).json.status, 'stored')
})

check('vulnerabilities: a report without a scan time (year 1) is stored', async () => {
  const d = digest('zero-time')
  assert.deepEqual(ok(await s.postVulns(vulns(d, [finding()], { scanned_at: '0001-01-01T00:00:00Z' }))).json, {
    status: 'stored',
    items: 1,
  })
  assert.equal(ok(await s.getVulns(d)).json.items.length, 1)
  assert.equal(ok(await s.postVulns(vulns(d, [finding()], { scanned_at: at(0) }))).json.status, 'stored')
})

check('vulnerabilities: a finding without id or package name is 422 and names its position', async () => {
  const d = digest('nameless')
  refused(await s.postVulns(vulns(d, [finding(), finding(), finding({ id: ' ' })])), 422, /2/)
  refused(await s.postVulns(vulns(d, [finding(), finding({ package: { name: '', version: '1' } })])), 422, /1/)
  assert.deepEqual(ok(await s.getVulns(d)).json.reports, [])
})

// ---------------------------------------------------------------- replacement

check('vulnerabilities: stored, then unchanged, then stale, then replaced by a strictly newer scan', async () => {
  const d = digest('states')
  const [old, other] = [finding(), finding()]
  assert.deepEqual(ok(await s.postVulns(vulns(d, [old], { scanned_at: at(10) }))).json, { status: 'stored', items: 1 })
  assert.deepEqual(ok(await s.postVulns(vulns(d, [old], { scanned_at: at(10) }))).json, { status: 'unchanged' })
  for (const when of [at(10), at(9)]) {
    const r = ok(await s.postVulns(vulns(d, [other], { scanned_at: when })))
    assert.deepEqual(r.json, { status: 'stale', stored_scanned_at: naive(at(10)) })
  }
  assert.deepEqual(ids(ok(await s.getVulns(d))), [old.id])
  assert.deepEqual(ok(await s.postVulns(vulns(d, [other, finding()], { scanned_at: at(11) }))).json, {
    status: 'stored',
    items: 2,
  })
  const got = ok(await s.getVulns(d)).json
  assert.equal(got.items.length, 2)
  assert.ok(got.items.some((i) => i.id === other.id) && !got.items.some((i) => i.id === old.id))
  assert.equal(got.reports[0].itemCount, 2)
})

check(
  'vulnerabilities: the same content with a newer scan is unchanged and refreshes the header, with an older scan it writes nothing',
  async () => {
    const d = digest('header')
    const list = [finding()]
    ok(await s.postVulns(vulns({ digest: d, digest_kind: 'index' }, list, { scanned_at: at(10) })))
    assert.deepEqual(
      ok(await s.postVulns(vulns({ digest: d, digest_kind: 'manifest' }, list, { scanned_at: at(20) }))).json,
      {
        status: 'unchanged',
      },
    )
    let [report] = ok(await s.getVulns(d)).json.reports
    sameTime(report.scannedAt, at(20), 'scannedAt')
    assert.equal(report.digestKind, 'manifest')
    assert.deepEqual(
      ok(await s.postVulns(vulns({ digest: d, digest_kind: 'index' }, list, { scanned_at: at(15) }))).json,
      {
        status: 'unchanged',
      },
    )
    ;[report] = ok(await s.getVulns(d)).json.reports
    sameTime(report.scannedAt, at(20), 'scannedAt')
    assert.equal(report.digestKind, 'manifest')
    assert.equal(
      ok(await s.postVulns(vulns(d, [finding()], { scanned_at: at(20) }))).json.status,
      'stale',
      'the refreshed time counts',
    )
  },
)

check('vulnerabilities: an empty payload replaces findings only when it is a strictly newer scan', async () => {
  const d = digest('empty')
  const f = finding()
  ok(await s.postVulns(vulns(d, [f], { scanned_at: at(10) })))
  for (const when of [at(9), at(10)])
    assert.deepEqual(ok(await s.postVulns(vulns(d, [], { scanned_at: when }))).json, {
      status: 'stale',
      stored_scanned_at: naive(at(10)),
    })
  assert.deepEqual(ids(ok(await s.getVulns(d))), [f.id])
  assert.deepEqual(ok(await s.postVulns(vulns(d, [], { scanned_at: at(11) }))).json, { status: 'stored', items: 0 })
  const got = ok(await s.getVulns(d)).json
  assert.deepEqual(got.items, [])
  assert.equal(got.reports.length, 1, 'an empty report is a report')
})

check('vulnerabilities: sources are stored side by side and replace only themselves', async () => {
  const d = digest('side-by-side')
  const [x, y, z] = [finding(), finding(), finding()]
  ok(await s.postVulns(vulns(d, [x], { scanned_at: at(10) })))
  assert.deepEqual(ok(await s.postVulns(vulns(d, [y], { source: 'db-matcher', scanned_at: at(1) }))).json, {
    status: 'stored',
    items: 1,
  })
  assert.deepEqual(ok(await s.postVulns(vulns(d, [z], { source: 'registry', scanned_at: at(2) }))).json, {
    status: 'stored',
    items: 1,
  })
  let got = ok(await s.getVulns(d)).json
  assert.deepEqual(
    got.reports.map((r) => r.source),
    ['db-matcher', 'operator-scanner', 'registry'],
    'reports are ordered by source',
  )
  assert.deepEqual(
    got.items.map((i) => [i.id, i.sources]),
    [
      [x.id, ['operator-scanner']],
      [y.id, ['db-matcher']],
      [z.id, ['registry']],
    ],
  )
  ok(await s.postVulns(vulns(d, [], { source: 'db-matcher', scanned_at: at(3) })))
  got = ok(await s.getVulns(d)).json
  assert.deepEqual(
    got.items.map((i) => i.id),
    [x.id, z.id],
  )
})

check('vulnerabilities: both columns of source names are accepted and mean the same', async () => {
  const d = digest('columns')
  const f = finding()
  ok(await s.postVulns(vulns(d, [f], { source: 'operator-scanner' })))
  assert.deepEqual(ok(await s.postVulns(vulns(d, [f], { source: 'trivy-operator' }))).json, { status: 'unchanged' })
  assert.equal(
    ok(await s.postVulns(vulns(d, [f], { source: 'grype', sbom_sources: ['trivy-operator', 'grype'] }))).json.status,
    'stored',
  )
  assert.deepEqual(
    ok(await s.postVulns(vulns(d, [f], { source: 'db-matcher', sbom_sources: ['trivy-operator', 'grype'] }))).json,
    {
      status: 'unchanged',
    },
  )
  const got = ok(await s.getVulns(d)).json
  assert.deepEqual(
    got.reports.map((r) => r.source),
    ['db-matcher', 'operator-scanner'],
  )
  assert.deepEqual(got.reports[0].sbomSources, ['db-matcher', 'operator-scanner'])
  assert.deepEqual(got.items[0].sources, ['db-matcher', 'operator-scanner'])
  for (const source of ['trivy-operator', 'operator-scanner']) {
    assert.deepEqual(
      ok(await s.getVulns(d, { source })).json.reports.map((r) => r.source),
      ['operator-scanner'],
    )
  }
})

check('vulnerabilities: WIRE_NAMES=kguardian writes the other column', async () => {
  const other = await startBroker({ env: { ...authEnv, WIRE_NAMES: 'kguardian' } })
  try {
    const o = session(other)
    const d = digest('wire-names')
    const f = finding()
    ok(await o.postVulns(vulns(d, [f], { source: 'operator-scanner' })))
    ok(await o.postVulns(vulns(d, [f], { source: 'grype', sbom_sources: ['operator-scanner'] })))
    const got = ok(await o.getVulns(d)).json
    assert.deepEqual(got.reports.map((r) => r.source).sort(), ['grype', 'trivy-operator'])
    assert.deepEqual(got.reports.find((r) => r.source === 'grype').sbomSources, ['trivy-operator'])
    assert.deepEqual([...got.items[0].sources].sort(), ['grype', 'trivy-operator'])
    assert.match((await other.get('/metrics')).text, /^kguardian_supplychain_staged_sets_refused_total 0$/m)
  } finally {
    await other.stop()
  }
})

// ---------------------------------------------------------------- merge

check('vulnerabilities: findings of two sources merge on id, package name and installed version', async () => {
  const d = digest('merge')
  const id = cve()
  const pkg = { name: 'curl', version: '8.0' }
  ok(
    await s.postVulns(
      vulns(d, [
        finding({
          id,
          package: { ...pkg, type: 'deb', purl: 'pkg:deb/debian/curl@8.0' },
          fixed_version: '8.0-1',
          severity: 'MEDIUM',
          score: 9.1,
          cvss: { redhat: { v3_score: 5.5 } },
          title: 'operator title',
          primary_url: 'https://operator.test/',
          file_paths: ['operator'],
        }),
      ]),
    ),
  )
  ok(
    await s.postVulns(
      vulns(
        d,
        [
          finding({
            id,
            package: { ...pkg, type: 'dpkg', purl: 'pkg:deb/debian/curl@8.0?arch=amd64' },
            fixed_version: '8.0+deb1',
            severity: 'CRITICAL',
            score: 7.2,
            cvss: { nvd: { v3_score: 7.2 } },
            title: 'matcher title',
            primary_url: 'https://matcher.test/',
            file_paths: ['matcher'],
            kev: true,
            kev_date_added: '2024-03-04T00:00:00Z',
            epss: 0.97,
            epss_percentile: 0.995,
          }),
        ],
        { source: 'db-matcher' },
      ),
    ),
  )
  const item = await one(d)
  assert.equal(item.id, id)
  assert.equal(item.installedVersion, '8.0')
  assert.deepEqual(item.fixedVersions, ['8.0+deb1', '8.0-1'], 'every distinct fixed version, by source')
  assert.equal(item.fixable, true)
  assert.equal(item.severity, 'CRITICAL', 'the highest')
  assert.equal(item.score, 9.1, 'the highest, whichever source gave it')
  assert.deepEqual(item.cvss, { nvd: { v3_score: 7.2 }, redhat: { v3_score: 5.5 } })
  assert.deepEqual(
    [item.title, item.primaryUrl, item.filePaths, item.package.type],
    ['matcher title', 'https://matcher.test/', ['matcher'], 'dpkg'],
  )
  assert.equal(item.kev, true)
  sameTime(item.kevDateAdded, '2024-03-04T00:00:00Z', 'kevDateAdded')
  assert.deepEqual([item.epss, item.epssPercentile], [0.97, 0.995])
  assert.deepEqual(item.sources, ['db-matcher', 'operator-scanner'])
  assert.deepEqual(item.reportDigests, [d])
  assert.deepEqual([item.inUse, item.inUseState], [null, 'unknown'])
})

check('vulnerabilities: another id, package name or installed version is another finding', async () => {
  const d = digest('no-merge')
  const id = cve()
  const list = [
    ['a', '1'],
    ['a', '2'],
    ['b', '1'],
  ].map(([name, version]) => finding({ id, package: { name, version } }))
  ok(await s.postVulns(vulns(d, [...list, finding({ id: cve(), package: { name: 'a', version: '1' } })])))
  ok(await s.postVulns(vulns(d, list, { source: 'db-matcher' })))
  assert.deepEqual(
    ok(await s.getVulns(d)).json.items.map((i) => [i.package.name, i.installedVersion, i.sources.length]),
    [
      ['a', '1', 2],
      ['a', '2', 2],
      ['b', '1', 2],
      ['a', '1', 1],
    ],
  )
})

check('vulnerabilities: fixable is true when any source has a fix, false when none has', async () => {
  const [one_, none] = [digest('fixable'), digest('not-fixable')]
  const id = cve()
  const f = (fixed_version) => finding({ id, package: { name: 'p', version: '1' }, fixed_version })
  for (const [d, first, second] of [
    [one_, null, '2'],
    [none, '', undefined],
  ]) {
    ok(await s.postVulns(vulns(d, [f(first)])))
    ok(await s.postVulns(vulns(d, [f(second)], { source: 'db-matcher' })))
  }
  assert.deepEqual([(await one(one_)).fixable, (await one(one_)).fixedVersions], [true, ['2']])
  assert.deepEqual([(await one(none)).fixable, (await one(none)).fixedVersions], [false, []])
})

check('vulnerabilities: fixed versions keep every text, equal ones once', async () => {
  const d = digest('fixed-versions')
  const id = cve()
  const f = (fixed_version) => finding({ id, package: { name: 'p', version: '1' }, fixed_version })
  ok(await s.postVulns(vulns(d, [f('9.2')])))
  ok(await s.postVulns(vulns(d, [f('10.1')], { source: 'db-matcher' })))
  ok(await s.postVulns(vulns(d, [f('9.2')], { source: 'registry' })))
  assert.deepEqual((await one(d)).fixedVersions, ['10.1', '9.2'])
})

check('vulnerabilities: kev is true if any source says so, false if one denies it, null if none knows', async () => {
  for (const [a, c, want] of [
    [true, false, true],
    [false, undefined, false],
    [undefined, null, null],
    [undefined, true, true],
  ]) {
    const d = digest(`kev-${a}-${c}`)
    const f = (kev) => finding({ id: `CVE-2029-${a}-${c}`, package: { name: 'p', version: '1' }, kev })
    ok(await s.postVulns(vulns(d, [f(a)], { source: 'db-matcher' })))
    ok(await s.postVulns(vulns(d, [f(c)], { source: 'registry' })))
    assert.equal((await one(d)).kev, want, `${a} and ${c}`)
  }
})

check(
  'vulnerabilities: kev and EPSS are the highest known for the CVE, also from a report on another image',
  async () => {
    const [here, elsewhere] = [digest('kev-here'), digest('kev-elsewhere')]
    const id = cve()
    ok(await s.postVulns(vulns(here, [finding({ id, package: { name: 'p', version: '1' } })])))
    assert.deepEqual([(await one(here)).kev, (await one(here)).epss], [null, null])
    ok(
      await s.postVulns(
        vulns(here, [finding({ id, package: { name: 'p', version: '1' }, epss: 0.25, epss_percentile: 0.5 })], {
          source: 'db-matcher',
        }),
      ),
    )
    ok(
      await s.postVulns(
        vulns(
          elsewhere,
          [
            finding({
              id,
              package: { name: 'q', version: '7' },
              kev: true,
              kev_date_added: '2023-01-02T00:00:00Z',
              epss: 0.75,
              epss_percentile: 0.875,
            }),
          ],
          { source: 'db-matcher' },
        ),
      ),
    )
    const item = await one(here)
    assert.deepEqual([item.kev, item.epss, item.epssPercentile], [true, 0.75, 0.875])
    sameTime(item.kevDateAdded, '2023-01-02T00:00:00Z', 'kevDateAdded')
    assert.deepEqual(item.sources, ['db-matcher', 'operator-scanner'], 'facts of the CVE add no source')
  },
)

check('vulnerabilities: numbers outside their range are null', async () => {
  const d = digest('ranges')
  ok(
    await s.postVulns(vulns(d, [finding({ score: null, epss: 1.5, epss_percentile: -0.1 })], { source: 'db-matcher' })),
  )
  const item = await one(d)
  assert.deepEqual([item.score, item.epss, item.epssPercentile], [null, null, null])
})

check('vulnerabilities: severities are trimmed and upper-cased, an unknown one is UNKNOWN', async () => {
  const d = digest('severities')
  ok(
    await s.postVulns(
      vulns(
        d,
        [' critical', 'High', 'medium ', 'LOW', 'none', 'apocalyptic'].map((severity) => finding({ severity })),
      ),
    ),
  )
  assert.deepEqual(
    ok(await s.getVulns(d)).json.items.map((i) => i.severity),
    severities,
  )
})

check(
  'vulnerabilities: text is trimmed, cleaned of control characters and cut to its cap, empty text is null',
  async () => {
    const d = digest('texts')
    ok(
      await s.postVulns(
        vulns(
          { digest: d, ref: `  ${'r'.repeat(2_000)}` },
          [
            finding({
              id: ' CVE-2028-1\u0000 ',
              package: { name: 'n'.repeat(300), version: ' 1\u2028.0\n', type: '  ', purl: 'p'.repeat(2_000) },
              fixed_version: 'f'.repeat(600),
              title: `\u0007bell\u2029 and é${'é'.repeat(400)}`,
              primary_url: '',
              target: 't'.repeat(600),
              class: 'c'.repeat(70),
            }),
          ],
          { scanner: { name: 's'.repeat(70), version: '' }, os: { family: 'f'.repeat(70), name: '\u0001' } },
        ),
      ),
    )
    const got = ok(await s.getVulns(d)).json
    const [item] = got.items
    assert.equal(item.id, 'CVE-2028-1')
    assert.deepEqual(item.package, { name: 'n'.repeat(256), type: null, purl: 'p'.repeat(1024) })
    assert.equal(item.installedVersion, '1.0')
    assert.deepEqual(item.fixedVersions, ['f'.repeat(512)])
    assert.equal(Buffer.byteLength(item.title), 511, 'cut at 512 bytes, never inside a character')
    assert.ok(item.title.startsWith('bell and éé'), item.title.slice(0, 20))
    assert.equal(item.primaryUrl, null)
    assert.deepEqual([item.target.length, item.class.length], [512, 64])
    const [report] = got.reports
    assert.deepEqual(
      [report.imageRef.length, report.scannerName.length, report.scannerVersion, report.osFamily.length, report.osName],
      [1024, 64, null, 64, null],
    )
  },
)

check('vulnerabilities: nested lists keep their first entries', async () => {
  const d = digest('nested')
  const paths = Array.from({ length: 20 }, (_, i) => `usr/lib/${i}`)
  const vendors = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`vendor${i}`, { v3_score: i }]))
  ok(await s.postVulns(vulns(d, [finding({ file_paths: paths, cvss: vendors })])))
  const item = await one(d)
  assert.deepEqual(item.filePaths, paths.slice(0, 16))
  assert.deepEqual(item.cvss, Object.fromEntries(Object.entries(vendors).slice(0, 8)))
})

// ---------------------------------------------------------------- reading

check('vulnerabilities: items come most severe first, then by id, package and version, a page at a time', async () => {
  const d = digest('order')
  const row = (id, name, version, severity) => finding({ id, package: { name, version }, severity })
  ok(
    await s.postVulns(
      vulns(d, [
        row('CVE-2027-3', 'a', '1', 'LOW'),
        row('CVE-2027-2', 'b', '1', 'HIGH'),
        row('CVE-2027-2', 'a', '2', 'HIGH'),
        row('CVE-2027-9', 'a', '1', 'CRITICAL'),
        row('CVE-2027-2', 'a', '1', 'HIGH'),
        row('CVE-2027-1', 'z', '1', 'HIGH'),
        row('CVE-2027-4', 'a', '1', 'UNKNOWN'),
      ]),
    ),
  )
  const want = ['9 a 1', '1 z 1', '2 a 1', '2 a 2', '2 b 1', '3 a 1', '4 a 1']
  const seen = (items) => items.map((i) => `${i.id.slice(9)} ${i.package.name} ${i.installedVersion}`)
  assert.deepEqual(seen(ok(await s.getVulns(d)).json.items), want)
  for (const limit of [1, 2, 3]) {
    const { items, pages } = await s.allVulns(d, { limit })
    assert.deepEqual(seen(items), want, `limit ${limit}`)
    for (const p of pages) {
      assert.ok(p.items.length <= limit)
      assert.equal(p.reports.length, 1, 'every page names the reports')
    }
  }
})

check('vulnerabilities: limit defaults to 100 and is clamped to 1..500, nonsense is 400', async () => {
  const d = digest('limits')
  ok(
    await s.postVulns(
      vulns(
        d,
        Array.from({ length: 510 }, (_, i) => finding({ id: `CVE-2026-${1_000 + i}` })),
      ),
    ),
  )
  for (const [limit, size] of [
    [undefined, 100],
    [0, 1],
    [-3, 1],
    [1, 1],
    [500, 500],
    [501, 500],
    [100_000, 500],
  ]) {
    assert.equal(ok(await s.getVulns(d, { limit })).json.items.length, size, `limit ${limit}`)
  }
  refused(await s.getVulns(d, { limit: 'many' }), 400)
  refused(await s.getVulns(d, { after: 'not a cursor' }), 400)
})

check('vulnerabilities: severity, fixable and source filter the findings', async () => {
  const d = digest('filters')
  const f = (n, severity, fixed_version) =>
    finding({ id: `CVE-2025-${n}`, package: { name: 'p', version: '1' }, severity, fixed_version })
  ok(await s.postVulns(vulns(d, [f(1, 'CRITICAL', '2'), f(2, 'HIGH', null), f(3, 'LOW', '2'), f(4, 'MEDIUM', null)])))
  ok(await s.postVulns(vulns(d, [f(4, 'HIGH', '3'), f(5, 'NONE', null)], { source: 'db-matcher' })))
  const seen = async (params) => ids(ok(await s.getVulns(d, params))).map((id) => Number(id.slice(9)))
  assert.deepEqual(await seen({ severity: 'CRITICAL' }), [1])
  assert.deepEqual(await seen({ severity: 'low,HIGH' }), [2, 4, 3], 'case is ignored')
  assert.deepEqual(await seen({ severity: 'MEDIUM' }), [], 'the merged severity counts')
  assert.deepEqual(await seen({ severity: '' }), [1, 2, 4, 3, 5])
  assert.deepEqual(await seen({ fixable: true }), [1, 4, 3])
  assert.deepEqual(await seen({ fixable: false }), [2, 5])
  assert.deepEqual(await seen({ fixable: true, severity: 'HIGH,NONE' }), [4])
  assert.deepEqual(await seen({ source: 'operator-scanner' }), [1, 2, 4, 3])
  assert.deepEqual(await seen({ source: 'db-matcher' }), [4, 5])
  const only = ok(await s.getVulns(d, { source: 'operator-scanner', severity: 'MEDIUM' })).json
  assert.deepEqual(
    [only.items[0].severity, only.items[0].sources, only.items[0].fixable],
    ['MEDIUM', ['operator-scanner'], false],
    'only that source is merged',
  )
  assert.deepEqual(
    only.reports.map((r) => r.source),
    ['operator-scanner'],
  )
})

check('vulnerabilities: an unknown severity name or a bad boolean is 400', async () => {
  const d = digest('bad-filters')
  for (const severity of ['SEVERE', 'HIGH,SEVERE']) refused(await s.getVulns(d, { severity }), 400)
  refused(await s.getVulns(d, { fixable: 'maybe' }), 400)
})

check('vulnerabilities: the catalog routes of other brokers are not there', async () => {
  assert.equal((await s.reader.get('/catalog/status')).status, 404)
})

check('vulnerabilities: the same payload from six senders at once is stored once', async () => {
  const p = vulns(digest('six-at-once'), [finding(), finding()])
  const answers = await Promise.all(Array.from({ length: 6 }, () => s.postVulns(p)))
  assert.deepEqual(answers.map((r) => ok(r).json.status).sort(), ['stored', ...Array(5).fill('unchanged')])
  assert.equal(ok(await s.getVulns(p.image.digest)).json.items.length, 2)
})
