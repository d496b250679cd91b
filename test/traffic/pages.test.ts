import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { asArray, piecesOf } from '../../lib/http/response/pages.ts'
import { type Pieces, sliced } from '../../lib/http/response/stream.ts'
import type { PageCursor } from '../../lib/records/index.ts'
import type { Page as PageOf } from '../../lib/records/page.ts'
import { readFirstPages, readNextPage } from '../../lib/traffic/index.ts'
import { startApp } from '../support/app.ts'
import { collectAll } from '../support/heap.ts'
import { until } from '../support/until.ts'

const app = await startApp()

type Page = PageOf<PageCursor>

const EMPTY: Page = { json: Buffer.alloc(0), count: 0, last: null }
/** A page that holds its number. */
const page = (n: number): Page => ({ json: Buffer.from(String(n)), count: 1, last: [`t${n}`, `u${n}`] })

const readerOf = (pieces: Pieces) => sliced(pieces, undefined).getReader()

/** Streams pages 1 to `count`; notes which were asked for, and what went wrong. */
function streamOf(
  count: number,
  next = (n: number): Page | Promise<Page> => (n <= count ? page(n) : EMPTY),
  ready = async () => {},
) {
  const asked: PageCursor[] = []
  const errors: Error[] = []
  const pieces = piecesOf(
    page(1),
    async (after) => {
      asked.push(after)
      return next(asked.length + 1)
    },
    (error) => errors.push(error),
    ready,
  )
  return { reader: readerOf(pieces), asked, errors }
}
const textOf = (value: Uint8Array | undefined) => Buffer.from(value!).toString()

test('pages become one array, each asked for by the end of the one before', async () => {
  const { reader, asked, errors } = streamOf(4)
  let text = ''
  for (let one = await reader.read(); !one.done; one = await reader.read()) text += textOf(one.value)
  assert.deepEqual(JSON.parse(text), [1, 2, 3, 4])
  assert.deepEqual(
    asked,
    [1, 2, 3, 4].map((n) => [`t${n}`, `u${n}`]),
  )
  assert.deepEqual(errors, [])
})

test('a page is asked for when the reader asks, and never ahead of it', async () => {
  const { reader, asked } = streamOf(10)
  await turn()
  assert.equal(asked.length, 0)
  for (let taken = 1; taken <= 10; taken++) {
    await reader.read()
    await turn()
    assert.equal(asked.length, taken - 1)
  }
})

test('what was sent is not kept', async () => {
  const bytes = 1024 * 1024
  const { reader } = streamOf(300, (n) => (n <= 300 ? { ...page(n), json: Buffer.alloc(bytes, 0x31) } : EMPTY))
  const before = process.memoryUsage().arrayBuffers
  for (let n = 1; n <= 300; n++) {
    await reader.read()
    await turn()
  }
  await until('what was sent is gone', async () => {
    await collectAll()
    return process.memoryUsage().arrayBuffers - before < 10 * bytes
  })
  await reader.cancel()
})

test('an error in a later page ends the stream as an error, and is told once', async () => {
  const failure = new Error('no next page')
  const { reader, errors } = streamOf(10, (n) => (n === 3 ? Promise.reject(failure) : page(n)))
  await reader.read()
  await reader.read()
  await assert.rejects(reader.read(), failure)
  await assert.rejects(reader.read(), failure)
  await assert.rejects(reader.closed, failure)
  assert.deepEqual(errors, [failure])
})

test('a reader that goes away is no error, and no more pages are read', async () => {
  const { reader, asked, errors } = streamOf(10)
  await reader.read()
  await reader.cancel()
  await turn()
  assert.equal(asked.length, 0)
  assert.deepEqual(errors, [])
})

test('a reader that goes away while a page is read is no error either', async () => {
  let finish = (_: Page) => {}
  const { reader, asked, errors } = streamOf(10, () => new Promise<Page>((resolve) => (finish = resolve)))
  await reader.read()
  const second = reader.read()
  await turn()
  await reader.cancel()
  finish(page(2))
  assert.equal((await second).done, true)
  await turn()
  assert.equal(asked.length, 1)
  assert.deepEqual(errors, [])
})

test('each page but the first waits until it may come, and is not read for a reader that went away meanwhile', async () => {
  const waiting: (() => void)[] = []
  const { reader, asked } = streamOf(
    10,
    (n) => page(n),
    () => new Promise<void>((resolve) => waiting.push(resolve)),
  )
  await reader.read()
  assert.equal(waiting.length, 0)
  const second = reader.read()
  await turn()
  assert.deepEqual([waiting.length, asked.length], [1, 0])
  waiting[0]!()
  assert.equal(textOf((await second).value), ',2')
  reader.read().catch(() => {})
  await turn()
  await reader.cancel()
  waiting[1]!()
  await turn()
  assert.equal(asked.length, 1)
})

