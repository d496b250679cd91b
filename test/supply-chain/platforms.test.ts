/** The reports that answer for an image: of several platforms, under its own digest, and retired guesses by tag. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { MAX_PLATFORM_REPORTS } from '../../lib/supply-chain/reports.ts'
import { startApp } from '../support/app.ts'
import { container, newDigest, newNamespace, replica } from '../support/images.ts'
import { component, finding, storeFindings, storeSbom } from '../support/supply-chain.ts'

const app = await startApp()
const products = await startApp({ WIRE_NAMES: 'kguardian' }, app)

type Report = { source: string; reportDigest: string; join: string }
type Item = { id: string; severity: string; reportDigests: string[] }

let made = 0
const newCve = () => `CVE-2032-${10_000 + made++}`

async function read(path: string, target = app) {
  const answer = await target.get(path)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const findings = (digest: string, query = '') => read(`/images/${digest}/vulnerabilities${query}`)
const reportsOf = (found: { reports: Report[] }) => found.reports.map((r) => [r.source, r.reportDigest, r.join])
const idsOf = (found: { items: Item[] }) => found.items.map((item) => item.id)

/** A digest that a Deployment runs, with its repository and tag. */
async function running(target = app) {
  const [digest, namespace] = [newDigest(), newNamespace()]
  const repository = `registry.test/team/${namespace}`
  const answer = await target.post(
    '/pod/spec',
    replica(namespace, [container('app', digest, { repository, image: `${repository}:v1` })]),
  )
  assert.equal(answer.status, 200, answer.text)
  const seen = { namespace, kind: 'ReplicaSet', name: 'web-5d4f', container: 'app' }
  return { digest, guess: { normal_repository: repository, tag: 'v1', observed_in: [seen] }, repository }
}

/** Two manifests of a running index, in digest order. */
async function index() {
  const { digest } = await running()
  const [one, other] = [newDigest(), newDigest()].sort()
  return { digest, one: one!, other: other!, of: { index_digest: digest } }
}

// ---- Several platforms

test('a clean scan of a platform that does not run does not hide the findings of another platform of the same index', async () => {
  const { digest, one, other, of } = await index()
  const [worst, both] = [newCve(), newCve()]
  await storeFindings(
    app,
    one,
    'operator-scanner',
    [finding(worst, { severity: 0 }), finding(both, { severity: 3 })],
    of,
  )
  await storeFindings(app, other, 'operator-scanner', [finding(both, { severity: 2, fixed_versions: ['2'] })], of)
  const clean = newDigest()
  await storeFindings(app, clean, 'operator-scanner', [], of)
  const found = await findings(digest)
  assert.deepEqual(
    reportsOf(found),
    [one, other, clean].sort().map((manifest) => ['operator-scanner', manifest, 'platform_manifest']),
  )
  assert.deepEqual(
    found.items.map((item: Item) => [item.id, item.severity, item.reportDigests]),
    [
      [worst, 'CRITICAL', [one]],
      [both, 'MEDIUM', [one, other]],
    ],
  )
  assert.deepEqual(idsOf(await findings(digest, '?fixable=true')), [both])
  assert.deepEqual(idsOf(await findings(digest, '?severity=LOW')), [])
})

test('of reports of two indexes that list the running manifest only the newest scan answers', async () => {
  const { digest } = await running()
  const [old, young] = [newDigest(), newDigest()]
  const of = { platform_manifests: { 'linux/amd64': digest, 'linux/arm64': newDigest() } }
  await storeFindings(app, old, 'operator-scanner', [finding(newCve())], of)
  await storeFindings(app, young, 'operator-scanner', [], of)
  assert.deepEqual(reportsOf(await findings(digest)), [['operator-scanner', young, 'platform_manifest']])
})

