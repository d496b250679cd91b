/** Page sets of SBOMs compared with a model (docs/contract.md#sbom), and the real limits. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, beforeEach, test } from 'node:test'
import fc from 'fast-check'
import { createTestDatabase } from '../support/database.ts'
import { depth, onlyFull } from '../support/depth.ts'
import type { Answer, Source } from './statements.ts'
import { at, component, componentNames, header, ingestSession, newDigest, newPost, storeSbom } from './statements.ts'

const RUNS = depth(18, 150)

const sql = await ingestSession((await createTestDatabase()).url)
/** Limits of a few sets and components, so that random steps reach them. */
const low = await ingestSession((await createTestDatabase()).url)
const LOW = { sets: 2, components: 7 }

const functionText = (name: string) => readFileSync(new URL(`../../sql/functions/${name}.sql`, import.meta.url), 'utf8')
function lowered(text: string, from: string, to: string): string {
  assert.ok(text.includes(from), from)
  return text.replace(from, to)
}
await low.unsafe(lowered(functionText('sbom/stage_page'), 'integer := 64', `integer := ${LOW.sets}`))
await low.unsafe(lowered(functionText('sbom/store_sbom'), 'integer := 50000', `integer := ${LOW.components}`))

// The limits count the pages of all tests.
beforeEach(() => sql`truncate sbom_page`)

interface Set {
  key: string
  id: string
  hour: number
  total: number
  pages: Map<number, { post: string; names: readonly string[] }>
}
interface Stored {
  hash: string
  hour: number
  post: string
  names: readonly string[]
}
interface Sent {
  key: string
  /** Null for a whole SBOM. */
  set: { id: string; index: number; total: number } | null
  hash: string
  hour: number
  post: string
  names: readonly string[]
}

/** The rules, for one cluster. */
class Model {
  readonly stored = new Map<string, Stored>()
  sets: Set[] = []

  answerTo(sent: Sent): Answer {
    const stored = this.stored.get(sent.key)
    if (stored?.post === sent.post) return { status: 'stored', items: stored.names.length }
    if (stored?.hash === sent.hash) {
      if (sent.hour >= stored.hour) this.scanned(sent.key, { ...stored, hour: sent.hour })
      return { status: 'unchanged' }
    }
    if (stored && sent.hour <= stored.hour) return { status: 'stale', stored_scanned_at: at(stored.hour) }
    if (!sent.set) {
      this.scanned(sent.key, sent)
      return { status: 'stored', items: sent.names.length }
    }
    return this.page(sent, sent.set)
  }

  /** Makes this the SBOM of a key: older sets are dropped. */
  private scanned(key: string, { hash, hour, post, names }: Stored) {
    this.stored.set(key, { hash, hour, post, names })
    this.sets = this.sets.filter((one) => one.key !== key || one.hour > hour)
  }

  private page(sent: Sent, { id, index, total }: { id: string; index: number; total: number }): Answer {
    const ofKey = this.sets.filter((one) => one.key === sent.key)
    const rival = ofKey.find((one) => one.id !== id && one.hour >= sent.hour)
    if (rival) return { status: 'stale', stored_scanned_at: at(rival.hour) }
    let own = ofKey.find((one) => one.id === id)
    if (own && own.total !== total) return { status: 'refused', reason: 'total', total: own.total }
    if (!own) {
      if (this.sets.length - ofKey.length >= LOW.sets) return { status: 'refused', reason: 'ceiling' }
      own = { key: sent.key, id, hour: sent.hour, total, pages: new Map() }
      this.sets = [...this.sets.filter((one) => one.key !== sent.key), own]
    }
    const held = own.pages.get(index)
    if (held) return { status: held.post === sent.post ? 'staged' : 'duplicate_page', received: own.pages.size, total }
    own.pages.set(index, sent)
    if (own.pages.size < total) return { status: 'staged', received: own.pages.size, total }

    this.sets = this.sets.filter((one) => one !== own)
    const names = [...own.pages].sort(([a], [b]) => a - b).flatMap(([, page]) => page.names)
    if (names.length > LOW.components) return { status: 'refused', reason: 'components', items: names.length }
    this.scanned(sent.key, { ...sent, names })
    return { status: 'stored', items: names.length }
  }
}

const KEYS = ['0 registry', '0 operator-scanner', '1 registry', '2 registry']
const step = fc.record({
  key: fc.constantFrom(...KEYS),
  /** The number of a set determines its total and scan; or a whole SBOM is sent. */
  set: fc.option(fc.nat(3), { freq: 8 }),
  index: fc.nat(3),
  disagrees: fc.integer({ min: 0, max: 15 }).map((n) => n === 0),
  size: fc.nat(3),
  hour: fc.nat(4),
  manner: fc.constantFrom('at once', 'after asking', 'only asks'),
  again: fc.option(fc.nat(5), { freq: 6 }),
})
const TOTALS = [2, 3, 3, 4]

