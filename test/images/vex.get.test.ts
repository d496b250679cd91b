import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { startApp, TOKENS } from '../support/app.ts'
import { affected, decide, newCve, READ, SUPPLYCHAIN, workload } from '../support/decisions.ts'
import { depth } from '../support/depth.ts'
import { newDigest } from '../support/images.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from '../support/routes.ts'
import { cycloneDx, openVex, statement } from '../support/vex.ts'

const app = await startApp({ ...TOKENS, BROKER_READ_ACQUIRE_WAIT_MS: '0', BROKER_READ_MEMORY_BUDGET_MB: '4' })
const roomy = await startApp(TOKENS, app)

type App = typeof app
// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
type Json = any
type Format = 'openvex' | 'cyclonedx'

const path = (digest: string, format?: Format) => `/images/${digest}/vex${format ? `?format=${format}` : ''}`
async function read(digest: string, format: Format, on: App = app): Promise<Json> {
  const answer = await on.get(path(digest, format), { token: READ })
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
async function post(document: object, on: App = app) {
  const answer = await on.post('/vex', document, { token: SUPPLYCHAIN })
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}

test('GET /images/{digest}/vex 200: OpenVEX of decisions that were put, each word, and the headers', async () => {
  const { digest, id } = await affected(app, { package_purl: 'pkg:deb/debian/openssl@3.0.1' })
  const scope = { type: 'image', digest }
  await decide(app, id, {
    scope,
    decision: 'not_affected',
    justification: 'vulnerable_code_not_present',
    until: '2099-12-31',
  })
  const repository = { type: 'repository', repository: 'registry.test/team/app' }
  await decide(app, id, { scope: repository })
  await decide(app, id, { scope, package: 'pkg:deb/debian/openssl', decision: 'will_not_fix' })
  await decide(app, id, { scope, package: 'openssl', decision: 'fixed' })
  const answer = await app.get(path(digest), { token: READ })
  assert.match(answer.headers.get('content-type')!, /^application\/json/)
  assert.equal(
    answer.headers.get('content-disposition'),
    `attachment; filename="${digest.replace(':', '_')}.openvex.json"`,
  )
  const { '@id': iri, timestamp, statements, ...head } = answer.json
  assert.deepEqual(head, { '@context': 'https://openvex.dev/ns/v0.2.0', author: head.author, version: 1 })
  assert.match(iri, new RegExp(`^https://[^/]+/vex/images/${digest}/[0-9a-f]{64}$`))
  assert.match(timestamp, /Z$/)
  const product = `pkg:oci/app@${digest.replace(':', '%3A')}?repository_url=registry.test/team/app`
  const notes = 'Decided by team-a.'
  assert.deepEqual(
    statements.map(({ timestamp: _, ...one }: Json) => one),
    [
      {
        vulnerability: { name: id },
        ...{ status: 'not_affected', justification: 'vulnerable_code_not_present' },
        ...{ impact_statement: 'the port is closed', status_notes: `${notes} Holds until the end of 2099-12-31, UTC.` },
        products: [{ '@id': product }],
      },
      {
        vulnerability: { name: id },
        ...{ status: 'affected', action_statement: 'Risk accepted: the port is closed', status_notes: notes },
        products: [{ '@id': product }],
      },
      {
        vulnerability: { name: id },
        ...{ status: 'affected', action_statement: 'Will not be fixed: the port is closed', status_notes: notes },
        products: [{ '@id': product, subcomponents: [{ '@id': 'pkg:deb/debian/openssl' }] }],
      },
      {
        vulnerability: { name: id },
        ...{ status: 'fixed', status_notes: `${notes} the port is closed` },
        products: [{ '@id': product, subcomponents: [{ '@id': 'openssl' }] }],
      },
    ],
  )
  // Other images of these tests have the repository, too.
  await decide(app, id, { scope: repository, decision: null })
})

test('GET /images/{digest}/vex 200: CycloneDX of decisions that were put', async () => {
  const { digest, id } = await affected(app)
  const scope = { type: 'image', digest }
  const justification = 'vulnerable_code_cannot_be_controlled_by_adversary'
  await decide(app, id, { scope })
  await decide(app, id, { scope, package: 'openssl', decision: 'not_affected', justification })
  const answer = await app.get(path(digest, 'cyclonedx'), { token: READ })
  assert.equal(answer.headers.get('content-type'), 'application/vnd.cyclonedx+json')
  const { bomFormat, specVersion, serialNumber, components, vulnerabilities } = answer.json
  assert.deepEqual([bomFormat, specVersion], ['CycloneDX', '1.6'])
  assert.match(serialNumber, /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.deepEqual(components, [{ 'bom-ref': 'openssl', type: 'library', name: 'openssl' }])
  assert.deepEqual(
    vulnerabilities.map(({ analysis: { firstIssued: _, lastUpdated: _1, ...analysis }, ...one }: Json) => ({
      ...one,
      analysis,
    })),
    [
      {
        ...{ id, affects: [{ ref: digest }] },
        analysis: {
          ...{ state: 'exploitable', response: ['will_not_fix'] },
          detail: 'Risk accepted: the port is closed Decided by team-a.',
        },
      },
      {
        ...{ id, affects: [{ ref: 'openssl' }] },
        analysis: { state: 'not_affected', detail: `${justification}: the port is closed Decided by team-a.` },
      },
    ],
  )
})

test('GET /images/{digest}/vex 200: the same decisions give the same document, others another id', async () => {
  const { digest, id } = await affected(app)
  await decide(app, id, { scope: { type: 'image', digest } })
  const [one, same] = [await read(digest, 'openvex'), await read(digest, 'openvex')]
  assert.deepEqual(one, same)
  await decide(app, id, { scope: { type: 'image', digest }, why: 'another' })
  assert.notEqual((await read(digest, 'openvex'))['@id'], one['@id'])
})

test('GET /images/{digest}/vex 200: a decision for the cluster counts where a finding of the image has it', async () => {
  const { digest, id } = await affected(app)
  const other = newCve()
  await decide(app, id, { scope: { type: 'image', digest } })
  await decide(app, other)
  await decide(app, id, { package: 'curl' })
  await decide(app, id, { package: 'openssl' })
  assert.deepEqual(
    (await read(digest, 'openvex')).statements.map((one: Json) => one.products[0].subcomponents?.[0]['@id'] ?? null),
    [null, 'openssl'],
  )
})

test('GET /images/{digest}/vex 200: a decision for the cluster is left out where one of the image says otherwise', async () => {
  const { digest, id } = await affected(app)
  const words = async () => (await read(digest, 'openvex')).statements.map(({ status }: Json) => status)
  await decide(app, id, { scope: { type: 'image', digest }, package: 'openssl', decision: 'affected' })
  await decide(app, id, { decision: 'not_affected', justification: 'component_not_present' })
  assert.deepEqual(await words(), ['affected'])
  await decide(app, id, { scope: { type: 'image', digest }, package: 'curl', decision: 'under_investigation' })
  await decide(app, id, { scope: { type: 'image', digest }, package: 'openssl', decision: null })
  assert.deepEqual(await words(), ['not_affected', 'under_investigation'])
})

test('GET /images/{digest}/vex 404: no decision, or only for a workload, a namespace, another image, or in the past', async () => {
  const { digest, id, namespace } = await affected(app)
  await decide(app, id, { scope: workload(namespace) })
  await decide(app, id, { scope: { type: 'namespace', namespace } })
  await decide(app, id, { scope: { type: 'image', digest: newDigest() } })
  await decide(app, id, { scope: { type: 'image', digest }, until: '2099-01-01' })
  await app.sql`update vuln_decision set holds_until = '2020-01-01' where image_digest = ${digest}`
  const answer = await app.get(path(digest), { token: READ })
  assert.deepEqual([answer.status, answer.text], [404, 'No decision holds for this image'])
})

// ---- Round trips ----------------------------------------------------------------------------------------------------

const forget = () => roomy.sql`truncate vuln_decision, vex_document, vex_statement`

/** The statements of an OpenVEX document, one for each product and subcomponent. */
const flatOpenVex = ({ statements, timestamp }: Json): string[] =>
  statements
    .flatMap(({ products, ...content }: Json) =>
      products.flatMap(({ subcomponents, ...product }: Json) =>
        (subcomponents?.length ? subcomponents : [null]).map((part: Json) =>
          sorted({ timestamp, ...content, product, part }),
        ),
      ),
    )
    .sort()

/** Those of a CycloneDX document, with the components in place of references to them. */
const flatCycloneDx = ({ vulnerabilities, components = [], metadata }: Json): string[] => {
  const all = [...components, ...(metadata?.component ? [metadata.component] : [])]
  return vulnerabilities
    .flatMap(({ affects, ...content }: Json) =>
      affects.map(({ ref }: Json) => {
        const { 'bom-ref': _, ...component } = all.find((one: Json) => one['bom-ref'] === ref) ?? { ref }
        return sorted({ ...content, component })
      }),
    )
    .sort()
}

/** JSON with sorted keys, without nulls. */
const sorted = (value: Json): string =>
  JSON.stringify(value, (_, one) =>
    one && typeof one === 'object' && !Array.isArray(one)
      ? Object.fromEntries(
          Object.entries(one)
            .filter(([, member]) => member !== null && member !== undefined)
            .sort(([a], [b]) => (a < b ? -1 : 1)),
        )
      : one,
  )

const words = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
  .filter((text) => !text.includes('\0') && text.isWellFormed())
const maybe = <T>(one: fc.Arbitrary<T>) => fc.option(one, { nil: undefined })
const time = maybe(
  fc.constantFrom('2024-02-29T10:00:00Z', '2025-01-01T00:00:00.123456789+02:00', '2023-12-31t23:59:59z'),
)
const vulnerability = fc.constantFrom('CVE-2030-1', 'CVE-2030-2', 'GHSA-aaaa-bbbb-cccc', 'PYSEC-2030:1')
const part = fc.constantFrom<Json>(
  { '@id': 'pkg:deb/debian/curl@8.0%2B1?arch=amd64' },
  { '@id': 'curl' },
  { identifiers: { purl: 'pkg:npm/%40scope/a@1' }, hashes: { md5: '00' } },
)
const productOf = (digest: string) =>
  fc.constantFrom<Json>(
    { '@id': digest },
    { '@id': `pkg:oci/a@${digest}`, identifiers: { cpe23: 'cpe:2.3:a:b:c:1:*:*:*:*:*:*:*' } },
    { '@id': 'https://example.org/x', hashes: { 'sha-256': digest.slice(7) } },
  )
const status = fc.oneof(
  fc.record({
    status: fc.constant('not_affected'),
    justification: fc.constantFrom(
      ...['component_not_present', 'vulnerable_code_not_present', 'vulnerable_code_not_in_execute_path'],
      ...['vulnerable_code_cannot_be_controlled_by_adversary', 'inline_mitigations_already_exist'],
    ),
    impact_statement: maybe(words),
  }),
  fc.record({ status: fc.constant('not_affected'), impact_statement: words }),
  fc.record({ status: fc.constant('affected'), action_statement: words, action_statement_timestamp: time }),
  fc.record({ status: fc.constantFrom('fixed', 'under_investigation') }),
)
const openVexStatement = (digest: string) =>
  fc
    .tuple(
      status,
      fc.record({
        '@id': maybe(words),
        version: maybe(fc.nat(9)),
        vulnerability: fc.record({
          name: vulnerability,
          description: maybe(words),
          aliases: maybe(fc.array(words, { maxLength: 2 })),
        }),
        timestamp: time,
        last_updated: time,
        supplier: maybe(words),
        status_notes: maybe(words),
        products: fc.uniqueArray(
          fc
            .tuple(productOf(digest), maybe(fc.uniqueArray(part, { maxLength: 3 })))
            .map(([one, subcomponents]) => ({ ...one, ...(subcomponents && { subcomponents }) })),
          { minLength: 1, maxLength: 3, selector: (one) => one['@id'] },
        ),
      }),
    )
    .map(([state, rest]) => JSON.parse(JSON.stringify({ ...rest, ...state })))

test('GET /images/{digest}/vex 200: what comes in as OpenVEX goes out as the same statements', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(openVexStatement('DIGEST'), { minLength: 1, maxLength: 5 }), async (statements) => {
      await forget()
      const digest = newDigest()
      const here = JSON.parse(
        JSON.stringify(statements)
          .replaceAll('"sha-256":""', `"sha-256":"${digest.slice(7)}"`)
          .replaceAll('DIGEST', digest),
      )
      const document = openVex(here)
      const { ignored } = await post(document, roomy)
      assert.equal(ignored, 0)
      const out = await read(digest, 'openvex', roomy)
      assert.deepEqual(flatOpenVex(out), flatOpenVex(document))
      // The way out is a way in: another image of the same statements.
      const again = newDigest()
      const copy = JSON.parse(JSON.stringify(out).replaceAll(digest.slice(7), again.slice(7)))
      assert.equal((await post(copy, roomy)).ignored, 0)
      assert.deepEqual(flatOpenVex(await read(again, 'openvex', roomy)), flatOpenVex(copy))
    }),
    { numRuns: depth(25, 1_000) },
  )
})