test('one page as an array', () => {
  assert.equal(asArray(page(7)).toString(), '[7]')
  assert.equal(asArray(EMPTY).toString(), '[]')
})

// ---- On the table ---------------------------------------------------------------------------------------------------

interface Row {
  uuid: string
  second: number
}
const row: fc.Arbitrary<Row> = fc.record({
  uuid: fc.string({ unit: fc.constantFrom('a', 'b', 'B', 'é', '-'), minLength: 1, maxLength: 3 }),
  second: fc.nat(3),
})
const rows = (maxLength: number) => fc.uniqueArray(row, { maxLength, selector: ({ uuid }) => uuid })
const timeOf = ({ second }: Row) => `2024-05-01T10:00:00.00000${second}`

const store = (pod: string, all: Row[]) => app.sql`
  insert into traffic (uuid, pod_name, time_stamp)
  select ${pod}::text || r.uuid, ${pod}, r.time_stamp
  from json_to_recordset(${JSON.stringify(all.map((one) => ({ uuid: one.uuid, time_stamp: timeOf(one) })))}::text::json)
    as r(uuid text, time_stamp timestamp)
  on conflict do nothing`
const remove = (pod: string, uuids: string[]) => app.sql`
  delete from traffic where uuid in (select ${pod}::text || u from json_array_elements_text(${JSON.stringify(uuids)}::text::json) u)`
const bytes = (a: Row, b: Row) => b.second - a.second || Buffer.compare(Buffer.from(b.uuid), Buffer.from(a.uuid))

test('page by page, rows that stay come once and in order while others come and go', { timeout: 900_000 }, async () => {
  let runs = 0
  await fc.assert(
    fc.asyncProperty(
      rows(25),
      fc.integer({ min: 1, max: 6 }),
      fc.array(fc.record({ add: rows(3), remove: fc.array(fc.nat(30), { maxLength: 3 }) }), { maxLength: 8 }),
      async (start, limit, changes) => {
        const pod = `${runs++}/`
        await store(pod, start)
        const [first] = await readFirstPages(app.db.read, [pod], limit)
        const next = (after: PageCursor) => readNextPage(app.db.read, pod, after, limit)
        const reader = readerOf(piecesOf(first!, next, (error) => assert.fail(error)))
        const gone = new Set<string>()
        const added = new Set<string>()
        let text = ''
        if (first!.count === 0) return
        for (let one = await reader.read(), i = 0; !one.done; one = await reader.read(), i++) {
          text += textOf(one.value)
          const change = changes[i]
          if (!change) continue
          const removed = change.remove.flatMap((n) => start[n]?.uuid ?? [])
          const fresh = change.add.filter(({ uuid }) => !start.some((old) => old.uuid === uuid))
          await remove(pod, removed)
          await store(pod, fresh)
          for (const uuid of removed) gone.add(uuid)
          for (const { uuid } of fresh) added.add(uuid)
        }
        const sent = JSON.parse(text).map((found: { uuid: string }) => found.uuid.slice(pod.length)) as string[]
        assert.equal(new Set(sent).size, sent.length, 'none twice')
        const stayed = start.filter(({ uuid }) => !gone.has(uuid)).sort(bytes)
        assert.deepEqual(
          sent.filter((uuid) => !gone.has(uuid) && !added.has(uuid)),
          stayed.map(({ uuid }) => uuid),
        )
        for (const uuid of sent) assert.ok(added.has(uuid) || start.some((old) => old.uuid === uuid))
      },
    ),
    { numRuns: 150 },
  )
})

test('a page that columns cannot carry is followed by the right one', async () => {
  const all = ['a\u001f', 'b\u0001', 'c', '\u001f', '\u0001d', 'e\u001f\u001f'].map((uuid, i) => ({
    uuid,
    second: i >> 1,
  }))
  await store('odd/', all)
  const [first] = await readFirstPages(app.db.read, ['odd/'], 1)
  const next = (after: PageCursor) => readNextPage(app.db.read, 'odd/', after, 1)
  const reader = readerOf(piecesOf(first!, next, (error) => assert.fail(error)))
  let text = ''
  for (let one = await reader.read(); !one.done; one = await reader.read()) text += textOf(one.value)
  assert.deepEqual(
    JSON.parse(text).map(({ uuid }: { uuid: string }) => uuid),
    all.sort(bytes).map(({ uuid }) => `odd/${uuid}`),
  )
})
