/** How payloads are joined to images of the inventory (docs/contract.md#joins), compared with a model. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createTestDatabase } from '../support/database.ts'
import { depth } from '../support/depth.ts'
import type { Header, Kind, Observed, Source } from './statements.ts'
import {
  at,
  finding,
  header,
  ingestSession,
  KINDS,
  newDigest,
  SOURCES,
  store,
  storeFindings,
  storeSbom,
} from './statements.ts'

const RUNS = depth(12, 60)

const { url } = await createTestDatabase()
const sql = await ingestSession(url)

interface Image {
  digest: string
  repository: string
  tags: readonly string[]
}
interface Workload {
  namespace: string
  kind: string
  name: string
  container: string
  digest: string
  /** The part of the pod spec behind the name of the image. */
  written: string
}
interface Report {
  digest: string
  source: Source
  kind: Kind
  hour: number
  manifests: readonly string[]
  index: string | null
  repository: string | null
  tag: string | null
  observed: readonly Observed[]
  sbomSources: readonly Source[]
}
interface Inventory {
  images: readonly Image[]
  workloads: readonly Workload[]
}
/** Ranks by key and image, `digest source image`. */
type Links = Map<string, number>

/** The owner of a workload that a scanner saw (docs/contract.md#joins). */
function owns(seen: Observed, { kind, name }: Pick<Workload, 'kind' | 'name'>): boolean {
  if (seen.kind === kind && seen.name === name) return true
  const owner = { ReplicaSet: 'Deployment', Job: 'CronJob' }[seen.kind]
  const suffix = seen.name.slice(name.length + 1)
  return owner === kind && seen.name === `${name}-${suffix}` && /^[a-z0-9]{1,12}$/.test(suffix)
}

/** The images of a key, each with its best rank. */
function named(reports: readonly Report[]): Links {
  const ranks: Links = new Map()
  for (const one of reports)
    for (const digest of [...one.manifests, ...(one.index ? [one.index] : [])]) ranks.set(digest, 2)
  for (const one of reports) ranks.set(one.digest, 1)
  return ranks
}

/** All expected links, computed from stored payloads alone: no link depends on another one. */
function wantedLinks(reports: readonly Report[], { images, workloads }: Inventory): Links {
  const links: Links = new Map()
  const keys = [...new Set(reports.map((one) => `${one.digest} ${one.source}`))]
  const ofKey = (key: string) => reports.filter((one) => `${one.digest} ${one.source}` === key)
  const exact = new Map<string, number>()
  for (const key of keys) {
    const sources = [named(ofKey(key))]
    for (const sbom of ofKey(key).filter((one) => one.kind === 'sbom')) {
      const matched = reports.filter(
        (one) =>
          one.kind === 'vulnerabilities' &&
          one.sbomSources.includes(sbom.source) &&
          (one.digest === sbom.digest || one.digest === sbom.index),
      )
      sources.push(...matched.map((one) => named(ofKey(`${one.digest} ${one.source}`))))
    }
    for (const ranks of sources) {
      for (const [digest, rank] of ranks) {
        if (!images.some((image) => image.digest === digest)) continue
        const link = `${key} ${digest}`
        links.set(link, Math.min(rank, links.get(link) ?? rank))
        exact.set(digest, 1)
      }
    }
  }
  for (const key of keys) {
    if ([...links].some(([link, rank]) => link.startsWith(`${key} `) && rank < 3)) continue
    for (const one of ofKey(key)) {
      for (const image of images) {
        const isSame = image.repository === one.repository && one.tag !== null
        const runs = workloads.some(
          (w) =>
            w.digest === image.digest &&
            (image.tags.includes(one.tag!) || w.written.replace(/@.*/, '') === `:${one.tag}`) &&
            one.observed.some(
              (seen) => seen.namespace === w.namespace && seen.container === w.container && owns(seen, w),
            ),
        )
        if (isSame && runs && !exact.has(image.digest)) links.set(`${key} ${image.digest}`, 3)
      }
    }
  }
  return links
}