test('the report of the image id replaces those of its platforms, within its own source', async () => {
  const { digest, one, other, of } = await index()
  for (const source of ['operator-scanner', 'db-matcher'])
    for (const manifest of [one, other]) await storeFindings(app, manifest, source, [finding(newCve())], of)
  await storeFindings(app, digest, 'operator-scanner', [], { scanned_at: '2020-01-01T00:00:00' })
  assert.deepEqual(reportsOf(await findings(digest)), [
    ['db-matcher', one, 'platform_manifest'],
    ['db-matcher', other, 'platform_manifest'],
    ['operator-scanner', digest, 'image_id'],
  ])
})

test('at most 64 platforms of a source are read, those with the newest scans', async () => {
  const { digest, of } = await index()
  const manifests = Array.from({ length: 66 }, newDigest)
  for (const manifest of manifests)
    await storeFindings(app, manifest, 'registry', [finding('CVE-2032-1', { severity: 0 })], of)
  const found = await findings(digest)
  const last = manifests.slice(2).sort()
  assert.deepEqual(
    found.reports.map((r: Report) => r.reportDigest),
    last,
  )
  assert.deepEqual(found.items[0].reportDigests, last)
})

test('an exposure covers every platform of a running index', async () => {
  const { digest, one, other, of } = await index()
  const [hidden, both] = [newCve(), newCve()]
  await storeFindings(app, one, 'operator-scanner', [finding(hidden, { severity: 0 }), finding(both)], of)
  await storeFindings(app, other, 'operator-scanner', [finding(both, { fixed_versions: ['9'] })], of)
  const images = async (id: string) =>
    (await read(`/vulnerabilities/${id}/exposure`)).images.map(
      (i: { digest: string; reportDigests: string[]; severity: string }) => [i.digest, i.reportDigests, i.severity],
    )
  assert.deepEqual(await images(hidden), [[digest, [one], 'CRITICAL']])
  assert.deepEqual(await images(both), [[digest, [one, other], 'HIGH']])
})

test('every SBOM of a platform is listed, and report_digest selects the one to read', async () => {
  const { digest, one, other, of } = await index()
  await storeSbom(app, other, 'operator-scanner', [component('other')], of)
  await storeSbom(app, one, 'operator-scanner', [component('one')], of)
  await storeSbom(app, one, 'registry', [component('found')], of)
  const sbom = async (query = '') => {
    const { reports, report, items } = await read(`/images/${digest}/sbom${query}`)
    assert.deepEqual(
      reports.map((r: Report) => [r.source, r.reportDigest]),
      [
        ['operator-scanner', one],
        ['operator-scanner', other],
        ['registry', one],
      ],
    )
    return [report?.source ?? null, report?.reportDigest ?? null, items.map((item: { name: string }) => item.name)]
  }
  const document = async (query = '') => {
    const { metadata, components } = await read(`/images/${digest}/sbom/cyclonedx${query}`)
    const chosen = Object.fromEntries(
      metadata.properties.map((p: { name: string; value: string }) => [p.name.slice(10), p.value]),
    )
    return [chosen.source, chosen.reportDigest, components.map((c: { name: string }) => c.name)]
  }
  for (const [query, expected] of [
    ['', ['operator-scanner', one, ['one']]],
    [`?report_digest=${one}`, ['operator-scanner', one, ['one']]],
    [`?report_digest=${other}`, ['operator-scanner', other, ['other']]],
    [`?source=registry&report_digest=${one}`, ['registry', one, ['found']]],
    ['?report_digest=', ['operator-scanner', one, ['one']]],
  ] as const) {
    assert.deepEqual(await sbom(query), expected, query)
    assert.deepEqual(await document(query), expected, query)
  }
})

test('the chosen SBOM stays the same when another platform is scanned later', async () => {
  const { digest, one, other, of } = await index()
  await storeSbom(app, one, 'operator-scanner', [component('one')], of)
  await storeSbom(app, other, 'operator-scanner', [component('other')], of)
  assert.equal((await read(`/images/${digest}/sbom`)).report.reportDigest, one)
})

