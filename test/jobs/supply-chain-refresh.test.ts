import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import fc from 'fast-check'
import type postgres from 'postgres'
import { chains } from '../../jobs/index.ts'
import { held, laneHeld } from '../../jobs/locks.ts'
import { deletePayloads } from '../../jobs/supply-chain/deletions.ts'
import { relinkAll } from '../../jobs/supply-chain/relink.ts'
import { countChanged, findChangedImages, refreshFacts } from '../../jobs/supply-chain/steps.ts'
import { supplyChainRefresh } from '../../jobs/supply-chain-refresh.ts'
import { loadConfig } from '../../lib/config/index.ts'
import { expectedSummary, storedSummary } from '../supply-chain/summary-model.ts'
import { depth } from '../support/depth.ts'
import { digestOf } from '../support/images.ts'
import { abortedAfter, startScene } from './scene.ts'

const DAY = 86_400
const HOUR = 3_600
const scene = await startScene(supplyChainRefresh)
const { ago, pod, run, count, sql, deps } = scene
const windowSecs = deps.config.imageRunningWindowSecs

beforeEach(async () => {
  await sql`
    truncate workload_container, image, pod, pod_address, image_report, image_finding, image_component, sbom_page, image_link, cve_fact, cve_news,
             summary_image, summary_workload, image_cve, summary_news, cve_summary, cve_detail, cve_summary_state, cve_package, cve_alias,
             container_use, package_use, use_news`
})

type Row = Record<string, unknown>
let posts = 0

const finding = (vuln_id: string, fields: Row = {}): Row => ({
  ...{
    severity: 1,
    vuln_id,
    package_name: 'openssl',
    installed_version: '3.0',
    fixed_versions: [],
    cvss: {},
    file_paths: [],
    ...fields,
  },
})
async function store(
  kind: 'findings' | 'sbom',
  name: string,
  rows: Row[],
  fields: Row = {},
  page: Row | null = null,
): Promise<Row> {
  const header = {
    digest: digestOf(name),
    source: 'operator-scanner',
    digest_kind: 'unknown',
    platform_manifests: {},
    scanned_at: ago(0),
    os_eosl: false,
    observed_in: [],
    content_hash: page === null ? JSON.stringify(rows) : `set:${page.set_id}`,
    item_count: rows.length,
    sbom_sources: [],
    post: `post-${posts++}`,
    ...fields,
  }
  const [answer] =
    kind === 'findings'
      ? await sql<
          Row[]
        >`select store_findings(${JSON.stringify(header)}::text::json, ${JSON.stringify(rows)}) as answer`
      : await sql<Row[]>`
          select store_sbom(${JSON.stringify(header)}::text::json, ${page && JSON.stringify(page)}::text::json, ${JSON.stringify(rows)}) as answer`
  return answer!.answer as Row
}
const storeFindings = (name: string, rows: Row[], fields?: Row) => store('findings', name, rows, fields)
async function runs(
  name: string,
  workload: string,
  fields: { namespace?: string; container?: string; state?: string | null; secs?: number; pod?: string } = {},
) {
  await sql`insert into image values (${digestOf(name)}, null, '{}', 'repo', ${ago(0)}::text::timestamp, ${ago(0)}::text::timestamp) on conflict do nothing`
  const time = ago(fields.secs ?? 0)
  await sql`
    insert into workload_container
    values ('primary', ${fields.namespace ?? 'shop'}, 'Deployment', ${workload}, ${fields.container ?? 'app'}, ${digestOf(name)}, 'regular', 'r', '{}', '{}',
            ${fields.pod ?? null}, ${fields.state === undefined ? 'running' : fields.state}, null, null, ${time}::text::timestamp, ${time}::text::timestamp)
    on conflict (pod_namespace, workload_kind, workload_name, container_name, image_digest, cluster_id) do update set
      state = excluded.state, last_seen = excluded.last_seen, last_pod_name = excluded.last_pod_name`
}
const links = async () =>
  (await sql<Row[]>`select digest, source, image_digest, join_rank::int as rank from image_link order by 1, 2, 3`).map(
    (row) => ({
      ...row,
    }),
  )
