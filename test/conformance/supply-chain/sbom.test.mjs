// SBOMs: POST and GET /images/{digest}/sbom, GET /images/{digest}/sbom/cyclonedx.

import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { gzipSync } from 'node:zlib'
import { startBroker } from '../lib/broker.mjs'
import { check } from '../lib/check.mjs'
import {
  at,
  authEnv,
  component,
  digest,
  finding,
  fromNow,
  naive,
  ok,
  padded,
  rawPost,
  refused,
  reportKeys,
  sameKeys,
  sameTime,
  sbom,
  session,
  tokens,
  vulns,
} from '../lib/supply-chain.mjs'

let b, s
before(async () => {
  b = await startBroker({ env: authEnv })
  s = session(b)
})
after(() => b?.stop())

const path = (d) => `/images/${d}/sbom`
const componentKeys = [
  'id',
  'name',
  'version',
  'purl',
  'type',
  'class',
  'srcName',
  'srcVersion',
  'licenses',
  'layerDigest',
  'filePaths',
  'inUse',
  'inUseState',
  'inUseDetail',
]
const names = async (d, params) => (await s.allSbom(d, params)).items.map((i) => i.name)
const some = (prefix, n) => Array.from({ length: n }, (_, i) => component(`${prefix}${i}`))
/** One page of a set: page(d, 'set', 0, 3, components, over). */
const page = (d, set_id, index, total, components, over = {}) =>
  sbom(d, components, { page: { set_id, index, total }, ...over })
const staged = (r, received, total) => {
  assert.deepEqual([ok(r, 202).status, r.json], [202, { status: 'staged', received, total }])
}

// ---------------------------------------------------------------- whole SBOMs

check('sbom: ingest needs the scope supplychain, the read needs read', async () => {
  const p = sbom(digest('sbom-scope'), [component('a')])
  assert.equal((await b.post(path(p.image.digest), p)).status, 401)
  for (const bearer of [tokens.read, tokens.ingest])
    assert.equal((await b.post(path(p.image.digest), p, { bearer })).status, 403)
  assert.equal((await b.get(path(p.image.digest))).status, 401)
  assert.equal((await b.get(`${path(p.image.digest)}/cyclonedx`)).status, 401)
  ok(await b.post(path(p.image.digest), p, { bearer: tokens.supplychain }))
})

check('sbom: a whole SBOM is stored and served with every field', async () => {
  const d = digest('sbom-fields')
  const full = {
    name: 'libssl3',
    version: '3.0.11',
    purl: 'pkg:deb/debian/libssl3@3.0.11',
    type: 'deb',
    class: 'os-pkgs',
    src_name: 'openssl',
    src_version: '3.0.11-1',
    licenses: ['Apache-2.0', 'MIT'],
    layer_digest: digest('layer'),
    file_paths: ['usr/lib/libssl.so.3'],
  }
  const r = ok(
    await s.postSbom(
      sbom({ digest: d, ref: 'registry.test/team/app:v1', digest_kind: 'index' }, [full, { name: 'bare' }], {
        scanner: { name: 'scan', version: '2' },
        sbom_trust: 'scanned',
        scanned_at: at(7),
      }),
    ),
  )
  assert.deepEqual(r.json, { status: 'stored', items: 2 })
  const got = ok(await s.getSbom(d)).json
  sameKeys(got, ['digest', 'reports', 'retiredGuesses', 'report', 'items', 'nextAfter'], 'the answer')
  assert.equal(got.digest, d)
  assert.equal(got.nextAfter, null)
  assert.deepEqual(got.reports, [got.report])
  sameKeys(got.report, reportKeys, 'a report')
  const { scannedAt, receivedAt: _, ...rest } = got.report
  sameTime(scannedAt, at(7), 'scannedAt')
  assert.deepEqual(rest, {
    source: 'operator-scanner',
    reportDigest: d,
    join: 'report_digest',
    digestKind: 'index',
    dbUpdatedAt: null,
    scannerName: 'scan',
    scannerVersion: '2',
    osFamily: null,
    osName: null,
    osEosl: false,
    imageRef: 'registry.test/team/app:v1',
    itemCount: 2,
    sbomFormat: 'CycloneDX',
    sbomSources: [],
    sbomTrust: 'scanned',
    attestation: null,
  })
  const [first, second] = got.items
  sameKeys(first, componentKeys, 'a component')
  assert.equal(typeof first.id, 'number')
  assert.deepEqual(first, {
    id: first.id,
    name: 'libssl3',
    version: '3.0.11',
    purl: 'pkg:deb/debian/libssl3@3.0.11',
    type: 'deb',
    class: 'os-pkgs',
    srcName: 'openssl',
    srcVersion: '3.0.11-1',
    licenses: ['Apache-2.0', 'MIT'],
    layerDigest: digest('layer'),
    filePaths: ['usr/lib/libssl.so.3'],
    // Nobody watches the image.
    inUse: null,
    inUseState: 'unknown',
    inUseDetail: {
      ...{ state: 'unknown', reason: 'no_runtime_data', observedSince: null, windowHours: 24, containers: 0 },
      coverage: 'file',
    },
  })
  sameKeys(second, componentKeys, 'a component')
  assert.deepEqual(
    [second.name, second.purl, second.type, second.class, second.srcName, second.srcVersion, second.layerDigest],
    ['bare', null, null, null, null, null, null],
  )
  assert.ok(second.id > first.id)
})