const DIGESTS = 6
const SEEN = [
  'web',
  'web-1',
  'db',
  'web-abc12',
  'web-1-abc12',
  'web-ABC',
  'web-',
  'web-abcdefghijkl',
  'web-abcdefghijklm',
  'db-28391200',
  'web-1-2-3',
]
const digest = fc.nat(DIGESTS - 1)
const few = <T>(one: fc.Arbitrary<T>, most: number) => fc.uniqueArray(one, { maxLength: most })
// Mostly the first of each, so that guesses are made; the others differ in one field.
const mostly = <T>(first: T, ...others: T[]) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(first) }, { weight: 1, arbitrary: fc.constantFrom(...others) })
const image = fc.record({
  digest,
  repository: mostly('r0', 'r1'),
  tags: fc.uniqueArray(mostly('t0', 't1', 't2'), { minLength: 1, maxLength: 2 }),
})
const workload = fc.record({
  namespace: mostly('a', 'b'),
  kind: mostly('Deployment', 'CronJob', 'StatefulSet', 'Pod', 'ReplicaSet'),
  name: mostly('web', 'web-1', 'db', 'web-abc12'),
  container: mostly('c', 'd'),
  digest,
  written: mostly('', ':t0', ':t1', ':t0@sha256:0', '@t0', ':t00'),
})
const report = fc.record({
  digest,
  source: fc.constantFrom(...SOURCES),
  kind: fc.constantFrom(...KINDS),
  manifests: few(digest, 2),
  index: fc.option(digest, { freq: 2 }),
  repository: mostly<string | null>('r0', 'r1', null),
  tag: mostly<string | null>('t0', 't1', null),
  observed: fc.array(
    fc.record({
      namespace: mostly('a', 'b'),
      kind: mostly('ReplicaSet', 'Job', 'Pod', 'StatefulSet', 'Deployment', 'CronJob'),
      name: mostly('web-abc12', ...SEEN),
      container: mostly('c', 'd'),
    }),
    { maxLength: 4 },
  ),
  sbomSources: few(fc.constantFrom(...SOURCES), 2),
})
/** Images and workloads; a later inventory may lack some. */
const inventory = fc.record({
  images: fc.uniqueArray(image, { minLength: 2, maxLength: DIGESTS, selector: (one) => one.digest }),
  // One image reference for each container, as in the table.
  workloads: fc.uniqueArray(workload, { maxLength: 8, selector: ({ written, ...key }) => JSON.stringify(key) }),
})
type Raw<T> = T extends fc.Arbitrary<infer V> ? V : never

async function replaceInventory({
  images,
  workloads,
}: {
  images: Inventory['images']
  workloads: readonly Partial<Workload>[]
}): Promise<void> {
  await sql`truncate image, workload_container`
  await sql`
    insert into image (digest, repository, tags, digest_kind, first_seen, last_seen)
    select i.digest, i.repository, i.tags, 'repo', now(), now()
    from json_to_recordset(${JSON.stringify(images)}::text::json) i(digest text, repository text, tags text[])`
  await sql`
    insert into workload_container (cluster_id, pod_namespace, workload_kind, workload_name, container_name, image_digest, container_kind,
                                    image_ref, security_context, pod_security, first_seen, last_seen)
    select '', w.namespace, w.kind, w.name, w.container, w.digest, 'regular',
           'r:5000/team/web' || coalesce(w.written, ''), '{}', '{}', now(), now()
    from json_to_recordset(${JSON.stringify(workloads)}::text::json)
      w(namespace text, kind text, name text, container text, digest text, written text)
    on conflict do nothing`
}

const headerOf = (one: Report): Partial<Header> & { digest: string } => ({
  ...{
    digest: one.digest,
    source: one.source,
    scanned_at: at(one.hour),
    index_digest: one.index,
    normal_repository: one.repository,
  },
  platform_manifests: Object.fromEntries(one.manifests.map((manifest, n) => [`linux/${n}`, manifest])),
  ...{ tag: one.tag, observed_in: [...one.observed], sbom_sources: one.kind === 'sbom' ? [] : [...one.sbomSources] },
})
const send = (one: Report) => store(sql, one.kind, header(headerOf(one)), [])

async function storedLinks(): Promise<Links> {
  const rows = await sql`select digest, source, image_digest, join_rank from image_link`
  return new Map(rows.map((row) => [`${row.digest} ${row.source} ${row.image_digest}`, row.join_rank as number]))
}
const listed = (links: Links) => [...links].map(([link, rank]) => `${link} ${rank}`).sort()

/** One pass of the job over all keys in an order. Returns how many rows it changed. */
async function relinkAll(keys: readonly string[]): Promise<number> {
  let changed = 0
  for (const key of keys) {
    const [digest, source] = key.split(' ')
    const [row] = await sql<{ changed: number }[]>`select relink(${digest!}, ${source!}) as changed`
    changed += row!.changed
  }
  return changed
}

