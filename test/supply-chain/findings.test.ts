/**
 * The merged list of findings against a plain model of the words of the specification: random payloads of up to three sources, read by pages
 * of random length under random filters, with payloads replaced between two pages; and what a page costs on long lists.
 */
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { SOURCES } from '../../lib/supply-chain/names.ts'
import { SEVERITIES } from '../../lib/supply-chain/severity.ts'
import { startApp } from '../support/app.ts'
import { newDigest } from '../support/images.ts'
import { storeFindings } from '../support/supply-chain.ts'

const app = await startApp()

// ---- The alphabet: few of everything, so that findings meet ---------------------------------------------------------------------

const known = <T>(...values: T[]) => fc.option(fc.constantFrom(...values), { freq: 3 })
const some = (...values: string[]) => fc.uniqueArray(fc.constantFrom(...values), { maxLength: 3 })
const scores = { v3_score: fc.constantFrom(1.5, 7.5, 9.75) }

const row = fc.record({
  severity: fc.nat(5),
  vuln: fc.constantFrom('1', '10', '9', 'é', 'Z', 'z'),
  package_name: fc.constantFrom('a', 'ab', 'b', '中', '\u{1f600}', '￿'),
  installed_version: fc.constantFrom('', '1', '1.10', '1.9'),
  package_type: known('deb', 'gem'),
  package_purl: known('pkg:a', 'pkg:"b"'),
  fixed_versions: some('10.1', '9.2', 'é', 'Z', ' '),
  score: known(0, 7.25, 9.5),
  cvss: fc.dictionary(fc.constantFrom('nvd', 'redhat', 'ghsa'), fc.record(scores, { noNullPrototype: true }), {
    maxKeys: 3,
    noNullPrototype: true,
  }),
  title: known('a title', '', 'a "quoted" \\ title'),
  primary_url: known('https://a.test/', 'https://b.test/'),
  target: known('app (debian 12)'),
  class: known('os-pkgs', 'lang-pkgs'),
  published_at: known('2024-01-02T03:04:05', '2024-01-02T03:04:05.120'),
  last_modified_at: known('0001-01-01T00:00:00', '2024-02-03T04:05:06.123456'),
  file_paths: some('usr/lib/a', 'usr/lib/b'),
  kev: known(true, false),
  kev_date_added: known('2023-01-01T00:00:00', '2024-01-01T00:00:00'),
  epss: known(0, 0.25, 0.5),
  epss_percentile: known(0.125, 0.875),
})
type Row = Omit<typeof row extends fc.Arbitrary<infer T> ? T : never, 'vuln'> & { vuln_id: string }

const payload = fc.record({
  rows: fc.uniqueArray(row, { maxLength: 40, selector: (one) => `${one.vuln} ${one.package_name} ${one.installed_version}` }),
  /** Whether it came under the digest that is asked for, or is linked to it. */
  isOwn: fc.boolean(),
})
const payloads = fc.record({ 'db-matcher': payload, 'operator-scanner': payload, registry: payload }, { requiredKeys: [] })

const filters = fc.record({
  severities: fc.option(fc.uniqueArray(fc.nat(5), { minLength: 1 }), { nil: undefined }),
  fixable: fc.option(fc.boolean(), { nil: undefined }),
  source: fc.option(fc.constantFrom(...SOURCES, 'nobody'), { nil: undefined, freq: 3 }),
})
type Filters = typeof filters extends fc.Arbitrary<infer T> ? T : never

// ---- The model -----------------------------------------------------------------------------------------------------------------

interface Payload {
  source: string
  digest: string
  rows: Row[]
}
type Place = [number, string, string, string]

const bytes = (one: string, other: string) => Buffer.compare(Buffer.from(one), Buffer.from(other))
const inOrder = (a: Place, b: Place) => a[0] - b[0] || bytes(a[1], b[1]) || bytes(a[2], b[2]) || bytes(a[3], b[3])
const highest = (values: (number | null)[]) => values.reduce((a, b) => (a === null ? b : b === null ? a : Math.max(a, b)), null)
const lowest = (values: (string | null)[]) => values.filter((one) => one !== null).sort()[0] ?? null
const sorted = (values: string[]) => [...new Set(values)].sort(bytes)

/** The facts of a vulnerability, of all rows that there ever were. */
function factsOf(rows: Row[]) {
  return {
    kev: rows.some((r) => r.kev === true) ? true : rows.some((r) => r.kev === false) ? false : null,
    kevDateAdded: lowest(rows.map((r) => r.kev_date_added)),
    epss: highest(rows.map((r) => r.epss)),
    epssPercentile: highest(rows.map((r) => r.epss_percentile)),
  }
}

