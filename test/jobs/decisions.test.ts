/** The steps of `supply-chain-refresh` about decisions: it ends those that are over, and forgets old ones. */
import assert from 'node:assert/strict'
import test from 'node:test'
import { HISTORY_DAYS } from '../../lib/decisions/words.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { affected, decide, findingsOf, listed, READ, refresh, SUPPLYCHAIN } from '../support/decisions.ts'
import { newDigest } from '../support/images.ts'
import { finding, header, storeFindings } from '../support/supply-chain.ts'
import { openVex, statement } from '../support/vex.ts'

const app = await startApp(TOKENS)
const { sql } = app
const history = async (id: string) => (await app.get(`/vulnerabilities/${id}/decisions`, { token: READ })).json.items
type Fields = Record<string, unknown>

test('a decision that is over is noted as expired at the end of its last day, and counted no more', async () => {
  const { id } = await affected(app)
  await refresh(app)
  await decide(app, id, { until: '2999-01-01' })
  assert.equal((await listed(app, id)).decidedWorkloads, 1)
  await sql`update vuln_decision set holds_until = '2026-01-31' where name = ${id}`
  await refresh(app)
  const [one] = await history(id)
  assert.deepEqual([one.holds, one.endedHow, one.endedAt, one.endedBy], [false, 'expired', '2026-02-01T00:00:00', null])
  assert.equal((await listed(app, id)).decidedWorkloads, 0)
})

/** Whether the finding is decided, and in how many workloads the list says so. */
async function decidedIn({ digest, id }: { digest: string; id: string }) {
  const [found] = await findingsOf(app, digest)
  return [found.decided, (await listed(app, id)).decidedWorkloads]
}

test('a report in which the package has another URL is counted again', async () => {
  const purl = 'pkg:deb/debian/openssl@3.0.1'
  const one = await affected(app, { package_purl: `${purl}?arch=amd64` })
  await refresh(app)
  await decide(app, one.id, { package: 'pkg:deb/debian/openssl?arch=amd64' })
  assert.deepEqual(await decidedIn(one), [true, 1])
  await storeFindings(app, one.digest, 'registry', [finding(one.id, { package_purl: purl })])
  await refresh(app)
  assert.deepEqual(await decidedIn(one), [false, 0])
  await storeFindings(app, one.digest, 'registry', [finding(one.id, { package_purl: `${purl}?arch=amd64` })])
  await refresh(app)
  assert.deepEqual(await decidedIn(one), [true, 1])
})

test('a decision under an alias that no report names any more is not counted', async () => {
  const alias = `GHSA-aaaa-bbbb-${String(process.pid).padStart(8, '0')}`
  const one = await affected(app, { aliases: [alias] })
  await refresh(app)
  await decide(app, alias)
  assert.deepEqual(await decidedIn(one), [true, 1])
  await storeFindings(app, one.digest, 'registry', [finding(one.id)])
  await refresh(app)
  await sql`update cve_alias set told_at = told_at - interval '3 days' where alias = ${alias}`
  await refresh(app)
  await refresh(app)
  assert.deepEqual(await decidedIn(one), [false, 0])
})

test('a report that names the index of an image, or no longer does, is counted again', async () => {
  const one = await affected(app)
  const index = newDigest()
  const content = { content_hash: 'the same' }
  const reports = async (fields: Fields) => {
    const sent = JSON.stringify(header(one.digest, 'registry', { ...content, ...fields, item_count: 1 }))
    const rows = JSON.stringify([finding(one.id)])
    await sql`select store_findings(${sent}::text::json, ${rows}::text)`
    await refresh(app)
  }
  await reports({ index_digest: index })
  await decide(app, one.id, { scope: { type: 'image', digest: index } })
  assert.deepEqual(await decidedIn(one), [true, 1])
  await reports({})
  assert.deepEqual(await decidedIn(one), [false, 0])
  await reports({ index_digest: index })
  assert.deepEqual(await decidedIn(one), [true, 1])
})

