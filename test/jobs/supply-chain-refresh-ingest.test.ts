/** Ingest continues while a pass of the job waits for a lock in any of its statements. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { beforeEach, describe, test } from 'node:test'
import type postgres from 'postgres'
import { supplyChainRefresh } from '../../jobs/supply-chain-refresh.ts'
import { onlyFull } from '../support/depth.ts'
import { container, digestOf, newDigest, replica } from '../support/images.ts'
import { component, finding, header } from '../support/supply-chain.ts'
import { until } from '../support/until.ts'
import { startScene } from './scene.ts'

const HOUR = 3_600
const DAY = 24 * HOUR

const scene = await startScene(supplyChainRefresh)
const { sql, db, ago, run, post } = scene

interface Row {
  vuln_id: string
  kev?: boolean
  severity?: number
}

/** The header of a payload with these rows; equal rows have the same content hash. */
const sent = (digest: string, scanned_at: string, rows: unknown[], source: string) =>
  JSON.stringify(
    header(digest, source, {
      scanned_at,
      item_count: rows.length,
      content_hash: digestOf(JSON.stringify(rows)),
      post: randomUUID(),
    }),
  )

async function storeFindings(
  digest: string,
  scannedAt: string,
  rows: readonly Row[],
  source = 'operator-scanner',
): Promise<string> {
  const findings = rows.map(({ vuln_id, ...fields }) => finding(vuln_id, fields))
  const json = await db.ingest.json(
    (sql) =>
      sql`select store_findings(${sent(digest, scannedAt, findings, source)}::text::json, ${JSON.stringify(findings)})`,
  )
  return JSON.parse(String(json)).status
}

async function storeSbom(digest: string, scannedAt: string, page: object | null): Promise<string> {
  const components = [component('openssl')]
  const json = await db.ingest.json(
    (sql) => sql`
      select store_sbom(${sent(digest, scannedAt, components, 'operator-scanner')}::text::json,
                        ${page && JSON.stringify(page)}::text::json, ${JSON.stringify(components)})`,
  )
  return JSON.parse(String(json)).status
}

/** A pod of Deployment `name` with these images. */
async function runs(name: string, ...digests: string[]): Promise<void> {
  const containers = digests.map((digest, i) => container(`c${i}`, digest))
  const answer = await post(
    '/pod/spec',
    replica('shop', containers, { pod_name: name, workload_name: name, time_stamp: ago(0) }),
  )
  assert.equal(answer.status, 200)
}

const A = digestOf('a')
const B = digestOf('b')
/** Its payload is stored before a workload runs it, so the pass has to write its link. */
const LATE = digestOf('late')
/** Runs nowhere. */
const UNUSED = digestOf('unused')
const EXPIRED = digestOf('expired')
/** Counted by the first pass, before the one that waits. */
const COUNTED = 'CVE-2024-0001'
const GONE = 'CVE-2024-0002'

const TABLES = [
  ...[
    'image_report',
    'image_finding',
    'image_component',
    'sbom_page',
    'image_link',
    'cve_fact',
    'cve_news',
    'image',
    'workload_container',
  ],
  ...[
    'summary_image',
    'summary_workload',
    'container_use',
    'package_use',
    'use_news',
    'image_cve',
    'summary_news',
    'cve_summary',
    'cve_detail',
    'cve_summary_state',
    'pod',
    'pod_address',
  ],
]

/** Runs one pass, and then changes rows so that every step of the next pass has something to do. */
beforeEach(async () => {
  await sql.unsafe(`truncate ${TABLES.join(', ')}`)
  await runs('a', A)
  await runs('b', B)
  await storeFindings(A, ago(5 * HOUR), [{ vuln_id: COUNTED, kev: true }, { vuln_id: GONE }])
  await storeFindings(B, ago(5 * HOUR), [{ vuln_id: COUNTED }])
  await storeFindings(LATE, ago(5 * HOUR), [{ vuln_id: COUNTED }])
  assert.equal((await run()).outcome, 'done')

  await storeFindings(A, ago(4 * HOUR), [{ vuln_id: COUNTED, severity: 0 }])
  await storeFindings(A, ago(4 * HOUR), [{ vuln_id: 'CVE-2024-0005', kev: true }], 'registry')
  await runs('b', B, A)
  await runs('late', LATE)
  await storeFindings(UNUSED, ago(5 * HOUR), [{ vuln_id: GONE }])
  await storeSbom(EXPIRED, ago(5 * HOUR), { set_id: 's', index: 0, total: 2 })
  await sql`update image_report set received_at = ${ago(2 * DAY)}::text::timestamp where digest = ${UNUSED}`
  await sql`update sbom_page set received_at = ${ago(2 * DAY)}::text::timestamp`
  await sql`insert into summary_news (vuln_id) values (${GONE})`
})

type Hold = (held: postgres.TransactionSql) => Promise<unknown>

