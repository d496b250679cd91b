/** Rows made from payloads of findings, without a thread and a database (docs/contract.md#findings). */
import assert from 'node:assert/strict'
import test from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { HttpError } from '../../lib/errors.ts'
import { type FindingRow, findingRow, PostedFinding } from '../../lib/supply-chain/finding-row.ts'
import { findings, MAX_FINDINGS } from '../../lib/supply-chain/findings.ts'
import { MergedFinding } from '../../lib/supply-chain/merged-finding.ts'
import { preparePayload } from '../../lib/supply-chain/payload.ts'
import { finding, findingsOf, newImage, SCANNED_AT, scannedAt } from './payloads.ts'

const MAX_INFLATED = 8_388_608
const image = newImage()
const NOW = Date.parse(SCANNED_AT)

// biome-ignore lint/suspicious/noExplicitAny: a tree of JSON.
type Json = any

function prepare(
  payload: unknown,
  { digest = image, now = NOW } = {},
): { header: Json; page: Json; rows: Json; unreadableTimes: number } {
  const text = typeof payload === 'string' ? payload : JSON.stringify(payload)
  const sent = { bytes: Buffer.from(text), isPacked: false, digest, maxInflatedBytes: MAX_INFLATED, now }
  const prepared = preparePayload(findings, sent)
  return { ...prepared, rows: JSON.parse(prepared.rows) }
}
const rowsOf = (...list: unknown[]): Json[] => prepare(findingsOf(image, list)).rows
const rowOf = (fields: Record<string, unknown>): Json => rowsOf(finding(fields))[0]
const headerOf = (fields: object, ofImage: object = {}): Json =>
  prepare(findingsOf({ digest: image, ...ofImage }, [], fields as never)).header
function refused(payload: unknown, options = {}): [number, string] {
  try {
    prepare(payload, options)
  } catch (error) {
    if (error instanceof HttpError) return [error.status, error.message]
    throw error
  }
  return [0, 'taken']
}

// ---- Rows

test('a finding with every field keeps every field', () => {
  const row = rowOf({
    ...{
      id: ' CVE-2026-7 ',
      package: { name: 'zlib ', version: ' 1.2.11', type: 'deb', purl: 'pkg:deb/debian/zlib@1.2.11' },
    },
    ...{
      fixed_version: '1.2.12, 1.3',
      severity: ' critical',
      score: 9.8,
      title: 'heap\noverflow',
      primary_url: 'https://advisories.test/1',
    },
    ...{
      target: 'app (debian 12)',
      class: 'os-pkgs',
      published_at: '2024-01-02T03:04:05Z',
      last_modified_at: '2024-02-03T06:04:05.1234567+02:00',
    },
    ...{
      file_paths: ['usr/lib/libz.so', 'usr/lib/libz.so'],
      kev: true,
      kev_date_added: '2024-03-04T00:00:00Z',
      epss: 0.97,
      epss_percentile: 0.995,
    },
    ...{
      cvss: {
        nvd: { v3_score: 9.8, v3_vector: 'CVSS:3.1/AV:N' },
        ghsa: { v2_score: 7.5 },
        redhat: null,
        ' ': { v2_score: 1 },
      },
      unknown: [1],
    },
  })
  assert.deepEqual(row, {
    ...{ severity: 0, vuln_id: 'CVE-2026-7', package_name: 'zlib', installed_version: '1.2.11', package_type: 'deb' },
    ...{ package_purl: 'pkg:deb/debian/zlib@1.2.11', fixed_versions: ['1.2.12, 1.3'], score: 9.8 },
    ...{ cvss: { nvd: { v3_score: 9.8, v3_vector: 'CVSS:3.1/AV:N' }, ghsa: { v2_score: 7.5 } }, title: 'heapoverflow' },
    ...{
      primary_url: 'https://advisories.test/1',
      target: 'app (debian 12)',
      class: 'os-pkgs',
      published_at: '2024-01-02T03:04:05',
    },
    ...{
      last_modified_at: '2024-02-03T04:04:05.123456',
      file_paths: ['usr/lib/libz.so'],
      kev: true,
      kev_date_added: '2024-03-04T00:00:00',
    },
    ...{ epss: 0.97, epss_percentile: 0.995 },
  })
})

test('missing fields of a finding stay absent', () => {
  const bare = {
    severity: 5,
    vuln_id: 'x',
    package_name: 'p',
    installed_version: '',
    fixed_versions: [],
    cvss: {},
    file_paths: [],
  }
  assert.deepEqual(rowsOf({ id: 'x', package: { name: 'p' } }), [bare])
  const nulls = Object.fromEntries(
    [
      ...[
        'fixed_version',
        'severity',
        'score',
        'cvss',
        'title',
        'primary_url',
        'target',
        'class',
        'published_at',
        'last_modified_at',
      ],
      ...['file_paths', 'kev', 'kev_date_added', 'epss', 'epss_percentile'],
    ].map((key) => [key, null]),
  )
  assert.deepEqual(rowsOf({ id: 'x', package: { name: 'p', version: null, type: null, purl: null }, ...nulls }), [bare])
  assert.deepEqual(
    rowsOf({ id: 'x', package: { name: 'p', version: ' ' }, fixed_version: ' ', title: '\u0001', file_paths: [' '] }),
    [bare],
  )
})