const assertSummary = async () => assert.deepEqual(await storedSummary(sql), await expectedSummary(sql, windowSecs))
/** All rows that a pass may write, with the transaction that wrote each last. */
const versions = async () =>
  (
    await sql<{ version: string }[]>`
      select format('%s %s %s', vuln_id, scope_namespace, xmin) as version from cve_summary
      union all select format('%s %s %s', vuln_id, image_digest, xmin) from image_cve
      union all select format('%s %s', image_digest, xmin) from summary_image
      union all select format('%s %s %s', image_digest, container_name, xmin) from container_use
      union all select format('%s %s %s', image_digest, package_name, xmin) from package_use
      union all select format('%s %s %s', image_digest, workload_name, xmin) from summary_workload
      union all select format('%s %s %s %s', digest, source, image_digest, xmin) from image_link
      union all select format('%s %s', vuln_id, xmin) from cve_fact
      union all select format('%s %s', vuln_id, xmin) from cve_detail
      order by 1`
  ).map(({ version }) => version)

test('the job has a chain of its own, runs first after 45 seconds, then at its interval of at least 60 seconds', () => {
  assert.deepEqual(
    chains.filter((chain) => chain.includes(supplyChainRefresh)),
    [[supplyChainRefresh]],
  )
  assert.equal(supplyChainRefresh.firstAfterSecs, 45)
  assert.equal(supplyChainRefresh.everySecs(loadConfig({ NODE_ENV: 'test' })), 300)
  assert.equal(
    supplyChainRefresh.everySecs(loadConfig({ NODE_ENV: 'test', SUPPLYCHAIN_RETENTION_INTERVAL_SECS: '5' })),
    60,
  )
})

test('an image that runs after its scan is linked to the payload that names its manifest', async () => {
  await storeFindings('index', [finding('CVE-1')], { platform_manifests: { 'linux/amd64': digestOf('manifest') } })
  await runs('manifest', 'web')
  assert.deepEqual(await links(), [])
  assert.equal(await count(), 1)
  await run()
  assert.deepEqual(await links(), [
    { digest: digestOf('index'), source: 'operator-scanner', image_digest: digestOf('manifest'), rank: 2 },
  ])
  await assertSummary()
  const [row] = await storedSummary(sql)
  assert.deepEqual([row!.images, row!.workloads, row!.running_workloads, row!.join_rank], [1, 1, 1, 2])
})

test('links and counts of an image are deleted when it leaves the inventory', async () => {
  await runs('a', 'web')
  await storeFindings('a', [finding('CVE-1')])
  await run()
  assert.equal((await storedSummary(sql)).length, 2)
  await sql`truncate workload_container, image`
  await run()
  assert.deepEqual([await links(), await storedSummary(sql), await versions()], [[], [], []])
})

test('a pass without changes writes only the time of the summary', async () => {
  await runs('a', 'web')
  await runs('b', 'api', { namespace: 'bank', state: 'terminated' })
  await storeFindings('a', [finding('CVE-1', { epss: 0.5 }), finding('CVE-2')])
  await storeFindings('b', [finding('CVE-1')])
  await run()
  const before = await versions()
  assert.ok(before.length > 0)
  const [first] = await sql`select refreshed_at::text from cve_summary_state`
  assert.deepEqual([(await run()).rows, await count()], [0, 0])
  assert.deepEqual(await versions(), before)
  const [second] = await sql`select refreshed_at::text from cve_summary_state`
  assert.ok(second!.refreshed_at > first!.refreshed_at)
})

test('a pass does not write rows of unchanged vulnerabilities', async () => {
  for (const name of ['a', 'b', 'c']) {
    await runs(name, name)
    await storeFindings(name, [finding(`CVE-${name}`), finding('CVE-shared')])
  }
  await run()
  const of = (rows: string[], vuln: string) => rows.filter((row) => row.includes(vuln))
  const before = await versions()
  await storeFindings('a', [finding('CVE-a', { severity: 0 }), finding('CVE-shared')], { scanned_at: ago(-1) })
  await run()
  const after = await versions()
  await assertSummary()
  for (const vuln of ['CVE-b', 'CVE-c', 'CVE-shared']) assert.deepEqual(of(after, vuln), of(before, vuln), vuln)
  assert.notDeepEqual(of(after, 'CVE-a'), of(before, 'CVE-a'))
})

