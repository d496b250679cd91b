/** Replacement of payloads compared with a model (docs/contract.md#findings). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createTestDatabase } from '../support/database.ts'
import { depth } from '../support/depth.ts'
import type { Answer, Header, Kind, Source } from './statements.ts'
import {
  at,
  component,
  componentNames,
  finding,
  header,
  ingestSession,
  KINDS,
  newDigest,
  newPost,
  SOURCES,
  store,
  storeFindings,
  storeSbom,
} from './statements.ts'

const RUNS = depth(16, 80)

const { url } = await createTestDatabase()
const sql = await ingestSession(url)

/** Contents that overlap; one is empty, and some rows differ in one column or in severity alone. */
const FINDINGS = [
  [],
  [finding('CVE-1'), finding('CVE-2'), finding('CVE-3')],
  [finding('CVE-1'), finding('CVE-2', { title: 'worse' }), finding('CVE-4', { fixed_versions: ['1', '2'], epss: 0.5 })],
  [
    finding('CVE-1', { severity: 0 }),
    finding('CVE-1', { package_name: 'zlib' }),
    finding('CVE-3', { aliases: ['GHSA-3'], omitted: 7 }),
  ],
]
const COMPONENTS = [[], ['a', 'b', 'c'], ['c', 'b', 'a'], ['a', 'a']].map((names) => names.map(component))
const contentOf = (kind: Kind, content: number) => (kind === 'sbom' ? COMPONENTS : FINDINGS)[content]!

interface Post {
  kind: Kind
  source: Source
  content: number
  hour: number
  post: string
  /** Header fields, no content. */
  osName: string
}
type Stored = Post & { storedBy: string }

/** The rules for a post; returns the stored payload after it. */
function expectedAnswer(stored: Stored | undefined, sent: Post): [Answer, Stored | undefined] {
  const isStored = { status: 'stored', items: contentOf(sent.kind, sent.content).length }
  if (!stored) return [isStored, { ...sent, storedBy: sent.post }]
  if (stored.storedBy === sent.post) return [isStored, stored]
  if (stored.content === sent.content)
    return [{ status: 'unchanged' }, sent.hour < stored.hour ? stored : { ...sent, storedBy: stored.storedBy }]
  if (sent.hour <= stored.hour) return [{ status: 'stale', stored_scanned_at: at(stored.hour) }, stored]
  return [isStored, { ...sent, storedBy: sent.post }]
}

const headerOf = (digest: string, sent: Post): Header =>
  header({
    ...{ digest, source: sent.source, scanned_at: at(sent.hour), content_hash: `content-${sent.content}` },
    ...{ post: sent.post, os_name: sent.osName, item_count: contentOf(sent.kind, sent.content).length },
  })

async function held(digest: string, source: Source, kind: Kind) {
  const [report] = await sql`
    select to_json(scanned_at) #>> '{}' as scanned_at, content_hash, item_count::int, os_name, post
    from image_report where digest = ${digest} and source = ${source} and kind = ${kind}`
  if (kind === 'sbom')
    return { report, rows: await componentNames(sql, digest, source), places: {} as Record<string, string> }
  const rows = await sql<{ row: Record<string, unknown>; place: string }[]>`
    select to_jsonb(f) - 'digest' - 'source' as row, ctid::text || xmin::text as place
    from image_finding f where digest = ${digest} and source = ${source} order by severity, vuln_id, package_name`
  return {
    report,
    rows: rows.map((row) => row.row),
    places: Object.fromEntries<string>(rows.map(({ row, place }) => [JSON.stringify(row), place])),
  }
}

const inOrder = (rows: readonly ReturnType<typeof finding>[]) =>
  rows.toSorted(
    (a, b) => a.severity - b.severity || (`${a.vuln_id} ${a.package_name}` < `${b.vuln_id} ${b.package_name}` ? -1 : 1),
  )

const step = fc.record({
  kind: fc.constantFrom(...KINDS),
  // Mostly the same one, so that its payloads replace each other.
  source: fc.constantFrom<Source>('db-matcher', 'db-matcher', 'db-matcher', ...SOURCES),
  content: fc.nat(FINDINGS.length - 1),
  hour: fc.nat(6),
  asksFirst: fc.boolean(),
  /** The earlier post that is sent again, if any. */
  again: fc.option(fc.nat(5), { freq: 4 }),
})