test('pages of several sets of several SBOMs are held, refused and taken as in the model', () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 30 }),
      fc.array(fc.nat(3), { minLength: 4, maxLength: 4 }),
      async (steps, hours) => {
        await low`truncate sbom_page, image_component, image_report`
        const digests = [newDigest(), newDigest(), newDigest()]
        const model = new Model()
        const posts: Sent[] = []
        for (const [n, { key, set, index, disagrees, size, hour, manner, again }] of steps.entries()) {
          const names = Array.from({ length: size }, (_, part) => `${n}.${part}`)
          const fresh: Sent =
            set === null
              ? { key, set: null, hash: `whole ${size}`, hour, post: newPost(), names }
              : {
                  ...{ key, hash: `set-${set}`, hour: hours[set]!, post: newPost(), names },
                  set: { id: `set-${set}`, index: index % TOTALS[set]!, total: TOTALS[set]! + Number(disagrees) },
                }
          const sent = posts.at(-1 - (again ?? Infinity)) ?? fresh
          posts.push(sent)
          const [number, source] = sent.key.split(' ') as [string, Source]
          const digest = digests[Number(number)]!
          const page = sent.set && { set_id: sent.set.id, index: sent.set.index, total: sent.set.total }
          const call = (rows: object[] | null) => {
            const fields = {
              digest,
              source,
              scanned_at: at(sent.hour),
              content_hash: sent.hash,
              post: sent.post,
              item_count: sent.names.length,
            }
            return storeSbom(low, header(fields), rows, page)
          }

          let answer = await call(manner === 'at once' ? sent.names.map(component) : null)
          if (answer.status === 'rows wanted') {
            await assertHeld(model, digests)
            if (manner === 'only asks') continue
            answer = await call(sent.names.map(component))
          }
          assert.deepEqual(answer, model.answerTo(sent))
          await assertHeld(model, digests)
        }
      },
    ),
    { numRuns: RUNS },
  ))

async function assertHeld(model: Model, digests: readonly string[]): Promise<void> {
  const pages = await low`
    select digest, source, set_id, page_index::int, total::int, post from sbom_page order by digest, source, set_id, page_index`
  const key = (digest: string, source: string) => `${digests.indexOf(digest)} ${source}`
  const flat = (one: object) => JSON.stringify(one)
  assert.deepEqual(
    pages.map((p) => flat([key(p.digest, p.source), p.set_id, p.page_index, p.total, p.post])).sort(),
    model.sets
      .flatMap((one) => [...one.pages].map(([index, page]) => flat([one.key, one.id, index, one.total, page.post])))
      .sort(),
  )
  const reports = await low`
    select digest, source, content_hash, to_json(scanned_at) #>> '{}' as scanned_at, item_count::int, post from image_report`
  assert.deepEqual(
    reports.map((r) => flat([key(r.digest, r.source), r.content_hash, r.scanned_at, r.item_count, r.post])).sort(),
    [...model.stored].map(([of, one]) => flat([of, one.hash, at(one.hour), one.names.length, one.post])).sort(),
  )
  for (const r of reports) {
    assert.deepEqual(await componentNames(low, r.digest, r.source), model.stored.get(key(r.digest, r.source))!.names)
  }
}

const stage = (
  digest: string,
  set_id: string,
  index: number,
  total: number,
  hour = 1,
  rows: object[] | null = [component('a')],
) =>
  storeSbom(sql, header({ digest, source: 'registry', scanned_at: at(hour), content_hash: set_id }), rows, {
    set_id,
    index,
    total,
  })
const staged = (received: number, total: number) => ({ status: 'staged', received, total })
const CEILING = { status: 'refused', reason: 'ceiling' }

test('64 sets are accepted and no more, until one is complete', async () => {
  const digests = Array.from({ length: 64 }, newDigest)
  for (const digest of digests) assert.deepEqual(await stage(digest, 'first', 1, 3), staged(1, 3))

  assert.deepEqual(await stage(newDigest(), 'first', 0, 2), CEILING)
  assert.deepEqual(await stage(newDigest(), 'first', 0, 2, 1, null), CEILING, 'without its rows')
  assert.deepEqual(await stage(newDigest(), 'alone', 0, 1), { status: 'stored', items: 1 })
  assert.deepEqual(await storeSbom(sql, header({ digest: newDigest() }), [component('a')]), {
    status: 'stored',
    items: 1,
  })
  assert.deepEqual(await stage(digests[0]!, 'first', 0, 3), staged(2, 3), 'a page of a set that was let in')
  assert.deepEqual(await stage(digests[0]!, 'newer', 0, 2, 2), staged(1, 2), 'a set in the place of an older one')

  assert.deepEqual(await stage(digests[0]!, 'newer', 1, 2, 2), { status: 'stored', items: 2 })
  const late = newDigest()
  assert.deepEqual(await stage(late, 'first', 0, 2), staged(1, 2))
  assert.deepEqual(await stage(newDigest(), 'first', 0, 2), CEILING)
})

