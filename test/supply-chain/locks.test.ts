/**
 * Concurrent sessions that store and relink: the outcome is that of some order, there are no deadlocks, and links never
 * block an ingest.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { JOB_LOCKS } from '../../jobs/locks.ts'
import { waiting } from '../jobs/scene.ts'
import { createTestDatabase } from '../support/database.ts'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'
import type { Answer, Header, Kind, Source } from './statements.ts'
import {
  at,
  component,
  componentNames,
  faultOf,
  finding,
  header,
  ingestSession,
  look,
  newDigest,
  newPost,
  SOURCES,
  store,
  storeFindings,
  storeSbom,
} from './statements.ts'

const RUNS = depth(8, 40)

const { adminSql: sql, url } = await createTestDatabase()
const sessions = await Promise.all([url, url, url, url].map(ingestSession))

const LINKS = [0x6c69_6e6b, 0] as const

function permutations<T>(list: readonly T[]): T[][] {
  if (list.length === 0) return [[]]
  return list.flatMap((first, n) => permutations(list.toSpliced(n, 1)).map((rest) => [first, ...rest]))
}

interface Post {
  content: number
  hour: number
  post: string
}

/** The answers to posts of one payload in an order, and the stored rows afterwards. */
function inOrder(posts: readonly Post[]) {
  let stored: (Post & { storedBy: string }) | undefined
  const answers = new Map<Post, string>()
  for (const sent of posts) {
    if (stored?.storedBy === sent.post) answers.set(sent, 'stored')
    else if (stored?.content === sent.content) {
      answers.set(sent, 'unchanged')
      if (sent.hour >= stored.hour) stored = { ...sent, storedBy: stored.storedBy }
    } else if (stored && sent.hour <= stored.hour) answers.set(sent, 'stale')
    else {
      answers.set(sent, 'stored')
      stored = { ...sent, storedBy: sent.post }
    }
  }
  return { answers, stored }
}

test('payloads of one key from four sessions at once: the outcome of some order', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ content: fc.nat(2), hour: fc.nat(2) }), { minLength: 4, maxLength: 4 }),
      fc.boolean(),
      fc.constantFrom<Kind>('vulnerabilities', 'sbom'),
      async (drawn, isRetried, kind) => {
        const digest = newDigest()
        const posts: Post[] = drawn.map((one) => ({ ...one, post: newPost() }))
        if (isRetried) posts[3] = { ...posts[0]! }
        const rows = (content: number) =>
          Array.from({ length: content }, (_, n) =>
            kind === 'sbom' ? component(`${content}.${n}`) : finding(`CVE-${n}`, { title: `${content}` }),
          )
        const send = ({ content, hour, post }: Post, n: number) => {
          const fields = { digest, scanned_at: at(hour), content_hash: `${content}`, post, item_count: content }
          return store(sessions[n]!, kind, header(fields), rows(content))
        }
        const answers = await Promise.all(posts.map(send))
        const [report] = await sql`
          select content_hash, to_json(scanned_at) #>> '{}' as scanned_at from image_report where digest = ${digest}`
        const [{ count } = { count: -1 }] =
          kind === 'sbom'
            ? await sql`select count(*)::int from image_component where digest = ${digest} and starts_with(name, ${report!.content_hash})`
            : await sql`select count(*)::int from image_finding where digest = ${digest} and title = ${report!.content_hash}`
        assert.equal(count, Number(report!.content_hash), 'rows of the stored payload')
        const all =
          await sql`select from image_finding where digest = ${digest} union all select from image_component where digest = ${digest}`
        assert.equal(all.length, count, 'and no others')
        const isOutcome = permutations(posts).some((order) => {
          const { answers: expected, stored } = inOrder(order)
          return (
            posts.every((post, n) => expected.get(post) === answers[n]!.status) &&
            `${stored!.content}` === report!.content_hash &&
            at(stored!.hour) === report!.scanned_at
          )
        })
        assert.ok(isOutcome, JSON.stringify({ posts, answers, report }))
      },
    ),
    { numRuns: RUNS },
  ))

