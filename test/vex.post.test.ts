import assert from 'node:assert/strict'
import test from 'node:test'
import { MAX_COUNTED, MAX_DOCUMENTS, MAX_HOLDING } from '../lib/decisions/words.ts'
import { MAX_VEX_BYTES } from '../lib/limits/limits.ts'
import { MAX_DOCUMENT_DECISIONS, MAX_PRODUCTS, MAX_STATEMENTS } from '../lib/vex/parsed.ts'
import { startApp, TOKENS } from './support/app.ts'
import { affected, decide, findingsOf, listed, newCve, READ, refresh, SUPPLYCHAIN } from './support/decisions.ts'
import { container, newDigest, replica } from './support/images.ts'
import { assertDatabaseBusy, assertForbidden, assertUnauthorized, whileRefused } from './support/routes.ts'
import { finding, storeFindings } from './support/supply-chain.ts'
import { cycloneDx, openVex, statement } from './support/vex.ts'

const app = await startApp(TOKENS)

type Fields = Record<string, unknown>
// biome-ignore lint/suspicious/noExplicitAny: answers are checked by value
type Json = any
const post = (body: unknown, token = SUPPLYCHAIN, query = '') => app.post(`/vex${query}`, body, { token })
async function stored(body: unknown, query = '') {
  const answer = await post(body, SUPPLYCHAIN, query)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const history = async (id: string) => (await app.get(`/vulnerabilities/${id}/decisions`, { token: READ })).json.items
const oci = (digest: string) => `pkg:oci/app@${digest.replace(':', '%3A')}?repository_url=registry.test/team/app`

test('POST /vex 200: a statement is a decision with its origin, on the finding and in the counts at once', async () => {
  const { digest, id } = await affected(app)
  await refresh(app)
  const document = openVex([
    statement(id, [oci(digest)], {
      ...{ status: 'not_affected', justification: 'vulnerable_code_not_present', impact_statement: 'built without it' },
      timestamp: '2026-01-02T03:04:05+01:00',
    }),
  ])
  assert.deepEqual(await stored(document), {
    status: 'stored',
    document: document['@id'],
    format: 'openvex',
    version: 1,
    storedVersion: 1,
    accepted: 1,
    ignored: 0,
    statements: [{ statement: 0, vulnerability: id, outcome: 'accepted', decisions: 1, ignored: [] }],
  })
  const [found] = await findingsOf(app, digest)
  const { id: _, ...shown } = found.decision
  assert.deepEqual(shown, {
    vulnerability: id,
    decision: 'not_affected',
    justification: 'vulnerable_code_not_present',
    scope: { type: 'image', digest },
    package: null,
    until: null,
    by: 'vendor@example.org',
    why: 'built without it',
    decidedAt: '2026-01-02T02:04:05',
    origin: { document: document['@id'], version: 1, statement: 0 },
  })
  assert.deepEqual([found.decided, (await listed(app, id)).decidedWorkloads], [true, 1])
})

test('POST /vex 200: a document about many vulnerabilities is shown at once, and counted by the next pass', async () => {
  const { digest, id } = await affected(app)
  const ids = [id, ...Array.from({ length: MAX_COUNTED }, newCve)]
  await storeFindings(
    app,
    digest,
    'registry',
    ids.map((one) => finding(one)),
  )
  await refresh(app)
  await stored(openVex(ids.map((one) => statement(one, [oci(digest)]))))
  const found = await findingsOf(app, digest)
  assert.equal(found.length, ids.length)
  assert.ok(found.every(({ decided }: Fields) => decided === true))
  const count = async () => (await listed(app, id)).decidedWorkloads
  assert.equal(await count(), 0)
  await refresh(app)
  assert.equal(await count(), 1)
})

test('POST /vex 200: the status of OpenVEX, and the state of CycloneDX with its answer, are decisions', async () => {
  const id = newCve()
  const words = async (document: object) => {
    await stored(document)
    const items = (await history(id)).filter((one: Fields) => one.holds)
    return items.map((one: Fields) => [one.decision, one.justification, one.why]).reverse()
  }
  const [why, digest] = ['the text', newDigest()]
  const one = (fields: Fields) => statement(id, [digest], { justification: null, ...fields })
  assert.deepEqual(
    await words(
      openVex([
        one({ status: 'not_affected', impact_statement: why }),
        one({ status: 'affected', action_statement: why }),
        one({ status: 'fixed', status_notes: why }),
        one({ status: 'under_investigation' }),
      ]),
    ),
    [
      ['not_affected', null, why],
      ['affected', null, why],
      ['fixed', null, why],
      ['under_investigation', null, ''],
    ],
  )
  await app.sql`truncate vuln_decision, vex_document, vex_statement`
  const analyses: [Fields, unknown[]][] = [
    [{ state: 'resolved' }, ['fixed', null, '']],
    [{ state: 'resolved_with_pedigree' }, ['fixed', null, '']],
    [{ state: 'exploitable', response: ['update'] }, ['affected', null, '']],
    [{ state: 'exploitable', response: ['will_not_fix', 'update'], detail: why }, ['will_not_fix', null, why]],
    [{ state: 'in_triage' }, ['under_investigation', null, '']],
    [{ state: 'false_positive' }, ['not_affected', null, 'false positive']],
    [
      { state: 'not_affected', justification: 'code_not_present' },
      ['not_affected', 'vulnerable_code_not_present', 'code_not_present'],
    ],
    [
      { state: 'not_affected', justification: 'code_not_reachable', detail: why },
      ['not_affected', 'vulnerable_code_not_in_execute_path', why],
    ],
    [
      { state: 'not_affected', justification: 'protected_at_runtime' },
      ['not_affected', 'inline_mitigations_already_exist', 'protected_at_runtime'],
    ],
    [{ state: 'not_affected', justification: 'requires_environment' }, ['not_affected', null, 'requires_environment']],
  ]
  assert.deepEqual(
    await words(cycloneDx(analyses.map(([analysis]) => ({ id, analysis, affects: [{ ref: digest }] })))),
    analyses.map(([, expected]) => expected),
  )
})

test('POST /vex 200: products by purl, by digest and by hash, repositories, and packages wherever they are', async () => {
  const digest = newDigest()
  const hex = digest.slice(7)
  const image = { type: 'image', digest }
  const products: [unknown, unknown, string | null][] = [
    [{ '@id': oci(digest) }, image, null],
    [{ '@id': `pkg:oci/app@${digest}` }, image, null],
    [{ '@id': `pkg:docker/team/app@${digest}?tag=1` }, image, null],
    [{ identifiers: { purl: oci(digest) } }, image, null],
    [{ '@id': digest }, image, null],
    [{ '@id': 'https://example.org/app', hashes: { 'sha-256': hex.toUpperCase() } }, image, null],
    [
      { '@id': 'pkg:oci/app?repository_url=docker.io/library/app' },
      { type: 'repository', repository: 'docker.io/library/app' },
      null,
    ],
    [
      { '@id': 'pkg:oci/app?repository_url=registry.test/team' },
      { type: 'repository', repository: 'registry.test/team/app' },
      null,
    ],
    [{ '@id': 'pkg:deb/debian/curl@8' }, { type: 'all' }, 'pkg:deb/debian/curl@8'],
    [{ '@id': oci(digest), subcomponents: [{ '@id': 'pkg:deb/debian/curl' }] }, image, 'pkg:deb/debian/curl'],
    [{ '@id': oci(digest), subcomponents: [{ '@id': 'curl' }] }, image, 'curl'],
  ]
  for (const [product, scope, part] of products) {
    const id = newCve()
    await stored(openVex([{ ...statement(id, []), products: [product] }]))
    const [made] = await history(id)
    assert.deepEqual([made.scope, made.package], [scope, part], JSON.stringify(product))
  }
})

test('POST /vex 200: of two statements of one time about one product the one that work is left shows', async () => {
  const { digest, id } = await affected(app)
  await refresh(app)
  const states = ['exploitable', 'not_affected']
  for (const order of [states, states.toReversed()]) {
    const document = cycloneDx(order.map((state) => ({ id, analysis: { state }, affects: [{ ref: digest }] })))
    await stored(document)
    const [{ decision, decided }] = await findingsOf(app, digest)
    assert.deepEqual([decision.decision, decided, (await listed(app, id)).decidedWorkloads], ['affected', false, 0])
    await stored({ ...document, version: 2, vulnerabilities: [] })
  }
})

test('POST /vex 200: what CycloneDX says of one component does not hold for another one without an analysis', async () => {
  const { digest, id } = await affected(app)
  const component = { 'bom-ref': 'project', type: 'container', name: 'app', purl: oci(digest) }
  const affects = [{ ref: 'project' }]
  const analysed = { id, analysis: { state: 'not_affected' }, affects }
  const document = cycloneDx([analysed, { id, affects }], { metadata: { component } })
  const { statements } = await stored(document)
  const ignored = { outcome: 'ignored', decisions: 0, vulnerability: id }
  assert.deepEqual(statements, [
    { statement: 0, ...ignored, ignored: [{ reason: 'no_analysis', product: 'project' }] },
    { statement: 1, ...ignored, ignored: [{ reason: 'no_analysis', product: null }] },
  ])
  assert.equal((await findingsOf(app, digest))[0].decided, false)
  await stored({ ...document, version: 2, vulnerabilities: [analysed, { id: newCve(), affects }] })
  assert.equal((await findingsOf(app, digest))[0].decided, true)
})

test('POST /vex 200: the references of CycloneDX: components, the image of the document, links to other documents', async () => {
  const digest = newDigest()
  const component = { 'bom-ref': 'the-image', type: 'container', name: 'app', version: digest }
  const components = [
    { 'bom-ref': 'c1', type: 'library', name: 'curl', purl: 'pkg:deb/debian/curl@8' },
    {
      'bom-ref': 'c2',
      type: 'library',
      name: 'zlib',
      components: [{ 'bom-ref': 'c3', name: 'inner', purl: 'pkg:npm/inner@1' }],
    },
    { 'bom-ref': 'other', type: 'container', name: 'x', purl: oci(digestOfOther) },
    { 'bom-ref': 'hashed', type: 'container', name: 'y', hashes: [{ alg: 'SHA-256', content: hexOfOther }] },
    { 'bom-ref': 'file', type: 'library', name: 'libfoo', hashes: [{ alg: 'SHA-256', content: hexOfOther }] },
  ]
  const image = { type: 'image', digest }
  for (const [ref, scope, part] of [
    ['the-image', image, null],
    [undefined, image, null],
    ['c1', image, 'pkg:deb/debian/curl@8'],
    ['c2', image, 'zlib'],
    ['c3', image, 'pkg:npm/inner@1'],
    ['other', { type: 'image', digest: digestOfOther }, null],
    ['hashed', { type: 'image', digest: digestOfOther }, null],
    ['file', image, 'libfoo'],
    ['pkg:npm/lodash@4', image, 'pkg:npm/lodash@4'],
    [
      `urn:cdx:f08a6ccd-4dce-4759-bd84-c626675d60a7/1#${encodeURIComponent('pkg:npm/lodash@4')}`,
      image,
      'pkg:npm/lodash@4',
    ],
  ] as const) {
    const id = newCve()
    const affects = ref === undefined ? undefined : [{ ref }]
    const document = cycloneDx([{ id, analysis: { state: 'resolved' }, affects }], {
      metadata: { component },
      components,
    })
    await stored(document)
    const [made] = await history(id)
    assert.deepEqual([made?.scope, made?.package], [scope, part], ref)
    if (ref === undefined || ref.startsWith('urn:')) continue
    // A link to the document itself names the same.
    const own = `urn:cdx:${document.serialNumber.slice('urn:uuid:'.length)}/1#${encodeURIComponent(ref)}`
    const next = [{ id, analysis: { state: 'resolved' }, affects: [{ ref: own }] }]
    await stored({ ...document, version: 2, vulnerabilities: next })
    const [again] = await history(id)
    assert.deepEqual([again.origin.version, again.scope, again.package], [2, scope, part], ref)
  }
  const id = newCve()
  await stored(cycloneDx([{ id, analysis: { state: 'resolved' }, affects: [{ ref: 'c1' }] }], { components }))
  assert.deepEqual((await history(id))[0].scope, { type: 'all' })
})
const digestOfOther = newDigest()
const hexOfOther = digestOfOther.slice('sha256:'.length)

test('POST /vex 200: packages of a CycloneDX document about an application, or about an image without digest, are not decided', async () => {
  const lib = { 'bom-ref': 'lib', type: 'library', name: 'text', purl: 'pkg:golang/golang.org/x/text@v0.3.2' }
  const components = [lib, { 'bom-ref': 'plain', type: 'library', name: 'text' }]
  const link = `urn:cdx:3e671687-395b-41f5-a30f-a58921a69b79/1#${lib.purl}`
  const image = { type: 'container', name: 'shop', version: 'v1' }
  const products: [Fields | undefined, readonly string[], string][] = [
    [{ ...image, purl: 'pkg:oci/shop?repository_url=r.test/shop&tag=v1' }, ['lib', 'plain'], 'product_without_digest'],
    [{ ...image, purl: 'pkg:docker/team/shop@v1' }, ['lib', lib.purl], 'product_without_digest'],
    [image, ['lib', link], 'product_not_known'],
    [{ type: 'application', name: 'shop' }, ['lib'], 'product_not_known'],
    [
      { type: 'application', name: 'shop', purl: 'pkg:golang/example.com/shop' },
      ['lib', 'plain', lib.purl, link],
      'product_not_an_image',
    ],
    [undefined, [link], 'product_not_known'],
  ]
  for (const [component, refs, reason] of products) {
    const id = newCve()
    const metadata = component && { component: { 'bom-ref': 'product', ...component } }
    const affects = refs.map((ref) => ({ ref }))
    const document = cycloneDx([{ id, analysis: { state: 'resolved' }, affects }], { metadata, components })
    assert.deepEqual(
      (await stored(document)).statements[0].ignored,
      refs.map((product) => ({ reason, product })),
    )
    assert.deepEqual(await history(id), [])
  }
})

test('POST /vex 200: what is not applied is said, statement by statement', async () => {
  const digest = newDigest()
  const id = newCve()
  const cases: [Fields, string, string | null][] = [
    [statement('not an id', [digest]), 'vulnerability_not_valid', null],
    [statement(id, [digest], { status: 'ignored' }), 'unknown_status', null],
    [statement(id, [digest], { justification: 'because' }), 'unknown_justification', null],
    [statement(id, [digest], { justification: null }), 'justification_missing', null],
    [statement(id, []), 'no_product', null],
    [statement(id, ['https://example.org/app']), 'product_not_known', 'https://example.org/app'],
    [statement(id, ['pkg:']), 'product_not_known', 'pkg:'],
    [statement(id, ['pkg:oci/app']), 'product_without_digest', 'pkg:oci/app'],
    [
      statement(id, ['pkg:oci/app?repository_url=r.test/app&tag=1']),
      'product_without_digest',
      'pkg:oci/app?repository_url=r.test/app&tag=1',
    ],
    [statement(id, ['pkg:docker/app@1.2']), 'product_without_digest', 'pkg:docker/app@1.2'],
    [
      statement(id, ['pkg:docker/customer/app?repository_url=r.test']),
      'product_without_digest',
      'pkg:docker/customer/app?repository_url=r.test',
    ],
    [
      {
        ...statement(id, []),
        products: [{ '@id': 'pkg:golang/a/b@1', subcomponents: [{ '@id': 'pkg:golang/c/d@1' }] }],
      },
      'product_not_an_image',
      'pkg:golang/a/b@1',
    ],
    [
      { ...statement(id, []), products: [{ '@id': digest, subcomponents: [{ '@id': 'urn:x' }] }] },
      'subcomponent_not_known',
      'urn:x',
    ],
    [statement(id, [digest], { impact_statement: 'x'.repeat(9_000) }), 'too_long', null],
    [statement(id, [`pkg:oci/${'x'.repeat(3_000)}@${digest}`]), 'too_long', `pkg:oci/${'x'.repeat(3_000)}@${digest}`],
  ]
  const { accepted, ignored, statements } = await stored(openVex(cases.map(([one]) => one)))
  assert.deepEqual([accepted, ignored], [0, cases.length])
  assert.deepEqual(
    statements.map((one: Fields) => [one.outcome, one.decisions, one.ignored]),
    cases.map(([, reason, product]) => ['ignored', 0, [{ reason, product }]]),
  )
  const others: [Fields, string, string | null][] = [
    [{ id, affects: [{ ref: digest }] }, 'no_analysis', null],
    [{ id, analysis: { detail: 'x' }, affects: [{ ref: digest }] }, 'no_analysis', null],
    [{ id, analysis: { state: 'toString' }, affects: [{ ref: digest }] }, 'unknown_status', null],
    [
      { id, analysis: { state: 'not_affected', justification: 'x' }, affects: [{ ref: digest }] },
      'unknown_justification',
      null,
    ],
    [{ id, analysis: { state: 'resolved' } }, 'no_product', null],
    [{ id, analysis: { state: 'resolved' }, affects: [{ ref: 'c1' }] }, 'product_not_known', 'c1'],
    [
      { id, analysis: { state: 'resolved' }, affects: [{ ref: digest, versions: [{ version: '1' }] }] },
      'versions_not_supported',
      digest,
    ],
  ]
  assert.deepEqual(
    (await stored(cycloneDx(others.map(([one]) => one)))).statements.map((one: Fields) => one.ignored),
    others.map(([, reason, product]) => [{ reason, product }]),
  )
  assert.deepEqual(await history(id), [])
})

test('POST /vex 200: a statement may be applied in part', async () => {
  const [digest, id] = [newDigest(), newCve()]
  const { statements } = await stored(openVex([statement(id, [digest, 'urn:x', 'pkg:npm/a@1'])]))
  assert.deepEqual(statements[0], {
    ...{ statement: 0, vulnerability: id, outcome: 'accepted', decisions: 2 },
    ignored: [{ reason: 'product_not_known', product: 'urn:x' }],
  })
})

test('POST /vex 200: a newer version replaces, the same is unchanged, an older or another one is stale', async () => {
  const { digest, id } = await affected(app)
  await refresh(app)
  const other = newCve()
  const document = openVex([statement(id, [digest]), statement(other, [digest])])
  await stored(document)
  assert.deepEqual((await stored(document)).status, 'unchanged')
  assert.deepEqual((await stored({ ...document, author: 'somebody' })).status, 'stale')
  const next = { ...document, version: 3, statements: [statement(id, [digest], { status: 'affected' })] }
  assert.equal((await stored(next)).status, 'stored')
  const stale = await stored({ ...document, version: 2 })
  assert.deepEqual([stale.status, stale.version, stale.storedVersion], ['stale', 2, 3])
  const held = (await history(id)).map((one: Fields) => [one.decision, one.holds, one.endedHow, one.endedWhy])
  assert.deepEqual(held, [
    ['affected', true, null, null],
    ['not_affected', false, 'replaced', 'version 3 of the document'],
  ])
  assert.deepEqual(
    (await history(other)).map((one: Fields) => one.holds),
    [false],
  )
  assert.equal((await listed(app, id)).decidedWorkloads, 0)
  // A document without statements takes all of its own back, and nothing else.
  const own = await decide(app, id)
  await stored({ ...next, version: 4, statements: [] })
  assert.deepEqual((await findingsOf(app, digest))[0].decision, own)
})

test('POST /vex 200: of one version the content with the newest time holds', async () => {
  const [digest, id] = [newDigest(), newCve()]
  const holding = async () => (await history(id)).filter((one: Fields) => one.holds).map((one: Fields) => one.decision)
  const at = (timestamp: string, status: string, fields: Fields = {}) => ({
    ...document,
    ...{ timestamp, statements: [statement(id, [digest], { status })], ...fields },
  })
  const document = openVex([])
  const newest = at('2026-01-02T12:00:00+01:00', 'fixed')
  const moments = [at('2026-01-02T10:00:00Z', 'affected'), newest, at('2026-01-02T10:59:59.999Z', 'affected')]
  await Promise.all(moments.map((one) => stored(one)))
  assert.deepEqual(await holding(), ['fixed'])
  const statuses = async (bodies: readonly Fields[]) => {
    const told: unknown[] = []
    for (const body of bodies) told.push((await stored(body)).status)
    return told
  }
  assert.deepEqual(await statuses([at('2026-01-02T11:00:00Z', 'affected'), newest]), ['stale', 'unchanged'])
  const updated = at('2020-01-01T00:00:00Z', 'affected', { last_updated: '2026-01-02T11:00:00.001Z' })
  assert.deepEqual(await statuses([updated, newest]), ['stored', 'stale'])
  assert.deepEqual(await holding(), ['affected'])
  // The version counts before the time.
  const lower = at('2026-02-01T00:00:00Z', 'fixed', { version: 0 })
  const higher = at('2019-01-01T00:00:00Z', 'under_investigation', { version: 2 })
  assert.deepEqual(await statuses([lower, higher]), ['stale', 'stored'])
  assert.deepEqual(await holding(), ['under_investigation'])
  // A document without a time is as of when it comes.
  const timeless = cycloneDx([])
  const other = { ...timeless, metadata: { component: { type: 'container', name: 'a', 'bom-ref': 'a' } } }
  assert.deepEqual(await statuses([timeless, other, timeless]), ['stored', 'stored', 'stored'])
})

test('POST /vex 200: documents with the same id are kept apart by `document`', async () => {
  const digests = [newDigest(), newDigest()]
  const id = newCve()
  const document = openVex([])
  const about = (n: number, fields: Fields = {}) => ({
    ...document,
    statements: [statement(id, [digests[n]!], fields)],
  })
  const paths = ['pkg/oci/a/scan.openvex.json', 'pkg/oci/b & c/scan.openvex.json']
  const put = (n: number, body: Fields) => stored(body, `?document=${encodeURIComponent(paths[n]!)}`)
  assert.deepEqual([(await put(0, about(0))).document, (await put(1, about(1))).document], paths)
  assert.deepEqual((await put(1, about(1))).status, 'unchanged')
  assert.deepEqual((await stored(about(0))).document, document['@id'])
  const origins = async () =>
    (await history(id)).filter((one: Fields) => one.holds).map((one: Json) => one.origin.document)
  assert.deepEqual((await origins()).toSorted(), [document['@id'], ...paths].toSorted())
  // The next version has another id.
  const next = { ...about(0, { status: 'fixed' }), '@id': 'urn:next', timestamp: '2026-02-01T00:00:00Z' }
  assert.equal((await put(0, next)).status, 'stored')
  assert.deepEqual((await origins()).toSorted(), [document['@id'], ...paths].toSorted())
  assert.equal((await stored(next, '?document=%20')).document, 'urn:next')
})

test('POST /vex 400: an id of a document that is too long or cannot be stored, and a parameter that is not known', async () => {
  for (const [query, says] of [
    [`document=${'x'.repeat(513)}`, 'document: expected at most 512 characters'],
    ['document=a%00', 'document: U+0000 is not allowed'],
    ['doc=a', 'doc: not known here: the parameters of this route are document'],
  ] as const) {
    const answer = await post(openVex([]), SUPPLYCHAIN, `?${query}`)
    assert.equal(answer.status, 400)
    assert.ok(answer.text.includes(says), answer.text)
  }
  assert.equal((await stored(openVex([]), `?document=${'x'.repeat(512)}`)).status, 'stored')
})

test('POST /vex 200: what was put and what a document says stand side by side; the newest is shown', async () => {
  const { digest, id } = await affected(app)
  const scope = { type: 'image', digest }
  const document = openVex([statement(id, [digest], { timestamp: '2020-01-01T00:00:00Z' })])
  const made = await decide(app, id, { scope })
  await stored(document)
  assert.deepEqual((await findingsOf(app, digest))[0].decision, made)
  await decide(app, id, { scope, decision: null })
  assert.equal((await findingsOf(app, digest))[0].decision.decidedAt, '2020-01-01T00:00:00')
  // A time that has not come is now.
  const later = openVex([statement(id, [digest], { timestamp: '2999-01-01T00:00:00Z' })])
  await stored(later)
  const put = await decide(app, id, { scope })
  assert.deepEqual((await findingsOf(app, digest))[0].decision, put)
})

test('POST /vex 200: aliases of the document find the CVE', async () => {
  const { digest, id } = await affected(app)
  const one = statement('GHSA-zzzz-zzzz-0001', [digest])
  await stored(openVex([{ ...one, vulnerability: { name: 'GHSA-zzzz-zzzz-0001', aliases: [id, 'not an id'] } }]))
  assert.equal((await findingsOf(app, digest))[0].decided, true)
})

test('POST /vex 200: a statement holds for findings under each of its ids', async () => {
  for (const [name, other] of [
    ['GHSA-zzzz-zzzz-0002', 'CVE-2031-2'],
    ['CVE-2031-3', 'GHSA-zzzz-zzzz-0003'],
  ] as const) {
    const { digest } = await affected(app)
    await storeFindings(app, digest, 'registry', [finding(name), finding(other)])
    await refresh(app)
    const shown = async () => {
      const found = await findingsOf(app, digest)
      const counts = await Promise.all([name, other].map((id) => listed(app, id)))
      return [...found.map(({ decided }: Fields) => decided), ...counts.map((one) => one.decidedWorkloads)]
    }
    const one = { ...statement(name, [digest]), vulnerability: { name, aliases: [other] } }
    const document = openVex([one])
    await stored(document)
    assert.deepEqual(await shown(), [true, true, 1, 1])
    for (const id of [name, other]) assert.equal((await history(id)).length, 1)
    await stored({ ...document, version: 2, statements: [] })
    assert.deepEqual(await shown(), [false, false, 0, 0])
    const references = [{ id: other, source: { name: 'x' } }]
    const sent = { id: name, references, analysis: { state: 'resolved' }, affects: [{ ref: digest }] }
    await stored(cycloneDx([sent]))
    assert.deepEqual(await shown(), [true, true, 1, 1])
  }
})

test('POST /vex 200: what one document says holds, and is counted, for findings under the alias that another has', async () => {
  const [name, alias] = [newCve(), `GHSA-zzzz-${newCve()}`]
  const { digest } = await affected(app)
  await storeFindings(app, digest, 'registry', [finding(alias)])
  await refresh(app)
  await stored(openVex([{ ...statement(name, [newDigest()]), vulnerability: { name, aliases: [alias] } }]))
  const shown = async () => [(await findingsOf(app, digest))[0].decided, (await listed(app, alias)).decidedWorkloads]
  assert.deepEqual(await shown(), [false, 0])
  const document = openVex([statement(name, [digest])])
  await stored(document)
  assert.deepEqual(await shown(), [true, 1])
  await stored({ ...document, version: 2, statements: [] })
  assert.deepEqual(await shown(), [false, 0])
})

test('POST /vex 200: an alias that statements about two vulnerabilities have is neither', async () => {
  const [one, other, advisory] = [newCve(), newCve(), `DSA-${newCve()}`]
  const { digest } = await affected(app)
  await storeFindings(app, digest, 'registry', [finding(advisory)])
  const of = (name: string, fields: Fields) => ({
    ...statement(name, [digest], fields),
    vulnerability: { name, aliases: [advisory] },
  })
  await stored(openVex([of(one, {}), of(other, { status: 'affected' })]))
  assert.equal((await findingsOf(app, digest))[0].decided, false)
})

test('POST /vex 200: the architecture of a product is one platform of an index', async () => {
  const { digest: amd64, id, namespace } = await affected(app)
  const [arm64, index] = [newDigest(), newDigest()]
  for (const digest of [arm64, index]) {
    const pod = replica(namespace, [container('app', digest)], { workload_name: `w-${digest.slice(7, 15)}` })
    assert.equal((await app.post('/pod/spec', pod, { token: TOKENS.BROKER_TOKEN_INGEST })).status, 200)
  }
  await storeFindings(app, index, 'db-matcher', [finding(id)], {
    platform_manifests: { 'linux/amd64': amd64, 'linux/arm64/v8': arm64 },
  })
  await refresh(app)
  const shown = async () => {
    const found = await Promise.all([amd64, arm64, index].map((digest) => findingsOf(app, digest)))
    const exported = await Promise.all(
      [amd64, arm64, index].map(async (digest) => (await app.get(`/images/${digest}/vex`, { token: READ })).text),
    )
    return [
      ...found.map(([one]) => one.decided),
      ...exported.map((text) => text.includes(id)),
      (await listed(app, id)).decidedWorkloads,
    ]
  }
  const document = openVex([statement(id, [`${oci(index)}&arch=AMD64`])])
  await stored(document)
  assert.deepEqual((await history(id))[0].scope, { type: 'image', digest: index, arch: 'amd64' })
  assert.deepEqual(await shown(), [true, false, false, true, false, false, 1])
  const of = (product: string, version: number) =>
    stored({ ...document, version, statements: [statement(id, [product])] })
  await of(`${oci(index)}&arch=arm64`, 2)
  assert.deepEqual(await shown(), [false, true, false, false, true, false, 1])
  await of(`${oci(index)}&arch=s390x`, 3)
  assert.deepEqual(await shown(), [false, false, false, false, false, false, 0])
  // The digest of a platform says it already.
  await of(`${oci(amd64)}&arch=x86_64`, 4)
  assert.deepEqual(await shown(), [true, false, false, true, false, false, 1])
  await of(oci(index), 5)
  assert.deepEqual(await shown(), [true, true, true, true, true, true, 3])
})

test('POST /vex 200: the architecture of a product is that of a platform whose own report lists the platforms', async () => {
  const { digest: amd64, id } = await affected(app)
  const [arm64, index] = [newDigest(), newDigest()]
  await storeFindings(app, amd64, 'db-matcher', [finding(id)], {
    ...{ digest_kind: 'manifest', index_digest: index },
    platform_manifests: { 'linux/amd64': amd64, 'linux/arm64': arm64 },
  })
  await refresh(app)
  const shown = async () => [(await findingsOf(app, amd64))[0].decided, (await listed(app, id)).decidedWorkloads]
  const document = openVex([statement(id, [`${oci(index)}&arch=amd64`])])
  await stored(document)
  assert.deepEqual(await shown(), [true, 1])
  await stored({ ...document, version: 2, statements: [statement(id, [`${oci(index)}&arch=arm64`])] })
  assert.deepEqual(await shown(), [false, 0])
})

test('POST /vex 200: of two versions at once the newer holds', async () => {
  const [digest, id] = [newDigest(), newCve()]
  const document = openVex([statement(id, [digest])])
  const versions = [4, 2, 5, 1, 3]
  await Promise.all(versions.map((version) => stored({ ...document, version })))
  const holding = (await history(id)).filter((one: Fields) => one.holds)
  assert.deepEqual(
    holding.map((one: { origin: Fields }) => one.origin.version),
    [5],
  )
})

test(`POST /vex 200: ${MAX_DOCUMENT_DECISIONS} decisions of a document are stored, and the rest is said`, async () => {
  const parts = Array.from({ length: MAX_PRODUCTS }, (_, n) => ({ '@id': `p${n}` }))
  const made = Array.from({ length: 6 }, (_, n) => ({
    ...statement(`BIG-${n}`, []),
    products: [{ '@id': digestOfOther, subcomponents: parts }],
  }))
  const document = openVex(made)
  const { statements } = await stored(document)
  assert.deepEqual(
    statements.map((one: Fields) => [one.decisions, one.outcome, one.ignored]),
    [...Array(5).fill([MAX_PRODUCTS, 'accepted', []]), [0, 'ignored', [{ reason: 'too_many', product: null }]]],
  )
  await stored({ ...document, version: 2, statements: [] })
})

for (const [what, body, says] of [
  ['neither format', { statements: [] }, 'expected OpenVEX (@context) or CycloneDX (bomFormat)'],
  ['another version of OpenVEX', { ...openVex([]), '@context': 'https://openvex.dev/ns' }, '@context: '],
  ['no id', { ...openVex([]), '@id': undefined }, '@id: '],
  ['no author', { ...openVex([]), author: '' }, 'author: '],
  ['a version that is no number', { ...openVex([]), version: '1' }, 'version: '],
  [
    'a time without a zone',
    { ...openVex([]), timestamp: '2026-01-01T00:00:00' },
    'timestamp: expected RFC 3339 with a zone',
  ],
  ['a statement that is none', openVex([7 as never]), 'statements[0]: '],
  [
    'a product that is text',
    openVex([{ ...statement('CVE-1', []), products: ['pkg:npm/a'] }]),
    'statements[0].products[0]: ',
  ],
  ['too many statements', openVex(Array(MAX_STATEMENTS + 1).fill(0)), 'statements: Too big'],
  [
    'too many products',
    openVex([{ ...statement('CVE-1', []), products: Array(MAX_PRODUCTS + 1).fill({}) }]),
    'statements[0].products: Too big',
  ],
  ['an old CycloneDX', { ...cycloneDx([]), specVersion: '1.3' }, 'specVersion: expected 1.4 or later'],
  ['no serial number', { ...cycloneDx([]), serialNumber: undefined }, 'serialNumber: '],
  [
    'a reference that is no text',
    cycloneDx([{ id: 'CVE-1', affects: [{ ref: 1 }] }]),
    'vulnerabilities[0].affects[0].ref: ',
  ],
  ['U+0000', openVex([statement('CVE-1', ['a\u0000'])]), 'statements[0].products[0].@id: U+0000 is not allowed'],
  ['a list', [], ''],
] as const)
  test(`POST /vex 400: ${what}`, async () => {
    const answer = await post(body)
    assert.equal(answer.status, 400)
    assert.ok(answer.text.startsWith(`Json deserialize error: ${says}`), answer.text)
  })

test('POST /vex 401: without a token', async () => assertUnauthorized(await app.post('/vex', openVex([]))))

test('POST /vex 403: agents may not decide', async () =>
  assertForbidden(await post(openVex([]), TOKENS.BROKER_TOKEN_INGEST), 'supplychain'))

test('POST /vex 413: a document of more than 1 MiB', async () => {
  assert.equal((await post(openVex([statement('CVE-1', ['x'.repeat(MAX_VEX_BYTES)])]))).status, 413)
})

test('POST /vex 503: a cancelled statement', async () => {
  await whileRefused(app.sql, 'vex_document', async () => assertDatabaseBusy(await post(openVex([]))))
})

test(`POST /vex 409: more than ${MAX_HOLDING} decisions, or ${MAX_DOCUMENTS} documents`, async () => {
  await app.sql`truncate vuln_decision, vex_document, vex_statement`
  await app.sql`
    insert into vuln_decision (vuln_id, name, scope_rank, decision, decided_by, reason, decided_at)
    select 'FULL-' || n, 'FULL-' || n, 3, 'accepted', 'a', 'b', now() from generate_series(1, ${MAX_HOLDING - 1}::int) n`
  const document = openVex([statement('CVE-1', ['pkg:npm/a@1', 'pkg:npm/b@1'])])
  assert.equal((await post(document)).status, 409)
  assert.deepEqual(await history('CVE-1'), [])
  await stored({ ...document, statements: [statement('CVE-1', ['pkg:npm/a@1'])] })
  await app.sql`truncate vuln_decision, vex_document, vex_statement`
  await app.sql`
    insert into vex_document select 'd-' || n, 'openvex', 1, 'a', now(), 'h', now() from generate_series(1, ${MAX_DOCUMENTS}::int) n`
  const answer = await post(document)
  assert.deepEqual([answer.status, answer.text], [409, `${MAX_DOCUMENTS} VEX documents are known already`])
  await app.sql`truncate vuln_decision, vex_document, vex_statement`
})
