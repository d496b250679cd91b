/**
 * The merged list of findings against a plain model of docs/contract.md#findings: random payloads of up to three
 * sources and several platforms, read in pages of random length with random filters, while payloads are replaced and
 * aliases are added. Also the cost of a page on long lists.
 */
import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { Gate, Sql } from '../../lib/db/index.ts'
import { type FindingCursor, type FindingFilter, readFindings } from '../../lib/supply-chain/finding-page.ts'
import { SEVERITIES } from '../../lib/supply-chain/severity.ts'
import { STATUSES } from '../../lib/supply-chain/status.ts'
import { SOURCES } from '../../lib/wire-names/index.ts'
import { startApp } from '../support/app.ts'
import { depth, onlyFull } from '../support/depth.ts'
import { newDigest } from '../support/images.ts'
import { finding, storeFindings } from '../support/supply-chain.ts'
import { storedId } from './alias-model.ts'

const app = await startApp()

// ---- The alphabet: few values, so that findings coincide

const known = <T>(...values: T[]) => fc.option(fc.constantFrom(...values), { freq: 3 })
const some = (...values: string[]) => fc.uniqueArray(fc.constantFrom(...values), { maxLength: 3 })
const scores = { v3_score: fc.constantFrom(1.5, 7.5, 9.75) }

/** An id of another database that some of the others name as an alias. */
const ADVISORY = 'advisory'
const CALLED_ADVISORY = ['1', '10', '9']

const row = fc.record({
  severity: fc.nat(5),
  vuln: fc.constantFrom('1', '10', '9', 'é', 'Z', 'z', ADVISORY),
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
  aliases: some('GHSA-1', 'ghsa-2', 'PYSEC-3'),
  omitted: fc.nat(2),
  status: fc.option(fc.nat(STATUSES.length - 1)),
  callsAdvisory: fc.boolean(),
})
type Row = Omit<typeof row extends fc.Arbitrary<infer T> ? T : never, 'vuln' | 'callsAdvisory'> & { vuln_id: string }

const payload = fc.record({
  rows: fc.uniqueArray(row, {
    maxLength: 40,
    selector: (one) => `${one.vuln} ${one.package_name} ${one.installed_version}`,
  }),
  /** Whether it was posted under the digest of the request, or under that of a platform. */
  isOwn: fc.boolean(),
})
/** One of each source for each platform; a source with a payload under the digest itself has no other. */
const ofSource = fc.array(payload, { minLength: 1, maxLength: 3 })
const payloads = fc.record(
  { 'db-matcher': ofSource, 'operator-scanner': ofSource, registry: ofSource },
  { requiredKeys: [] },
)

const filters = fc.record({
  severities: fc.option(fc.uniqueArray(fc.nat(5), { minLength: 1 }), { nil: undefined }),
  fixable: fc.option(fc.boolean(), { nil: undefined }),
  source: fc.option(fc.constantFrom(...SOURCES, 'nobody'), { nil: undefined, freq: 3 }),
  kev: fc.option(fc.boolean(), { nil: undefined, freq: 3 }),
  epss_min: fc.option(fc.constantFrom(0, 0.2, 0.5), { nil: undefined, freq: 3 }),
  vuln: fc.option(fc.constantFrom('1', '10', '9', 'Z', 'z'), { nil: undefined, freq: 3 }),
  package: fc.option(fc.constantFrom('a', 'ab', '中'), { nil: undefined, freq: 3 }),
})
type Filters = typeof filters extends fc.Arbitrary<infer T> ? T : never

// ---- The model

interface Payload {
  source: string
  digest: string
  /** Payloads as posted, and as stored. */
  sent: Row[]
  rows: Row[]
}
type Place = [number, string, string, string]

const bytes = (one: string, other: string) => Buffer.compare(Buffer.from(one), Buffer.from(other))
const inOrder = (a: Place, b: Place) => a[0] - b[0] || bytes(a[1], b[1]) || bytes(a[2], b[2]) || bytes(a[3], b[3])
const highest = (values: (number | null)[]) =>
  values.reduce((a, b) => (a === null ? b : b === null ? a : Math.max(a, b)), null)