test('pages of one set from four sessions at once: one is answered stored, and the components are complete and in order', () =>
  fc.assert(
    fc.asyncProperty(fc.integer({ min: 2, max: 8 }), fc.infiniteStream(fc.nat(1_000)), async (total, weights) => {
      const digest = newDigest()
      const scan = { digest, source: 'registry' as Source, scanned_at: at(1), content_hash: 'set' }
      // Each page twice, like a sender that received no answer.
      const pages = Array.from({ length: 2 * total }, (_, n) => ({ index: n % total, weight: weights.next().value }))
      const queue = pages.sort((a, b) => a.weight - b.weight)
      const answers: Answer[] = []
      await Promise.all(
        sessions.map(async (session) => {
          for (let page = queue.pop(); page; page = queue.pop()) {
            const rows = [component(`${page.index}.0`), component(`${page.index}.1`)]
            answers.push(await storeSbom(session, header(scan), rows, { set_id: 'set', index: page.index, total }))
          }
        }),
      )
      const stored = answers.filter((answer) => answer.status === 'stored')
      assert.deepEqual(stored, [{ status: 'stored', items: 2 * total }])
      const expected = Array.from({ length: total }, (_, n) => [`${n}.0`, `${n}.1`]).flat()
      assert.deepEqual(await componentNames(sql, digest, 'registry'), expected)
      assert.equal((await sql`select from sbom_page where digest = ${digest}`).length, 0)
      const counts = answers.filter((answer) => answer.status === 'staged').map((answer) => answer.received)
      assert.deepEqual(
        counts.sort(),
        Array.from({ length: total - 1 }, (_, n) => n + 1),
        'each that is let in counts one more',
      )
    }),
    { numRuns: RUNS },
  ))

test('two sets compete for the last place: the second waits for the first and is refused', async () => {
  await sql`truncate sbom_page`
  const stage = (on: Parameters<typeof storeSbom>[0], digest: string) =>
    storeSbom(on, header({ digest, content_hash: 'set' }), [component('a')], { set_id: 'set', index: 0, total: 2 })
  for (let n = 0; n < 63; n++) await stage(sql, newDigest())
  let second: Promise<Answer> | undefined
  await sql.begin(async (first) => {
    assert.equal((await stage(first, newDigest())).status, 'staged')
    second = stage(sessions[0]!, newDigest())
    await until('the second waits', async () => (await waiting(sql)) === 1)
  })
  assert.deepEqual(await second, { status: 'refused', reason: 'ceiling' })
})

/**
 * Some images, several of which each payload names, and a Deployment that runs all of them, so that they are guessed
 * too.
 */
async function crowd() {
  await sql`truncate image, workload_container, image_report, image_link, image_finding`
  const digests = Array.from({ length: 4 }, newDigest)
  await sql`insert into image select d, 'r', '{t}', 'repo', now(), now() from json_array_elements_text(${JSON.stringify(digests)}::text::json) d`
  await sql`
    insert into workload_container (cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, container_kind,
                                    image_ref, security_context, pod_security, first_seen, last_seen)
    select '', 'a', 'Deployment', 'web', 'c', d.digest, 'regular', '', '{}', '{}', now(), now() from image d`
  return digests
}
const GUESS = {
  normal_repository: 'r',
  tag: 't',
  observed_in: [{ namespace: 'a', kind: 'ReplicaSet', name: 'web-1', container: 'c' }],
}
const isSettled = async () => {
  const [row] =
    await sql`select sum(relink(digest, source))::int as changed from (select distinct digest, source from image_report) k`
  return row!.changed
}

test('sessions that retire the guesses of each other while others relink everything: no deadlock, and then the links of a full relink', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          of: fc.nat(5),
          source: fc.constantFrom(...SOURCES),
          kind: fc.constantFrom<Kind>('vulnerabilities', 'sbom'),
          names: fc.uniqueArray(fc.nat(3), { maxLength: 2 }),
        }),
        { minLength: 8, maxLength: 16 },
      ),
      async (drawn) => {
        const digests = [...(await crowd()), newDigest(), newDigest()]
        const queue = drawn.map(({ of, source, kind, names }, n) => {
          const platform_manifests = Object.fromEntries(names.map((name) => [`linux/${name}`, digests[name]!]))
          const fields = {
            digest: digests[of]!,
            source,
            scanned_at: at(n),
            platform_manifests,
            ...GUESS,
            sbom_sources: SOURCES.slice(),
          }
          return { kind, sent: header(fields) }
        })
        const relinkAll = () => sessions[3]!`
          with links as materialized (select pg_advisory_xact_lock(${LINKS[0]}::int, ${LINKS[1]}::int))
          select relink(r.digest, r.source) from links cross join lateral (select distinct digest, source from image_report) r`
        const faults = await Promise.all([
          ...sessions.slice(0, 3).map(async (session) => {
            for (let one = queue.pop(); one; one = queue.pop()) {
              const fault = await faultOf(
                store(session, one.kind, one.sent, one.kind === 'sbom' ? [] : [finding('CVE-1')]),
              )
              if (fault) return fault
            }
            return null
          }),
          faultOf(Promise.all([relinkAll(), relinkAll(), relinkAll()])),
        ])
        assert.deepEqual(faults, [null, null, null, null])
        const beside = await sql`
          select from image_link g join image_link e on e.image_digest = g.image_digest and e.join_rank < 3 where g.join_rank = 3`
        assert.equal(beside.length, 0, 'no guess beside an exact link')
        await isSettled()
        await isSettled()
        assert.equal(await isSettled(), 0)
      },
    ),
    { numRuns: RUNS },
  ))