test('payloads are stored, kept or refused as in the model, by source and kind, and equal rows are not written', () =>
  fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20, size: 'max' }), async (steps) => {
      const digest = newDigest()
      const model = new Map<string, Stored | undefined>()
      const posts: Post[] = []
      for (const { again, asksFirst, ...fields } of steps) {
        const sent = posts.at(-1 - (again ?? Infinity)) ?? { ...fields, post: newPost(), osName: `os ${posts.length}` }
        posts.push(sent)
        const { kind, source } = sent
        const rows = contentOf(kind, sent.content)
        const key = `${source} ${kind}`
        const [expected, next] = expectedAnswer(model.get(key), sent)
        const before = await held(digest, source, kind)

        let answer = await store(sql, kind, headerOf(digest, sent), asksFirst ? null : rows)
        if (answer.status === 'rows wanted') {
          assert.deepEqual(await held(digest, source, kind), before, 'a question writes nothing')
          answer = await store(sql, kind, headerOf(digest, sent), rows)
        }
        assert.deepEqual(answer, expected)

        model.set(key, next)
        const now = await held(digest, source, kind)
        for (const [row, place] of Object.entries(now.places))
          if (row in before.places) assert.equal(place, before.places[row], row)
        for (const [key, stored] of model) {
          const [ofSource, ofKind] = key.split(' ') as [Source, Kind]
          const { report, rows } = await held(digest, ofSource, ofKind)
          assert.deepEqual(
            { ...report },
            {
              ...{ scanned_at: at(stored!.hour), content_hash: `content-${stored!.content}`, os_name: stored!.osName },
              ...{ item_count: contentOf(ofKind, stored!.content).length, post: stored!.storedBy },
            },
          )
          const expectedRows =
            ofKind === 'sbom' ? COMPONENTS[stored!.content]!.map((c) => c.name) : inOrder(FINDINGS[stored!.content]!)
          assert.deepEqual(rows, expectedRows)
        }
      }
    }),
    { numRuns: RUNS },
  ))

test('unchanged rows are not written, whatever changes beside them', async () => {
  const digest = newDigest()
  const places = async () => {
    const rows = await sql<{ vuln_id: string; place: string }[]>`
      select vuln_id, ctid::text || xmin::text as place from image_finding where digest = ${digest} order by severity, vuln_id`
    return new Map(rows.map((row) => [row.vuln_id, row.place]))
  }
  await storeFindings(
    sql,
    header({ digest }),
    ['CVE-1', 'CVE-2', 'CVE-3', 'CVE-4', 'CVE-5'].map((id) => finding(id)),
  )
  const before = await places()
  const changed = [
    finding('CVE-2', { epss: 0.1 }),
    finding('CVE-3', { severity: 4 }),
    finding('CVE-5'),
    finding('CVE-6'),
    finding('CVE-1'),
  ]
  await storeFindings(sql, header({ digest, scanned_at: at(2) }), changed)
  const now = await places()
  assert.deepEqual([...now.keys()], ['CVE-1', 'CVE-2', 'CVE-5', 'CVE-6', 'CVE-3'])
  assert.deepEqual(
    [...now].filter(([id, place]) => before.get(id) === place).map(([id]) => id),
    ['CVE-1', 'CVE-5'],
  )
})

test('a microsecond is newer, an equal scan is not', async () => {
  for (const kind of KINDS) {
    const digest = newDigest()
    const send = (scanned_at: string, content: number) =>
      store(sql, kind, header({ digest, scanned_at, content_hash: `${content}` }), contentOf(kind, content))
    assert.equal((await send('2026-01-01T00:00:00.000001', 1)).status, 'stored')
    assert.deepEqual(await send('2026-01-01T00:00:00.000001', 2), {
      status: 'stale',
      stored_scanned_at: '2026-01-01T00:00:00.000001',
    })
    assert.equal((await send('2026-01-01T00:00:00.000002', 2)).status, 'stored')
    assert.equal(
      (await send('2026-01-01T00:00:00.000002', 0)).status,
      'stale',
      'an empty payload wipes nothing of the same moment',
    )
    assert.equal((await send('2026-01-01T00:00:00.000003', 0)).status, 'stored')
  }
})