const analysis = fc.record({
  state: fc.constantFrom(
    'resolved',
    'resolved_with_pedigree',
    'exploitable',
    'in_triage',
    'false_positive',
    'not_affected',
  ),
  justification: maybe(
    fc.constantFrom(
      ...['code_not_present', 'code_not_reachable', 'requires_configuration', 'requires_dependency'],
      ...['requires_environment', 'protected_by_compiler', 'protected_at_runtime', 'protected_at_perimeter'],
      'protected_by_mitigating_control',
    ),
  ),
  response: maybe(fc.subarray(['can_not_fix', 'will_not_fix', 'update', 'rollback', 'workaround_available'])),
  detail: maybe(words),
  firstIssued: time,
  lastUpdated: time,
})

test('GET /images/{digest}/vex 200: what comes in as CycloneDX goes out as the same statements', async () => {
  const one = fc.record({
    id: vulnerability,
    source: maybe(fc.record({ name: words, url: maybe(words) })),
    references: maybe(fc.array(fc.record({ id: words }), { maxLength: 2 })),
    description: maybe(words),
    recommendation: maybe(words),
    analysis,
    affects: fc.uniqueArray(fc.constantFrom('image', 'c1', 'c2', 'pkg:npm/x@1'), { minLength: 1 }),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(one, { minLength: 1, maxLength: 4 }),
      fc.array(one, { minLength: 1, maxLength: 2 }),
      async (first, second) => {
        await forget()
        const digest = newDigest()
        const of = (some: Json[], curl: string) =>
          cycloneDx(
            JSON.parse(
              JSON.stringify(some.map((each) => ({ ...each, affects: each.affects.map((ref: string) => ({ ref })) }))),
            ),
            {
              metadata: { component: { 'bom-ref': 'image', type: 'container', name: 'app', version: digest } },
              components: [
                { 'bom-ref': 'c1', type: 'library', name: 'curl', version: curl, purl: `pkg:deb/debian/curl@${curl}` },
                { 'bom-ref': 'c2', type: 'library', name: 'zlib' },
              ],
            },
          )
        // Two documents use one reference for different components.
        const documents = [of(first, '8'), of(second, '9')]
        for (const document of documents) assert.equal((await post(document, roomy)).ignored, 0)
        const out = await read(digest, 'cyclonedx', roomy)
        assert.deepEqual(flatCycloneDx(out), documents.flatMap(flatCycloneDx).sort())
        const again = newDigest()
        const copy = JSON.parse(JSON.stringify(out).replaceAll(digest.slice(7), again.slice(7)))
        assert.equal((await post(copy, roomy)).ignored, 0)
        assert.deepEqual(flatCycloneDx(await read(again, 'cyclonedx', roomy)), flatCycloneDx(copy))
      },
    ),
    { numRuns: depth(25, 1_000) },
  )
})