test('texts are cut to their bytes', () => {
  const long = 'é'.repeat(2_000)
  const row = rowOf({
    ...{
      id: long,
      package: { name: long, version: long, type: long, purl: long },
      fixed_version: long,
      title: long,
      primary_url: long,
    },
    ...{
      target: long,
      class: long,
      file_paths: [long],
      cvss: { [long]: { v2_vector: long, v3_vector: long, v40_vector: long } },
    },
  })
  const [[vendor, scores]] = Object.entries(row.cvss) as [[string, Json]]
  const bytes = (text: string) => Buffer.byteLength(text)
  assert.deepEqual(
    [row.vuln_id, row.package_name, row.installed_version, row.package_type, row.package_purl].map(bytes),
    [128, 256, 128, 64, 1024],
  )
  assert.deepEqual(
    [...row.fixed_versions, row.title, row.primary_url, row.target, row.class].map(bytes),
    [512, 512, 1024, 512, 64],
  )
  assert.deepEqual(
    [...row.file_paths, vendor, scores.v2_vector, scores.v3_vector, scores.v40_vector].map(bytes),
    [1024, 64, 128, 128, 512],
  )
})

test('nested lists and maps keep their first entries', () => {
  const paths = Array.from({ length: 20 }, (_, i) => `usr/lib/${i}`)
  const cvss = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`vendor${i}`, { v3_score: i }]))
  const row = rowOf({ file_paths: paths, cvss })
  assert.deepEqual(row.file_paths, paths.slice(0, 16))
  assert.deepEqual(row.cvss, Object.fromEntries(Object.entries(cvss).slice(0, 8)))
})

test('severities are read in any case, and other words are UNKNOWN', () => {
  const words = ['CRITICAL', ' high', 'Medium ', 'low', 'NONE', 'UNKNOWN', 'apocalyptic', '', '\u0130']
  assert.deepEqual(
    words.map((severity) => rowOf({ severity }).severity),
    [0, 1, 2, 3, 4, 5, 5, 5, 5],
  )
})

test('other words for a severity are mapped, and negligible is between LOW and UNKNOWN', () => {
  const words = ['Negligible', ' NEGLIGIBLE ', 'unimportant', 'Moderate', 'important', 'Untriaged', 'end-of-life']
  assert.deepEqual(
    words.map((severity) => rowOf({ severity }).severity),
    [4, 4, 4, 2, 1, 5, 5],
  )
})

test('a score gives no severity', () => {
  for (const severity of [undefined, null, '', 'UNKNOWN']) assert.equal(rowOf({ severity, score: 9.8 }).severity, 5)
})

test('a finding is stored by its CVE, whatever its own id, and its other ids are aliases', () => {
  const ids = (id: string, ...aliases: unknown[]) => {
    const row = rowOf({ id, aliases })
    return [row.vuln_id, row.aliases]
  }
  for (const [sent, kept] of [
    [
      ['GHSA-jfh8-c2jp-5v3q', 'CVE-2021-44228'],
      ['CVE-2021-44228', ['GHSA-jfh8-c2jp-5v3q']],
    ],
    [
      ['CVE-2021-44228', 'GHSA-jfh8-c2jp-5v3q'],
      ['CVE-2021-44228', ['GHSA-jfh8-c2jp-5v3q']],
    ],
    [
      ['GHSA-a', 'cve-2021-1000'],
      ['CVE-2021-1000', ['GHSA-a']],
    ],
    [
      ['PYSEC-2021-1', 'GHSA-b', 'CVE-2021-1'],
      ['CVE-2021-1', ['PYSEC-2021-1', 'GHSA-b']],
    ],
    [
      ['PYSEC-2021-1', 'GHSA-b', 'CVE-2021-1', 'CVE-2021-2'],
      ['GHSA-b', ['PYSEC-2021-1', 'CVE-2021-1', 'CVE-2021-2']],
    ],
    // An advisory about two vulnerabilities is neither of them.
    [
      ['ELSA-2021-1', 'CVE-2021-1001', 'CVE-2021-1002'],
      ['ELSA-2021-1', ['CVE-2021-1001', 'CVE-2021-1002']],
    ],
    [
      ['CVE-2021-1001', 'CVE-2021-1002'],
      ['CVE-2021-1001', ['CVE-2021-1002']],
    ],
    [
      ['PYSEC-2021-2', 'GHSA-c'],
      ['GHSA-c', ['PYSEC-2021-2']],
    ],
    [
      ['PYSEC-2021-3', 'GHSA-d', 'GHSA-e'],
      ['PYSEC-2021-3', ['GHSA-d', 'GHSA-e']],
    ],
    [
      ['X-1', ' x-1', 'X-1', '', ' ', 'Y\u0000-2 ', 'Y-2', 'y-2'],
      ['X-1', ['Y-2']],
    ],
  ] as [[string, ...string[]], unknown][])
    assert.deepEqual(ids(...sent), kept, sent.join())
  assert.deepEqual(ids('CVE-2021-1001'), ['CVE-2021-1001', undefined])
  assert.deepEqual(rowOf({ aliases: null }).aliases, undefined)
})

