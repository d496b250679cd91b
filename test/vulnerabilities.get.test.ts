import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { supplyChainRefresh } from '../jobs/supply-chain-refresh.ts'
import { SEVERITIES } from '../lib/supply-chain/severity.ts'
import { startApp, TOKENS } from './support/app.ts'
import { depth } from './support/depth.ts'
import { container, newDigest, newNamespace, replica } from './support/images.ts'
import { assertDatabaseBusy, assertShed, assertUnauthorized, whileRefused } from './support/routes.ts'
import { finding, storeFindings } from './support/supply-chain.ts'

const app = await startApp()
const products = await startApp({ WIRE_NAMES: 'kguardian' }, app)
const guarded = await startApp(
  {
    ...TOKENS,
    BROKER_READ_ACQUIRE_WAIT_MS: '0',
    BROKER_READ_MEMORY_BUDGET_MB: '1',
  },
  app,
)
const token = TOKENS.BROKER_TOKEN_READ
type App = typeof app

interface Row {
  vuln_id: string
  scope_namespace: string
  severity: number
  is_fixable: boolean
  images: number
  workloads: number
  running_workloads: number
  namespaces: number
  join_rank: number
  tier: number
  executed_workloads: number
  loaded_workloads: number
  not_observed_workloads: number
  exposed_workloads: number
}

const row = (vuln_id: string, fields: Partial<Row> = {}): Row => ({
  vuln_id,
  scope_namespace: '',
  severity: 1,
  is_fixable: true,
  images: 1,
  workloads: 1,
  running_workloads: 1,
  namespaces: 1,
  join_rank: 1,
  tier: 2,
  executed_workloads: 0,
  loaded_workloads: 0,
  not_observed_workloads: 0,
  exposed_workloads: 0,
  ...fields,
})