/** The first pass over all keys makes exact links, the second guesses; the third changes nothing, in any order. */
async function assertSettles(
  reports: readonly Report[],
  inventory: Inventory,
  order: (keys: string[]) => string[],
): Promise<void> {
  const keys = [...new Set(reports.map((one) => `${one.digest} ${one.source}`))]
  await relinkAll(order(keys))
  await assertNoneBeside()
  await relinkAll(order(keys))
  const settled = await storedLinks()
  assert.deepEqual(listed(settled), listed(wantedLinks(reports, inventory)))
  const places = await sql`select ctid::text, xmin::text from image_link order by 1`
  assert.equal(await relinkAll(order(keys)), 0, 'nothing is left to change')
  assert.deepEqual(await sql`select ctid::text, xmin::text from image_link order by 1`, places)
  await assertReads(reports, settled, inventory)
}

/** An image that a payload has by its digest never has a guess. */
async function assertNoneBeside(): Promise<void> {
  const rows = await sql`
    select g.digest, g.source, g.image_digest from image_link g join image_link e on e.image_digest = g.image_digest and e.join_rank < 3
    where g.join_rank = 3`
  assert.equal(rows.length, 0, JSON.stringify(rows))
}

/**
 * The payloads that answer for a digest. Of each source: the one posted under the digest itself; else those linked by
 * digest, side by side for different platforms and otherwise the newest scan; else a guess, if nothing was posted under
 * the digest.
 */
function answers(reports: readonly Report[], links: Links, { images }: Inventory, kind: Kind, asked: string) {
  const newest = (some: readonly Report[]) =>
    [...some].sort((a, b) => b.hour - a.hour || (a.digest < b.digest ? -1 : 1)).slice(0, 1)
  const isPlatform = (one: Report) => reports.some((other) => other.digest === one.digest && other.index === asked)
  return SOURCES.flatMap((source) => {
    const rankOf = (one: Report) => links.get(`${one.digest} ${source} ${asked}`) ?? 9
    const all = reports.filter((one) => one.kind === kind && one.source === source)
    const own = all.filter((one) => one.digest === asked)
    const isKnown = images.some((image) => image.digest === asked)
    if (own.length > 0) return own.map(({ digest }) => ({ digest, source, join_rank: isKnown ? 1 : 4 }))
    const exact = all.filter((one) => rankOf(one) < 3)
    const sideBySide = [...exact.filter(isPlatform), ...newest(exact.filter((one) => !isPlatform(one)))]
    const guess = reports.some((one) => one.digest === asked) ? [] : newest(all.filter((one) => rankOf(one) === 3))
    return (sideBySide.length > 0 ? sideBySide : guess)
      .map((one) => ({ digest: one.digest, source, join_rank: rankOf(one) }))
      .sort((a, b) => (a.digest < b.digest ? -1 : 1))
  })
}

async function assertReads(reports: readonly Report[], links: Links, inventory: Inventory): Promise<void> {
  for (const kind of KINDS)
    for (const asked of new Set(
      reports.flatMap((one) => [one.digest, ...one.manifests, ...(one.index ? [one.index] : [])]),
    ))
      assert.deepEqual(
        [...(await sql`select * from answering_reports(${asked}, ${kind}) order by source, digest`)],
        answers(reports, links, inventory, kind, asked),
      )
}