test('32 aliases are stored, each of 128 bytes, and further ones are counted', () => {
  const aliases = Array.from({ length: 40 }, (_, i) => `A-${100 + i}`)
  const row = rowOf({ id: 'X-1', aliases })
  assert.deepEqual([row.aliases, row.omitted], [aliases.slice(0, 32), 8])
  assert.equal(rowOf({ aliases: ['é'.repeat(100)] }).aliases[0].length, 64)
  const [merged] = rowsOf(
    finding({ id: 'X-1', aliases: aliases.slice(0, 20) }),
    finding({ id: 'X-1', aliases: aliases.slice(10) }),
  )
  assert.deepEqual([merged.aliases, merged.omitted], [aliases.slice(0, 32), 8])
})

test('a finding under two of its ids in one payload is one row', () => {
  const [row, ...others] = rowsOf(
    finding({ id: 'GHSA-x', aliases: ['CVE-2026-1'], severity: 'CRITICAL', file_paths: ['a'] }),
    finding({ id: 'CVE-2026-1', file_paths: ['b'] }),
    finding({ id: 'PYSEC-1', aliases: ['CVE-2026-1', 'GHSA-x'] }),
  )
  assert.deepEqual(
    [row.vuln_id, row.aliases, row.severity, row.file_paths, others],
    ['CVE-2026-1', ['GHSA-x', 'PYSEC-1'], 0, ['a', 'b'], []],
  )
})

// ---- Empty values and dates

test('an empty text is absent in every optional field', () => {
  const bare = rowsOf({ id: 'x', package: { name: 'p' } })
  for (const empty of ['', ' ']) {
    const fields = [
      'fixed_version',
      'severity',
      'score',
      'cvss',
      'title',
      'primary_url',
      'target',
      'class',
      'published_at',
    ]
    const more = ['last_modified_at', 'file_paths', 'kev', 'kev_date_added', 'epss', 'epss_percentile', 'aliases']
    const all = Object.fromEntries([...fields, ...more].map((key) => [key, empty]))
    const { rows, unreadableTimes } = prepare(
      findingsOf(image, [{ id: 'x', package: { name: 'p', version: empty, type: empty, purl: empty }, ...all }]),
    )
    assert.deepEqual([rows, unreadableTimes], [bare, 0])
    assert.deepEqual(rowOf({ cvss: { nvd: { v2_score: empty, v3_score: 5, v3_vector: empty } } }).cvss, {
      nvd: { v3_score: 5 },
    })
    const names = [
      'scanner',
      'os',
      'observed_in',
      'db_updated_at',
      'sbom_sources',
      'sbom_source',
      'sbom_trust',
      'sbomTrust',
    ]
    const header = headerOf(Object.fromEntries(names.map((key) => [key, empty])), {
      ...{
        ref: empty,
        registry: empty,
        repository: empty,
        tag: empty,
        digest_kind: empty,
        platform_manifests: empty,
        index_digest: empty,
      },
    })
    assert.deepEqual(header, headerOf({}))
    assert.equal(headerOf({ os: { family: empty, name: empty, eosl: empty } }).os_eosl, false)
  }
})

test('an unreadable date is absent and counted, and the payload is accepted', () => {
  const bad = ['yesterday', '2024-01-01', '2024-01-01T00:00:00', '2024-02-30T00:00:00Z', '1704067200', 'null']
  const keys = ['published_at', 'last_modified_at', 'kev_date_added']
  const list = bad.map((date) => finding({ id: date, ...Object.fromEntries(keys.map((key) => [key, date])) }))
  const { rows, header, unreadableTimes } = prepare(findingsOf(image, list, { db_updated_at: 'soon' }))
  for (const row of rows) for (const key of keys) assert.ok(!(key in row), `${row.vuln_id} ${key}`)
  assert.deepEqual(
    [rows.length, header.db_updated_at, unreadableTimes],
    [bad.length, null, bad.length * keys.length + 1],
  )
  assert.deepEqual(rowOf({ published_at: ' 2024-01-01T00:00:00Z ' }).published_at, '2024-01-01T00:00:00')
})

test('the zero time of Go is absent, and never the earliest date', () => {
  const none = '0001-01-01T00:00:00Z'
  const { rows, unreadableTimes } = prepare(
    findingsOf(image, [
      finding({ kev_date_added: none, published_at: none }),
      finding({ kev_date_added: '2024-01-01T00:00:00Z' }),
    ]),
  )
  assert.deepEqual(
    [rows[0].published_at, rows[0].kev_date_added, unreadableTimes],
    [undefined, '2024-01-01T00:00:00', 0],
  )
})

test('an unreadable scanned_at is refused, since it decides the replacement', () => {
  for (const scanned_at of ['', 'yesterday', '2024-01-01T00:00:00'])
    assert.equal(refused(findingsOf(image, [], { scanned_at }))[0], 400)
})

test('a repeated key in a finding is refused and named, at any depth', () => {
  const whole = (one: string) =>
    JSON.stringify(findingsOf(image, [])).replace('[]', `[${JSON.stringify(finding())},${one}]`)
  for (const [one, key] of [
    ['{"id":"a","package":{"name":"p"},"id":"b"}', 'id'],
    ['{"id":"a","package":{"name":"p","version":"1","version":"2"}}', 'version'],
    ['{"id":"a","package":{"name":"p"},"cvss":{"nvd":{"v3_score":1},"nv\\u0064":{}}}', 'nvd'],
  ] as const)
    assert.deepEqual(refused(whole(one)), [400, `Json deserialize error: vulnerabilities[1]: "${key}" is there twice`])
  const twice = JSON.stringify(findingsOf(image, [])).replace('"image":{', '"image":{"tag":"v1","tag":"v2",')
  assert.deepEqual(refused(twice), [400, 'Json deserialize error: "tag" is there twice'])
})