check('sbom: no SBOM reads as empty, a malformed digest as 400', async () => {
  const d = digest('no-sbom')
  assert.deepEqual(ok(await s.getSbom(d)).json, {
    digest: d,
    reports: [],
    retiredGuesses: [],
    report: null,
    items: [],
    nextAfter: null,
  })
  for (const bad of ['sha256:1', `sha256:${'F'.repeat(64)}`, 'x']) {
    refused(await s.getSbom(bad), 400)
    refused(await s.cyclonedx(bad), 400)
  }
})

check('sbom: the body rules are those of vulnerabilities', async () => {
  const d = digest('sbom-body')
  const p = sbom(d, [component('a')])
  const raw = (body, headers = {}) => s.supply.request('POST', path(d), { raw: true, headers, body })
  refused(await raw(JSON.stringify(p), { 'content-encoding': 'br' }), 415)
  refused(await raw(gzipSync(JSON.stringify(p)).subarray(0, 60), { 'content-encoding': 'gzip' }), 400)
  refused(await raw(`${JSON.stringify(p)}!`), 400)
  refused(await raw('{"schema_version":1'), 400)
  for (const key of ['schema_version', 'image', 'source', 'scanned_at'])
    refused(await s.supply.post(path(d), { ...p, [key]: undefined }), 400)
  refused(await s.supply.post(path(d), { ...p, components: [{ name: 7 }] }), 400)
  refused(await rawPost(b, path(d), { headers: { 'content-length': '1048577' }, timeoutMs: 20_000 }), 413)
  refused(await s.gzipped(path(d), padded(p, 8_388_609)), 413)
  refused(await s.supply.post(path(digest('sbom-body-other')), p), 422)
  refused(await s.supply.post(path('sha256:zz'), p), 400)
  refused(await s.postSbom({ ...p, schema_version: 2 }), 422)
  refused(await s.postSbom({ ...p, source: 'syft' }), 422)
  refused(await s.postSbom({ ...p, scanned_at: fromNow(120) }), 422)
  refused(await s.postSbom(sbom(d, [component('a'), component(' ')])), 422, /1/)
  assert.deepEqual(ok(await s.getSbom(d)).json.reports, [], 'nothing was written')
  assert.deepEqual(ok(await s.postSbomGzip(p)).json, { status: 'stored', items: 1 })
})

check('sbom: 10 000 components are stored, 10 001 are 413', async () => {
  const d = digest('sbom-many')
  refused(await s.postSbomGzip(sbom(d, some('c', 10_001))), 413)
  assert.deepEqual(ok(await s.getSbom(d)).json.reports, [])
  assert.deepEqual(ok(await s.postSbomGzip(sbom(d, some('c', 10_000)))).json, { status: 'stored', items: 10_000 })
  assert.equal(ok(await s.getSbom(d, { limit: 1 })).json.report.itemCount, 10_000)
})