function merged(all: Payload[], told: Row[], { severities, fixable, source }: Filters) {
  const groups = new Map<string, (Row & { source: string; digest: string })[]>()
  for (const { source: from, digest, rows } of [...all].sort((a, b) => bytes(a.source, b.source)))
    for (const one of source === undefined || source === from ? rows : []) {
      const key = JSON.stringify([one.vuln_id, one.package_name, one.installed_version])
      groups.set(key, [...(groups.get(key) ?? []), { ...one, source: from, digest }])
    }
  const items = [...groups.values()].map((rows) => {
    const [{ vuln_id, package_name, installed_version }] = rows as unknown as [Row]
    const severity = Math.min(...rows.map((r) => r.severity))
    const first = (name: keyof Row) => rows.map((r) => r[name]).find((value) => value !== null) ?? null
    const fixedVersions = [...new Set(rows.flatMap((r) => [...r.fixed_versions].sort(bytes)))]
    return {
      place: [severity, vuln_id, package_name, installed_version] as Place,
      item: {
        id: vuln_id,
        package: { name: package_name, type: first('package_type'), purl: first('package_purl') },
        installedVersion: installed_version,
        fixedVersions,
        fixable: fixedVersions.length > 0,
        severity: SEVERITIES[severity]!,
        score: highest(rows.map((r) => r.score)),
        cvss: Object.assign({}, ...[...rows].reverse().map((r) => r.cvss)),
        title: first('title'),
        primaryUrl: first('primary_url'),
        target: first('target'),
        class: first('class'),
        publishedAt: first('published_at'),
        lastModifiedAt: first('last_modified_at'),
        filePaths: rows.map((r) => r.file_paths).find((paths) => paths.length > 0) ?? [],
        ...factsOf(told.filter((r) => r.vuln_id === vuln_id)),
        sources: rows.map((r) => r.source),
        reportDigests: sorted(rows.map((r) => r.digest)),
        inUse: null,
        inUseState: 'unknown',
      },
    }
  })
  return items
    .filter(({ place }) => severities === undefined || severities.includes(place[0]))
    .filter(({ item }) => fixable === undefined || item.fixable === fixable)
    .sort((a, b) => inOrder(a.place, b.place))
}

// ---- The list against the model ------------------------------------------------------------------------------------------------

let runs = 0

test('GET /images/{digest}/vulnerabilities 200: every page is that of the model, also when payloads are replaced between two pages', async () => {
  const property = fc.asyncProperty(
    ...[payloads, payloads, fc.nat(4), filters, fc.integer({ min: 1, max: 12 })],
    async (before, after, replaceAt, filter, limit) => {
      // Facts stay known after their rows, so each run has vulnerabilities of its own.
      const prefix = `CVE-${runs++}-`
      const asked = newDigest()
      const elsewhere = newDigest()
      await app.sql`insert into image values (${asked}, null, '{}', 'repo', now(), now())`
      const stored = new Map<string, Payload>()
      const told: Row[] = []
      const store = async (all: typeof before) => {
        for (const [source, one] of Object.entries(all) as [string, typeof payload extends fc.Arbitrary<infer T> ? T : never][]) {
          const rows = one.rows.map(({ vuln, ...rest }) => ({ vuln_id: prefix + vuln, ...rest }))
          const digest = stored.get(source)?.digest ?? (one.isOwn ? asked : elsewhere)
          const link = digest === asked ? {} : { platform_manifests: { 'linux/amd64': asked } }
          await storeFindings(app, digest, source, rows, link)
          stored.set(source, { source, digest, rows })
          told.push(...rows)
        }
      }
      await store(before)
      const { severities, fixable, source } = filter
      const query = new URLSearchParams({
        limit: String(limit),
        ...(severities ? { severity: severities.map((n) => SEVERITIES[n]).join() } : {}),
        ...(fixable === undefined ? {} : { fixable: String(fixable) }),
        ...(source === undefined ? {} : { source }),
      })
      let last: Place | null = null
      for (let page = 0, next: string | null = ''; next !== null; page++) {
        if (page === replaceAt) await store(after)
        const expected = merged([...stored.values()], told, filter).filter(({ place }) => last === null || inOrder(place, last) > 0)
        const answer = await app.get(`/images/${asked}/vulnerabilities?${query}${next === '' ? '' : `&after=${next}`}`)
        assert.equal(answer.status, 200, answer.text)
        assert.deepEqual(
          answer.json.items,
          expected.slice(0, limit).map(({ item }) => item),
        )
        assert.equal(answer.json.nextAfter !== null, expected.length > limit)
        last = expected[limit - 1]?.place ?? last
        next = answer.json.nextAfter
      }
    },
  )
  await fc.assert(property, { numRuns: 80 })
})