test('links are those of the model, in any order of payloads and passes, and follow the inventory', () =>
  fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(report, {
        minLength: 1,
        maxLength: 7,
        selector: (one) => `${one.digest} ${one.source} ${one.kind}`,
      }),
      fc.array(report, { maxLength: 2 }),
      inventory,
      inventory,
      fc.array(fc.nat(1_000), { minLength: 12, maxLength: 12 }),
      async (raw, again, before, later, weights) => {
        await sql`truncate image_report, image_link`
        const digests = Array.from({ length: DIGESTS }, newDigest)
        const placed = ({ images, workloads }: Raw<typeof inventory>): Inventory => ({
          images: images.map((one) => ({ ...one, digest: digests[one.digest]! })),
          workloads: workloads.map((one) => ({ ...one, digest: digests[one.digest]! })),
        })
        const made = (one: Raw<typeof report>, hour: number): Report => {
          const index = one.index === null || one.index === one.digest ? null : digests[one.index]!
          const sbomSources = one.kind === 'sbom' ? [] : one.sbomSources
          return {
            ...one,
            hour,
            digest: digests[one.digest]!,
            manifests: one.manifests.map((n) => digests[n]!),
            index,
            sbomSources,
          }
        }
        const shuffled = (keys: string[]) =>
          keys
            .map((key, n) => ({ key, weight: weights[n % weights.length]! }))
            .sort((a, b) => a.weight - b.weight)
            .map((one) => one.key)

        let reports = raw.map((one, n) => made(one, weights[n]! % 3))
        await replaceInventory(placed(before))
        for (const one of reports) {
          assert.equal((await send(one)).status, 'stored')
          await assertNoneBeside()
        }
        await assertReads(reports, await storedLinks(), placed(before))
        await assertSettles(reports, placed(before), shuffled)

        await replaceInventory(placed(later))
        await assertReads(reports, await storedLinks(), placed(later))
        await assertSettles(reports, placed(later), (keys) => shuffled(keys).reverse())

        for (const next of again.map((one, n) => made(one, 5 + n))) {
          reports = [
            ...reports.filter(
              (one) => one.digest !== next.digest || one.source !== next.source || one.kind !== next.kind,
            ),
            next,
          ]
          assert.equal((await send(next)).status, 'stored')
          await assertNoneBeside()
        }
        await assertSettles(reports, placed(later), shuffled)

        await replaceInventory({ images: [], workloads: [] })
        await assertSettles(reports, { images: [], workloads: [] }, shuffled)
        assert.equal((await storedLinks()).size, 0)
      },
    ),
    { numRuns: RUNS },
  ))

test('a workload of a scanner is the same one, or made by a Deployment or a CronJob', () =>
  fc.assert(
    fc.asyncProperty(
      fc.constantFrom('ReplicaSet', 'Job', 'Pod', 'Deployment', 'CronJob', 'StatefulSet'),
      fc.constantFrom('ReplicaSet', 'Job', 'Pod', 'Deployment', 'CronJob', 'StatefulSet'),
      fc.constantFrom('web', 'web-1', 'w%b', 'w_b', 'w.b', 'wéb'),
      fc.oneof(
        fc.constantFrom('', '-', '-a', '-a\n', '\n', '-A', '-é', '-a-b', 'a'),
        fc.stringMatching(/^-[a-z0-9]{10,14}$/),
      ),
      async (seenKind, kind, name, suffix) => {
        const seen = { namespace: '', kind: seenKind, name: name + suffix, container: '' }
        const [row] = await sql`select is_workload_of(${seenKind}, ${seen.name}, ${kind}, ${name}) as is_one`
        assert.equal(row!.is_one, owns(seen, { kind, name }))
      },
    ),
    { numRuns: depth(50, 400) },
  ))

/** An image that a Deployment of its own namespace runs, and a payload that guesses it. */
async function guessed() {
  const digest = newDigest()
  const namespace = `ns-${digest}`
  const images = [{ digest, repository: 'docker.io/library/web', tags: ['1'] }]
  await replaceInventory({
    images,
    workloads: [{ namespace, kind: 'Deployment', name: 'web', container: 'c', digest }],
  })
  const guess = {
    ...{ normal_repository: 'docker.io/library/web', tag: '1' },
    observed_in: [{ namespace, kind: 'ReplicaSet', name: 'web-5d4f', container: 'c' }],
  }
  const linksTo = async () => [
    ...(await sql`select digest, source, join_rank from image_link where image_digest = ${digest} order by 1, 2`),
  ]
  return { digest, guess, linksTo }
}

test('a guess needs the same namespace, workload, container, repository and tag', async () => {
  const { guess, linksTo } = await guessed()
  const [seen] = guess.observed_in
  const send = async (fields: Partial<Header>) => {
    await storeFindings(sql, header({ digest: newDigest(), ...guess, ...fields }), [])
    return (await linksTo()).length
  }
  const others = [
    { namespace: 'other' },
    { container: 'other' },
    { kind: 'Job' },
    { kind: 'Pod' },
    { name: 'web' },
    { name: 'other-5d4f' },
  ]
  for (const other of others)
    assert.equal(await send({ observed_in: [{ ...seen!, ...other }] }), 0, JSON.stringify(other))
  for (const other of [
    { normal_repository: 'other' },
    { normal_repository: null },
    { tag: '2' },
    { tag: null },
    { observed_in: [] },
  ]) {
    assert.equal(await send(other), 0, JSON.stringify(other))
  }
  assert.equal(await send({}), 1)
  assert.equal(await send({ observed_in: [{ ...seen!, kind: 'Deployment', name: 'web' }] }), 2)
})