check('sbom: stored, then unchanged, then stale, then replaced by a strictly newer scan', async () => {
  const d = digest('sbom-states')
  assert.deepEqual(ok(await s.postSbom(sbom(d, some('a', 2), { scanned_at: at(10) }))).json, {
    status: 'stored',
    items: 2,
  })
  assert.deepEqual(ok(await s.postSbom(sbom(d, some('a', 2), { scanned_at: at(10) }))).json, { status: 'unchanged' })
  for (const when of [at(9), at(10)]) {
    assert.deepEqual(ok(await s.postSbom(sbom(d, some('b', 1), { scanned_at: when }))).json, {
      status: 'stale',
      stored_scanned_at: naive(at(10)),
    })
  }
  assert.deepEqual(await names(d), ['a0', 'a1'])
  assert.deepEqual(ok(await s.postSbom(sbom(d, some('b', 1), { scanned_at: at(11) }))).json, {
    status: 'stored',
    items: 1,
  })
  assert.deepEqual(await names(d), ['b0'])
  for (const when of [at(10), at(11)])
    assert.equal(
      ok(await s.postSbom(sbom(d, [], { scanned_at: when }))).json.status,
      'stale',
      'an empty SBOM wipes nothing',
    )
  assert.deepEqual(ok(await s.postSbom(sbom(d, [], { scanned_at: at(12) }))).json, { status: 'stored', items: 0 })
})

check('sbom: the same content with a newer scan is unchanged and refreshes the header', async () => {
  const d = digest('sbom-header')
  ok(await s.postSbom(sbom({ digest: d, digest_kind: 'index' }, some('a', 1), { scanned_at: at(10) })))
  assert.deepEqual(
    ok(await s.postSbom(sbom({ digest: d, digest_kind: 'manifest' }, some('a', 1), { scanned_at: at(20) }))).json,
    {
      status: 'unchanged',
    },
  )
  const { report } = ok(await s.getSbom(d)).json
  sameTime(report.scannedAt, at(20), 'scannedAt')
  assert.equal(report.digestKind, 'manifest')
})

check('sbom: findings and SBOM of one digest and source do not replace each other', async () => {
  const d = digest('sbom-and-findings')
  ok(await s.postVulns(vulns(d, [finding()], { scanned_at: at(50) })))
  assert.deepEqual(ok(await s.postSbom(sbom(d, some('a', 3), { scanned_at: at(1) }))).json, {
    status: 'stored',
    items: 3,
  })
  const findings = ok(await s.getVulns(d)).json
  assert.deepEqual([findings.items.length, findings.reports.length, findings.reports[0].sbomFormat], [1, 1, null])
  assert.deepEqual(await names(d), ['a0', 'a1', 'a2'])
})

check('sbom: text is cleaned and cut, nested lists keep their first entries', async () => {
  const d = digest('sbom-text')
  ok(
    await s.postSbom(
      sbom(d, [
        {
          name: ` ${'n'.repeat(300)} `,
          version: '1\u0000.2\u2029',
          purl: 'p'.repeat(1_100),
          type: '',
          class: 'c'.repeat(70),
          src_name: 's'.repeat(300),
          src_version: 'v'.repeat(200),
          licenses: Array.from({ length: 10 }, (_, i) => `L${i}${'x'.repeat(200)}`),
          file_paths: Array.from({ length: 20 }, (_, i) => `f${i}`),
        },
      ]),
    ),
  )
  const [c] = ok(await s.getSbom(d)).json.items
  assert.deepEqual(
    [c.name.length, c.version, c.purl.length, c.type, c.class.length, c.srcName.length, c.srcVersion.length],
    [256, '1.2', 1024, null, 64, 256, 128],
  )
  assert.deepEqual(
    c.licenses,
    Array.from({ length: 8 }, (_, i) => `L${i}${'x'.repeat(126)}`),
  )
  assert.deepEqual(
    c.filePaths,
    Array.from({ length: 16 }, (_, i) => `f${i}`),
  )
})

