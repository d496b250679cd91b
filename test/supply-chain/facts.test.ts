/**
 * KEV and EPSS of a vulnerability: the highest of all stored rows, or more until the job runs, but never less
 * (docs/contract.md#findings).
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createTestDatabase } from '../support/database.ts'
import { depth } from '../support/depth.ts'
import { at, finding, header, ingestSession, look, newDigest, type Source, storeFindings } from './statements.ts'

const RUNS = depth(16, 80)

const { url } = await createTestDatabase()
const sql = await ingestSession(url)

const NOTHING = { kev: null, kev_date_added: null, epss: null, epss_percentile: null }
const COLUMNS = sql`bool_or(r.kev) as kev, min(r.kev_date_added) as kev_date_added, max(r.epss) as epss, max(r.epss_percentile) as epss_percentile`

/** Vulnerabilities with lower facts than a row has, and those with higher facts that are not queued for a refresh. */
const faults = async () => [
  ...(await sql`
    with expected as (select r.vuln_id, ${COLUMNS} from image_finding r group by r.vuln_id),
    named as (select vuln_id from image_finding union select vuln_id from cve_fact union select vuln_id from cve_news)
    select n.vuln_id, k.*, to_json(t) as expected
    from named n cross join lateral current_facts(n.vuln_id) k left join expected t using (vuln_id)
    where coalesce(k.kev::int, -1) < coalesce(t.kev::int, -1)
       or coalesce(k.kev_date_added, 'infinity') > coalesce(t.kev_date_added, 'infinity')
       or coalesce(k.epss, -1) < coalesce(t.epss, -1)
       or coalesce(k.epss_percentile, -1) < coalesce(t.epss_percentile, -1)
       or (k.kev, k.kev_date_added, k.epss, k.epss_percentile) is distinct from (t.kev, t.kev_date_added, t.epss, t.epss_percentile)
          and not exists (select from cve_news w where w.vuln_id = n.vuln_id
                          and num_nonnulls(w.kev, w.kev_date_added, w.epss, w.epss_percentile) = 0)`),
]
const newsCount = async () => Number((await sql`select count(*) as n from cve_news`)[0]!.n)

const orNull = <T>(one: fc.Arbitrary<T>) => fc.option(one, { freq: 2 })
const row = fc.record({
  vuln_id: fc.constantFrom('CVE-1', 'CVE-2', 'CVE-3'),
  package_name: fc.constantFrom('a', 'b'),
  title: fc.constantFrom('this', 'that'),
  kev: orNull(fc.boolean()),
  kev_date_added: orNull(fc.constantFrom('2024-01-01T00:00:00', '2024-02-01T00:00:00')),
  epss: orNull(fc.constantFrom(0, 0.1, 0.2)),
  epss_percentile: orNull(fc.constantFrom(0, 0.3, 0.4)),
})
const step = fc.record({
  payload: fc.nat(2),
  source: fc.constantFrom<Source>('db-matcher', 'operator-scanner'),
  rows: fc.uniqueArray(row, { maxLength: 5, selector: (one) => `${one.vuln_id} ${one.package_name}` }),
  looks: fc.integer({ min: 0, max: 3 }).map((n) => n === 0),
})

test('the facts of a vulnerability are those of its rows, or higher and queued for a refresh', () =>
  fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      await sql`truncate image_finding, cve_fact, cve_news`
      const digests = [newDigest(), newDigest(), newDigest()]
      for (const [hour, { payload, source, rows, looks }] of steps.entries()) {
        const sent = rows.map(({ vuln_id, ...fields }) => finding(vuln_id, fields))
        const { status } = await storeFindings(
          sql,
          header({ digest: digests[payload]!, source, scanned_at: at(hour) }),
          sent,
        )
        assert.equal(status, 'stored')
        assert.deepEqual(await faults(), [])
        if (looks) await look(sql)
        if (looks) assert.deepEqual(await faults(), [])
      }
    }),
    { numRuns: RUNS },
  ))