test('numbers that no column can hold are absent', () => {
  const text = (fields: string) => `{"id":"x","package":{"name":"p"},${fields}}`
  const row = (fields: string) => {
    const whole = JSON.stringify(findingsOf(image, [])).replace('[]', `[${text(fields)}]`)
    const { score, epss, epss_percentile, cvss } = prepare(whole).rows[0]
    return [score, epss, epss_percentile, cvss]
  }
  assert.deepEqual(
    row('"score":1e999,"epss":1.5,"epss_percentile":-0.1,"cvss":{"nvd":{"v3_score":1e999,"v2_score":1e300}}'),
    [...[undefined, undefined, undefined], { nvd: { v2_score: 1e300 } }],
  )
  assert.deepEqual(row('"score":1e300,"epss":1e-60,"epss_percentile":1'), [undefined, 0, 1, {}])
})

test('a finding without an id or a package name is refused with its position, after the checks of types', () => {
  const list = [finding(), finding(), finding({ id: ' \u0000' })]
  assert.deepEqual(refused(findingsOf(image, list)), [422, 'vulnerabilities[2].id: expected text'])
  assert.deepEqual(refused(findingsOf(image, [finding({ package: { name: '' } }), ...list])), [
    422,
    'vulnerabilities[0].package.name: expected text',
  ])
  assert.deepEqual(refused(findingsOf(image, [...list, finding({ id: 7 })])), [
    400,
    'Json deserialize error: vulnerabilities[3].id: Invalid input: expected string, received number',
  ])
})

test('a value of another type is refused with its path', () => {
  const bad: Record<string, unknown>[] = [
    ...[
      { id: 7 },
      { id: null },
      { id: undefined },
      { package: 'zlib' },
      { package: undefined },
      { package: { name: 1 } },
      { fixed_version: ['1'] },
    ],
    ...[
      { severity: 3 },
      { score: '9.8' },
      { cvss: [] },
      { cvss: { nvd: 9 } },
      { cvss: { nvd: { v3_score: '9' } } },
      { title: {} },
      { class: 1 },
    ],
    ...[{ aliases: 'CVE-1' }, { aliases: [1] }, { last_modified_at: 1 }, { file_paths: 'usr' }, { file_paths: [1] }],
    ...[
      { kev: 'true' },
      { kev: 1 },
      { epss: '0.1' },
      { epss_percentile: true },
      { package: { name: 'p', version: 1 } },
    ],
  ]
  for (const fields of bad) {
    const [status, message] = refused(findingsOf(image, [finding(), finding(fields)]))
    assert.equal(status, 400, JSON.stringify(fields))
    assert.ok(message.startsWith(`Json deserialize error: vulnerabilities[1].${Object.keys(fields)[0]}`), message)
  }
  for (const one of [null, 7, 'x', []])
    assert.match(refused(findingsOf(image, [one]))[1], /^Json deserialize error: vulnerabilities\[0\]: /)
})

// ---- Repeated findings

test('findings with the same id, package and version become one row with the highest values', () => {
  const [row, ...others] = rowsOf(
    finding({
      severity: 'LOW',
      fixed_version: '2',
      title: null,
      target: 'first',
      cvss: { nvd: { v3_score: 1 } },
      epss: 0.1,
      kev: false,
    }),
    finding({ id: 'CVE-OTHER' }),
    finding({
      severity: 'CRITICAL',
      score: 5,
      fixed_version: '10',
      title: 'told',
      target: 'second',
      cvss: { nvd: { v3_score: 2 }, ghsa: {} },
    }),
    finding({
      severity: 'HIGH',
      score: 4,
      fixed_version: '2',
      epss: 0.3,
      epss_percentile: 0.4,
      file_paths: ['a'],
      kev: true,
    }),
    finding({
      severity: 'HIGH',
      epss: 0.2,
      file_paths: ['b'],
      kev_date_added: '2024-02-01T00:00:00.5Z',
      package: { name: 'openssl', version: '3.0.1', type: 'deb' },
    }),
    finding({ kev_date_added: '2024-02-01T00:00:00Z', published_at: '2023-01-01T00:00:00Z' }),
  )
  assert.deepEqual(
    others.map(({ vuln_id }) => vuln_id),
    ['CVE-OTHER'],
  )
  assert.deepEqual(row, {
    ...{
      severity: 0,
      vuln_id: 'CVE-2026-1',
      package_name: 'openssl',
      installed_version: '3.0.1',
      package_type: 'deb',
      fixed_versions: ['2', '10'],
    },
    ...{
      score: 5,
      cvss: { nvd: { v3_score: 1 }, ghsa: {} },
      title: 'told',
      target: 'first',
      published_at: '2023-01-01T00:00:00',
    },
    ...{ file_paths: ['a', 'b'], kev: true, kev_date_added: '2024-02-01T00:00:00', epss: 0.3, epss_percentile: 0.4 },
  })
})

test('another id, name or version is another row', () => {
  const one = (id: string, name: string, version: string) => finding({ id, package: { name, version } })
  assert.equal(
    rowsOf(one('a', 'b', 'c'), one('A', 'b', 'c'), one('a', 'bc', ''), one('a', 'b', ''), one('ab', '\u0000c', 'c'))
      .length,
    5,
  )
})