// ---------------------------------------------------------------- page sets

check('sbom: the pages of a set are staged and swapped in together with the last one', async () => {
  const d = digest('paged')
  ok(await s.postSbom(sbom(d, some('old', 1), { scanned_at: at(1) })))
  const over = { scanned_at: at(10) }
  staged(await s.postSbom(page(d, 'set-1', 0, 3, some('a', 2), over)), 1, 3)
  staged(await s.postSbomGzip(page(d, 'set-1', 1, 3, some('b', 2), over)), 2, 3)
  assert.deepEqual(await names(d), ['old0'], 'the stored SBOM is served until the set is complete')
  assert.deepEqual(ok(await s.postSbom(page(d, 'set-1', 2, 3, some('c', 1), over))).json, {
    status: 'stored',
    items: 5,
  })
  assert.deepEqual(await names(d), ['a0', 'a1', 'b0', 'b1', 'c0'])
  const { report } = ok(await s.getSbom(d)).json
  assert.equal(report.itemCount, 5)
  sameTime(report.scannedAt, at(10), 'scannedAt')
})

check('sbom: pages arrive in any order, components keep the order of the pages', async () => {
  const d = digest('any-order')
  staged(await s.postSbom(page(d, 'x', 2, 4, some('c', 1))), 1, 4)
  staged(await s.postSbom(page(d, 'x', 0, 4, some('a', 2))), 2, 4)
  staged(await s.postSbom(page(d, 'x', 3, 4, some('d', 1))), 3, 4)
  assert.deepEqual(ok(await s.postSbom(page(d, 'x', 1, 4, some('b', 2)))).json, { status: 'stored', items: 6 })
  assert.deepEqual(await names(d), ['a0', 'a1', 'b0', 'b1', 'c0', 'd0'])
})

check('sbom: a page that was received already is duplicate_page', async () => {
  const d = digest('duplicate')
  staged(await s.postSbom(page(d, 'x', 1, 3, some('b', 1))), 1, 3)
  assert.deepEqual(ok(await s.postSbom(page(d, 'x', 1, 3, some('b', 1)))).json, {
    status: 'duplicate_page',
    received: 1,
    total: 3,
  })
  staged(await s.postSbom(page(d, 'x', 0, 3, some('a', 1))), 2, 3)
  assert.deepEqual(ok(await s.postSbom(page(d, 'x', 1, 3, some('b', 1)))).json, {
    status: 'duplicate_page',
    received: 2,
    total: 3,
  })
  assert.deepEqual(ok(await s.postSbom(page(d, 'x', 2, 3, some('c', 1)))).json, { status: 'stored', items: 3 })
  for (const index of [0, 1, 2])
    assert.deepEqual(
      ok(await s.postSbom(page(d, 'x', index, 3, some('a', 1)))).json,
      { status: 'unchanged' },
      'the stored set has this set_id',
    )
  assert.deepEqual(await names(d), ['a0', 'b0', 'c0'])
})

check('sbom: pages that disagree on the total are 422 and nothing of them is kept', async () => {
  const d = digest('totals')
  staged(await s.postSbom(page(d, 'x', 0, 2, some('a', 1))), 1, 2)
  refused(await s.postSbom(page(d, 'x', 1, 3, some('b', 1))), 422)
  assert.deepEqual(ok(await s.postSbom(page(d, 'x', 0, 2, some('a', 1)))).json, {
    status: 'duplicate_page',
    received: 1,
    total: 2,
  })
  assert.deepEqual(ok(await s.postSbom(page(d, 'x', 1, 2, some('c', 1)))).json, { status: 'stored', items: 2 })
  assert.deepEqual(await names(d), ['a0', 'c0'])
})