test('the running workloads are counted again when a pod starts, ends, is silent beyond the window, or dies', async () => {
  await storeFindings('a', [finding('CVE-1')])
  const running = async () => (await storedSummary(sql)).find((row) => row.scope_namespace === '')?.running_workloads
  await runs('a', 'web')
  await run()
  await runs('a', 'api', { namespace: 'bank' })
  await run()
  assert.equal(await running(), 2)
  await runs('a', 'api', { namespace: 'bank', state: 'terminated' })
  await run()
  assert.equal(await running(), 1)
  await runs('a', 'web', { secs: windowSecs + 60 })
  await run()
  assert.equal(await running(), 0)
  await pod({ pod_name: 'alive' })
  await runs('a', 'web', { secs: windowSecs + 60, pod: 'alive' })
  await run()
  assert.equal(await running(), 1)
  await sql`update pod set is_dead = true`
  assert.equal(await count(), 1)
  await run()
  assert.equal(await running(), 0)
  await assertSummary()
})

test('a change of the header alone is counted: of two equally good payloads, the newest scan counts', async () => {
  await runs('m', 'web')
  const manifests = { platform_manifests: { 'linux/amd64': digestOf('m') } }
  await storeFindings('one', [finding('CVE-1')], { ...manifests, scanned_at: ago(20) })
  await storeFindings('two', [finding('CVE-2')], { ...manifests, scanned_at: ago(10) })
  await run()
  const ids = async () => [...new Set((await storedSummary(sql)).map((row) => row.vuln_id))]
  assert.deepEqual(await ids(), ['CVE-2'])
  await storeFindings('one', [finding('CVE-1')], { ...manifests, scanned_at: ago(5) })
  await run()
  assert.deepEqual(await ids(), ['CVE-1'])
  await storeFindings('one', [finding('CVE-1')], { scanned_at: ago(1) })
  await run()
  assert.deepEqual(await ids(), ['CVE-2'])
  await assertSummary()
})

test('findings of every platform of a running index are counted, in any order of scans', async () => {
  await runs('index', 'web')
  const of = { index_digest: digestOf('index') }
  await storeFindings('amd64', [finding('CVE-1', { severity: 0 })], { ...of, scanned_at: ago(20) })
  await run()
  await storeFindings('arm64', [finding('CVE-2')], { ...of, scanned_at: ago(10) })
  await storeFindings('riscv64', [], { ...of, scanned_at: ago(5) })
  await run()
  const found = (await storedSummary(sql)).filter(
    (row) => row.scope_namespace === '' && ['CVE-1', 'CVE-2'].includes(row.vuln_id),
  )
  assert.deepEqual(
    found.map((row) => [row.vuln_id, row.severity, row.images, row.workloads]),
    [
      ['CVE-1', 0, 1, 1],
      ['CVE-2', 1, 1, 1],
    ],
  )
  await assertSummary()
})

test('EPSS and KEV of a vulnerability fall when the rows that raised them are replaced', async () => {
  await runs('a', 'web')
  await storeFindings('a', [finding('CVE-1')])
  await storeFindings('elsewhere', [finding('CVE-1', { kev: true, epss: 0.75 })], { source: 'db-matcher' })
  await run()
  const facts = async () => {
    const [row] = await storedSummary(sql)
    return [row!.kev, row!.max_epss]
  }
  assert.deepEqual(await facts(), [true, 0.75])
  assert.equal((await sql`select 1 from cve_news`).length, 0)
  await storeFindings('elsewhere', [finding('CVE-1', { epss: 0.25 })], { source: 'db-matcher', scanned_at: ago(-1) })
  await run()
  assert.deepEqual(await facts(), [null, 0.25])
  await storeFindings('elsewhere', [], { source: 'db-matcher', scanned_at: ago(-2) })
  await run()
  assert.deepEqual([await facts(), (await sql`select 1 from cve_fact`).length], [[null, null], 0])
})

