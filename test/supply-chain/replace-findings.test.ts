/** What it takes to replace the largest payload there may be: statements that compare every row with every other one do not end in time. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startApp } from '../support/app.ts'
import { digestOf } from '../support/images.ts'
import { finding, header } from '../support/supply-chain.ts'

/** The most that one payload may have. */
const FINDINGS = 20_000

const { db, sql } = await startApp()

let posts = 0

/** Stores a newer payload of which the first `changed` findings are others than before. */
async function store(changed: number): Promise<unknown> {
  posts++
  const rows = Array.from({ length: FINDINGS }, (_, n) =>
    finding(`CVE-2026-${n}`, { severity: n % 6, title: n < changed ? `of post ${posts}` : 'as before', epss: n / FINDINGS }),
  )
  const sent = header(digestOf('large'), 'db-matcher', { item_count: FINDINGS })
  const json = await db.ingest.json((sql) => sql`select store_findings(${JSON.stringify(sent)}::text::json, ${JSON.stringify(rows)})`)
  return JSON.parse(String(json))
}

/** How many rows carry the mark of the last post, and how many there are. */
async function marked(): Promise<{ marked: number; all: number }> {
  const [row] = await sql<{ marked: number; all: number }[]>`
    select count(*) filter (where title = ${`of post ${posts}`})::int as marked, count(*)::int as all from image_finding`
  return { ...row! }
}

describe('a payload of as many findings as there may be', { timeout: 900_000 }, () => {
  for (const [what, changed] of [
    ['is stored', 0],
    ['of which a hundredth is another is replaced', FINDINGS / 100],
    ['of which all is another is replaced', FINDINGS],
  ] as const) {
    test(what, async () => {
      assert.deepEqual(await store(changed), { status: 'stored', items: FINDINGS })
      assert.deepEqual(await marked(), { marked: changed, all: FINDINGS })
    })
  }
})