const lowest = (values: (string | null)[]) => values.filter((one) => one !== null).sort()[0] ?? null
const least = (values: (number | null)[]) => values.filter((one) => one !== null).sort((a, b) => a - b)[0] ?? null
const DESCRIPTIVE = ['title', 'primary_url', 'target', 'class', 'published_at', 'last_modified_at']
const sorted = (values: string[]) => [...new Set(values)].sort(bytes)

const aliasClaims = (posted: Row[]) =>
  posted.flatMap(({ vuln_id, aliases }) => aliases.map((alias) => ({ vuln_id, alias })))

/**
 * The rows of a payload by stored id. Rows that become the same finding are one; the row under its own id comes first.
 */
function storedRows(sent: Row[], posted: Row[]): Row[] {
  const aliases = aliasClaims(posted)
  const groups = new Map<string, { id: string; rows: Row[] }>()
  for (const one of sent) {
    const id = storedId(one, aliases)
    const key = JSON.stringify([id, one.package_name, one.installed_version])
    const rows = [...(groups.get(key)?.rows ?? []), one]
    groups.set(key, { id, rows: rows.sort((a, b) => Number(b.vuln_id === id) - Number(a.vuln_id === id)) })
  }
  return [...groups.values()].map(({ id, rows: [own, other] }) => {
    if (other === undefined && own!.vuln_id === id) return own!
    const rows = other ? [own!, other] : [own!]
    const first = <K extends keyof Row>(name: K) => rows.map((r) => r[name]).find((value) => value !== null) ?? null
    const united = Object.fromEntries(
      ['package_type', 'package_purl', ...DESCRIPTIVE].map((name) => [name, first(name as keyof Row)]),
    )
    return {
      ...own!,
      ...united,
      vuln_id: id,
      severity: Math.min(...rows.map((r) => r.severity)),
      score: highest(rows.map((r) => r.score)),
      cvss: { ...other?.cvss, ...own!.cvss },
      fixed_versions: sorted(rows.flatMap((r) => r.fixed_versions)),
      file_paths: sorted(rows.flatMap((r) => r.file_paths)),
      aliases: sorted(rows.flatMap((r) => r.aliases)),
      omitted: rows.reduce((sum, r) => sum + r.omitted, 0),
      status: least(rows.map((r) => r.status)),
      kev: rows.some((r) => r.kev === true) ? true : (first('kev') as boolean | null),
      kev_date_added: lowest(rows.map((r) => r.kev_date_added)),
      epss: highest(rows.map((r) => r.epss)),
      epss_percentile: highest(rows.map((r) => r.epss_percentile)),
    } as Row
  })
}

/** The facts of a vulnerability, of all rows that ever existed. */
function factsOf(rows: Row[]) {
  return {
    kev: rows.some((r) => r.kev === true) ? true : rows.some((r) => r.kev === false) ? false : null,
    kevDateAdded: lowest(rows.map((r) => r.kev_date_added)),
    epss: highest(rows.map((r) => r.epss)),
    epssPercentile: highest(rows.map((r) => r.epss_percentile)),
  }
}

/** The least reassuring word of any row. */
const statusOf = (rows: Row[]) => STATUSES[least(rows.map((r) => r.status)) ?? -1] ?? null

/** Nobody watches these images. */
const unknownUse = (type: unknown, className: unknown) => ({
  inUse: null,
  inUseState: 'unknown',
  inUseDetail: {
    ...{ state: 'unknown', reason: 'no_runtime_data', observedSince: null, windowHours: 24, containers: 0 },
    coverage: className === 'os-pkgs' || (className === null && type === 'deb') ? 'file' : 'interpreted',
  },
})

/** The tier of what may be in use and reached. */
function tierOf(severity: number, fixable: boolean, { kev, epss }: { kev: boolean | null; epss: number | null }) {
  const isLikely = epss !== null && epss >= 0.1
  return {
    tier: kev || isLikely ? 'P0' : severity <= 1 ? 'P1' : 'P2',
    tierFactors: [
      'in_use:unknown',
      ...(kev ? ['kev'] : []),
      ...(isLikely ? ['epss>=0.1'] : []),
      `severity:${SEVERITIES[severity]!.toLowerCase()}`,
      'exposure:unknown',
      ...(fixable ? [] : ['no_fix']),
    ],
  }
}