check('sbom: a newer set drops an older incomplete one, whose pages are then stale', async () => {
  const d = digest('newer-set')
  staged(await s.postSbom(page(d, 'old', 0, 2, some('o', 1), { scanned_at: at(10) })), 1, 2)
  staged(await s.postSbom(page(d, 'new', 0, 2, some('n', 1), { scanned_at: at(20) })), 1, 2)
  assert.deepEqual(ok(await s.postSbom(page(d, 'old', 1, 2, some('o', 1), { scanned_at: at(10) }))).json, {
    status: 'stale',
    stored_scanned_at: naive(at(20)),
  })
  assert.deepEqual(ok(await s.postSbom(page(d, 'new', 1, 2, some('m', 1), { scanned_at: at(20) }))).json, {
    status: 'stored',
    items: 2,
  })
  assert.deepEqual(await names(d), ['n0', 'm0'])
  assert.deepEqual(ok(await s.postSbom(page(d, 'old', 0, 2, some('o', 1), { scanned_at: at(10) }))).json, {
    status: 'stale',
    stored_scanned_at: naive(at(20)),
  })
})

check('sbom: a set that is not newer than the stored SBOM, or than another staged set, is stale', async () => {
  const d = digest('stale-set')
  ok(await s.postSbom(sbom(d, some('a', 1), { scanned_at: at(10) })))
  for (const when of [at(10), at(5)]) {
    assert.deepEqual(ok(await s.postSbom(page(d, 'x', 0, 2, some('b', 1), { scanned_at: when }))).json, {
      status: 'stale',
      stored_scanned_at: naive(at(10)),
    })
  }
  staged(await s.postSbom(page(d, 'y', 0, 2, some('b', 1), { scanned_at: at(30) })), 1, 2)
  for (const when of [at(20), at(30)]) {
    assert.deepEqual(ok(await s.postSbom(page(d, 'z', 0, 2, some('c', 1), { scanned_at: when }))).json, {
      status: 'stale',
      stored_scanned_at: naive(at(30)),
    })
  }
})

check('sbom: a whole SBOM drops a staged set that is not newer', async () => {
  const d = digest('whole-over-set')
  staged(await s.postSbom(page(d, 'x', 0, 2, some('x', 1), { scanned_at: at(10) })), 1, 2)
  assert.deepEqual(ok(await s.postSbom(sbom(d, some('w', 1), { scanned_at: at(20) }))).json, {
    status: 'stored',
    items: 1,
  })
  assert.deepEqual(ok(await s.postSbom(page(d, 'x', 1, 2, some('x', 1), { scanned_at: at(10) }))).json, {
    status: 'stale',
    stored_scanned_at: naive(at(20)),
  })
  assert.deepEqual(await names(d), ['w0'])
})

check('sbom: sets of two sources do not disturb each other', async () => {
  const d = digest('two-sources')
  staged(await s.postSbom(page(d, 'x', 0, 2, some('o', 1))), 1, 2)
  staged(await s.postSbom(page(d, 'x', 0, 2, some('r', 1), { source: 'registry', scanned_at: at(99) })), 1, 2)
  assert.equal(ok(await s.postSbom(page(d, 'x', 1, 2, some('o', 1)))).json.status, 'stored')
  assert.equal(
    ok(await s.postSbom(page(d, 'x', 1, 2, some('r', 1), { source: 'registry', scanned_at: at(99) }))).json.status,
    'stored',
  )
  assert.deepEqual(await names(d), ['o0', 'o0'])
  assert.deepEqual(await names(d, { source: 'registry' }), ['r0', 'r0'])
})

check('sbom: a set of one page is stored at once', async () => {
  const d = digest('one-page')
  assert.deepEqual(ok(await s.postSbom(page(d, 'x', 0, 1, some('a', 2)))).json, { status: 'stored', items: 2 })
  assert.deepEqual(ok(await s.postSbom(page(d, 'x', 0, 1, some('a', 2)))).json, { status: 'unchanged' })
})

check('sbom: page fields out of range are 422', async () => {
  const d = digest('page-fields')
  const bad = [
    ['x', -1, 2],
    ['x', 2, 2],
    ['x', 0, 0],
    ['x', 0, 129],
    ['', 0, 2],
    ['a b', 0, 2],
    ['a/b', 0, 2],
    ['x'.repeat(129), 0, 2],
  ]
  for (const [set, index, total] of bad) refused(await s.postSbom(page(d, set, index, total, some('a', 1))), 422)
  assert.deepEqual(ok(await s.getSbom(d)).json.reports, [])
  staged(await s.postSbom(page(d, 'A.z_0:9-', 127, 128, some('a', 1))), 1, 128)
})