test('a fact that falls while a payload with the same value is uncommitted rises again in a later pass', async () => {
  await runs('a', 'web')
  await storeFindings('one', [finding('CVE-1', { kev: true })])
  await storeFindings('a', [finding('CVE-1')], { source: 'db-matcher' })
  await run()
  const kev = async () => (await storedSummary(sql))[0]!.kev
  await sql.begin(async (slow) => {
    await slow`
      insert into image_finding (digest, source, severity, vuln_id, package_name, installed_version, fixed_versions, cvss, file_paths, kev)
      values ('late', 'registry', 0, 'CVE-1', 'p', '1', '{}', '{}', '{}', true)`
    await storeFindings('one', [], { scanned_at: ago(-1) })
    await run()
    assert.equal(await kev(), null)
  })
  await run()
  assert.equal(await kev(), true)
  await sql`update cve_news set noted_at = ${ago(180)}::text::timestamp`
  await run()
  assert.deepEqual([(await sql`select 1 from cve_news`).length, await kev()], [0, true])
})

test('the summary is that of all stored rows after any changes in any order', async () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd')
  const source = fc.constantFrom('operator-scanner', 'db-matcher', 'registry')
  const row = fc.record({
    vuln_id: fc.constantFrom('CVE-1', 'CVE-2', 'CVE-3', 'CVE-4', 'CVE-5'),
    severity: fc.integer({ min: 0, max: 5 }),
    package_name: fc.constantFrom('p', 'q', 'r', 's', 't', 'u', 'v'),
    installed_version: fc.constantFrom('1', '2'),
    fixed_versions: fc.constantFrom([], ['2']),
    score: fc.constantFrom(null, 1.5, 9),
    kev: fc.constantFrom(null, null, true, false),
    epss: fc.constantFrom(null, null, 0.25, 0.75),
  })
  const rows = fc.uniqueArray(row, {
    maxLength: 8,
    selector: (one) => [one.vuln_id, one.package_name, one.installed_version].join(),
  })
  const change = fc.oneof(
    fc.record({
      is: fc.constant('findings' as const),
      name,
      source,
      rows,
      manifest: fc.option(name),
      index: fc.constantFrom(null, 'a', 'b'),
    }),
    fc.record({
      is: fc.constant('runs' as const),
      name,
      workload: fc.constantFrom('web', 'api'),
      namespace: fc.constantFrom('shop', 'bank'),
      container: fc.constantFrom('app', 'side'),
      state: fc.constantFrom('running', 'terminated'),
    }),
    fc.record({ is: fc.constant('ends' as const), name, namespace: fc.constantFrom('shop', 'bank') }),
    fc.record({ is: fc.constant('leaves' as const), name }),
    fc.record({ is: fc.constant('pass' as const) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 25 }), async (changes) => {
      await sql`
        truncate workload_container, image, image_report, image_finding, image_link, cve_fact, cve_news, summary_image, summary_workload,
                 image_cve, summary_news, cve_summary, cve_detail, container_use, package_use, use_news`
      let second = 0
      for (const one of [...changes, { is: 'pass' as const }]) {
        second++
        if (one.is === 'findings') {
          const manifests = one.manifest === null ? {} : { 'linux/amd64': digestOf(one.manifest) }
          const index = one.index === null || one.index === one.name ? null : digestOf(one.index)
          const fields = {
            source: one.source,
            platform_manifests: manifests,
            index_digest: index,
            scanned_at: ago(1_000 - second),
          }
          await storeFindings(
            one.name,
            one.rows.map((fields) => finding(fields.vuln_id, fields)),
            fields,
          )
        } else if (one.is === 'runs') await runs(one.name, one.workload, one)
        else if (one.is === 'ends')
          await sql`delete from workload_container where image_digest = ${digestOf(one.name)} and pod_namespace = ${one.namespace}`
        else if (one.is === 'leaves') {
          await sql`delete from workload_container where image_digest = ${digestOf(one.name)}`
          await sql`delete from image where digest = ${digestOf(one.name)}`
        } else {
          assert.equal((await run()).outcome, 'done')
          await assertSummary()
          assert.deepEqual([(await run()).rows, await count()], [0, 0])
        }
      }
    }),
    { numRuns: depth(4, 120) },
  )
})