test('the zero time of an unset report is stored and returned', async () => {
  const digest = newDigest()
  await storeFindings(sql, header({ digest, scanned_at: '0001-01-01T00:00:00' }), [])
  const answer = await storeFindings(sql, header({ digest, scanned_at: '0001-01-01T00:00:00' }), [finding('CVE-1')])
  assert.deepEqual(answer, { status: 'stale', stored_scanned_at: '0001-01-01T00:00:00' })
})

test('the same content again writes every field of the header, and no row', async () => {
  for (const kind of KINDS) {
    const digest = newDigest()
    const rows = contentOf(kind, 1)
    await store(sql, kind, header({ digest, content_hash: 'same' }), rows)
    const fields = {
      ...{
        digest_kind: 'index',
        platform_manifests: { 'linux/amd64': newDigest() },
        index_digest: newDigest(),
        image_ref: 'r:t',
      },
      ...{
        registry: 'r',
        repository: 'p',
        normal_repository: 'r/p',
        tag: 't',
        scanner_name: 'n',
        scanner_vendor: 'v',
        scanner_version: '2',
      },
      ...{
        scanned_at: at(1),
        db_updated_at: at(0),
        os_family: 'debian',
        os_name: '12',
        os_eosl: true,
        content_hash: 'same',
      },
      ...{
        observed_in: [{ namespace: 'a', kind: 'Pod', name: 'b', container: 'c' }],
        sbom_format: 'SPDX',
        sbom_spec_version: '2.3',
      },
      ...{ sbom_sources: ['registry'], sbom_trust: 'verified', attestation: { mechanism: 'm' } },
    } as unknown as Partial<Header>
    const answer = await store(sql, kind, header({ digest, item_count: rows.length, ...fields }), null)
    assert.deepEqual(answer, { status: 'unchanged' })
    const [{ row } = { row: null }] = await sql`
      select to_jsonb(r) - 'digest' - 'source' - 'kind' - 'post' - 'received_at' as row from image_report r where digest = ${digest}`
    const manifest_digests = [...Object.values(fields.platform_manifests!), fields.index_digest!].sort()
    assert.deepEqual(row, { ...fields, manifest_digests, item_count: rows.length, packages_hash: null })
  }
})

test('long texts compare by value: many findings are replaced as fast the eighth time in a session as the first', async () => {
  const digest = newDigest()
  const times: number[] = []
  const count = depth(4_000, 10_000)
  for (let hour = 1; hour <= 8; hour++) {
    const rows = Array.from({ length: count }, (_, n) =>
      finding(`CVE-${n % 7}`, {
        package_name: `package-${n}`,
        title: n % 10 ? 'same' : `${hour}`,
        epss: (n % 3) / 10 + hour / 100,
      }),
    )
    const start = performance.now()
    const answer = await storeFindings(sql, header({ digest, scanned_at: at(hour) }), rows)
    times.push(performance.now() - start)
    assert.deepEqual(answer, { status: 'stored', items: count })
  }
  // From the sixth execution on the plan of a session is fixed; a plan that compares all pairs takes a hundred times as
  // long.
  assert.ok(Math.min(...times.slice(5)) < 20 * Math.min(...times.slice(0, 5)), String(times.map(Math.round)))
})

test('an SBOM in a set of one page is stored as a whole SBOM', async () => {
  const sent = header({ digest: newDigest() })
  const page = { set_id: 'alone', index: 0, total: 1 }
  assert.deepEqual(await storeSbom(sql, sent, null, page), { status: 'rows wanted' })
  assert.deepEqual(await storeSbom(sql, sent, COMPONENTS[1]!, page), { status: 'stored', items: 3 })
  assert.deepEqual(await componentNames(sql, sent.digest, sent.source), ['a', 'b', 'c'])
  assert.deepEqual(await storeSbom(sql, sent, null, page), { status: 'stored', items: 3 }, 'its answer was lost')
})