test('a repeated finding keeps all file paths and fixed versions up to a limit, and counts the rest', () => {
  const many = (n: number) =>
    Array.from({ length: n }, (_, i) => finding({ fixed_version: `v${i}`, file_paths: [`a${i}`, 'every', `b${i}`] }))
  const [all] = rowsOf(...many(256))
  assert.deepEqual(
    all.fixed_versions,
    Array.from({ length: 256 }, (_, i) => `v${i}`),
  )
  assert.deepEqual(all.file_paths, [
    'a0',
    'every',
    'b0',
    ...Array.from({ length: 255 }, (_, i) => [`a${i + 1}`, `b${i + 1}`]).flat(),
  ])
  assert.ok(!('omitted' in all))
  const [cut] = rowsOf(...many(600))
  assert.deepEqual([cut.fixed_versions.length, cut.file_paths.length], [256, 1024])
  assert.equal(cut.omitted, 600 - 256 + (1 + 2 * 600 - 1024))
  assert.deepEqual(
    rowsOf(...many(600), finding({ file_paths: ['every', 'a0'], fixed_version: 'v0' }))[0],
    cut,
    'what is kept is not cut again',
  )
  // Several findings may exceed their own limits: these are cut first, and counted.
  const long = finding({ file_paths: Array.from({ length: 20 }, (_, i) => `c${i}`) })
  assert.equal(rowsOf(long)[0].omitted, 4)
  assert.equal(rowsOf(long, finding(), long)[0].omitted, 8)
})

test('a repeated finding has the package URL without what its repeats do not share', () => {
  const purlOf = (...purls: (string | undefined)[]) =>
    rowsOf(...purls.map((purl) => finding({ package: { name: 'a', version: '1', purl } })))[0].package_purl
  const [amd64, i386] = ['pkg:deb/a@1?arch=amd64&distro=d', 'pkg:deb/a@1?arch=i386&distro=d']
  assert.equal(purlOf(amd64, amd64), amd64)
  assert.equal(purlOf(undefined, amd64), amd64)
  assert.equal(purlOf(amd64, i386, amd64), 'pkg:deb/a@1?distro=d')
  assert.equal(purlOf('pkg:deb/a@1?arch=amd64', i386), 'pkg:deb/a@1')
  assert.equal(purlOf('pkg:npm/a@1', 'pkg:pypi/a@1', 'pkg:npm/a@1'), undefined)
})

test('the lists of a merged row are bounded', () => {
  const list = Array.from({ length: 100 }, (_, i) => finding({ cvss: { [`vendor-${i}`]: {} } }))
  const [row] = rowsOf(...list)
  assert.deepEqual(
    Object.keys(row.cvss),
    Array.from({ length: 8 }, (_, i) => `vendor-${i}`),
  )
})

const anyFinding = fc.record(
  {
    severity: fc.constantFrom('CRITICAL', 'HIGH', 'LOW', 'odd'),
    fixed_version: fc.constantFrom('1', '2', '10'),
    score: fc.double({ min: 0, max: 10, noNaN: true }),
    cvss: fc.dictionary(fc.constantFrom('nvd', 'ghsa', 'redhat'), fc.constant({ v3_score: 1 })),
    title: fc.constantFrom('one', 'two', ' '),
    file_paths: fc.array(fc.constantFrom('a', 'b', 'c')),
    kev: fc.boolean(),
    kev_date_added: fc.constantFrom('2024-01-01T00:00:00Z', '2024-01-01T00:00:00.1Z', '2023-12-31T00:00:00Z'),
    epss: fc.double({ min: 0, max: 1, noNaN: true }),
  },
  { requiredKeys: [] },
)

test('property: no row has more than the merged one, and merging at once equals merging one after the other', () => {
  const rowFor = (fields: Record<string, unknown>) => findingRow(PostedFinding.parse(finding(fields)), '')
  fc.assert(
    fc.property(fc.array(anyFinding, { minLength: 1, maxLength: 6 }), fc.nat(), (list, cut) => {
      const rows: FindingRow[] = list.map(rowFor)
      const fold = (some: Record<string, unknown>[]) => {
        const [first, ...others] = some.map(rowFor)
        const merged = new MergedFinding(first!)
        for (const later of others) merged.add(later)
        return merged.toRow()
      }
      const merged = fold(list)
      assert.equal(merged.severity, Math.min(...rows.map(({ severity }) => severity)))
      const known = (pick: (row: FindingRow) => number | undefined) => rows.map(pick).filter((one) => one !== undefined)
      assert.equal(merged.score ?? Number.NEGATIVE_INFINITY, Math.max(...known(({ score }) => score)))
      assert.equal(merged.epss ?? Number.NEGATIVE_INFINITY, Math.max(...known(({ epss }) => epss)))
      assert.deepEqual(
        [...merged.fixed_versions],
        [...new Set(rows.flatMap(({ fixed_versions }) => [...fixed_versions]))],
      )
      assert.equal(merged.title, rows.find(({ title }) => title !== undefined)?.title)
      assert.deepEqual([...merged.file_paths], [...new Set(rows.flatMap(({ file_paths }) => [...file_paths]))])
      assert.equal(
        merged.kev,
        rows.some(({ kev }) => kev) || (rows.some(({ kev }) => kev === false) ? false : undefined),
      )
      const dates = rows.map(({ kev_date_added }) => kev_date_added).filter((one) => one !== undefined)
      assert.equal(merged.kev_date_added, dates.sort()[0])
      const at = 1 + (cut % list.length)
      if (at === list.length) return
      const [head, tail] = [fold(list.slice(0, at)), fold(list.slice(at))]
      const both = new MergedFinding(head)
      both.add(tail)
      assert.deepEqual(both.toRow(), merged)
      const sent = prepare(findingsOf(image, list.map(finding)))
      assert.deepEqual(sent.rows, [JSON.parse(JSON.stringify(merged))])
      assert.equal(sent.header.item_count, list.length)
    }),
    { numRuns: 500 },
  )
})

