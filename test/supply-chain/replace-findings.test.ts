/** The time to replace the largest payload: a statement that compares each row with each other would time out. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import { digestOf } from '../support/images.ts'
import { finding, header } from '../support/supply-chain.ts'

/** The largest payload. */
const FINDINGS = 20_000

const { db, sql } = await startApp()

let posts = 0

/** Stores a newer payload whose first `changed` findings differ from the previous one. */
async function store(changed: number): Promise<unknown> {
  posts++
  const rows = Array.from({ length: FINDINGS }, (_, n) =>
    finding(`CVE-2026-${n}`, {
      severity: n % 6,
      title: n < changed ? `of post ${posts}` : 'as before',
      epss: n / FINDINGS,
    }),
  )
  const sent = header(digestOf('large'), 'db-matcher', { item_count: FINDINGS })
  const json = await db.ingest.json(
    (sql) => sql`select store_findings(${JSON.stringify(sent)}::text::json, ${JSON.stringify(rows)})`,
  )
  return JSON.parse(String(json))
}

/** Number of rows with the mark of the last post, and of all rows. */
async function marked(): Promise<{ marked: number; all: number }> {
  const [row] = await sql<{ marked: number; all: number }[]>`
    select count(*) filter (where title = ${`of post ${posts}`})::int as marked, count(*)::int as all from image_finding`
  return { ...row! }
}

describe('a payload with the most findings', { timeout: 900_000 }, () => {
  for (const [what, changed] of [
    ['is stored', 0],
    ['is replaced when a hundredth of the findings has changed', FINDINGS / 100],
    ['is replaced when all findings have changed', FINDINGS],
  ] as const) {
    test(what, async () => {
      assert.deepEqual(await store(changed), { status: 'stored', items: FINDINGS })
      assert.deepEqual(await marked(), { marked: changed, all: FINDINGS })
    })
  }

  test('with aliases is stored under the CVE ids, and renamed after the aliases are deleted', async () => {
    const count = depth(5_000, FINDINGS)
    const rows = Array.from({ length: count }, (_, n) =>
      finding(`GHSA-${n >> 1}`, { package_name: `p${n % 2}`, title: String(n) }),
    )
    const both = [
      ...rows.slice(0, count / 2),
      ...rows.slice(0, count / 2).map((row) => ({ ...row, vuln_id: `CVE-of-${row.vuln_id}` })),
    ]
    await sql`insert into cve_alias (vuln_id, alias) select 'CVE-of-GHSA-' || n, 'GHSA-' || n from generate_series(0, ${count / 2}::int - 1) n`
    await sql`analyze cve_alias`
    const ids = async (digest: string) => {
      const [row] = await sql`
        select count(*)::int as all, count(*) filter (where vuln_id like 'CVE-%')::int as renamed from image_finding where digest = ${digest}`
      return { ...row! }
    }
    for (const [name, sent, all] of [
      ['renamed', rows, count],
      ['united', both, count / 2],
    ] as const) {
      const digest = digestOf(name)
      const head = header(digest, 'db-matcher', { item_count: count })
      await db.ingest.json(
        (sql) => sql`select store_findings(${JSON.stringify(head)}::text::json, ${JSON.stringify(sent)})`,
      )
      assert.deepEqual(await ids(digest), { all, renamed: all })
    }
    await sql`delete from cve_alias`
    for (const name of ['renamed', 'united'])
      assert.deepEqual(
        [...(await db.job((sql) => sql`select rename_findings(${digestOf(name)}, 'db-matcher') as done`))],
        [{ done: true }],
      )
    assert.deepEqual(
      [await ids(digestOf('renamed')), await ids(digestOf('united'))],
      [
        { all: count, renamed: 0 },
        { all: count, renamed: count / 2 },
      ],
    )
  })
})