const HOLDS: [step: string, hold: Hold][] = [
  [
    'it writes links',
    (held) => held`
      insert into image_link (digest, source, image_digest, join_rank, linked_at)
      values (${LATE}, 'operator-scanner', ${LATE}, 1, now() at time zone 'utc')`,
  ],
  [
    'it writes the vulnerabilities of an image',
    (held) => held`select from image_cve where image_digest = ${A} for update`,
  ],
  ['it queues a vulnerability to count', (held) => held`insert into summary_news (vuln_id) values (${COUNTED})`],
  [
    'it writes the workloads of an image',
    (held) => held`
      insert into summary_workload (image_digest, pod_namespace, workload_kind, workload_name, cluster_id, is_running)
      values (${A}, 'shop', 'Deployment', 'b', 'primary', true)`,
  ],
  [
    'it writes the payloads of an image',
    (held) => held`select from summary_image where image_digest = ${A} for update`,
  ],
  ['it writes facts', (held) => held`select from cve_fact where vuln_id = ${COUNTED} for update`],
  ['it deletes changes of facts', (held) => held`select from cve_news for update`],
  ['it writes details', (held) => held`select from cve_detail where vuln_id = ${COUNTED} for update`],
  ['it writes counts', (held) => held`select from cve_summary where vuln_id = ${COUNTED} for update`],
  ['it deletes counts', (held) => held`select from cve_summary where vuln_id = ${GONE} for update`],
  [
    'it deletes a counted vulnerability from the queue',
    (held) => held`select from summary_news where vuln_id = ${GONE} for update`,
  ],
  ['it writes the time of the refresh', (held) => held`select from cve_summary_state for update`],
  ['it deletes pages', (held) => held`select from sbom_page where digest = ${EXPIRED} for update`],
  ['it deletes findings', (held) => held`select from image_finding where digest = ${UNUSED} for update`],
  ['it deletes a header', (held) => held`select from image_report where digest = ${UNUSED} for update`],
]

/** Posts payloads and pods for images that the pass handles and for new ones; returns the outcome of each payload. */
async function ingest(): Promise<string[]> {
  const image = newDigest()
  const statuses = await Promise.all([
    storeFindings(image, ago(HOUR), [{ vuln_id: COUNTED }, { vuln_id: 'CVE-2024-0003', kev: true }]),
    storeFindings(A, ago(HOUR), [{ vuln_id: COUNTED, kev: true }, { vuln_id: 'CVE-2024-0004' }]),
    storeFindings(A, ago(HOUR), [{ vuln_id: GONE, kev: true }], 'db-matcher'),
    storeFindings(B, ago(HOUR), [{ vuln_id: COUNTED }]),
    storeFindings(LATE, ago(HOUR), [{ vuln_id: GONE }]),
    storeSbom(A, ago(HOUR), null),
    storeSbom(B, ago(HOUR), { set_id: 's', index: 1, total: 2 }),
  ])
  await runs('new', image)
  await runs('a', image)
  return statuses
}

/** The summary with its details and facts. */
const summary = () => sql`
  select s.*, d.max_score, d.packages, d.sources, f.kev
  from cve_summary s left join cve_detail d using (vuln_id) left join cve_fact f using (vuln_id)
  order by s.vuln_id, s.scope_namespace`

async function backendOf(session: postgres.TransactionSql): Promise<number> {
  const [row] = await session<{ pid: number }[]>`select pg_backend_pid() as pid`
  return row!.pid
}

/** Whether a session waits for a lock of this one. The steps of a pass may also wait for each other, for a moment. */
async function isWaitingFor(holder: number): Promise<boolean> {
  const [row] = await sql<{ found: boolean }[]>`
    select exists (select from pg_stat_activity
                   where datname = current_database() and wait_event_type = 'Lock'
                     and ${holder}::int = any (pg_blocking_pids(pid))) as found`
  return row!.found
}

describe('payloads and pods are stored while a pass waits for a lock when', {
  timeout: 900_000,
  skip: onlyFull,
}, () => {
  for (const [step, hold] of HOLDS) {
    test(step, async () => {
      let isOver = false
      let pass: ReturnType<typeof run> | undefined
      await sql
        .begin(async (held) => {
          await hold(held)
          const holder = await backendOf(held)
          pass = run().finally(() => {
            isOver = true
          })
          await until('the pass waits', () => isOver || isWaitingFor(holder))
          assert.equal(isOver, false, 'the pass went on')
          assert.deepEqual(await ingest(), ['stored', 'stored', 'stored', 'unchanged', 'stored', 'stored', 'staged'])
          assert.ok(await isWaitingFor(holder), 'the pass went on')
          throw new Error('let go')
        })
        .catch((error: Error) => assert.equal(error.message, 'let go'))
      assert.equal((await pass!).outcome, 'done')

      // The next pass includes what came meanwhile, and gives the same summary as one made from empty tables.
      assert.equal((await run()).outcome, 'done')
      const refreshed = await summary()
      assert.ok(refreshed.some(({ vuln_id, kev }) => vuln_id === 'CVE-2024-0003' && kev))
      await sql`truncate summary_image, summary_workload, image_cve, summary_news, cve_summary, cve_detail`
      await run()
      assert.deepEqual(refreshed, await summary())
    })
  }
})