// ---- Content hash

const hashOf = (list: unknown[], fields = {}) => prepare(findingsOf(image, list, fields)).header.content_hash

test('the hash covers the stored rows in order, and nothing else', () => {
  const list = [finding(), finding({ id: 'CVE-2' })]
  const hash = hashOf(list)
  assert.match(hash, /^[0-9a-f]{64}$/)
  for (const fields of [
    { scanned_at: scannedAt(-9) },
    { source: 'registry' },
    { scanner: { name: 'x' } },
    { observed_in: [{ namespace: 'a', name: 'b' }] },
  ])
    assert.equal(hashOf(list, fields), hash)
  assert.equal(hashOf([finding({ title: ' ', unknown: 1, severity: 'high' }), finding({ id: ' CVE-2 ' })]), hash)
  for (const other of [list.toReversed(), [...list, list[1]], [list[0]], [], [finding({ title: 'x' }), list[1]]])
    assert.notEqual(hashOf(other), hash)
  assert.equal(hashOf([...list, list[1]]), hashOf([...list, list[1]]))
})

test('the item count is that of the rows as sent, before merging', () => {
  const { header, rows } = prepare(findingsOf(image, [finding(), finding(), finding({ id: 'CVE-2' })]))
  assert.equal(header.item_count, 3)
  assert.equal(rows.length, 2)
})

// ---- The header

test('a header with every field keeps every field', () => {
  const manifest = newImage()
  const index = newImage()
  const header = headerOf(
    {
      ...{
        source: 'grype',
        scanner: { name: 'scan', vendor: 'maker', version: '1.9' },
        os: { family: 'debian', name: '12.5', eosl: true },
      },
      ...{
        scanned_at: '2026-01-01T02:00:00.123456789+02:00',
        db_updated_at: '2025-05-06T07:08:09Z',
        sbom_sources: ['registry', 'trivy-operator'],
      },
      ...{
        sbom_trust: ' unverified ',
        observed_in: [{ namespace: 'shop', kind: 'ReplicaSet', name: 'web-1', container: 'app', extra: 1 }],
      },
    },
    {
      ...{
        ref: 'registry.test/team/app:v1',
        registry: 'Registry.test',
        repository: 'team/app',
        tag: 'v1',
        digest_kind: ' index ',
      },
      ...{ platform_manifests: { 'linux/amd64': manifest, 'linux/arm64': 'sha256:1' }, index_digest: index },
    },
  )
  const { content_hash: _, ...rest } = header
  assert.deepEqual(rest, {
    ...{ digest: image, digest_kind: 'index', platform_manifests: { 'linux/amd64': manifest }, index_digest: index },
    ...{
      image_ref: 'registry.test/team/app:v1',
      registry: 'Registry.test',
      repository: 'team/app',
      normal_repository: 'registry.test/team/app',
    },
    ...{
      tag: 'v1',
      scanner_name: 'scan',
      scanner_vendor: 'maker',
      scanner_version: '1.9',
      scanned_at: '2026-01-01T00:00:00.123456',
    },
    ...{
      observed_in: [{ namespace: 'shop', kind: 'ReplicaSet', name: 'web-1', container: 'app' }],
      source: 'db-matcher',
    },
    ...{
      db_updated_at: '2025-05-06T07:08:09',
      os_family: 'debian',
      os_name: '12.5',
      os_eosl: true,
      item_count: 0,
      sbom_format: null,
    },
    ...{
      sbom_spec_version: null,
      sbom_sources: ['operator-scanner', 'registry'],
      sbom_trust: 'unverified',
      attestation: null,
    },
  })
})

test('missing or null fields of a header are null', () => {
  const nulls = (...keys: string[]) => Object.fromEntries(keys.map((key) => [key, null]))
  const ofImage = nulls('ref', 'registry', 'repository', 'tag', 'digest_kind', 'platform_manifests', 'index_digest')
  const fields = nulls(
    'scanner',
    'os',
    'observed_in',
    'db_updated_at',
    'sbom_sources',
    'sbom_source',
    'sbom_trust',
    'sbomTrust',
    'vulnerabilities',
  )
  const bare = prepare({ schema_version: 1, image: { digest: image }, source: 'registry', scanned_at: SCANNED_AT })
  assert.deepEqual(
    prepare({
      schema_version: 1,
      image: { digest: image, ...ofImage },
      source: 'registry',
      scanned_at: SCANNED_AT,
      ...fields,
    }),
    bare,
  )
  const { header } = bare
  for (const key of [
    'image_ref',
    'tag',
    'normal_repository',
    'scanner_name',
    'db_updated_at',
    'os_family',
    'index_digest',
    'sbom_trust',
  ])
    assert.equal(header[key], null, key)
  assert.deepEqual(
    [header.digest_kind, header.os_eosl, header.platform_manifests, header.observed_in, header.sbom_sources],
    ['unknown', false, {}, [], []],
  )
  assert.deepEqual([bare.rows, bare.page, header.item_count], [[], null, 0])
  for (const empty of [{ scanner: {}, os: {} }, { sbom_source: [] }])
    assert.deepEqual(headerOf(empty, {}).scanner_name, null)
})