function merged(all: Payload[], posted: Row[], { severities, fixable, source, ...facts }: Filters) {
  const groups = new Map<string, (Row & { source: string; digest: string })[]>()
  for (const { source: from, digest, rows } of [...all].sort(
    (a, b) => bytes(a.source, b.source) || bytes(a.digest, b.digest),
  ))
    for (const one of source === undefined || source === from ? rows : []) {
      const key = JSON.stringify([one.vuln_id, one.package_name, one.installed_version])
      groups.set(key, [...(groups.get(key) ?? []), { ...one, source: from, digest }])
    }
  const items = [...groups.values()].map((rows) => {
    const [{ vuln_id, package_name, installed_version }] = rows as unknown as [Row]
    const severity = Math.min(...rows.map((r) => r.severity))
    const first = (name: keyof Row) => rows.map((r) => r[name]).find((value) => value !== null) ?? null
    // By the first source that gives one, then as text.
    const given = SOURCES.flatMap((from) =>
      rows.flatMap((r) => (r.source === from ? r.fixed_versions : [])).sort(bytes),
    )
    const fixedVersions = [...new Set(given)]
    return {
      place: [severity, vuln_id, package_name, installed_version] as Place,
      item: {
        id: vuln_id,
        aliases: sorted(posted.filter((r) => r.vuln_id === vuln_id).flatMap((r) => r.aliases)),
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
        omitted: rows.reduce((sum, r) => sum + r.omitted, 0),
        ...factsOf(posted.filter((r) => r.vuln_id === vuln_id)),
        sources: [...new Set(rows.map((r) => r.source))],
        reportDigests: sorted(rows.map((r) => r.digest)),
        ...unknownUse(first('package_type'), first('class')),
        ...tierOf(severity, fixedVersions.length > 0, factsOf(posted.filter((r) => r.vuln_id === vuln_id))),
        status: statusOf(rows),
        ...{ decision: null, decided: false },
      },
    }
  })
  return (
    items
      .filter(({ place }) => severities === undefined || severities.includes(place[0]))
      .filter(({ item }) => fixable === undefined || item.fixable === fixable)
      .filter(({ item }) => facts.kev === undefined || item.kev === facts.kev)
      .filter(({ item }) => facts.epss_min === undefined || (item.epss !== null && item.epss >= facts.epss_min))
      // Ids compare without case, and a filter also finds findings by their aliases.
      .filter(({ item }) => {
        const isRequested = (id: string) =>
          facts.vuln === undefined || id.toUpperCase().endsWith(`-${facts.vuln.toUpperCase()}`)
        return (
          isRequested(item.id) ||
          aliasClaims(posted).some(({ vuln_id, alias }) => isRequested(vuln_id) && alias.toUpperCase() === item.id)
        )
      })
      .filter(({ item }) => facts.package === undefined || item.package.name === facts.package)
      .sort((a, b) => inOrder(a.place, b.place))
  )
}

// ---- The list against the model

let runs = 0