/** An image, and a payload that has it by its digest. */
async function linkable() {
  const digest = newDigest()
  await sql`insert into image values (${digest}, 'r', '{t}', 'repo', now(), now())`
  const linkCount = async () => (await sql`select from image_link where digest = ${digest}`).length
  return { digest, sent: header({ digest, source: 'db-matcher' }), linkCount }
}

/** Stores while another open transaction has done `work`. */
async function storedBeside(
  work: (other: Parameters<Parameters<typeof sql.begin>[1]>[0]) => Promise<unknown>,
  sent: Header,
) {
  await sql.begin(async (other) => {
    await work(other)
    const answer = await storeFindings(sessions[0]!, sent, [finding('CVE-1', { epss: 0.5 })])
    assert.deepEqual(answer, { status: 'stored', items: 1 })
    assert.equal((await sessions[1]!`select from image_report where digest = ${sent.digest}`).length, 1, 'committed')
  })
}
const lockLinks = (other: Parameters<typeof storeFindings>[0]) =>
  other`select pg_advisory_xact_lock(${LINKS[0]}::int, ${LINKS[1]}::int)`

test('a session with the lock of all links blocks no ingest: it is stored without links, and the next pass adds them', async () => {
  const { digest, sent, linkCount } = await linkable()
  await storedBeside(lockLinks, sent)
  assert.equal(await linkCount(), 0)
  await sql`select relink(${digest}, 'db-matcher')`
  assert.equal(await linkCount(), 1)

  const free = await linkable()
  await storeFindings(sessions[0]!, free.sent, [])
  assert.equal(await free.linkCount(), 1, 'the session is as it was')
  const [row] = await sessions[0]!`select current_setting('lock_timeout') as timeout`
  assert.equal(row!.timeout, '0')
})

test('a session with a lock on a row of the links blocks no ingest', async () => {
  const { digest, sent, linkCount } = await linkable()
  await sql`insert into image_link values (${newDigest()}, 'registry', ${digest}, 3, now())`
  await storedBeside((other) => other`select from image_link where image_digest = ${digest} for update`, sent)
  assert.equal(await linkCount(), 0)
  await sql`select relink(${digest}, 'db-matcher')`
  assert.equal(await linkCount(), 1)
})

test('a job within its transaction blocks no ingest, and its counts are corrected later', async () => {
  await sql`truncate image_finding, image_report, cve_fact, cve_news`
  const { sent } = await linkable()
  const older = await linkable()
  const rows = [finding('CVE-1', { epss: 0.5 }), finding('CVE-2', { kev: true })]
  await storeFindings(sql, older.sent, rows)
  await look(sql)
  await storeFindings(sql, { ...older.sent, scanned_at: at(2), post: newPost(), content_hash: 'empty' }, [])
  await storedBeside(async (job) => {
    const locks = JSON.stringify(Object.values(JOB_LOCKS))
    await job`select pg_advisory_xact_lock(${0x6a6f_6273}::int, l::int) from json_array_elements_text(${locks}::text::json) l`
    await lockLinks(job)
    await job`select relink(digest, source) from image_report`
    await look(job)
    await job`insert into summary_news values ('CVE-1')`
    await job`delete from sbom_page`
  }, sent)
  const known = async (vuln: string) => ({ ...(await sql`select kev, epss from current_facts(${vuln})`)[0] })
  assert.deepEqual(await known('CVE-1'), { kev: null, epss: 0.5 })
  assert.deepEqual(await known('CVE-2'), { kev: null, epss: null })
})

test('a session that holds the links and then wants the payload gets it: the ingest ends without links, not in a deadlock', async () => {
  const { sent, digest } = await linkable()
  let fault: Promise<string | null> | undefined
  await sql.begin(async (other) => {
    // A shorter timeout: the ingest has to give up, however late its own timer is.
    await other`select set_config('deadlock_timeout', '800ms', true) from pg_roles where rolname = current_user and rolsuper`
    await lockLinks(other)
    fault = faultOf(storeFindings(sessions[0]!, sent, []))
    await until('the ingest waits', async () => (await waiting(sql)) === 1)
    await other`select pg_advisory_xact_lock(hashtextextended(concat_ws(e'\\x01', 'vulnerabilities', ${digest}::text, 'db-matcher'), 0))`
    assert.equal((await sql`select from image_report where digest = ${digest}`).length, 1)
  })
  assert.equal(await fault, null)
})
