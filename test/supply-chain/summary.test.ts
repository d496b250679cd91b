/** The rows that a page of the summary reads, on a summary many times larger. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Gate } from '../../lib/db/index.ts'
import {
  MAX_CANDIDATES,
  MAX_WALKED,
  readSummary,
  type SummaryFilter,
  type VulnerabilityCursor,
} from '../../lib/supply-chain/summary.ts'
import { startApp } from '../support/app.ts'

const ROWS = 60_000
/** Severities that are not consecutive in each tier, and the first row of each combination of them. */
const MAX_SPARE_ROWS = 3 * 5 * 4

interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Plan[]
}

const app = await startApp()

/** Reads a page; resolves to the rows of the summary that were read, and to the page. */
async function readPage(filter: Partial<SummaryFilter>, limit: number, after: VulnerabilityCursor | null = null) {
  let rows = 0
  const gate = async (statement: Parameters<Gate>[0]) => {
    const [row] = await app.db.read(
      (sql) => sql`explain (analyze, format json) ${statement(sql, false) as unknown as ReturnType<typeof sql>}`,
    )
    rows = rowsOf((row as unknown as { 'QUERY PLAN': { Plan: Plan }[] })['QUERY PLAN'][0]!.Plan)
    return app.db.read(statement)
  }
  const all = {
    ...{ severities: [0, 1, 2, 3, 4, 5], fixable: null, running: false, namespace: null },
    ...{ vulnId: null, package: null, kev: null, epssMin: null, tiers: null, states: null },
  }
  const page = await readSummary(gate as unknown as Gate, { ...all, ...filter }, { limit, after }, 'spec')
  return { rows, page: JSON.parse(page) }
}

function rowsOf(plan: Plan): number {
  const own =
    plan['Relation Name'] === 'cve_summary'
      ? (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) * plan['Actual Loops']
      : 0
  assert.ok(plan['Relation Name'] !== 'cve_summary' || /^Index/.test(plan['Node Type']), plan['Node Type'])
  return (plan.Plans ?? []).reduce((sum, child) => sum + rowsOf(child), own)
}

describe('a page of the summary', () => {
  before(async () => {
    await app.sql`
      insert into cve_summary (vuln_id, scope_namespace, severity, is_fixable, images, workloads, running_workloads, namespaces, join_rank, tier)
      select 'CVE-' || lpad(n::text, 6, '0'), '', n % 6, n % 5 = 0, 1, 1, n % 7, 1, 1, n / 6 % 5 from generate_series(1, ${ROWS}::int) n`
    await app.sql.unsafe('analyze')
  })

  for (const [what, filter] of Object.entries({
    'without a filter': {},
    'with severities that are not consecutive': { severities: [0, 2, 4] },
    'of fixable and running vulnerabilities': { fixable: true, running: true },
    'of one severity without fixes': { severities: [3], fixable: false },
  }))
    test(`${what} reads little more than its own rows, at any depth`, async () => {
      for (const limit of [1, 100, 500]) {
        const last = filter.severities?.at(-1) ?? 5
        for (const after of [null, [0, 0, 'CVE-030000'], [3, last, 'CVE-029000']] as const) {
          if (after && filter.severities && !filter.severities.includes(after[1])) continue
          const { rows, page } = await readPage(filter, limit, after)
          assert.equal(page.items.length, limit)
          assert.ok(rows >= limit && rows <= 3 * (limit + 1) + MAX_SPARE_ROWS, `${rows} rows for ${limit}`)
        }
      }
    })

  describe('with a selective filter', () => {
    before(async () => {
      // Few vulnerabilities are exploited. Some have an EPSS, all of severity 5. One package has many, another one.
      await app.sql`
        insert into cve_fact (vuln_id, kev, epss)
        select s.vuln_id, case when s.n % 600 = 5 then true end, case when s.severity = 5 then (s.n % 100) / 100.0 end
        from (select c.*, substr(c.vuln_id, 5)::int as n from cve_summary c) s`
      await app.sql`
        insert into cve_package select s.vuln_id, case when s.vuln_id = 'CVE-000077' then 'rare' else 'linux' end from cve_summary s`
      await app.sql`insert into cve_detail (vuln_id, packages, sources) select vuln_id, '{}', '{}' from cve_summary`
      await app.sql`insert into cve_alias (vuln_id, alias) select 'CVE-000077', 'GHSA-77'`
      await app.sql.unsafe('analyze')
    })

    for (const [what, filter, most] of [
      ['that matches one vulnerability', { package: 'rare' }, 1],
      ['by an alias', { vulnId: 'ghsa-77' }, 1],
      ['that matches few vulnerabilities', { kev: true }, ROWS / 600],
      [
        'with several conditions, one of which matches few vulnerabilities',
        { package: 'linux', kev: true, epssMin: 0.001 },
        ROWS / 600,
      ],
    ] as const)
      test(`${what} reads no more rows than match, in one page`, async () => {
        const { rows, page } = await readPage(filter, 500)
        assert.ok(rows > 0 && rows <= most, `${rows} rows`)
        assert.deepEqual([page.items.length, page.nextAfter], [rows, null])
      })

    test('that matches many rows reads a bounded number of rows for each page, and continues where it ended', async () => {
      const many = { epssMin: 0.2 }
      const [counted] = await app.sql<{ n: number }[]>`select count(*)::int as n from cve_fact where epss >= 0.2`
      const { n } = counted!
      assert.ok(n > MAX_CANDIDATES)
      let found = 0
      let pages = 0
      for (let after: VulnerabilityCursor | null = null; pages === 0 || after !== null; pages++) {
        const { rows, page } = await readPage(many, 500, after)
        assert.ok(rows <= MAX_WALKED * 1.1, `${rows} rows`)
        found += page.items.length
        after = page.nextAfter && JSON.parse(Buffer.from(page.nextAfter, 'base64url').toString())
      }
      assert.equal(found, n)
      assert.ok(pages >= ROWS / MAX_WALKED && pages <= n / 500 + ROWS / MAX_WALKED + 1, `${pages} pages`)
    })
  })
})
