import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import {
  type Answer,
  answer,
  type PodHistory,
  type Query,
  type Side,
  type StoredFlow,
  sides,
} from '../traffic/flow-model.ts'
import { filter, flows, history, INSERT_FLOWS, range } from '../traffic/flow-values.ts'

const app = await startApp()

/** Filters put to each store. */
const FILTERS = 10
const STORES = depth(8, 1_000)

const order: fc.Arbitrary<Query> = fc.constantFrom<Query>([], [['order', 'newest']], [['order', 'oldest']])

interface Question {
  query: Query
  limit: number
}

const question: fc.Arbitrary<Question> = fc.record({
  query: fc
    .tuple(fc.array(filter, { minLength: 1, maxLength: 4 }), fc.option(range, { nil: [], freq: 2 }), order)
    .map(([filters, times, ordered]) => [...filters.flat(), ...times, ...ordered]),
  limit: fc.integer({ min: 1, max: 7 }),
})

// ---- The same rows and filters on the broker ------------------------------------------------------------------------

/** Replaces all rows of both tables. Returns the flows that are stored: no two may be the same connection. */
async function hold(sent: StoredFlow[], pods: PodHistory[]): Promise<StoredFlow[]> {
  await app.sql`truncate traffic, pod_labels`
  await app.sql`
    insert into pod_labels (pod_namespace, pod_name, since, labels, node_name)
    select namespace, name, since, labels, node
    from json_to_recordset(${JSON.stringify(pods)}::text::json)
      as p(namespace text, name text, since timestamp, labels jsonb, node text)`
  const rows = await app.sql.unsafe<{ uuid: string }[]>(INSERT_FLOWS, [JSON.stringify(sent)])
  const stored = new Set(rows.map(({ uuid }) => uuid))
  return sent.filter(({ uuid }) => stored.has(uuid))
}

interface Item {
  uuid: string
  from: Side | null
  to: Side | null
}

const pathOf = (query: Query) => `/flows?${new URLSearchParams(query)}`

async function pages({ query, limit }: Question): Promise<{ items: Item[]; unstamped: number }> {
  const items: Item[] = []
  let unstamped = 0
  let after = ''
  for (let left = 200; left > 0; left--) {
    const place: Query = after === '' ? [] : [['after', after]]
    const page = await app.get(pathOf([...query, ['limit', String(limit)], ...place]))
    assert.equal(page.status, 200, page.text)
    assert.ok(page.json.items.length <= limit, `a page of ${page.json.items.length} items`)
    items.push(...page.json.items)
    unstamped += page.json.unstamped
    if (page.json.nextAfter === null) return { items, unstamped }
    after = page.json.nextAfter
  }
  assert.fail('the pages do not end')
}

/** The lines of a streamed answer. */
async function lines(query: Query, accept: string): Promise<string[]> {
  const streamed = await app.app.request(pathOf(query), { headers: { accept } })
  const text = await streamed.text()
  assert.equal(streamed.status, 200, text)
  assert.equal(streamed.headers.get('content-type')?.split(';')[0], accept)
  assert.ok(text.endsWith('\n'), 'the last line ends')
  return text.split(/\r?\n/).slice(0, -1)
}

async function assertAnswers(stored: Map<string, StoredFlow>, asked: Question, expected: Answer): Promise<void> {
  const found = await pages(asked)
  assert.deepEqual(
    { items: found.items.map(({ uuid }) => uuid), unstamped: found.unstamped },
    { items: expected.items, unstamped: expected.unstamped },
  )
  for (const { uuid, from, to } of found.items) assert.deepEqual({ from, to }, sides(stored.get(uuid)!), uuid)

  const streamed = (await lines(asked.query, 'application/x-ndjson')).map((line) => JSON.parse(line))
  const last = streamed.pop()
  assert.deepEqual(streamed, found.items, 'NDJSON')
  const { end, count, unstamped } = last
  assert.deepEqual({ end, count, unstamped }, { end: true, count: streamed.length, unstamped: found.unstamped })

  const table = await lines([...asked.query, ['fields', 'uuid']], 'text/csv')
  assert.deepEqual(table, ['uuid', ...expected.items], 'CSV')
}

test('any filters of flows answer what the contract says: as pages of any size, as NDJSON and as CSV', {
  timeout: 900_000,
}, async () => {
  const seen = { some: 0, unknown: 0 }
  await fc.assert(
    fc.asyncProperty(
      flows,
      history,
      fc.array(question, { minLength: FILTERS, maxLength: FILTERS }),
      async (sent, pods, questions) => {
        const stored = await hold(sent, pods)
        const byUuid = new Map(stored.map((one) => [one.uuid, one]))
        for (const asked of questions) {
          const expected = answer({ flows: stored, history: pods }, asked.query)
          if (expected.items.length > 0 && expected.items.length < stored.length) seen.some++
          if (expected.unstamped > 0) seen.unknown++
          try {
            await assertAnswers(byUuid, asked, expected)
          } catch (cause) {
            throw new Error(`${pathOf(asked.query)} with limit ${asked.limit}: ${(cause as Error).message}`, { cause })
          }
        }
      },
    ),
    { numRuns: STORES },
  )
  assert.ok(
    2 * seen.some > STORES && 2 * seen.unknown > STORES,
    `too few filters tell flows apart: ${JSON.stringify(seen)}`,
  )
})