test('GET /images/{digest}/vex 200: each format can be had as the other, with the status', async () => {
  const digest = newDigest()
  const [a, b] = [newCve(), newCve()]
  await post(openVex([statement(a, [digest], { impact_statement: 'no' })]))
  await post(
    cycloneDx([
      { id: b, analysis: { state: 'not_affected', justification: 'code_not_reachable' }, affects: [{ ref: digest }] },
    ]),
  )
  const open = (await read(digest, 'openvex')).statements.map((one: Json) => [
    one.vulnerability.name,
    one.status,
    one.justification,
  ])
  assert.deepEqual(open.sort(), [
    [a, 'not_affected', 'component_not_present'],
    [b, 'not_affected', 'vulnerable_code_not_in_execute_path'],
  ])
  const cyclone = (await read(digest, 'cyclonedx')).vulnerabilities.map((one: Json) => [
    one.id,
    one.analysis.state,
    one.analysis.justification,
  ])
  assert.deepEqual(cyclone.sort(), [
    [a, 'not_affected', 'code_not_present'],
    [b, 'not_affected', 'code_not_reachable'],
  ])
})

for (const query of ['?format=csaf', '?format=', '?source=registry'])
  test(`GET /images/{digest}/vex 400: ${query}`, async () => {
    assert.equal((await app.get(`${path(newDigest())}${query}`, { token: READ })).status, 400)
  })