check('sbom: beyond 64 staged sets a new set is 429 and counted, pages of admitted sets go on', async () => {
  const own = await startBroker({ env: authEnv })
  try {
    const o = session(own)
    const d = (i) => digest(`ceiling-${i}`)
    assert.equal(await o.counter('svc_supplychain_staged_sets_refused_total'), 0)
    for (let i = 0; i < 64; i += 1)
      staged(
        await o.postSbom(page(d(i), 'x', 0, 2, some('a', 1), { source: i % 2 ? 'registry' : 'operator-scanner' })),
        1,
        2,
      )
    const r = refused(await o.postSbom(page(d(64), 'x', 0, 2, some('a', 1))), 429)
    assert.equal(r.headers.get('retry-after'), '60')
    assert.equal(await o.counter('svc_supplychain_staged_sets_refused_total'), 1)
    assert.equal(ok(await o.postSbom(page(d(0), 'x', 0, 2, some('a', 1)))).json.status, 'duplicate_page')
    ok(await o.postSbom(sbom(d(65), some('a', 1))))
    assert.equal(
      ok(await o.postSbom(page(d(66), 'x', 0, 1, some('a', 1)))).json.status,
      'stored',
      'a set of one page is not staged',
    )
    assert.equal(ok(await o.postSbom(page(d(0), 'x', 1, 2, some('a', 1)))).json.status, 'stored')
    staged(await o.postSbom(page(d(64), 'x', 0, 2, some('a', 1))), 1, 2)
    assert.equal(await o.counter('svc_supplychain_staged_sets_refused_total'), 1)
  } finally {
    await own.stop()
  }
})

// ---------------------------------------------------------------- trust and selection

check(
  'sbom: sbomTrust is what the payload states, unknown values and a silent registry are attached-unbound',
  async () => {
    const cases = [
      ['operator-scanner', 'scanned', 'scanned'],
      ['registry', 'unverified', 'unverified'],
      ['registry', 'verified', 'verified'],
      ['registry', undefined, 'attached-unbound'],
      ['registry', 'signed-by-me', 'attached-unbound'],
      ['operator-scanner', 'trust me', 'attached-unbound'],
    ]
    for (const [source, sbom_trust, want] of cases) {
      const d = digest(`sbom-trust-${source}-${sbom_trust}`)
      ok(await s.postSbom(sbom(d, some('a', 1), { source, sbom_trust })))
      assert.equal(ok(await s.getSbom(d)).json.report.sbomTrust, want, `${source} ${sbom_trust}`)
    }
    const d = digest('sbom-trust-alias')
    ok(await s.postSbom(sbom(d, some('a', 1), { source: 'registry', sbomTrust: 'unverified' })))
    assert.equal(ok(await s.getSbom(d)).json.report.sbomTrust, 'unverified', 'the older spelling')
  },
)

check('sbom: the attestation of a registry SBOM is served with its snake_case names', async () => {
  const d = digest('sbom-attestation')
  ok(
    await s.postSbom(
      sbom(d, some('a', 1), {
        source: 'registry',
        sbom_trust: 'unverified',
        scanner: { name: 'registry', vendor: 'oci-referrer' },
        attestation: {
          mechanism: 'oci-referrer',
          artifact_digest: digest('artifact'),
          media_type: 'application/vnd.in-toto+json',
          predicate_type: 'https://spdx.dev/Document',
          verified: false,
        },
      }),
    ),
  )
  assert.deepEqual(ok(await s.getSbom(d)).json.report.attestation, {
    mechanism: 'oci-referrer',
    artifact_digest: digest('artifact'),
    media_type: 'application/vnd.in-toto+json',
    predicate_type: 'https://spdx.dev/Document',
    verified: false,
  })
})