for (const images of depth([11], [10, 11, 25]))
  test(`more vulnerabilities than one statement counts, in ${images} images, are all counted`, async () => {
    for (let i = 0; i < images; i++) {
      await runs(`image-${i}`, `w${i}`)
      await storeFindings(
        `image-${i}`,
        Array.from({ length: 50 }, (_, n) => finding(`CVE-${i % 5}-${n}`, { epss: n / 100 })),
      )
    }
    assert.equal((await run()).outcome, 'done')
    await assertSummary()
    assert.equal((await run()).rows, 0)
  })

test('more payloads than one statement reads or links are all linked', async () => {
  for (let i = 0; i < 210; i++) await storeFindings(`image-${i}`, [finding('CVE-1')])
  for (let i = 0; i < 210; i += 3) await runs(`image-${i}`, `w${i}`)
  assert.equal((await run()).outcome, 'done')
  assert.equal((await links()).length, 70)
  await assertSummary()
})

test('a vulnerability in two payloads of an image has the worse join of the two', async () => {
  await runs('a', 'web')
  await storeFindings('a', [finding('CVE-1'), finding('CVE-2')])
  await storeFindings('index', [finding('CVE-1')], {
    source: 'db-matcher',
    platform_manifests: { 'linux/amd64': digestOf('a') },
  })
  await run()
  await assertSummary()
  assert.deepEqual(
    (await storedSummary(sql)).map((row) => [row.vuln_id, row.join_rank]),
    [
      ['CVE-1', 2],
      ['CVE-1', 2],
      ['CVE-2', 1],
      ['CVE-2', 1],
    ],
  )
})

test('a change of the join alone is counted', async () => {
  await runs('a', 'web')
  await sql`update image set repository = 'registry.test/team/app', tags = '{v1}'`
  const seen = {
    ...{ normal_repository: 'registry.test/team/app', tag: 'v1' },
    observed_in: [{ namespace: 'shop', kind: 'Deployment', name: 'web', container: 'app' }],
  }
  const rank = async () => (await storedSummary(sql))[0]?.join_rank
  await storeFindings('index', [finding('CVE-1')], { ...seen, platform_manifests: { 'linux/amd64': digestOf('a') } })
  await run()
  assert.equal(await rank(), 2)
  await storeFindings('index', [finding('CVE-1')], seen)
  await run()
  assert.equal(await rank(), 3)
})

test('a workload with one running and one terminated container counts once, as running', async () => {
  await runs('a', 'web', { container: 'app' })
  await runs('b', 'web', { container: 'side', state: 'terminated' })
  for (const name of ['a', 'b']) await storeFindings(name, [finding('CVE-1')])
  await run()
  await assertSummary()
  const [row] = await storedSummary(sql)
  assert.deepEqual([row!.images, row!.workloads, row!.running_workloads], [2, 1, 1])
})

test('the pages of a set are deleted when no page came within the limit; one young page keeps all of its set', async () => {
  const page = (name: string, index: number) =>
    store('sbom', name, [{ name: 'c', licenses: [], file_paths: [] }], {}, { set_id: 's', index, total: 3 })
  for (const name of ['old', 'young']) for (const index of [0, 1]) await page(name, index)
  const ttl = deps.config.sbomPageTtlSecs
  await sql`update sbom_page set received_at = ${ago(ttl + 60)}::text::timestamp where digest = ${digestOf('old')} or page_index = 0`
  assert.equal(await count(), 2)
  assert.equal((await run()).rows, 2)
  assert.equal((await sql`select 1 from sbom_page where digest = ${digestOf('young')}`).length, 2)
  assert.equal((await sql`select 1 from sbom_page`).length, 2)
})