test('texts of the header are cut to their bytes', () => {
  const long = 'x'.repeat(2_000)
  const one = { namespace: long, kind: long, name: long, container: long }
  const header = headerOf(
    { scanner: { name: long, vendor: long, version: long }, os: { family: long, name: long }, observed_in: [one] },
    { ref: long, registry: long, repository: long, tag: long, platform_manifests: { [long]: image } },
  )
  const lengths = (...texts: string[]) => texts.map(({ length }) => length)
  const { image_ref, registry, repository, tag, scanner_name, scanner_vendor, scanner_version, os_family, os_name } =
    header
  assert.deepEqual(lengths(image_ref, registry, repository, tag), [1024, 256, 1024, 128])
  assert.deepEqual(lengths(scanner_name, scanner_vendor, scanner_version, os_family, os_name), [64, 64, 64, 64, 64])
  assert.deepEqual(
    lengths(...(Object.values(header.observed_in[0]) as string[]), ...Object.keys(header.platform_manifests)),
    [256, 64, 256, 256, 64],
  )
})

test('the first 64 workloads are stored: each once, with a namespace and a name', () => {
  const seen = (fields: object = {}) => ({ namespace: 'shop', kind: 'Pod', name: 'web', container: 'app', ...fields })
  const { observed_in } = headerOf({
    observed_in: [
      seen(),
      seen(),
      seen({ namespace: ' ' }),
      seen({ name: null }),
      { namespace: 'a', name: 'b' },
      seen({ name: 'web ' }),
    ],
  })
  assert.deepEqual(observed_in, [seen(), { namespace: 'a', kind: '', name: 'b', container: '' }])
  const many = Array.from({ length: 70 }, (_, i) => seen({ name: `web-${i}` }))
  assert.deepEqual(headerOf({ observed_in: many }).observed_in, many.slice(0, 64))
  assert.deepEqual(headerOf({ observed_in: [...Array(64).fill({}), seen()] }).observed_in, [])
})

test('the first 64 platforms are stored where they are digests, and the index digest where it differs from the own one', () => {
  const digests = Array.from({ length: 70 }, newImage)
  const manifests = Object.fromEntries(digests.map((digest, i) => [`linux/p${i}`, digest]))
  assert.deepEqual(
    headerOf({}, { platform_manifests: manifests }).platform_manifests,
    Object.fromEntries(Object.entries(manifests).slice(0, 64)),
  )
  assert.deepEqual(
    headerOf({}, { platform_manifests: { a: 'x', ' ': image, b: '', c: image, 'c ': digests[0] } }).platform_manifests,
    {
      c: image,
    },
  )
  for (const index_digest of [image, 'sha256:1', '', ` ${digests[0]}`])
    assert.equal(headerOf({}, { index_digest }).index_digest, null)
  for (const [digest_kind, kept] of [
    ['manifest', 'manifest'],
    ['INDEX', 'unknown'],
    ['', 'unknown'],
  ])
    assert.equal(headerOf({}, { digest_kind }).digest_kind, kept)
})

test('known SBOM sources are stored, with neutral names, sorted, of the first eight', () => {
  const of = (fields: object) => headerOf(fields).sbom_sources
  assert.deepEqual(
    of({ sbom_sources: ['registry', ' operator-scanner ', 'registry', 'somebody', 'node', 'Registry'] }),
    ['operator-scanner', 'registry'],
  )
  assert.deepEqual(of({ sbom_sources: ['trivy-operator', 'grype', 'operator-scanner'] }), [
    'db-matcher',
    'operator-scanner',
  ])
  assert.deepEqual(of({ sbom_sources: [...Array(8).fill('x'), 'registry'] }), [])
  assert.deepEqual(of({ sbom_sources: 'grype' }), ['db-matcher'])
  assert.deepEqual(of({ sbom_source: 'grype' }), ['db-matcher'])
  assert.deepEqual(of({ sbom_source: ['registry'], sbom_sources: ['grype'] }), ['db-matcher'])
})

test('an unknown trust is the weakest, a missing one is null', () => {
  const of = (fields: object) => headerOf(fields).sbom_trust
  for (const trust of ['attached-unbound', 'unverified', 'scanned', 'verified'])
    assert.equal(of({ sbom_trust: trust }), trust)
  for (const trust of ['golden', 'Verified', 'x'.repeat(99)])
    assert.equal(of({ sbom_trust: trust }), 'attached-unbound')
  for (const trust of [null, '', ' ']) assert.equal(of({ sbom_trust: trust }), null)
  assert.equal(of({ sbomTrust: 'scanned' }), 'scanned')
  assert.equal(of({ sbom_trust: 'verified', sbomTrust: 'scanned' }), 'verified')
})

// ---- The contract and its order

const good = findingsOf(image)