check(
  'sbom: items come from the scanner operator, else another scanner, a registry SBOM only when it is alone',
  async () => {
    const d = digest('selection')
    const source = async (params) => {
      const r = ok(await s.getSbom(d, params)).json
      return [r.report?.source, r.items.map((i) => i.name), r.reports.map((x) => x.source)]
    }
    ok(await s.postSbom(sbom(d, [component('from-registry')], { source: 'registry', scanned_at: at(300) })))
    assert.deepEqual(await source(), ['registry', ['from-registry'], ['registry']])
    ok(await s.postSbom(sbom(d, [component('from-matcher')], { source: 'db-matcher', scanned_at: at(200) })))
    assert.deepEqual(await source(), ['db-matcher', ['from-matcher'], ['db-matcher', 'registry']])
    ok(await s.postSbom(sbom(d, [component('from-operator')], { source: 'operator-scanner', scanned_at: at(100) })))
    const all = ['operator-scanner', 'db-matcher', 'registry']
    assert.deepEqual(await source(), ['operator-scanner', ['from-operator'], all])
    assert.deepEqual(
      await source({ source: 'registry' }),
      ['registry', ['from-registry'], all],
      'reports always lists every source',
    )
    assert.deepEqual(await source({ source: 'db-matcher' }), ['db-matcher', ['from-matcher'], all])
    assert.deepEqual(
      await source({ source: 'grype' }),
      ['db-matcher', ['from-matcher'], all],
      'the other column of names',
    )
    assert.deepEqual(await source({ source: 'somebody' }), [undefined, [], all])
  },
)

check('sbom: a requested source without an SBOM has no report and no items', async () => {
  const d = digest('requested')
  ok(await s.postSbom(sbom(d, some('a', 1))))
  const got = ok(await s.getSbom(d, { source: 'registry' })).json
  assert.deepEqual([got.report, got.items, got.nextAfter, got.reports.length], [null, [], null, 1])
})

check('sbom: components are paged by id, limit 100 by default and 500 at most', async () => {
  const d = digest('sbom-paging')
  ok(await s.postSbom(sbom(d, some('c', 620))))
  const first = ok(await s.getSbom(d)).json
  assert.equal(first.items.length, 100)
  assert.equal(typeof first.nextAfter, 'number')
  for (const [limit, size] of [
    [0, 1],
    [1, 1],
    [500, 500],
    [501, 500],
  ])
    assert.equal(ok(await s.getSbom(d, { limit })).json.items.length, size)
  const { items } = await s.allSbom(d, { limit: 250 })
  assert.deepEqual(
    items.map((i) => i.name),
    some('c', 620).map((c) => c.name),
  )
  const tail = ok(await s.getSbom(d, { after: items[617].id })).json
  assert.deepEqual(
    tail.items.map((i) => i.name),
    ['c618', 'c619'],
  )
  assert.deepEqual(
    ok(await s.getSbom(d, { after: -5, limit: 2 })).json.items.map((i) => i.name),
    ['c0', 'c1'],
    'a negative after is the start',
  )
  for (const params of [{ limit: 'x' }, { after: 'x' }]) refused(await s.getSbom(d, params), 400)
})

// ---------------------------------------------------------------- CycloneDX