test('an SBOM without its index belongs to a platform when the report that was matched from it names the index', async () => {
  const { digest, one, other, of } = await index()
  for (const manifest of [one, other]) {
    await storeSbom(app, manifest, 'operator-scanner', [component(manifest)])
    await storeFindings(app, manifest, 'db-matcher', [], { ...of, sbom_sources: ['operator-scanner'] })
  }
  const { reports } = await read(`/images/${digest}/sbom`)
  assert.deepEqual(
    reports.map((r: Report) => [r.reportDigest, r.join]),
    [
      [one, 'platform_manifest'],
      [other, 'platform_manifest'],
    ],
  )
})

for (const path of ['sbom', 'sbom/cyclonedx']) {
  test(`${path} answers 404 for a report_digest without an SBOM of the image or source`, async () => {
    const { digest, one, of } = await index()
    await storeSbom(app, one, 'operator-scanner', [component('one')], of)
    for (const query of [`report_digest=${newDigest()}`, `report_digest=${one}&source=registry`]) {
      const answer = await app.get(`/images/${digest}/${path}?${query}`)
      assert.equal(answer.status, 404, query)
      assert.match(answer.text, /^No SBOM /)
    }
  })

  test(`${path} answers 400 for a report_digest that is no digest`, async () => {
    const answer = await app.get(`/images/${newDigest()}/${path}?report_digest=latest`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, /^Query deserialize error: report_digest: expected sha256: and 64 /)
  })
}

// ---- The own digest, and guesses

/** The state before the next pass: only the guess is linked. */
async function withGuessAlone(guessed: string, digest: string) {
  await app.sql`delete from image_link where image_digest = ${digest}`
  await app.sql`insert into image_link values (${guessed}, 'operator-scanner', ${digest}, 3, now())`
}

test('a report under the digest itself replaces a guess by tag, also before the next pass', async () => {
  const { digest, guess } = await running()
  const guessed = newDigest()
  const [wrong, own] = [newCve(), newCve()]
  await storeFindings(app, guessed, 'operator-scanner', [finding(wrong)], guess)
  assert.deepEqual(reportsOf(await findings(digest)), [['operator-scanner', guessed, 'workload_tag']])
  await storeFindings(app, digest, 'operator-scanner', [finding(own)], { scanned_at: '2020-01-01T00:00:00' })
  await withGuessAlone(guessed, digest)
  const found = await findings(digest)
  assert.deepEqual([reportsOf(found), idsOf(found)], [[['operator-scanner', digest, 'image_id']], [own]])
  assert.equal((await read(`/vulnerabilities/${own}/exposure`)).images[0].join, 'image_id')
  assert.equal((await app.get(`/vulnerabilities/${wrong}/exposure`)).status, 404)
})

test('a guess is not made for an image with a stored report of its digest that is not linked yet', async () => {
  const { digest, guess } = await running()
  await storeFindings(app, digest, 'operator-scanner', [finding(newCve())])
  await app.sql`delete from image_link where image_digest = ${digest}`
  await storeFindings(app, newDigest(), 'operator-scanner', [finding(newCve())], guess)
  assert.deepEqual([...(await app.sql`select 1 from image_link where image_digest = ${digest}`)], [])
  assert.deepEqual(reportsOf(await findings(digest)), [['operator-scanner', digest, 'image_id']])
})

test('a guess of one source does not answer beside a report of another under the digest, also before the next pass', async () => {
  const { digest, guess } = await running()
  const guessed = newDigest()
  await storeFindings(app, guessed, 'operator-scanner', [finding(newCve())], guess)
  await storeSbom(app, digest, 'registry', [component('a')])
  await withGuessAlone(guessed, digest)
  const found = await findings(digest)
  assert.deepEqual(reportsOf(found), [])
  assert.deepEqual(found.retiredGuesses.length, 1)
})