test('a guess by the current tag of the container is made, however many tags the image had before', async () => {
  const { digest, guess, linksTo } = await guessed()
  await sql`update image set tags = union_tags('{}', array(select 'v' || n from generate_series(0, 39) n)) where digest = ${digest}`
  const send = async (tag: string) => {
    await storeFindings(sql, header({ digest: newDigest(), ...guess, tag }), [])
    return (await linksTo()).length
  }
  assert.equal(await send('v32'), 0, 'no container writes it')
  for (const [written, count] of [
    ['registry.test:5000/team/web:v32', 1],
    ['web:v32@sha256:0', 2],
    ['web:v32', 3],
  ] as const) {
    await sql`update workload_container set image_ref = ${written} where image_digest = ${digest}`
    assert.equal(await send('v32'), count, written)
  }
  for (const written of ['web@sha256:v32', 'web:5000/v32', 'web:v3', 'malformed_reference']) {
    await sql`update workload_container set image_ref = ${written} where image_digest = ${digest}`
    assert.equal(await send('v32'), 3, written)
  }
})

test('an ingest links its payload, and retires the guesses of others if it has the digest', async () => {
  const { digest, guess, linksTo } = await guessed()
  const guesser = newDigest()
  await storeFindings(sql, header({ digest: guesser, ...guess }), [finding('CVE-1')])
  assert.deepEqual(await linksTo(), [{ digest: guesser, source: 'operator-scanner', join_rank: 3 }])

  await storeFindings(sql, header({ digest, source: 'db-matcher' }), [])
  assert.deepEqual(await linksTo(), [{ digest, source: 'db-matcher', join_rank: 1 }])
  await storeFindings(sql, header({ digest: guesser, ...guess, scanned_at: at(2) }), [])
  assert.deepEqual(await linksTo(), [{ digest, source: 'db-matcher', join_rank: 1 }], 'and no guess comes back')
})

test('a payload that no longer names an image becomes a guess with the same post', async () => {
  const { digest, guess, linksTo } = await guessed()
  const index = newDigest()
  const link = (join_rank: number) => [{ digest: index, source: 'operator-scanner', join_rank }]
  await storeFindings(sql, header({ digest: index, ...guess, platform_manifests: { 'linux/amd64': digest } }), [])
  assert.deepEqual(await linksTo(), link(2))
  await storeFindings(sql, header({ digest: index, ...guess, scanned_at: at(2) }), [])
  assert.deepEqual(await linksTo(), link(3))
})

test('a refreshed header refreshes its links, for both kinds', async () => {
  for (const kind of KINDS) {
    const { digest, guess, linksTo } = await guessed()
    const sent = { digest: newDigest(), content_hash: 'same' }
    await store(sql, kind, header(sent), [])
    assert.deepEqual(await linksTo(), [])
    assert.deepEqual(await store(sql, kind, header({ ...sent, ...guess }), null), { status: 'unchanged' })
    assert.deepEqual(await linksTo(), [{ digest: sent.digest, source: 'operator-scanner', join_rank: 3 }])
    assert.deepEqual(await store(sql, kind, header({ ...sent, platform_manifests: { a: digest } }), null), {
      status: 'unchanged',
    })
    assert.deepEqual(await linksTo(), [{ digest: sent.digest, source: 'operator-scanner', join_rank: 2 }])
  }
})

test('an SBOM has the exact links of a report that was matched from it, as soon as that arrives', async () => {
  const { digest, linksTo } = await guessed()
  const index = newDigest()
  const ofManifest = newDigest()
  await storeSbom(sql, header({ digest: index, source: 'registry' }), [])
  await storeSbom(sql, header({ digest: ofManifest, source: 'registry', index_digest: index }), [])
  assert.deepEqual(await linksTo(), [])
  const matched = { digest: index, source: 'db-matcher' as Source, platform_manifests: { 'linux/amd64': digest } }
  await storeFindings(sql, header({ ...matched, sbom_sources: ['registry'] }), [])
  const expected = [
    { digest: index, source: 'db-matcher', join_rank: 2 },
    { digest: index, source: 'registry', join_rank: 2 },
    { digest: ofManifest, source: 'registry', join_rank: 2 },
  ]
  assert.deepEqual(await linksTo(), expected)

  await storeFindings(sql, header({ ...matched, sbom_sources: ['operator-scanner'], scanned_at: at(2) }), [])
  await sql`select relink(digest, source) from image_report where source = 'registry'`
  assert.deepEqual(await linksTo(), expected.slice(0, 1), 'and no longer than it says so')
})
