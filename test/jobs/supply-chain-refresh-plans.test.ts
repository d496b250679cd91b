/**
 * The cost of a pass depends on the changed rows only: the rows that it reads are counted with small tables and with
 * much larger ones, with and without current statistics.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { supplyChainRefresh } from '../../jobs/supply-chain-refresh.ts'
import { type Database, openDatabase, type Sql } from '../../lib/db/index.ts'
import { onlyFull } from '../support/depth.ts'
import { container, digestOf, replica } from '../support/images.ts'
import { noLog } from '../support/log.ts'
import { finding, header } from '../support/supply-chain.ts'
import { startScene } from './scene.ts'

const IMAGES = 60
const FINDINGS = 20
const LITTLE = 2_000
const MUCH = 100_000
/** Vulnerabilities to count. For four times as many, a walk of a table of so many rows may be the better plan. */
const NEWS = 1_000
/** A pass may read this many more rows of the larger tables: a hundredth of their additional rows. */
const MORE = (MUCH - LITTLE) / 100

const scene = await startScene(supplyChainRefresh)
const { sql, ago, post } = scene
/** A database with one connection for jobs, so that all reads are counted for one session. */
const db = openDatabase({
  connection: scene.url,
  poolMax: 4,
  statementTimeoutMs: 60_000,
  prepare: true,
  applicationName: 'broker-test-counted',
  log: noLog,
})
after(() => db.end(1_000))

const digests = Array.from({ length: IMAGES }, (_, n) => digestOf(`image-${n}`)).sort()
const image = (n: number) => digests[n]!
const BULK_IMAGES = IMAGES / 2
const CHANGED = IMAGES - 1

/** A pod of Deployment `w<n>` in one of ten namespaces. */
async function runs(n: number, digest: string): Promise<void> {
  const fields = { pod_name: `p${n}`, workload_name: `w${n}`, time_stamp: ago(0) }
  assert.equal((await post('/pod/spec', replica(`ns-${n % 10}`, [container('app', digest)], fields))).status, 200)
}

/** The payload of image `n`: the same findings for the same `content`, most of which other images have too. */
async function scanned(n: number, content: string, secsAgo: number): Promise<void> {
  const rows = Array.from({ length: FINDINGS }, (_, i) =>
    finding(`CVE-${i % 2 ? i : `${i}-${n % 5}${content}`}`, { epss: n / 1_000 }),
  )
  const sent = header(image(n), 'db-matcher', { scanned_at: ago(secsAgo), content_hash: content, item_count: FINDINGS })
  const [row] = await sql`select store_findings(${JSON.stringify(sent)}::text::json, ${JSON.stringify(rows)}) as answer`
  assert.match(row!.answer.status, /^(stored|unchanged)$/)
}

/**
 * Findings, facts and counts of images that do not change, the first ones. What this reads itself (rows in conflict) is
 * reported at once: otherwise the server adds it up to ten seconds later, to the reads of a pass.
 */
async function fill(rows: number): Promise<void> {
  await sql.begin(async (sql) => {
    const one = sql`(select 'BULK-' || n as vuln_id, (select array_agg(digest order by digest) from image_report)[1 + n % ${BULK_IMAGES}::int] as digest, n
                     from generate_series(1, ${rows}::int) n) b`
    await sql`
      insert into image_finding (digest, source, severity, vuln_id, package_name, installed_version, fixed_versions, cvss, file_paths, epss)
      select b.digest, 'db-matcher', 3, b.vuln_id, 'bulk', '1', '{}', '{}', '{}', 0.5 from ${one} on conflict do nothing`
    await sql`insert into cve_fact (vuln_id, epss) select b.vuln_id, 0.5 from ${one} on conflict do nothing`
    await sql`
      insert into image_cve (vuln_id, image_digest, severity, is_fixable, packages, sources, join_rank)
      select b.vuln_id, b.digest, 3, false, array['bulk'], array['db-matcher'], 1 from ${one} on conflict do nothing`
    await sql`
      insert into cve_detail (vuln_id, packages, sources) select b.vuln_id, array['bulk'], array['db-matcher'] from ${one} on conflict do nothing`
    await sql`
      insert into cve_summary (vuln_id, scope_namespace, severity, is_fixable, images, workloads, running_workloads, namespaces, join_rank)
      select 'BULK-' || b.n / 10, 'ns-' || b.n % 10, 3, false, 1, 1, 1, 1, 1 from ${one} on conflict do nothing`
    await sql`select pg_stat_force_next_flush()`
  })
}

const LARGE = ['image_finding', 'image_cve', 'cve_summary', 'cve_detail', 'cve_fact']