test('GET /images/{digest}/vex 200: what CycloneDX says without a reason is a valid statement of OpenVEX', async () => {
  const { digest } = await affected(app)
  const [one, other] = [newCve(), newCve()]
  const affects = [{ ref: digest }]
  await post(
    cycloneDx([
      { id: one, analysis: { state: 'not_affected' }, affects },
      { id: other, analysis: { state: 'exploitable' }, affects },
    ]),
  )
  const document = await read(digest, 'openvex')
  assert.deepEqual(
    document.statements.map((each: Json) => [each.impact_statement ?? null, each.action_statement ?? null]),
    [
      ['No reason is given.', null],
      [null, 'No reason is given.'],
    ],
  )
  assert.equal((await post(document)).ignored, 0)
})

test('GET /images/{digest}/vex 400: a digest that is none', async () => {
  assert.equal((await app.get('/images/sha256:1/vex', { token: READ })).status, 400)
})

test('GET /images/{digest}/vex 401: without a token', async () => {
  assertUnauthorized(await app.get(path(newDigest())))
})

test('GET /images/{digest}/vex 503: 32 KiB are charged for each decision', async () => {
  const digest = newDigest()
  await post(openVex([statement(newCve(), [digest]), statement(newCve(), [digest])]))
  const { budget } = app.deps
  const release = await budget.acquire(budget.totalKib - 64 + 1)
  assertShed(await app.get(path(digest), { token: READ }), 64, budget.totalKib)
  release()
})

test('GET /images/{digest}/vex 503: a cancelled statement', async () => {
  await whileRefused(app.sql, 'vuln_decision', async () =>
    assertDatabaseBusy(await app.get(path(newDigest()), { token: READ })),
  )
})