test('payloads are deleted from all tables if not received within the grace period and without a container seen within the retention', async () => {
  const { supplyChainUnlinkedGraceHours: grace, supplyChainRetentionDays: days } = deps.config
  const component = [{ name: 'c', licenses: [], file_paths: [] }]
  const cases: [name: string, receivedHours: number, seenDays: number | null, isRunning: boolean, isKept: boolean][] = [
    ['unlinked', grace + 1, null, false, false],
    ['fresh', grace - 1, null, false, true],
    ['seen', grace + 1, days - 1, false, true],
    ['long-gone', grace + 1, days + 1, false, false],
    ['runs', grace + 1, days + 1, true, true],
  ]
  await pod({ pod_name: 'alive' })
  for (const [name, , seenDays, isRunning] of cases) {
    if (seenDays !== null)
      await runs(name, name, {
        secs: seenDays * DAY,
        state: isRunning ? 'running' : 'terminated',
        ...(isRunning ? { pod: 'alive' } : {}),
      })
    await storeFindings(name, [finding('CVE-1', { epss: 0.5 })])
    await store('sbom', name, component)
  }
  for (const [name, hours] of cases)
    await sql`update image_report set received_at = ${ago(hours * HOUR)}::text::timestamp where digest = ${digestOf(name)}`
  await run()
  const kept = cases.filter(([, , , , isKept]) => isKept).map(([name]) => digestOf(name))
  for (const table of ['image_report', 'image_finding', 'image_component'])
    assert.deepEqual(
      (await sql`select distinct digest from ${sql(table)} order by 1`).map(({ digest }) => digest),
      kept.toSorted(),
      table,
    )
  assert.deepEqual(
    [...new Set((await links()).map((link) => (link as Row).digest))].toSorted(),
    [digestOf('runs'), digestOf('seen')].toSorted(),
  )
  await run()
  await assertSummary()
  assert.equal((await run()).rows, 0)
})

test('zero days keep every payload', async () => {
  await storeFindings('a', [finding('CVE-1')])
  await sql`update image_report set received_at = ${ago(400 * DAY)}::text::timestamp`
  const config = { ...deps.config, supplyChainRetentionDays: 0 }
  assert.equal(await count({ config }), 0)
  await run({ config })
  assert.equal((await sql`select 1 from image_finding`).length, 1)
})

test('findings and an SBOM of one image and source stay while one of them is young', async () => {
  await storeFindings('a', [finding('CVE-1')])
  await store('sbom', 'a', [{ name: 'c', licenses: [], file_paths: [] }])
  await sql`update image_report set received_at = ${ago(400 * DAY)}::text::timestamp where kind = 'sbom'`
  await run()
  assert.deepEqual(
    [(await sql`select 1 from image_finding`).length, (await sql`select 1 from image_component`).length],
    [1, 1],
  )
})

test('an expired payload whose key another transaction has locked is skipped', async () => {
  await storeFindings('a', [finding('CVE-1')])
  await sql`update image_report set received_at = ${ago(400 * DAY)}::text::timestamp`
  await sql.begin(async (writer) => {
    await writer`select pg_advisory_xact_lock(hashtextextended(concat_ws(e'\x01', 'vulnerabilities', ${digestOf('a')}::text, 'operator-scanner'), 0))`
    assert.equal((await run()).outcome, 'done')
  })
  assert.equal((await sql`select 1 from image_report`).length, 1)
  await run()
  assert.equal((await sql`select 1 from image_report`).length, 0)
})

test('with the lock held elsewhere a pass reports skipped and does not write the time of the summary', async () => {
  await scene.whileLocked('supply-chain-refresh', async () => {
    assert.equal((await run()).outcome, 'skipped')
  })
  assert.equal((await sql`select 1 from cve_summary_state`).length, 0)
})

for (const step of [findChangedImages, refreshFacts, countChanged]) {
  test(`${step.name} does nothing if another process takes the lock before the step`, async () => {
    await runs('a', 'web')
    await storeFindings('a', [finding('CVE-1', { kev: true })])
    const stored = async () => {
      const tables = [
        'cve_fact',
        'cve_news',
        'summary_image',
        'summary_workload',
        'container_use',
        'package_use',
        'use_news',
        'image_cve',
        'summary_news',
        'cve_summary',
        'cve_detail',
      ]
      return Promise.all(tables.map((table) => sql`select to_json(t) as row from ${sql(table)} t order by t::text`))
    }
    // Runs the earlier steps, so that this one has something to do.
    for (const earlier of [findChangedImages, refreshFacts])
      if (earlier !== step && step !== findChangedImages) await earlier(scene.context())
    const before = await stored()
    await scene.whileLocked('supply-chain-refresh', async () => {
      assert.deepEqual(await step(scene.context()), { outcome: 'skipped', rows: 0, batches: 0 })
    })
    assert.deepEqual(await stored(), before)
    assert.ok((await step(scene.context())).rows > 0, 'there was something to do')
  })
}