test('a report of an index that no longer lists an image with a report of its own is counted again', async () => {
  const one = await affected(app)
  const index = newDigest()
  const reports = async (platform_manifests: Fields) => {
    const fields = { content_hash: 'one list', digest_kind: 'index', platform_manifests, item_count: 0 }
    await sql`select store_findings(${JSON.stringify(header(index, 'registry', fields))}::text::json, '[]')`
    await refresh(app)
  }
  const platforms = { 'linux/amd64': one.digest, 'linux/arm64': newDigest() }
  await reports(platforms)
  await decide(app, one.id, { scope: { type: 'image', digest: index } })
  assert.deepEqual(await decidedIn(one), [true, 1])
  await reports({})
  assert.deepEqual(await decidedIn(one), [false, 0])
  await reports(platforms)
  assert.deepEqual(await decidedIn(one), [true, 1])
})

test('a decision that holds today stays', async () => {
  const { id } = await affected(app)
  const [row] = await sql`select to_char(now() at time zone 'utc', 'YYYY-MM-DD') as today`
  await decide(app, id, { until: row!.today })
  await refresh(app)
  assert.deepEqual(
    (await history(id)).map((one: Fields) => [one.holds, one.endedHow]),
    [[true, null]],
  )
})

test(`what ended ${HISTORY_DAYS} days ago is deleted; what holds is not, however old`, async () => {
  const { id } = await affected(app)
  for (const why of ['a', 'b', 'c']) await decide(app, id, { why })
  await sql`update vuln_decision set ended_at = now() at time zone 'utc' - make_interval(days => ${HISTORY_DAYS}) - interval '1 hour' where name = ${id} and reason = 'a'`
  await sql`update vuln_decision set decided_at = timestamp '2000-01-01' where name = ${id}`
  await refresh(app)
  assert.deepEqual(
    (await history(id)).map((one: Fields) => [one.why, one.holds]),
    [
      ['c', true],
      ['b', false],
    ],
  )
})

test('of more ended ones than are kept the oldest are deleted', async () => {
  await sql`truncate vuln_decision`
  await sql`
    insert into vuln_decision (vuln_id, name, scope_rank, decision, decided_by, reason, decided_at, ended_at, ended_how)
    select 'OLD-' || n, 'OLD-' || n, 3, 'accepted', 'a', 'b', now(), now() at time zone 'utc' - make_interval(secs => n), 'replaced' from generate_series(1, 9) n`
  const [row] = await sql`select forget_decisions(100, ${HISTORY_DAYS}, 4)::int as rows`
  assert.equal(row!.rows, 5)
  const left = await sql<{ name: string }[]>`select name from vuln_decision order by name`
  assert.deepEqual(
    left.map(({ name }) => name),
    ['OLD-1', 'OLD-2', 'OLD-3', 'OLD-4'],
  )
  await sql`truncate vuln_decision`
})

test('a document as old is forgotten with its statements once none of its decisions holds', async () => {
  const { id, digest } = await affected(app)
  const documents = [openVex([statement(id, [digest])]), openVex([statement(id, [digest])])]
  for (const one of documents) await app.post('/vex', one, { token: SUPPLYCHAIN })
  await sql`update vex_document set received_at = received_at - make_interval(days => ${HISTORY_DAYS + 1})`
  await refresh(app)
  const count = async () => {
    const [row] =
      await sql`select (select count(*)::int from vex_document) as documents, (select count(*)::int from vex_statement) as statements`
    return row
  }
  assert.deepEqual({ ...(await count()) }, { documents: 2, statements: 2 })
  await sql`update vuln_decision set ended_at = now() at time zone 'utc', ended_how = 'replaced' where document_id = ${documents[0]!['@id']}`
  await refresh(app)
  assert.deepEqual({ ...(await count()) }, { documents: 1, statements: 1 })
})

test('the job does nothing about decisions without its lock', async () => {
  const [row] = await sql`select end_expired_decisions(null) as ended, forget_decisions(null, 1, 1) as deleted`
  assert.deepEqual({ ...row }, { ended: null, deleted: null })
})