test('guesses that a registry SBOM of the digest retired are named: source, report, repository and tag', async () => {
  const { digest, guess, repository } = await running()
  const [old, guessed] = [newDigest(), newDigest()]
  await storeFindings(app, old, 'operator-scanner', [finding(newCve())], guess)
  await storeFindings(app, guessed, 'operator-scanner', [finding(newCve())], guess)
  const before = await findings(digest)
  assert.deepEqual([reportsOf(before), before.retiredGuesses], [[['operator-scanner', guessed, 'workload_tag']], []])

  await storeSbom(app, digest, 'registry', [component('a')])
  const retired = [{ source: 'operator-scanner', reportDigest: guessed, repository, tag: 'v1' }]
  const after = await findings(digest)
  assert.deepEqual([after.reports, after.items, after.retiredGuesses], [[], [], retired])
  assert.deepEqual((await findings(digest, '?source=trivy-operator')).retiredGuesses, retired)
  assert.deepEqual((await findings(digest, '?source=registry')).retiredGuesses, [])
  assert.deepEqual((await read(`/images/${digest}/sbom`)).retiredGuesses, [], 'of an SBOM there was no guess')

  await storeFindings(app, digest, 'db-matcher', [finding(newCve())])
  assert.deepEqual((await findings(digest)).retiredGuesses, retired, 'the other source has a report now')
  await storeFindings(app, digest, 'operator-scanner', [])
  assert.deepEqual((await findings(digest)).retiredGuesses, [], 'its own source answers')
})

test('a retired SBOM is named in SBOM answers, with product names if configured', async () => {
  const { digest, guess, repository } = await running(products)
  const guessed = newDigest()
  await storeSbom(products, guessed, 'operator-scanner', [component('a')], guess)
  await storeFindings(products, digest, 'db-matcher', [])
  const { reports, retiredGuesses } = await read(`/images/${digest}/sbom`, products)
  const retired = { source: 'trivy-operator', reportDigest: guessed, repository, tag: 'v1' }
  assert.deepEqual([reports, retiredGuesses], [[], [retired]])
})

test('a guess that would not answer is not named: of another workload, repository or tag, or of a digest that runs elsewhere', async () => {
  const { digest, guess } = await running()
  const [seen] = guess.observed_in
  const elsewhere = await running()
  for (const [of, fields] of [
    [newDigest(), { observed_in: [{ ...seen, container: 'other' }] }],
    [newDigest(), { normal_repository: 'registry.test/other' }],
    [newDigest(), { tag: 'v2' }],
    [elsewhere.digest, {}],
  ] as const)
    await storeFindings(app, of, 'operator-scanner', [], { ...guess, ...fields })
  await storeSbom(app, digest, 'registry', [component('a')])
  assert.deepEqual((await findings(digest)).retiredGuesses, [])
})

test('a guess by the current tag of a container is retired too, when the image has more tags than are stored', async () => {
  const { digest, guess, repository } = await running()
  const { namespace } = guess.observed_in[0]!
  await app.sql`update image set tags = array(select 'v' || n from generate_series(1, 32) n) where digest = ${digest}`
  const containers = [container('app', digest, { repository, image: `${repository}:v33` })]
  const answer = await app.post(
    '/pod/spec',
    replica(namespace, containers, { pod_name: 'web-33', workload_name: 'web-33' }),
  )
  assert.equal(answer.status, 200, answer.text)
  const [image] =
    await app.sql`select 'v33' = any (tags) as has_33rd, cardinality(tags) as tags from image where digest = ${digest}`
  assert.deepEqual({ ...image }, { has_33rd: false, tags: 32 })
  const guessed = newDigest()
  await storeFindings(app, guessed, 'operator-scanner', [finding(newCve())], {
    ...{
      normal_repository: repository,
      tag: 'v33',
      observed_in: [{ namespace, kind: 'Deployment', name: 'web-33', container: 'app' }],
    },
  })
  assert.deepEqual(reportsOf(await findings(digest)), [['operator-scanner', guessed, 'workload_tag']])
  await storeSbom(app, digest, 'registry', [component('a')])
  const retired = [{ source: 'operator-scanner', reportDigest: guessed, repository, tag: 'v33' }]
  const after = await findings(digest)
  assert.deepEqual([after.reports, after.retiredGuesses], [[], retired])
})

test('the schema allows as many platforms of a source as are read', async () => {
  const [row] = await app.sql`select max_platform_reports() as reports`
  assert.equal(row!.reports, MAX_PLATFORM_REPORTS)
})