for (const step of ['first', 'second'] as const)
  for (const lane of [0, 1])
    test(`a pass reports skipped while another process works in lane ${lane} of the ${step} step`, async () => {
      for (const name of ['a', 'b', 'c', 'd']) await runs(name, 'web')
      for (const [i, name] of ['a', 'b', 'c', 'd'].entries())
        await storeFindings(name, [finding(`CVE-${i}`), finding(`CVE-1${i}`)])
      await scene.whileLocked('supply-chain-refresh', async () => assert.equal((await run()).outcome, 'skipped'), {
        step,
        lane,
      })
      assert.equal((await sql`select 1 from cve_summary_state`).length, 0)
      assert.equal((await run()).outcome, 'done')
      await assertSummary()
    })

test('lanes of one step run side by side, but not beside a lane of the other step, nor beside another step', async () => {
  const job = 'supply-chain-refresh'
  const isFree = async (lock: postgres.Fragment) => (await sql`with ${lock} select is_held from held`)[0]!.is_held
  for (const step of ['first', 'second'] as const)
    for (const lane of [0, 1])
      await scene.whileLocked(
        job,
        async () => {
          const other = step === 'first' ? 'second' : 'first'
          assert.equal(await isFree(laneHeld(sql, job, step, 1 - lane)), true)
          assert.equal(await isFree(laneHeld(sql, job, step, lane)), false)
          for (const any of [0, 1]) assert.equal(await isFree(laneHeld(sql, job, other, any)), false)
          assert.equal(await isFree(held(sql, job)), false)
        },
        { step, lane },
      )
  await scene.whileLocked(job, async () => {
    for (const lane of [0, 1]) assert.equal(await isFree(laneHeld(sql, job, 'first', lane)), false)
  })
})

test('a lane that fails lets the other end before the step fails', async () => {
  for (const name of ['a', 'b', 'c', 'd']) await runs(name, 'web')
  for (const name of ['a', 'b', 'c', 'd']) await storeFindings(name, [finding('CVE-1')])
  let calls = 0
  let ended = 0
  const job = async (statement: Parameters<typeof scene.db.job>[0]) => {
    if (calls++ === 0) throw new Error('the first lane fails')
    const rows = await scene.db.job(statement)
    ended++
    return rows
  }
  await assert.rejects(findChangedImages(scene.context({ db: { ...scene.db, job } as typeof scene.db })), /first lane/)
  assert.equal(ended, calls - 1)
  assert.ok(ended > 0)
})

test('a statement reads images until their payloads have enough findings and components, and at least one', async () => {
  const names = ['1', '2', '3', '4'].sort((a, b) => (digestOf(a) < digestOf(b) ? -1 : 1))
  for (const name of names) await runs(name, 'web')
  for (const [i, findings] of [2, 9, 2, 1].entries())
    await storeFindings(
      names[i]!,
      Array.from({ length: findings }, (_, n) => finding(`CVE-${n}`)),
    )
  await relinkAll(scene.context())
  const found: number[] = []
  let after: string | null = ''
  while (after !== null) {
    const [batch] = (await sql`
      select images::int, last from refresh_images(${after}::text, 100, 100, 3, ${windowSecs}, 1, 0)`) as unknown as [
      { images: number; last: string | null },
    ]
    found.push(batch.images)
    after = batch.last
  }
  assert.deepEqual(found, [1, 1, 2])
  await run()
  await assertSummary()
})

test('a pass aborted after a statement reports aborted, and a later pass does the rest', async () => {
  await runs('a', 'web')
  await storeFindings('a', [finding('CVE-1')])
  for (let statements = 1; statements <= 3; statements++) {
    assert.equal((await run(abortedAfter(statements, scene.db))).outcome, 'aborted')
    assert.equal((await sql`select 1 from cve_summary_state`).length, 0)
  }
  await run()
  await assertSummary()
})

