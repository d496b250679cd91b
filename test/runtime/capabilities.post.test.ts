import assert from 'node:assert/strict'
import { beforeEach, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { CapabilityEntry } from '../../lib/runtime/capabilities/entry.ts'
import { byLabel } from '../seccomp/drains.ts'
import { startApp, TOKENS } from '../support/app.ts'
import { depth } from '../support/depth.ts'
import {
  assertDatabaseBusy,
  assertForbidden,
  assertUnauthorized,
  BAD_TIMES,
  GOOD_TIMES,
  refusedBodies,
  whileRefused,
} from '../support/routes.ts'
import { at, checks, DIGEST, type Fields, only, PATH, stored, take } from './capabilities.ts'

const MAX_BYTES = 4 * 1024 * 1024
const MAX_CHECKS = 9_007_199_254_740_991
const RUNS = depth(30, 1_000)

const app = await startApp()
const guarded = await startApp(TOKENS, app)
const { sql } = app

beforeEach(() => sql`truncate runtime_capability`)

const rejected = async () => (await byLabel(app.deps.metrics.rejectedEntries))[PATH] ?? 0
const isNow = (time: unknown) => assert.ok(Math.abs(Date.parse(`${time}Z`) - Date.now()) < 60_000, String(time))
const counts = async () => (await stored(app)).map(({ count }) => count)

test('POST /runtime/capabilities 200: a row has everything that was sent, and the time of the report', async () => {
  const sent = checks({ probed: true, capability: 'SYS_ADMIN', last_seen: '2026-01-01T01:00:00.25' })
  assert.deepEqual(await take(app, [sent]), [1, 0, 1])
  const { last_reported, ...row } = await only(app)
  isNow(last_reported)
  const { pod_name, ...same } = sent
  assert.deepEqual(row, { cluster_id: 'primary', ...same, last_pod_name: pod_name, last_seen: `${at(3_600)}.250` })
})

test('POST /runtime/capabilities 200: an optional field that is absent or null has its default', async () => {
  for (const nothing of [undefined, null]) {
    await sql`truncate runtime_capability`
    assert.deepEqual(
      await take(app, [checks({ pod_name: nothing, image_digest: nothing, probed: nothing })]),
      [1, 0, 1],
    )
    const { last_pod_name, image_digest, probed } = await only(app)
    assert.deepEqual([last_pod_name, image_digest, probed], [null, '', false])
  }
})

test('POST /runtime/capabilities 200: an empty list is accepted without access to the table', async () => {
  await whileRefused(sql, 'runtime_capability', async () => assert.deepEqual(await take(app, []), [0, 0, 0]))
})

test('POST /runtime/capabilities 200: each part of the key makes another row', async () => {
  const others: Fields[] = [
    ...[{ pod_namespace: 'x' }, { workload_kind: 'x' }, { workload_name: 'x' }, { container_name: 'x' }],
    ...[{ image_digest: '' }, { capability: 'X' }, { granted: false }, { probed: true }],
  ]
  assert.deepEqual(await take(app, [{}, ...others].map(checks)), [9, 0, 9])
  assert.deepEqual(await take(app, [{}, ...others].map(checks)), [9, 0, 9])
  assert.deepEqual(await counts(), Array(9).fill(6))
})

test('POST /runtime/capabilities 200: names that only a separator keeps apart are different rows', async () => {
  const pairs: Fields[] = [
    { container_name: 'a b', pod_namespace: 'c' },
    { container_name: 'b', pod_namespace: 'c a' },
    { workload_name: 'ab', container_name: 'c' },
    { workload_name: 'a', container_name: 'bc' },
  ]
  assert.deepEqual(await take(app, pairs.map(checks)), [4, 0, 4])
})

test('POST /runtime/capabilities 200: rows of another cluster are left alone', async () => {
  await take(app, [checks()])
  await sql`update runtime_capability set cluster_id = 'other'`
  await take(app, [checks({ count: 1 })])
  assert.deepEqual((await stored(app)).map(({ cluster_id, count }) => [cluster_id, count]).sort(), [
    ['other', 3],
    ['primary', 1],
  ])
})

describe('merging', () => {
  for (const [what, posts] of [
    ['of one post', (entries: Fields[]) => [entries]],
    ['of several posts', (entries: Fields[]) => entries.map((one) => [one])],
  ] as const) {
    test(`POST /runtime/capabilities 200: counts of entries ${what} add, with the earliest and the latest time`, async () => {
      const entries = [
        checks({ first_seen: at(50), last_seen: at(60), count: 1 }),
        checks({ first_seen: at(10), last_seen: at(20), count: 20, pod_name: 'web-1' }),
        checks({ first_seen: at(70), last_seen: at(90), count: 0, pod_name: null }),
        checks({ first_seen: at(30), last_seen: at(40), count: 300, pod_name: undefined }),
      ]
      for (const post of posts(entries)) assert.deepEqual(await take(app, post), [1, 0, 1])
      const { count, first_seen, last_seen, last_pod_name } = await only(app)
      assert.deepEqual([count, first_seen, last_seen, last_pod_name], [321, at(10), at(90), 'web-1'])
    })
  }

  test('POST /runtime/capabilities 200: a count of 0 keeps a row, and can begin one', async () => {
    await take(app, [checks({ count: 0 })])
    assert.equal((await only(app)).count, 0)
    await sql`update runtime_capability set last_reported = timestamp '2026-01-01'`
    await take(app, [checks({ count: 0 })])
    isNow((await only(app)).last_reported)
  })

  test('POST /runtime/capabilities 200: the last report never goes back', async () => {
    await take(app, [checks()])
    await sql`update runtime_capability set last_reported = timestamp '9999-01-01'`
    await take(app, [checks()])
    assert.equal((await only(app)).last_reported, '9999-01-01T00:00:00')
  })

  test('POST /runtime/capabilities 200: counts end at 2^53 - 1', async () => {
    const largest = `[${JSON.stringify(checks({ count: 'n' })).replace('"n"', '9223372036854775807')}]`
    await take(app, largest)
    assert.equal((await only(app)).count, MAX_CHECKS)
    await take(app, [checks({ count: MAX_CHECKS }), checks({ count: 7 })])
    assert.equal((await only(app)).count, MAX_CHECKS)
  })

  test('POST /runtime/capabilities 200: concurrent posts of the same rows all count', async () => {
    const names = Array.from({ length: 40 }, (_, n) => checks({ capability: `CAP_${n}`, count: 1 }))
    await Promise.all(Array.from({ length: 8 }, (_, n) => take(app, n % 2 === 0 ? names : names.toReversed())))
    assert.deepEqual(await counts(), Array(40).fill(8))
  })
})

describe('times', () => {
  const kept = async (fields: Fields) => {
    await sql`truncate runtime_capability`
    assert.deepEqual(await take(app, [checks(fields)]), [1, 0, 1])
    const { first_seen, last_seen } = await only(app)
    return [first_seen, last_seen]
  }

  test('POST /runtime/capabilities 200: naive UTC with up to nine digits', async () => {
    for (const [sent, shown] of Object.entries(GOOD_TIMES))
      if (shown < '2100') assert.deepEqual(await kept({ first_seen: sent, last_seen: sent }), [shown, shown])
  })

  test('POST /runtime/capabilities 200: a first time after the last is the last', async () => {
    assert.deepEqual(await kept({ first_seen: at(9), last_seen: at(5) }), [at(5), at(5)])
  })

  test('POST /runtime/capabilities 200: times in the future are now', async () => {
    const [first, last] = await kept({ first_seen: '2999-01-01T00:00:00', last_seen: '2999-01-02T00:00:00' })
    isNow(first)
    assert.equal(first, last)
    const [past, now] = await kept({ first_seen: at(1), last_seen: '2999-01-02T00:00:00' })
    assert.equal(past, at(1))
    isNow(now)
  })
})

describe('entries', () => {
  const NAMES = ['pod_namespace', 'workload_name', 'container_name', 'workload_kind']
  const longest = (field: string) => (field === 'workload_kind' ? 63 : 253)
  const badText = (field: string) => [
    ...['', ' ', ' a', 'a ', '\ta', 'a\n', 'a\0', '\ud800', 7, true, {}, []],
    'n'.repeat(longest(field) + 1),
    'é'.repeat((longest(field) + 1) / 2),
  ]
  const bad: Record<string, unknown[]> = {
    ...Object.fromEntries(NAMES.map((field) => [field, [undefined, null, ...badText(field)]])),
    pod_name: badText('pod_name'),
    image_digest: [' ', 'latest', DIGEST.slice(1), `${DIGEST}0`, DIGEST.toUpperCase(), 7],
    capability: [undefined, null, '', 'net_admin', 'NET-ADMIN', ' A', 'A\n', 'A'.repeat(33), 'É', 7],
    granted: [undefined, null, 'true', 1],
    probed: ['false', 0],
    count: [undefined, null, -1, 0.5, '1', true, 2 ** 63 + 2_048, Number.MAX_VALUE],
    first_seen: [undefined, null, ...BAD_TIMES],
    last_seen: [undefined, null, ...BAD_TIMES],
    entry: [null, 'text', 7, true, [], [checks()]],
  }
  for (const [field, values] of Object.entries(bad))
    test(`POST /runtime/capabilities 200: an entry with an invalid ${field} is dropped and counted; the others are stored`, async () => {
      const before = await rejected()
      const entries = values.map((value) => (field === 'entry' ? value : checks({ [field]: value })))
      assert.deepEqual(await take(app, [checks(), ...entries, checks()]), [1, entries.length, 1])
      assert.deepEqual(await counts(), [6])
      assert.equal(await rejected(), before + entries.length)
      for (const entry of entries) {
        const { issues } = CapabilityEntry.run(JSON.parse(JSON.stringify(entry)))
        assert.equal(String(issues[0]?.path?.[0] ?? 'entry'), field, JSON.stringify(entry))
      }
    })

  test('POST /runtime/capabilities 200: unusual but valid entries are stored', async () => {
    const fine: Fields[] = [
      ...NAMES.map((field) => ({ [field]: `${'n'.repeat(longest(field) - 2)}é` })),
      { pod_name: 'p'.repeat(253), container_name: 'one' },
      ...[{ image_digest: `sha512:${'0'.repeat(128)}` }, { capability: 'CAP_63' }, { capability: 'A'.repeat(32) }],
      { capability: '_0', later: { a: '\0' }, 'a\0': 1 },
      { container_name: 'Größe', pod_name: 'ein Pod' },
    ]
    assert.deepEqual(await take(app, fine.map(checks)), [fine.length, 0, fine.length])
    assert.equal((await stored(app)).length, fine.length)
  })

  test('POST /runtime/capabilities 200: one log line a minute counts dropped entries by field', async () => {
    const other = await startApp()
    assert.deepEqual(await take(other, [checks({ granted: 1 }), checks({ granted: 0 }), 7, checks()]), [1, 3, 1])
    assert.deepEqual(await take(other, [checks({ count: -1 })]), [0, 1, 0])
    const lines = other.logged.filter(({ level }) => level === 40)
    assert.equal(lines.length, 1)
    const { granted, entry, msg } = lines[0]!
    assert.deepEqual([granted, entry], [2, 1])
    assert.match(String(msg), /\/runtime\/capabilities: checks of capabilities were dropped/)
  })
})

describe('the list', () => {
  for (const body of ['{}', 'null', '7', '"x"', JSON.stringify(checks())])
    test(`POST /runtime/capabilities 400: ${body.slice(0, 4)} instead of a list`, async () => {
      const answer = await app.post(PATH, body)
      assert.equal(answer.status, 400)
      assert.match(answer.text, /^Json deserialize error: .*expected array/)
    })

  const broken = refusedBodies({ a: 'x' }, 'a').filter(
    ({ what, says }) => !/where an object|U\+0000|surrogate|2 MiB/.test(what) && !/2097152/.test(says.source),
  )
  for (const { what, status, says, body, headers } of broken)
    test(`POST /runtime/capabilities ${status}: ${what}`, async () => {
      const answer = await app.request('POST', PATH, { body, ...(headers && { headers }) })
      assert.equal(answer.status, status, answer.text)
      assert.match(answer.text, says)
    })

  const large = (bytes: number) => JSON.stringify([checks()]).padEnd(bytes)
  const gzip = { headers: { 'content-encoding': 'gzip' } }

  test('POST /runtime/capabilities 200: a body of 4 MiB is accepted, compressed or not', async () => {
    for (const answer of [
      await app.post(PATH, large(MAX_BYTES)),
      await app.post(PATH, gzipSync(large(MAX_BYTES)), gzip),
    ])
      assert.deepEqual(answer.json, { accepted: 1, dropped: 0, written: 1 })
  })

  test('POST /runtime/capabilities 413: a body above 4 MiB is refused, compressed or not', async () => {
    for (const answer of [
      await app.post(PATH, large(MAX_BYTES + 1)),
      await app.post(PATH, gzipSync(large(MAX_BYTES + 1)), gzip),
    ]) {
      assert.equal(answer.status, 413)
      assert.match(answer.text, /4194304 bytes/)
    }
    assert.deepEqual(await stored(app), [])
  })

  test('POST /runtime/capabilities 200: 5 000 entries are accepted', async () => {
    const entries = Array.from({ length: 5_000 }, (_, i) =>
      checks({ capability: `CAP_${i % 100}`, container_name: `c-${i % 1_000}`, granted: i % 3 > 0 }),
    )
    const rows = new Set(entries.map((e) => `${e.capability} ${e.container_name} ${e.granted}`)).size
    assert.deepEqual(await take(app, entries), [rows, 0, rows])
  })

  test('POST /runtime/capabilities 413: more than 5 000 elements of any kind are refused, and nothing is written', async () => {
    for (const entry of [0, {}, checks()])
      for (const packed of [false, true]) {
        const body = JSON.stringify(Array(5_001).fill(entry))
        const answer = await app.post(PATH, packed ? gzipSync(body) : body, packed ? gzip : {})
        assert.equal(answer.status, 413)
        assert.match(answer.text, /more than 5000 elements/)
      }
    assert.deepEqual(await stored(app), [])
  })
})

test('POST /runtime/capabilities 401: a request without a token is refused', async () => {
  assertUnauthorized(await guarded.post(PATH, []))
})

test('POST /runtime/capabilities 403: a token that only reads is refused', async () => {
  assertForbidden(await guarded.post(PATH, [], { token: TOKENS.BROKER_TOKEN_READ }), 'ingest')
  assert.equal((await guarded.post(PATH, [checks()], { token: TOKENS.BROKER_TOKEN_INGEST })).status, 200)
})

test('POST /runtime/capabilities 503: a locked table: nothing is stored, and dropped entries are not counted', async () => {
  const before = await rejected()
  await whileRefused(sql, 'runtime_capability', async () => assertDatabaseBusy(await app.post(PATH, [checks(), 7])))
  assert.deepEqual([await stored(app), await rejected()], [[], before])
})

/** Small numbers, so that many entries are of one row. */
interface Drawn {
  readonly container: string
  readonly capability: string
  readonly granted: boolean
  readonly probed: boolean
  readonly count: number
  readonly first: number
  readonly last: number
  readonly pod: string | null
}

const drawn: fc.Arbitrary<Drawn> = fc.record({
  container: fc.constantFrom('a', 'b'),
  capability: fc.constantFrom('CHOWN', 'KILL'),
  granted: fc.boolean(),
  probed: fc.boolean(),
  count: fc.oneof(fc.nat(5), fc.constantFrom(MAX_CHECKS, MAX_CHECKS - 2)),
  first: fc.nat(9),
  last: fc.nat(9),
  pod: fc.constantFrom('p', 'q', null),
})

/** Rows by the rules alone: all entries of a row in the order of the posts, judged at once. */
function model(entries: readonly Drawn[]): unknown[][] {
  const keyOf = ({ container, capability, granted, probed }: Drawn) => `${container} ${capability} ${granted} ${probed}`
  return [...new Set(entries.map(keyOf))].sort().map((key) => {
    const all = entries.filter((one) => keyOf(one) === key)
    const total = all.reduce((sum, { count }) => sum + BigInt(count), 0n)
    const last = Math.max(...all.map((one) => one.last))
    return [
      key,
      Number(total < BigInt(MAX_CHECKS) ? total : MAX_CHECKS),
      at(Math.min(...all.map((one) => Math.min(one.first, one.last)))),
      at(last),
      all.findLast(({ pod }) => pod !== null)?.pod ?? null,
    ]
  })
}

test(`POST /runtime/capabilities 200: ${RUNS} random histories are stored as the model says`, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(drawn, { minLength: 1, maxLength: 6 }), { maxLength: 4 }), async (posts) => {
      await sql`truncate runtime_capability`
      for (const post of posts) {
        const rows = model(post).length
        const entries = post.map(({ container, capability, granted, probed, count, first, last, pod }) =>
          checks({
            ...{ container_name: container, capability, granted, probed, count, pod_name: pod },
            ...{ first_seen: at(first), last_seen: at(last) },
          }),
        )
        assert.deepEqual(await take(app, entries), [rows, 0, rows])
      }
      const found = (await stored(app)).map((r) => [
        `${r.container_name} ${r.capability} ${r.granted} ${r.probed}`,
        ...[r.count, r.first_seen, r.last_seen, r.last_pod_name],
      ])
      assert.deepEqual(found.sort(), model(posts.flat()).sort())
    }),
    { numRuns: RUNS },
  )
})