/** Rows and entries of indexes that were read so far, by table. */
async function read(): Promise<Map<string, number>> {
  const rows = await sql<{ name: string; rows: number }[]>`
    select t.relname as name,
           (t.seq_tup_read + coalesce(t.idx_tup_fetch, 0)
            + (select coalesce(sum(i.idx_tup_read), 0) from pg_stat_user_indexes i where i.relid = t.relid))::float8 as rows
    from pg_stat_user_tables t`
  return new Map(rows.map(({ name, rows }) => [name, rows]))
}

/** Makes the session of jobs report its statistics. */
const tell = () => db.job((sql: Sql) => sql`select pg_stat_force_next_flush()`)

/** The number of rows that `work` reads from each large table. */
async function readBy(work: () => Promise<unknown>): Promise<Record<string, number>> {
  await tell()
  const before = await read()
  await work()
  await tell()
  const now = await read()
  return Object.fromEntries(LARGE.map((name) => [name, now.get(name)! - before.get(name)!]))
}

const run = (through: Database = db) => supplyChainRefresh.run(scene.context({ db: through }))

let scans = 0
let moves = 0
/** A change before a pass, and the least number of rows that the pass then changes. */
const CHANGES: [what: string, change: () => Promise<unknown>, atLeast: number][] = [
  ['nothing has changed', async () => {}, 0],
  ['an image has other findings', () => scanned(CHANGED, `other-${++scans}`, 3_600 - scans), 10],
  ['another workload runs an image', () => runs(IMAGES + ++moves, image(CHANGED - 1)), 1],
  ['an image was scanned again with the same findings', () => scanned(CHANGED - 5, 'first', 3_600 - ++scans), 0],
]

const little = new Map<string, Record<string, number>>()

async function passes(expect: (what: string, rows: Record<string, number>) => void): Promise<void> {
  for (const [what, change, atLeast] of CHANGES) {
    await change()
    let changed = 0
    const rows = await readBy(async () => {
      const pass = await run()
      assert.equal(pass.outcome, 'done')
      changed = pass.rows
    })
    assert.ok(changed >= atLeast, `${what}: ${changed} rows changed`)
    expect(what, rows)
  }
}

before(async () => {
  for (const table of [
    ...LARGE,
    'image_report',
    'summary_workload',
    'container_use',
    'package_use',
    'use_news',
    'summary_news',
    'image_link',
  ]) {
    await sql.unsafe(`alter table ${table} set (autovacuum_enabled = false)`)
  }
  for (let n = 0; n < IMAGES; n++) {
    await runs(n, image(n))
    await scanned(n, 'first', 7_200)
  }
  await run()
  await fill(LITTLE)
  await sql.unsafe('analyze')
  await run()
})

/** Statistics may be from any moment of a pass: here from one with many vulnerabilities to count. */
async function analyzeWithMuchNews(): Promise<void> {
  await sql`insert into summary_news (vuln_id) select 'NEWS-' || n from generate_series(1, ${NEWS}::int) n`
  await sql.unsafe('analyze summary_news')
  await sql`delete from summary_news`
}

describe('the rows that a pass reads', { timeout: 900_000, skip: onlyFull }, () => {
  test('are measured with small tables', async (t) => {
    await passes((what, rows) => {
      t.diagnostic(`${what}: ${JSON.stringify(rows)}`)
      little.set(what, rows)
    })
    assert.ok(little.get('an image has other findings')!.image_finding! >= FINDINGS, 'reads are counted')
    assert.ok(little.get('an image has other findings')!.image_cve! >= FINDINGS * 2, 'reads are counted')
  })

  for (const [belief, learn] of [
    ['the planner believes to be small', async () => {}],
    ['the planner believes to be small, with many vulnerabilities to count', analyzeWithMuchNews],
    ['the planner knows to be large', () => sql.unsafe('analyze')],
  ] as const) {
    test(`increase little with large tables that ${belief}`, async (t) => {
      await fill(MUCH)
      await learn()
      await passes((what, rows) => {
        t.diagnostic(`${what}: ${JSON.stringify(rows)}`)
        for (const name of LARGE) {
          const more = rows[name]! - little.get(what)![name]!
          assert.ok(more < MORE, `${what}: ${more} more rows of ${name} were read`)
        }
      })
    })
  }
})

test('the counters detect a read of a whole table', { skip: onlyFull }, async () => {
  const rows = await readBy(() => db.job((sql: Sql) => sql`select count(join_rank) from cve_summary`))
  assert.ok(rows.cve_summary! > MUCH)
})