check('sbom: the CycloneDX document', async () => {
  const d = digest('cyclonedx')
  ok(
    await s.postSbom(
      sbom(
        { digest: d, ref: 'registry.test/team/app:v1' },
        [
          { name: 'debian', version: '12', type: 'operating-system' },
          {
            name: 'libssl3',
            version: '3.0.11',
            purl: 'pkg:deb/debian/libssl3@3.0.11',
            type: 'deb',
            class: 'os-pkgs',
            src_name: 'openssl',
            src_version: '3.0.11-1',
            licenses: ['Apache-2.0', 'MIT'],
            layer_digest: digest('layer'),
            file_paths: ['usr/lib/libssl.so.3'],
          },
          { name: 'bare' },
        ],
        { scanner: { name: 'scan', version: '2' }, sbom_trust: 'scanned', scanned_at: at(7) },
      ),
    ),
  )
  const r = ok(await s.cyclonedx(d))
  assert.equal(r.headers.get('content-type'), 'application/vnd.cyclonedx+json; version=1.5')
  assert.equal(r.headers.get('content-disposition'), `attachment; filename="${d.replace(':', '_')}.cdx.json"`)
  const doc = r.json
  assert.deepEqual(
    Object.keys(doc),
    ['bomFormat', 'components', 'metadata', 'specVersion', 'version'],
    'in alphabetical order',
  )
  assert.deepEqual([doc.bomFormat, doc.specVersion, doc.version], ['CycloneDX', '1.5', 1])
  sameKeys(doc.metadata, ['component', 'properties', 'tools'], 'metadata')
  assert.deepEqual(doc.metadata.component, {
    'bom-ref': d,
    name: 'registry.test/team/app:v1',
    type: 'container',
    version: d,
  })
  assert.deepEqual(doc.metadata.properties, [
    { name: 'kguardian:source', value: 'operator-scanner' },
    { name: 'kguardian:reportDigest', value: d },
    { name: 'kguardian:join', value: 'report_digest' },
    { name: 'kguardian:sbomTrust', value: 'scanned' },
    { name: 'kguardian:scannedAt', value: `${naive(at(7))}+00:00` },
  ])
  assert.deepEqual(doc.metadata.tools, { components: [{ name: 'scan', type: 'application', version: '2' }] })
  assert.deepEqual(
    doc.components.map((c) => [c['bom-ref'], c.name, c.type]),
    [
      ['c0', 'debian', 'operating-system'],
      ['c1', 'libssl3', 'library'],
      ['c2', 'bare', 'library'],
    ],
  )
  assert.deepEqual(doc.components[1], {
    'bom-ref': 'c1',
    name: 'libssl3',
    type: 'library',
    version: '3.0.11',
    purl: 'pkg:deb/debian/libssl3@3.0.11',
    licenses: [{ license: { name: 'Apache-2.0' } }, { license: { name: 'MIT' } }],
    properties: [
      { name: 'aquasecurity:trivy:PkgType', value: 'deb' },
      { name: 'aquasecurity:trivy:Class', value: 'os-pkgs' },
      { name: 'aquasecurity:trivy:SrcName', value: 'openssl' },
      { name: 'aquasecurity:trivy:SrcVersion', value: '3.0.11-1' },
      { name: 'aquasecurity:trivy:LayerDigest', value: digest('layer') },
    ],
  })
  for (const key of ['licenses', 'properties', 'purl'])
    assert.equal(key in doc.components[2], false, `${key} is omitted when unknown`)
  assert.equal(r.text.includes('libssl.so.3'), false, 'file paths are omitted')
})

check('sbom: CycloneDX without image reference, scanner and trust', async () => {
  const d = digest('cyclonedx-bare')
  ok(await s.postSbom(sbom(d, [], { source: 'db-matcher' })))
  const doc = ok(await s.cyclonedx(d)).json
  assert.equal(doc.metadata.component.name, d)
  assert.deepEqual(
    doc.metadata.tools.components[0],
    { type: 'application', name: 'db-matcher' },
    'a version that nobody knows is left out, CycloneDX 1.5 has no null',
  )
  assert.equal(doc.metadata.properties[3].value, 'n/a')
  assert.deepEqual(doc.components, [])
})

check('sbom: CycloneDX selects like the SBOM read and is 404 without an SBOM', async () => {
  const d = digest('cyclonedx-select')
  for (const params of [undefined, { source: 'registry' }]) {
    const r = await s.cyclonedx(d, params)
    assert.deepEqual([r.status, r.text], [404, 'No SBOM for this image'])
  }
  ok(await s.postSbom(sbom(d, [component('r')], { source: 'registry' })))
  ok(await s.postSbom(sbom(d, [component('o')])))
  assert.deepEqual(
    ok(await s.cyclonedx(d)).json.components.map((c) => c.name),
    ['o'],
  )
  assert.deepEqual(
    ok(await s.cyclonedx(d, { source: 'registry' })).json.components.map((c) => c.name),
    ['r'],
  )
  assert.equal((await s.cyclonedx(d, { source: 'db-matcher' })).status, 404)
})