/** Replaces the summary by these rows, with no other facts about the vulnerabilities. */
async function hold(rows: Row[], { sql }: Pick<App, 'sql'> = app): Promise<void> {
  await sql`truncate cve_summary, cve_detail, cve_fact, cve_summary_state, cve_package, cve_alias, cve_decided`
  await sql`insert into cve_summary select * from json_populate_recordset(null::cve_summary, ${JSON.stringify(rows)}::text::json)`
  await sql`insert into cve_detail select distinct vuln_id, null::real, '{openssl}'::text[], '{registry}'::text[] from cve_summary`
}
async function list(query: Record<string, string> = {}, { get }: Pick<App, 'get'> = app) {
  const answer = await get(`/vulnerabilities?${new URLSearchParams(query)}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.json
}
const ids = async (query?: Record<string, string>) => (await list(query)).items.map(({ id }: { id: string }) => id)

test('GET /vulnerabilities 200: an empty list without an age before the first summary', async () => {
  await hold([])
  const answer = await app.get('/vulnerabilities')
  assert.deepEqual(
    [answer.status, answer.text],
    [200, '{"order":"tier","items":[],"nextAfter":null,"computedAt":null,"staleSeconds":null}'],
  )
})

test('GET /vulnerabilities 200: every key in wire order', async () => {
  const all = { severity: 0, images: 5, workloads: 14, running_workloads: 3, namespaces: 2, join_rank: 2 }
  const use = { executed_workloads: 2, loaded_workloads: 3, not_observed_workloads: 4, exposed_workloads: 6, tier: 0 }
  await hold([row('CVE-1', { ...all, ...use }), row('CVE-2', { is_fixable: false, running_workloads: 0, tier: 1 })])
  await app.sql`
    update cve_detail set max_score = 9.8, package_count = 7, packages = '{zlib,curl}', sources = '{operator-scanner,db-matcher}' where vuln_id = 'CVE-1'`
  await app.sql`insert into cve_fact (vuln_id, kev, epss, epss_percentile) values ('CVE-1', true, 0.25, 0.9)`
  await app.sql`insert into cve_decided (vuln_id, scope_namespace, workloads) values ('CVE-1', '', 4), ('CVE-1', 'shop', 1), ('CVE-2', 'shop', 1)`
  await app.sql`insert into cve_alias (vuln_id, alias) values ('CVE-1', 'PYSEC-1'), ('CVE-1', 'GHSA-1'), ('CVE-1', 'ghsa-1'), ('CVE-3', 'X')`
  await app.sql`insert into cve_summary_state (refreshed_at) values ('2024-05-01T10:00:00.120000')`
  const { staleSeconds, ...page } = await list()
  const items = [
    {
      id: 'CVE-1',
      aliases: ['GHSA-1', 'PYSEC-1'],
      severity: 'CRITICAL',
      maxScore: 9.8,
      fixable: true,
      kev: true,
      maxEpss: 0.25,
      packages: ['curl', 'zlib'],
      packageCount: 7,
      sources: ['db-matcher', 'operator-scanner'],
      images: 5,
      workloads: 14,
      runningWorkloads: 3,
      namespaces: 2,
      weakestJoin: 'platform_manifest',
      inUse: true,
      inUseState: 'executed',
      tier: 'P0',
      executedWorkloads: 2,
      loadedWorkloads: 3,
      unknownWorkloads: 5,
      notObservedWorkloads: 4,
      exposedWorkloads: 6,
      decidedWorkloads: 4,
    },
    {
      id: 'CVE-2',
      aliases: [],
      severity: 'HIGH',
      maxScore: null,
      fixable: false,
      kev: null,
      maxEpss: null,
      packages: ['openssl'],
      packageCount: 1,
      sources: ['registry'],
      images: 1,
      workloads: 1,
      runningWorkloads: 0,
      namespaces: 1,
      weakestJoin: 'image_id',
      inUse: null,
      inUseState: 'unknown',
      tier: null,
      executedWorkloads: 0,
      loadedWorkloads: 0,
      unknownWorkloads: 1,
      notObservedWorkloads: 0,
      exposedWorkloads: 0,
      decidedWorkloads: 0,
    },
  ]
  assert.equal(
    JSON.stringify(page),
    JSON.stringify({ order: 'tier', items, nextAfter: null, computedAt: '2024-05-01T10:00:00.120' }),
  )
  const [clock] = await app.sql<
    { secs: number }[]
  >`select extract(epoch from now() at time zone 'utc' - '2024-05-01T10:00:00.12')::float8 as secs`
  assert.ok(Number.isInteger(staleSeconds) && staleSeconds <= clock!.secs && staleSeconds > clock!.secs - 600)
})

test('GET /vulnerabilities 200: the age is never negative, and an empty list has one too', async () => {
  await hold([])
  await app.sql`insert into cve_summary_state (refreshed_at) values (now() at time zone 'utc' + interval '1 hour')`
  const { items, computedAt, staleSeconds } = await list()
  assert.deepEqual([items, staleSeconds], [[], 0])
  assert.match(computedAt, /^\d{4}-\d\d-\d\dT/)
})

test('GET /vulnerabilities 200: the most severe first, then by id', async () => {
  const made = [4, 0, 5, 2, 1, 3].flatMap((severity) =>
    ['b', 'a', 'B'].map((name) => row(`CVE-${severity}${name}`, { severity })),
  )
  await hold(made)
  const all = (await list({ limit: '500' })).items
  assert.deepEqual(
    all.map(({ id }: { id: string }) => id),
    [0, 1, 2, 3, 4, 5].flatMap((severity) => ['B', 'a', 'b'].map((name) => `CVE-${severity}${name}`)),
  )
  assert.deepEqual([...new Set(all.map((one: { severity: string }) => one.severity))], [...SEVERITIES])
})

test('GET /vulnerabilities 200: at most five packages by name, and the name of each join', async () => {
  await hold([1, 2, 3].map((join_rank) => row(`CVE-${join_rank}`, { join_rank })))
  await app.sql`update cve_detail set packages = '{f,e,d,c,b,a,A}' where vuln_id = 'CVE-1'`
  const { items } = await list()
  assert.deepEqual(items[0].packages, ['A', 'a', 'b', 'c', 'd'])
  assert.deepEqual(
    items.map((one: { weakestJoin: string }) => one.weakestJoin),
    ['image_id', 'platform_manifest', 'workload_tag'],
  )
})

test('GET /vulnerabilities 200: with WIRE_NAMES=kguardian sources have product names, in the order of the neutral ones', async () => {
  await hold([row('CVE-1')], products)
  await products.sql`update cve_detail set sources = '{registry,operator-scanner,db-matcher}'`
  assert.deepEqual((await list({}, products)).items[0].sources, ['grype', 'trivy-operator', 'registry'])
})

test('GET /vulnerabilities 200: a namespace filters exactly, a blank one does not', async () => {
  await hold([row('CVE-1', { images: 9 }), row('CVE-1', { scope_namespace: 'shop', images: 2 }), row('CVE-2')])
  const { items } = await list({ namespace: 'shop' })
  assert.deepEqual([items.length, items[0].id, items[0].images, items[0].packages], [1, 'CVE-1', 2, ['openssl']])
  assert.deepEqual(await ids({ namespace: 'Shop' }), [])
  for (const namespace of ['', ' ']) assert.deepEqual(await ids({ namespace }), ['CVE-1', 'CVE-2'])
})

test('GET /vulnerabilities 200: filters by severity, by fixes and by running', async () => {
  const outcomes = [true, false].flatMap((is_fixable) =>
    [1, 0].map((running_workloads) => ({ is_fixable, running_workloads })),
  )
  await hold(
    SEVERITIES.flatMap((_, severity) => outcomes.map((one, i) => row(`CVE-${severity}${i}`, { ...one, severity }))),
  )
  const of = async (query: Record<string, string>) =>
    (await ids({ ...query, limit: '500' })).map((id: string) => id.slice(4)).join(' ')
  assert.equal(await of({ severity: 'low,Critical, ,LOW' }), '00 01 02 03 30 31 32 33')
  assert.equal(await of({ severity: 'CRITICAL,MEDIUM,NONE', fixable: 'true', running: 'true' }), '00 20 40')
  assert.equal(await of({ severity: 'UNKNOWN', fixable: 'false' }), '52 53')
  assert.equal(await of({ severity: 'UNKNOWN', running: 'true' }), '50 52')
  assert.equal(await of({ severity: 'UNKNOWN', running: 'false' }), '50 51 52 53')
  assert.equal((await ids({ severity: '', limit: '500' })).length, 24)
  // After the last CRITICAL the page continues with the first MEDIUM, whatever its id.
  const apart = { severity: 'CRITICAL,MEDIUM,NONE', limit: '5' }
  await app.sql`update cve_summary set vuln_id = 'A' || vuln_id where severity = 4`
  const { nextAfter } = await list(apart)
  assert.deepEqual((await ids({ ...apart, after: nextAfter })).join(' '), 'CVE-21 CVE-22 CVE-23 ACVE-40 ACVE-41')
})

interface Known {
  kev?: boolean | undefined
  epss?: number | undefined
  packages?: string[]
  aliases?: string[]
}

/** Stores facts about vulnerabilities besides the summary. */
async function know(facts: Record<string, Known>): Promise<void> {
  for (const [id, { kev, epss, packages = [], aliases = [] }] of Object.entries(facts)) {
    await app.sql`insert into cve_fact (vuln_id, kev, epss) values (${id}, ${kev ?? null}, ${epss ?? null})`
    for (const name of packages) await app.sql`insert into cve_package values (${id}, ${name})`
    for (const name of aliases) await app.sql`insert into cve_alias (vuln_id, alias) values (${id}, ${name})`
  }
}

test('GET /vulnerabilities 200: filters by kev, epss_min, vuln_id and package, alone and combined', async () => {
  await hold(
    ['CVE-1', 'CVE-2', 'CVE-3', 'CVE-4', 'GHSA-x'].map((id, i) =>
      row(id, { severity: i % 3, is_fixable: i % 2 === 0 }),
    ),
  )
  await know({
    'CVE-1': { kev: true, epss: 0.5, packages: ['curl', 'openssl'], aliases: ['GHSA-one'] },
    'CVE-2': { kev: false, epss: 0.1, packages: ['openssl'] },
    'CVE-3': { epss: 1, packages: ['openssl-libs'], aliases: ['GHSA-x'] },
    'GHSA-x': { kev: true, epss: 0 },
  })
  for (const [query, expected] of [
    [{ kev: 'true' }, ['CVE-1', 'GHSA-x']],
    [{ kev: 'false' }, ['CVE-2']],
    [{ epss_min: '0' }, ['CVE-1', 'CVE-2', 'GHSA-x', 'CVE-3']],
    [{ epss_min: '0.1' }, ['CVE-1', 'CVE-2', 'CVE-3']],
    [{ epss_min: '.5' }, ['CVE-1', 'CVE-3']],
    [{ epss_min: '1' }, ['CVE-3']],
    [{ epss_min: '' }, ['CVE-1', 'CVE-4', 'CVE-2', 'GHSA-x', 'CVE-3']],
    [{ package: 'openssl' }, ['CVE-1', 'CVE-2']],
    [{ package: 'OpenSSL' }, []],
    [{ package: ' ' }, ['CVE-1', 'CVE-4', 'CVE-2', 'GHSA-x', 'CVE-3']],
    [{ vuln_id: 'cve-2' }, ['CVE-2']],
    [{ vuln_id: 'ghsa-ONE' }, ['CVE-1']],
    // A vulnerability stored under two ids, as before its aliases were known, is found under both.
    [{ vuln_id: 'GHSA-x' }, ['GHSA-x', 'CVE-3']],
    [{ vuln_id: 'CVE-3' }, ['GHSA-x', 'CVE-3']],
    [{ vuln_id: 'CVE-9' }, []],
    [{ kev: 'true', epss_min: '0.2' }, ['CVE-1']],
    [
      {
        kev: 'true',
        package: 'openssl',
        vuln_id: 'CVE-1',
        epss_min: '0.5',
        severity: 'CRITICAL',
        fixable: 'true',
        running: 'true',
      },
      ['CVE-1'],
    ],
    [{ kev: 'true', package: 'openssl', vuln_id: 'CVE-1', epss_min: '0.5', severity: 'HIGH' }, []],
    [{ kev: 'true', fixable: 'false' }, []],
    [{ epss_min: '0', namespace: 'shop' }, []],
  ] as const)
    assert.deepEqual(await ids(query as Record<string, string>), expected, JSON.stringify(query))
})

test('GET /vulnerabilities 200: property: filters by facts combine with all others, and pages of any size form the whole list', async () => {
  const some = fc.record({
    ...{
      severity: fc.nat(5),
      is_fixable: fc.boolean(),
      running_workloads: fc.nat(1),
      scope_namespace: fc.constantFrom('', '', 'a'),
    },
    ...{
      kev: fc.option(fc.boolean(), { nil: undefined }),
      epss: fc.option(fc.constantFrom(0, 0.25, 0.5, 1), { nil: undefined }),
    },
    ...{ packages: fc.subarray(['p', 'q', 'r']), aliases: fc.subarray(['GHSA-1', 'GHSA-2'], { maxLength: 1 }) },
  })
  const query = fc.record(
    {
      ...{
        severity: fc.subarray([...SEVERITIES], { minLength: 1 }).map((names) => names.join(',')),
        namespace: fc.constantFrom('', 'a'),
      },
      ...{
        fixable: fc.constantFrom('true', 'false'),
        running: fc.constantFrom('true', 'false'),
        kev: fc.constantFrom('true', 'false'),
      },
      ...{ epss_min: fc.constantFrom('0', '0.25', '0.4', '1'), package: fc.constantFrom('p', 'q', 'nobody') },
      vuln_id: fc.constantFrom('cve-7', 'ghsa-1', 'GHSA-2'),
    },
    { requiredKeys: [] },
  )
  await fc.assert(
    fc.asyncProperty(
      fc.array(some, { maxLength: 30, size: 'max' }),
      fc.array(query, { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 1, max: 9 }),
      async (made, queries, limit) => {
        const rows = made.map(({ kev, epss, packages, aliases, ...fields }, i) => ({
          ...{ kev, epss, packages, aliases },
          stored: row(`CVE-${(i * 7) % 30}`, fields),
        }))
        await hold(rows.map(({ stored }) => stored))
        await know(Object.fromEntries(rows.map(({ stored, ...facts }) => [stored.vuln_id, facts])))
        for (const one of queries) {
          const expected = rows
            .filter(({ stored }) => stored.scope_namespace === (one.namespace ?? ''))
            .filter(({ stored }) => one.severity?.split(',').includes(SEVERITIES[stored.severity]!) ?? true)
            .filter(({ stored }) => one.fixable === undefined || String(stored.is_fixable) === one.fixable)
            .filter(({ stored }) => one.running !== 'true' || stored.running_workloads > 0)
            .filter(({ kev }) => one.kev === undefined || String(kev) === one.kev)
            .filter(({ epss }) => one.epss_min === undefined || (epss !== undefined && epss >= Number(one.epss_min)))
            .filter(({ packages }) => one.package === undefined || packages.includes(one.package))
            .filter(
              ({ stored, aliases }) =>
                one.vuln_id === undefined ||
                [stored.vuln_id, ...aliases].some((id) => id.toUpperCase() === one.vuln_id!.toUpperCase()),
            )
            .map(({ stored }) => stored)
            .sort((x, y) => x.severity - y.severity || (x.vuln_id < y.vuln_id ? -1 : 1))
            .map((r) => r.vuln_id)
          const found: string[] = []
          for (let after: string | null = ''; after !== null; ) {
            const page = await list({
              ...(one as Record<string, string>),
              limit: String(limit),
              ...(after === '' ? {} : { after }),
            })
            assert.ok(page.items.length === limit || page.nextAfter === null)
            found.push(...page.items.map(({ id }: { id: string }) => id))
            after = page.nextAfter
          }
          assert.deepEqual(found, expected, JSON.stringify(one))
        }
      },
    ),
    { numRuns: depth(6, 30) },
  )
})

test('GET /vulnerabilities 200: the default limit is 100, and limits are clamped to 1..500', async () => {
  await hold(Array.from({ length: 503 }, (_, i) => row(`CVE-${String(i).padStart(4, '0')}`)))
  const first = await list()
  assert.deepEqual([first.items.length, first.items.at(-1).id], [100, 'CVE-0099'])
  for (const [limit, count] of [
    ['7', 7],
    ['500', 500],
    ['501', 500],
    ['0', 1],
    ['-3', 1],
  ] as const)
    assert.equal((await list({ limit })).items.length, count, limit)
  const { items, nextAfter } = await list({ limit: '500' })
  const rest = await list({ limit: '3', after: nextAfter })
  assert.deepEqual(
    [items.length, rest.items.map(({ id }: { id: string }) => id), rest.nextAfter],
    [500, ['CVE-0500', 'CVE-0501', 'CVE-0502'], null],
  )
})

test('GET /vulnerabilities 200: a page begins where the previous one ended, also after changes in between', async () => {
  await hold(['a', 'c', 'e'].map((name) => row(name)))
  const { nextAfter } = await list({ limit: '2' })
  await app.sql`delete from cve_summary where vuln_id = 'c'`
  await hold(['a', 'b', 'd', 'e'].map((name) => row(name)).concat(row('x', { severity: 0 })))
  assert.deepEqual(await ids({ after: nextAfter }), ['d', 'e'])
})

test('GET /vulnerabilities 200: property: filters combine, and pages of any size form the whole list', async () => {
  const fields = fc.record({
    severity: fc.nat(5),
    is_fixable: fc.boolean(),
    running_workloads: fc.nat(1),
    scope_namespace: fc.constantFrom('', '', '', 'a', 'b'),
  })
  const query = fc.record(
    {
      severity: fc.subarray([...SEVERITIES], { minLength: 1 }).map((names) => names.join(',')),
      fixable: fc.constantFrom('true', 'false'),
      running: fc.constantFrom('true', 'false'),
      namespace: fc.constantFrom('', 'a', 'b'),
    },
    { requiredKeys: [] },
  )
  await fc.assert(
    fc.asyncProperty(
      fc.array(fields, { maxLength: 60, size: 'max' }),
      fc.array(query, { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 1, max: 9 }),
      async (made, queries, limit) => {
        const rows = made.map((one, i) => row(`CVE-${(i * 7) % 60}`, one))
        await hold(rows)
        for (const one of queries) {
          const expected = rows
            .filter((r) => r.scope_namespace === (one.namespace ?? ''))
            .filter((r) => one.severity?.split(',').includes(SEVERITIES[r.severity]!) ?? true)
            .filter((r) => one.fixable === undefined || String(r.is_fixable) === one.fixable)
            .filter((r) => one.running !== 'true' || r.running_workloads > 0)
            .sort((x, y) => x.severity - y.severity || (x.vuln_id < y.vuln_id ? -1 : 1))
            .map((r) => r.vuln_id)
          const found: string[] = []
          for (let after: string | null = ''; after !== null; ) {
            const page = await list({
              ...(one as Record<string, string>),
              limit: String(limit),
              ...(after === '' ? {} : { after }),
            })
            assert.ok(page.items.length === limit || page.nextAfter === null)
            found.push(...page.items.map(({ id }: { id: string }) => id))
            after = page.nextAfter
          }
          assert.deepEqual(found, expected, JSON.stringify(one))
        }
      },
    ),
    { numRuns: depth(8, 40) },
  )
})

test('GET /vulnerabilities 200: counts that the job made from payloads and pods', async () => {
  const other = await startApp()
  const [namespace, digest, second] = [newNamespace(), newDigest(), newDigest()]
  for (const pod of [
    replica(namespace, [container('app', digest)]),
    replica(namespace, [container('app', second, { state: 'terminated' })], { workload_name: 'old' }),
  ])
    assert.equal((await other.post('/pod/spec', pod)).status, 200)
  await storeFindings(other, digest, 'operator-scanner', [
    finding('CVE-1', { severity: 3, score: 4.5, fixed_versions: ['2'] }),
  ])
  await storeFindings(other, second, 'db-matcher', [
    finding('CVE-1', { severity: 0, package_name: 'curl', kev: true, epss: 0.5 }),
    finding('CVE-2'),
  ])
  const { deps, db } = other
  await supplyChainRefresh.run({ config: deps.config, db, log: deps.log, signal: new AbortController().signal })

  const { items, computedAt, staleSeconds } = await list({ namespace }, other)
  assert.ok(computedAt !== null && staleSeconds >= 0)
  assert.deepEqual(items[0], {
    id: 'CVE-1',
    aliases: [],
    severity: 'CRITICAL',
    maxScore: 4.5,
    fixable: true,
    kev: true,
    maxEpss: 0.5,
    packages: ['curl', 'openssl'],
    packageCount: 2,
    sources: ['db-matcher', 'operator-scanner'],
    images: 2,
    workloads: 2,
    runningWorkloads: 1,
    namespaces: 1,
    weakestJoin: 'image_id',
    inUse: null,
    inUseState: 'unknown',
    tier: 'P0',
    executedWorkloads: 0,
    loadedWorkloads: 0,
    unknownWorkloads: 2,
    notObservedWorkloads: 0,
    exposedWorkloads: 0,
    decidedWorkloads: 0,
  })
  assert.deepEqual(
    (await list({ running: 'true' }, other)).items.map(({ id }: { id: string }) => id),
    ['CVE-1'],
  )
  assert.deepEqual(items.length, 2)
})

for (const [query, says] of [
  [
    'severity=BAD',
    /^Query deserialize error: severity: "BAD" is not one of CRITICAL, HIGH, MEDIUM, LOW, NONE, UNKNOWN$/,
  ],
  ['severity=LOW,x', /severity: "X"/],
  ['fixable=yes', /^Query deserialize error: fixable: /],
  ['running=1', /^Query deserialize error: running: /],
  ['kev=yes', /^Query deserialize error: kev: /],
  ['kev=', /^Query deserialize error: kev: /],
  ['epss_min=1.1', /^Query deserialize error: epss_min: expected a number from 0 to 1$/],
  ['epss_min=-0.1', /epss_min: expected a number/],
  ['epss_min=NaN', /epss_min: expected a number/],
  ['epss_min=0x1', /epss_min: expected a number/],
  [
    'vuln_id=a%20b',
    /^Query deserialize error: vuln_id: expected 1 to 128 letters, digits, dots, underscores, colons and hyphens$/,
  ],
  [`vuln_id=${'x'.repeat(129)}`, /vuln_id: expected 1 to 128/],
  ['package=%00', /package: U\+0000/],
  ['limit=abc', /limit: expected an integer/],
  ['limit=', /limit: expected an integer/],
  ['namespace=%00', /namespace: U\+0000/],
  ['after=nonsense', /^Query deserialize error: after: expected the nextAfter of a page of this list$/],
  [`after=${Buffer.from('[6,"CVE-1"]').toString('base64url')}`, /after: /],
  [`after=${Buffer.from('[1,"CVE-1","x"]').toString('base64url')}`, /after: /],
  [`after=${Buffer.from('[1,"\\u0000"]').toString('base64url')}`, /after: /],
] as const)
  test(`GET /vulnerabilities 400: ${query}`, async () => {
    const answer = await app.get(`/vulnerabilities?${query}`)
    assert.equal(answer.status, 400)
    assert.match(answer.text, says)
  })

test('GET /vulnerabilities 401: without a token', async () => assertUnauthorized(await guarded.get('/vulnerabilities')))

test('GET /vulnerabilities 200: every token may read', async () => {
  for (const one of Object.values(TOKENS))
    assert.equal((await guarded.get('/vulnerabilities', { token: one })).status, 200)
})

test('GET /vulnerabilities 503: 6 KiB are charged for each row of the limit and one more', async () => {
  const release = await guarded.deps.budget.acquire(1024 - 605)
  assertShed(await guarded.get('/vulnerabilities', { token }), 606, 1024)
  assert.equal((await guarded.get('/vulnerabilities?limit=99', { token })).status, 200)
  release()
})

test('GET /vulnerabilities 503: a cancelled statement', async () => {
  await whileRefused(guarded.sql, 'cve_summary', async () =>
    assertDatabaseBusy(await guarded.get('/vulnerabilities', { token })),
  )
})