test('new sets are refused from 256 MiB on, and a refused one leaves the older set', async () => {
  const MIB = 1024 * 1024
  await sql`alter table sbom_page alter components set storage external`
  after(() => sql`alter table sbom_page alter components set storage extended`)
  const fill = (index: number, bytes: number) => sql`
    insert into sbom_page (digest, source, set_id, page_index, total, scanned_at, item_count, components, post, received_at)
    values ('large', 'registry', 'large', ${index}, 128, now(), 1, repeat('x', ${bytes}), '', now())`
  const older = newDigest()
  const newer = newDigest()
  assert.deepEqual(await stage(older, 'older', 0, 2), staged(1, 2))
  assert.deepEqual(await stage(newer, 'older', 0, 2), staged(1, 2))
  // All other pages have these bytes beside the large ones.
  const [{ bytes } = { bytes: 0 }] =
    await sql`select sum(pg_column_size(components))::int as bytes from sbom_page where digest <> 'large'`
  for (let index = 1; index <= 15; index++) await fill(index, 16 * MIB)
  await fill(16, 16 * MIB - bytes - 1)
  const last = newDigest()
  assert.deepEqual(await stage(last, 'first', 0, 2, 1, null), { status: 'rows wanted' }, 'a byte is left')
  assert.deepEqual(await stage(newer, 'newer', 0, 2, 2, null), { status: 'rows wanted' })
  await fill(17, 1 + bytes)

  assert.deepEqual(await stage(last, 'first', 0, 2, 1), CEILING)
  assert.deepEqual(await stage(newer, 'newer', 0, 2, 2), CEILING, 'what was wanted before')
  assert.deepEqual(await stage(newer, 'older', 1, 2), { status: 'stored', items: 2 }, 'the set before it is whole')
  assert.deepEqual(await stage(older, 'older', 0, 2), { status: 'duplicate_page', received: 1, total: 2 })
})

test('50 000 components are stored in page order; one more deletes the set and leaves the previous SBOM', async () => {
  const digest = newDigest()
  const rows = (page: number, size: number) => Array.from({ length: size }, (_, n) => component(`${page}.${n}`))
  const sendSet = async (set_id: string, hour: number, more: number) => {
    for (const page of [3, 0, 4, 1])
      assert.equal((await stage(digest, set_id, page, 5, hour, rows(page, 10_000))).status, 'staged')
    return stage(digest, set_id, 2, 5, hour, rows(2, 10_000 + more))
  }
  assert.deepEqual(await sendSet('full', 1, 0), { status: 'stored', items: 50_000 })
  assert.deepEqual(await sendSet('over', 2, 1), { status: 'refused', reason: 'components', items: 50_001 })

  assert.equal((await sql`select from sbom_page`).length, 0)
  const names = await componentNames(sql, digest, 'registry')
  assert.equal(names.length, 50_000)
  assert.deepEqual(
    [0, 9_999, 10_000, 20_000, 49_999].map((n) => names[n]),
    ['0.0', '0.9999', '1.0', '2.0', '4.9999'],
  )
  assert.deepEqual(await stage(digest, 'over', 2, 5, 2), staged(1, 5), 'the same set begins anew')
})

test('a set is stored though its pages exceed the longest value of PostgreSQL', { skip: onlyFull }, async () => {
  const digest = newDigest()
  assert.deepEqual(await stage(digest, 'wide', 0, 128), staged(1, 128))
  await sql`update sbom_page set components = '[{"wide": "' || repeat('x', 9000000) || '", ' || substr(components, 3) where digest = ${digest}`
  // The copies reuse the compressed first page.
  await sql`
    insert into sbom_page (digest, source, set_id, page_index, total, scanned_at, item_count, components, post, received_at)
    select p.digest, p.source, p.set_id, n, p.total, p.scanned_at, p.item_count, p.components, p.post, p.received_at
    from sbom_page p cross join generate_series(1, 126) n where p.digest = ${digest}`
  assert.deepEqual(await stage(digest, 'wide', 127, 128), { status: 'stored', items: 128 })
})

test('a repeated page keeps its set from expiring, and its content', async () => {
  const digest = newDigest()
  await stage(digest, 'set', 0, 2)
  await sql`update sbom_page set received_at = '2000-01-01' where digest = ${digest}`
  assert.deepEqual(await stage(digest, 'set', 0, 2, 1, [component('other')]), {
    status: 'duplicate_page',
    received: 1,
    total: 2,
  })
  assert.deepEqual(
    [
      ...(await sql`select received_at > '2000-01-01' as is_kept, components::json -> 0 ->> 'name' as name from sbom_page`),
    ],
    [{ is_kept: true, name: 'a' }],
  )
})