test('a required key that is missing or has another type is refused with its path', () => {
  for (const key of ['schema_version', 'image', 'source', 'scanned_at']) {
    assert.match(refused({ ...good, [key]: undefined })[1], new RegExp(`^Json deserialize error: ${key}: `))
    assert.equal(refused({ ...good, [key]: null })[0], 400, key)
  }
  const bad = [
    ...[
      { schema_version: '1' },
      { schema_version: 1.5 },
      { image: 'x' },
      { image: {} },
      { image: { digest: 7 } },
      { source: 7 },
    ],
    ...[
      { scanned_at: 1_700_000_000 },
      { scanned_at: 'yesterday' },
      { scanned_at: '2025-01-02T03:04:05' },
      { scanned_at: '2025-02-30T03:04:05Z' },
    ],
    ...[
      { vulnerabilities: {} },
      { vulnerabilities: 'x' },
      { observed_in: 'web' },
      { observed_in: [1] },
      { observed_in: [{ name: 1 }] },
    ],
    ...[
      { scanner: 'x' },
      { scanner: { name: 1 } },
      { os: [] },
      { os: { eosl: 'no' } },
      { db_updated_at: 7 },
      { sbom_sources: 7 },
      { sbom_sources: [7] },
    ],
    ...[
      { sbom_trust: 1 },
      { sbomTrust: 1 },
      { image: { digest: image, tag: 1 } },
      { image: { digest: image, platform_manifests: { a: 1 } } },
    ],
    ...[{ image: { digest: image, platform_manifests: [] } }, { image: { digest: image, index_digest: 1 } }],
  ]
  for (const fields of bad) {
    const [status, message] = refused({ ...good, ...fields })
    assert.equal(status, 400, JSON.stringify(fields))
    assert.ok(message.startsWith(`Json deserialize error: ${Object.keys(fields)[0]}`), message)
  }
})

test('a body that is no JSON object is refused', () => {
  for (const text of [
    '',
    'null',
    '[]',
    '"text"',
    '7',
    '{',
    `${JSON.stringify(good)}x`,
    `${JSON.stringify(good)}{}`,
    `[${JSON.stringify(good)}]`,
  ])
    assert.equal(refused(text)[0], 400, text.slice(0, 20))
})

test('broken rules are refused in the documented order', () => {
  const faults: [Record<string, unknown>, number, RegExp][] = [
    [{ vulnerabilities: [finding({ id: 7 })] }, 400, /vulnerabilities\[0\]\.id/],
    [{ schema_version: 2 }, 422, /^schema_version: expected 1$/],
    [{ image: { digest: newImage() } }, 422, /^image\.digest: expected the digest of the path$/],
    [{ source: 'clair' }, 422, /^source: expected operator-scanner, db-matcher or registry$/],
    [{ scanned_at: scannedAt(61) }, 422, /^scanned_at: more than 60 seconds ahead$/],
    [{ vulnerabilities: [finding({ id: '' })] }, 422, /^vulnerabilities\[0\]\.id/],
  ]
  for (let i = 0; i < faults.length; i++) {
    // Breaks all later rules too: the first one is reported.
    const all = Object.assign(
      {},
      ...faults
        .slice(i)
        .map(([fields]) => fields)
        .toReversed(),
    )
    const [, status, says] = faults[i]!
    const said = refused({ ...good, ...all })
    assert.equal(said[0], status)
    assert.match(said[1], says)
  }
  for (const schema_version of [0, 2, -1, 99]) assert.equal(refused({ ...good, schema_version })[0], 422)
  for (const source of ['clair', 'node', '', 'Operator-Scanner', 'registry ', 'trivy'])
    assert.equal(refused({ ...good, source })[0], 422, source)
  for (const source of ['operator-scanner', 'trivy-operator', 'db-matcher', 'grype', 'registry'])
    assert.equal(refused({ ...good, source })[0], 0)
})

test('a scan may be 60 whole seconds ahead, and at any time before, down to year 1', () => {
  for (const ahead of [-1e6, 0, 60, 60.999])
    assert.equal(refused({ ...good, scanned_at: scannedAt(ahead) })[0], 0, String(ahead))
  for (const ahead of [61, 120, 1e6])
    assert.equal(refused({ ...good, scanned_at: scannedAt(ahead) })[0], 422, String(ahead))
  assert.equal(prepare({ ...good, scanned_at: '0001-01-01T00:00:00Z' }).header.scanned_at, '0001-01-01T00:00:00')
})

test('20 000 findings are accepted; one more is not, of whatever type', () => {
  const list = (n: number, last = '{"id":"x","package":{"name":"p"}}') =>
    JSON.stringify(findingsOf(image, [])).replace(
      '[]',
      `[${'{"id":"x","package":{"name":"p"}},'.repeat(n - 1)}${last}]`,
    )
  assert.equal(prepare(list(MAX_FINDINGS)).header.item_count, MAX_FINDINGS)
  for (const last of ['{"id":"x","package":{"name":"p"}}', '7', '!'])
    assert.deepEqual(refused(list(MAX_FINDINGS + 1, last)), [413, 'body has more than 20000 vulnerabilities'])
})

test('the limit of compressed bodies applies to the unpacked bytes', () => {
  const text = JSON.stringify(good)
  const sent = (bytes: Buffer, maxInflatedBytes: number) => () =>
    preparePayload(findings, { bytes, isPacked: true, digest: image, maxInflatedBytes, now: NOW })
  assert.equal(sent(gzipSync(text), text.length)().header.item_count, 1)
  assert.throws(sent(gzipSync(text), text.length - 1), { status: 413 })
  assert.throws(sent(Buffer.from(text), text.length), { status: 400 })
})