test('GET /images/{digest}/vulnerabilities 200: every page is that of the model, also when payloads are replaced between two pages', async () => {
  const property = fc.asyncProperty(
    ...[payloads, payloads, fc.nat(4), filters, fc.integer({ min: 1, max: 12 })],
    async (before, after, replaceAt, filter, limit) => {
      // Facts outlive their rows, so each run has vulnerabilities of its own.
      const prefix = `CVE-${runs}-`
      const advisory = `GHSA-${runs++}-X`
      const asked = newDigest()
      const platforms = [newDigest(), newDigest(), newDigest()]
      await app.sql`insert into image values (${asked}, null, '{}', 'repo', now(), now())`
      const stored = new Map<string, Payload>()
      const posted: Row[] = []
      const store = async (all: typeof before) => {
        for (const [source, some] of Object.entries(all) as [
          string,
          (typeof payload extends fc.Arbitrary<infer T> ? T : never)[],
        ][])
          for (const [n, one] of some.entries()) {
            const sent = one.rows.map(({ vuln, callsAdvisory, ...rest }) =>
              vuln === ADVISORY
                ? { ...rest, vuln_id: advisory, aliases: [] }
                : {
                    ...rest,
                    vuln_id: prefix + vuln,
                    aliases: [
                      ...rest.aliases,
                      ...(callsAdvisory && CALLED_ADVISORY.includes(vuln) ? [advisory.toLowerCase()] : []),
                    ],
                  },
            )
            const digest = one.isOwn ? asked : platforms[n]!
            await storeFindings(app, digest, source, sent, digest === asked ? {} : { index_digest: asked })
            const rows = storedRows(sent, posted)
            stored.set(`${source} ${digest}`, { source, digest, sent, rows })
            posted.push(...rows)
          }
        for (let last: string | null = ''; last !== null; ) {
          const next: { last: string | null }[] = await app.sql`select last from rename_next_findings(${last}, 1000)`
          last = next[0]!.last
        }
        for (const one of stored.values()) {
          const rows = storedRows(one.sent, posted)
          if (rows.some((r, n) => r.vuln_id !== one.rows[n]?.vuln_id) || rows.length !== one.rows.length)
            posted.push(...rows)
          one.rows = rows
        }
      }
      await store(before)
      const { severities, fixable, source, kev, epss_min, vuln, package: name } = filter
      const query = new URLSearchParams({
        limit: String(limit),
        ...(severities ? { severity: severities.map((n) => SEVERITIES[n]).join() } : {}),
        ...(fixable === undefined ? {} : { fixable: String(fixable) }),
        ...(source === undefined ? {} : { source }),
        ...(kev === undefined ? {} : { kev: String(kev) }),
        ...(epss_min === undefined ? {} : { epss_min: String(epss_min) }),
        ...(vuln === undefined ? {} : { vuln_id: prefix + vuln }),
        ...(name === undefined ? {} : { package: name }),
      })
      let last: Place | null = null
      for (let page = 0, next: string | null = ''; next !== null; page++) {
        if (page === replaceAt) await store(after)
        const isAlone = (source: string) => stored.has(`${source} ${asked}`)
        const answering = [...stored.values()].filter((one) => one.digest === asked || !isAlone(one.source))
        const expected = merged(answering, posted, filter).filter(
          ({ place }) => last === null || inOrder(place, last) > 0,
        )
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
  await fc.assert(property, { numRuns: depth(16, 80) })
})

test('GET /images/{digest}/vulnerabilities 200: a finding that two payloads have at different severities is on one page only, at the worse one', async () => {
  const digest = newDigest()
  await storeFindings(app, digest, 'db-matcher', [finding('CVE-A', { severity: 0 }), finding('CVE-B', { severity: 1 })])
  await storeFindings(app, digest, 'registry', [finding('CVE-A', { severity: 3 }), finding('CVE-C', { severity: 3 })])
  const page = async (query: string) => (await app.get(`/images/${digest}/vulnerabilities?${query}`)).json
  const first = await page('limit=1')
  // The second page has the severity of CVE-A in the other payload.
  const second = await page(`limit=10&after=${first.nextAfter}`)
  const listed = [...first.items, ...second.items].map(({ id, severity }) => `${id} ${severity}`)
  assert.deepEqual(listed, ['CVE-A CRITICAL', 'CVE-B HIGH', 'CVE-C LOW'])
})

// ---- The cost of a page

const ROWS = 10_000
const LIMIT = 100

interface Plan {
  'Relation Name'?: string
  Alias?: string
  'Index Cond'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Plan[]
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

/** Rows of findings that a page reads, including those it drops. */
async function rowsRead(digest: string, filter: Partial<FindingFilter>, after: FindingCursor | null): Promise<number> {
  let read = 0
  const counting = async (statement: (sql: Sql, isOutcomeUnknown: boolean) => unknown) => {
    const [row] = await app.db.read(
      (sql) => sql`explain (analyze, timing off, format json) ${statement(sql, false) as ReturnType<typeof sql>}`,
    )
    for (const node of nodesOf((row!['QUERY PLAN'] as { Plan: Plan }[])[0]!.Plan))
      if (node['Relation Name'] === 'image_finding') {
        // PostgreSQL 15 may walk all entries of lower severities instead of probing each severity.
        if (node.Alias === 'g') assert.doesNotMatch(node['Index Cond']!, /severity </)
        read += (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops']
      }
    return app.db.read(statement as never)
  }
  const none = {
    fixable: null,
    source: null,
    vulnId: null,
    package: null,
    kev: null,
    epssMin: null,
    tiers: null,
    states: null,
  }
  const all = { severities: SEVERITIES.map((_, n) => n), ...none }
  await readFindings(
    counting as unknown as Gate,
    digest,
    { ...all, ...filter },
    { limit: LIMIT, after },
    { wireNames: 'spec', inUseWindowHours: 24 },
  )
  assert.ok(read > 0, 'the plan names the table')
  return read
}

/** Three payloads of many findings; `severity` is an expression of `n` and of the number `k` of the source. */
async function longPayloads(severity: string): Promise<string> {
  const digest = newDigest()
  for (const [k, source] of SOURCES.entries()) {
    await storeFindings(app, digest, source, [])
    await app.sql`
      insert into image_finding
      select ${digest}, ${source}, ${app.sql.unsafe(severity.replaceAll('k', String(k)))}, 'CVE-' || n % 9000, 'p-' || n % 3, n::text, null, null,
             case n % 2 when 0 then '{2}' else '{}' end::text[], null, '{}', null, null, null, null, null, null, '{}', null, null, null, null, '{}', 0
      from generate_series(1, ${ROWS}::int) n`
  }
  return digest
}

test('a page with a selective filter reads the rows of the payloads and nothing else', async () => {
  const digest = await longPayloads('n * 7 % 5')
  await longPayloads('n * 7 % 5')
  await app.sql`insert into cve_fact (vuln_id, kev, epss) values ('CVE-8999', true, 0.75) on conflict do nothing`
  for (const analyze of [false, true]) {
    if (analyze) await app.sql`analyze image_finding`
    for (const filter of [
      { kev: true },
      { epssMin: 0.5 },
      { vulnId: 'cve-8999' },
      { package: 'p-2', kev: true },
      { package: 'nobody' },
    ]) {
      const read = await rowsRead(digest, filter, null)
      assert.ok(read <= 2 * SOURCES.length * ROWS + 30 * LIMIT, `${JSON.stringify(filter)}: ${read} rows`)
    }
  }
})

const places: (FindingCursor | null)[] = [
  null,
  ...depth([1, 4], [0, 1, 2, 3, 4]).flatMap((s) => ['CVE-1', 'CVE-6'].map((id) => [s, id, '', ''] as const)),
]

for (const [what, severity] of [
  ['agree', 'n * 7 % 5'],
  ['differ', 'n * 7 % 5 + (n * 31 + k * 17) % 3 % 2'],
] as const) {
  test(`a page of three long payloads of findings that ${what} reads a small multiple of its rows, at any depth`, {
    skip: what === 'agree' && onlyFull,
  }, async () => {
    const digest = await longPayloads(severity)
    // With the statistics of the planner before and after analyze.
    for (const analyze of [false, true]) {
      if (analyze) await app.sql`analyze image_finding`
      // Half as much again as a usual plan reads, since statistics are of random rows; a whole payload has 100 pages.
      for (const [filter, most] of [
        [{}, 24 * LIMIT],
        [{ source: 'registry' }, 4 * LIMIT],
        [{ severities: [0, 2, 4] }, 45 * LIMIT],
        [{ fixable: true }, 44 * LIMIT],
      ] as const)
        for (const after of places) {
          const read = await rowsRead(digest, filter, after)
          assert.ok(read <= most, `${JSON.stringify(filter)} after ${after}: ${read} rows`)
        }
    }
  })
}