const facts = { kev: true, kev_date_added: '2024-01-01T00:00:00', epss: 0.5, epss_percentile: 0.9 }

test('known facts are not reported again: from another payload, after a refresh, or in rows that changed otherwise', async () => {
  const rows = (title: string) => [
    finding('CVE-10', { ...facts, title }),
    finding('CVE-10', { ...facts, title, package_name: 'zlib' }),
    finding('CVE-11'),
  ]
  const digest = newDigest()
  const before = await newsCount()
  await storeFindings(sql, header({ digest }), rows('this'))
  assert.equal((await newsCount()) - before, 1)
  await storeFindings(sql, header({ digest: newDigest() }), rows('this'))
  await storeFindings(sql, header({ digest, scanned_at: at(2) }), rows('that'))
  assert.equal((await newsCount()) - before, 1)
  await look(sql)
  await storeFindings(sql, header({ digest: newDigest() }), rows('this'))
  await storeFindings(sql, header({ digest: newDigest() }), [
    finding('CVE-10', { ...facts, kev: null, epss: 0.4, kev_date_added: null }),
  ])
  assert.equal(await newsCount(), 0)
})

test('each higher fact is reported, and each removed one requests a refresh', async () => {
  const less = { kev: false, kev_date_added: '2024-02-01T00:00:00', epss: 0.25, epss_percentile: 0.5 }
  const known = async (vuln: string) => ({
    ...(
      await sql`select kev, to_json(kev_date_added) #>> '{}' as kev_date_added, epss, epss_percentile from current_facts(${vuln})`
    )[0]!,
  })
  const more = { kev: true, kev_date_added: '2024-01-01T00:00:00', epss: 0.5, epss_percentile: 0.75 }
  for (const name of Object.keys(more) as (keyof typeof more)[]) {
    const vuln = `CVE-${name}`
    await storeFindings(sql, header({ digest: newDigest() }), [finding(vuln, less)])
    assert.deepEqual(await known(vuln), less)
    const digest = newDigest()
    await storeFindings(sql, header({ digest }), [finding(vuln, { [name]: more[name] })])
    assert.deepEqual(await known(vuln), { ...less, [name]: more[name] })
    await look(sql)
    assert.deepEqual(await known(vuln), { ...less, [name]: more[name] })
    await storeFindings(sql, header({ digest, scanned_at: at(2) }), [])
    assert.deepEqual(
      [...(await sql`select vuln_id, kev, kev_date_added, epss, epss_percentile from cve_news`)],
      [{ vuln_id: vuln, ...NOTHING }],
    )
    await look(sql)
    assert.deepEqual(await known(vuln), less)
  }
  assert.deepEqual(await known('CVE-unheard'), NOTHING)
})

test('when every payload changes on one day, one reports and one requests for all', async () => {
  await sql`truncate image_finding, cve_fact, cve_news`
  const digests = [newDigest(), newDigest(), newDigest(), newDigest()]
  const send = (hour: number, epss: number) =>
    Promise.all(
      digests.map((digest) =>
        storeFindings(sql, header({ digest, scanned_at: at(hour) }), [finding('CVE-20', { epss })]),
      ),
    )
  await send(1, 0.5)
  await look(sql)
  for (const digest of digests)
    await storeFindings(sql, header({ digest, scanned_at: at(2) }), [finding('CVE-20', { epss: 0.25 })])
  const news = async () => [...(await sql`select epss from cve_news order by id`)].map((row) => row.epss)
  assert.deepEqual(await news(), [null, 0.25])

  await sql`update cve_news set noted_at = noted_at - interval '61 s'`
  await storeFindings(sql, header({ digest: digests[0]!, scanned_at: at(3) }), [])
  assert.deepEqual(
    await news(),
    [null, 0.25, null],
    'a question that is older may be looked at for the last time before we have ended',
  )
  assert.deepEqual(await faults(), [])
})