test('after a failed step the others run; the failure is logged, and the pass fails without the time of the summary', async () => {
  await storeFindings('a', [finding('CVE-1')])
  await sql`insert into cve_alias (vuln_id, alias, told_at) values ('CVE-9', 'GHSA-9', ${ago(3 * DAY)}::text::timestamp)`
  await sql`alter table cve_news rename to gone`
  await assert.rejects(run(), /cve_news/)
  await sql`alter table gone rename to cve_news`
  assert.equal((await sql`select 1 from cve_summary_state`).length, 0)
  assert.ok(scene.logged.some((line) => line.step === 'refreshFacts'))
  assert.equal((await sql`select from cve_alias`).length, 0, 'a later step has deleted the alias')
})

test('aliases that no finding has named for two days are deleted, the others stay', async () => {
  await storeFindings('a', [
    finding('CVE-1', { aliases: ['GHSA-1', 'GHSA-2'] }),
    finding('CVE-2', { aliases: ['GHSA-2'] }),
  ])
  const known = async () =>
    (await sql<Row[]>`select vuln_id || ' ' || alias as pair from cve_alias order by 1`).map(({ pair }) => pair)
  await sql`update image_finding set aliases = '{GHSA-1}' where vuln_id = 'CVE-1'`
  await run()
  assert.deepEqual(await known(), ['CVE-1 GHSA-1', 'CVE-1 GHSA-2', 'CVE-2 GHSA-2'], 'they were told a moment ago')
  await sql`update cve_alias set told_at = ${ago(2 * DAY + HOUR)}::text::timestamp`
  assert.equal((await run()).outcome, 'done')
  assert.deepEqual(await known(), ['CVE-1 GHSA-1', 'CVE-2 GHSA-2'])
  const [row] = await sql`select count(*)::int as n from cve_alias where told_at > ${ago(HOUR)}::text::timestamp`
  assert.equal(row!.n, 2)
  // A payload that names an alias again renews it.
  await sql`update cve_alias set told_at = ${ago(2 * DAY + HOUR)}::text::timestamp`
  await storeFindings('b', [finding('CVE-1', { aliases: ['GHSA-1'] })])
  await sql`delete from image_finding`
  await run()
  assert.deepEqual(await known(), ['CVE-1 GHSA-1'])
})

test('an unused payload stays where its image has started to run since the links were updated', async () => {
  await storeFindings('a', [finding('CVE-1')])
  await storeFindings('b', [finding('CVE-1')])
  await sql`update image_report set received_at = ${ago(40 * DAY)}::text::timestamp`
  await runs('a', 'web')
  await deletePayloads(scene.context())
  assert.deepEqual(
    (await sql`select digest from image_report`).map(({ digest }) => digest),
    [digestOf('a')],
  )
  assert.deepEqual(await links(), [
    { digest: digestOf('a'), source: 'operator-scanner', image_digest: digestOf('a'), rank: 1 },
  ])
})

test('all packages of a vulnerability are counted, and those without it any more are removed', async () => {
  const packages = (n: number) => Array.from({ length: n }, (_, i) => finding('CVE-1', { package_name: `p${i}` }))
  await runs('a', 'web')
  await runs('b', 'web')
  await storeFindings('a', packages(8))
  await storeFindings('b', [finding('CVE-1', { package_name: 'other' })])
  const detail = async () =>
    (await sql<Row[]>`select array_to_json(packages) as packages, package_count::int as n from cve_detail`)[0]
  await run()
  assert.deepEqual({ ...(await detail()) }, { packages: ['other', 'p0', 'p1', 'p2', 'p3'], n: 9 })
  await storeFindings('a', packages(2), { scanned_at: ago(-1) })
  await run()
  assert.deepEqual({ ...(await detail()) }, { packages: ['other', 'p0', 'p1'], n: 3 })
  assert.deepEqual(await storedSummary(sql), await expectedSummary(sql, windowSecs))
})
