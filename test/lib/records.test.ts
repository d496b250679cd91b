import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { z } from 'zod'
import type { Gate } from '../../lib/db/index.ts'
import { wireTime, zonedTime } from '../../lib/http/request/fields.ts'
import { inColumns } from '../../lib/records/column-kinds.ts'
import { batchedLookup, fromRow, joinedColumns, listReader, plainColumns, plainRows } from '../../lib/records/index.ts'
import { joinedRows } from '../../lib/records/render.ts'
import { parseNaive } from '../../lib/time/timestamp.ts'
import { TrafficRow } from '../../lib/traffic/index.ts'
import { startApp } from '../support/app.ts'
import { depth } from '../support/depth.ts'

const app = await startApp()

type Row = Record<string, string | number | null>

const TEXTS = [
  ...['uuid', 'pod_name', 'pod_namespace', 'pod_ip', 'pod_port', 'ip_protocol', 'traffic_type', 'traffic_in_out_ip'],
  ...['traffic_in_out_port', 'decision', 'peer_kind', 'peer_namespace', 'peer_name', 'peer_uid', 'peer_workload_kind'],
  ...['peer_workload_name', 'drop_cause'],
]

/** The read gate with a counter: a list takes one statement, and a second one for values that columns cannot carry. */
function countingGate() {
  const { read } = app.db
  const count = { statements: 0 }
  const gate = ((statement: never) => {
    count.statements++
    return read(statement)
  }) as unknown as Gate
  return { gate, count }
}

async function hold(rows: Row[]): Promise<void> {
  await app.sql`truncate traffic`
  await app.sql`insert into traffic select * from json_populate_recordset(null::traffic, ${JSON.stringify(rows)}::text::json)`
}

const readAll = listReader(TrafficRow, 'select * from traffic order by time_stamp desc, uuid desc', [
  'time_stamp',
  'uuid',
])

/** A time in wire format: without a fraction, or with three or six digits, as few as possible. */
function shownTime(text: string | null): string | null {
  if (text === null) return null
  const [seconds, fraction = ''] = text.split('.') as [string, string?]
  return fraction === '' ? seconds : `${seconds}.${fraction.padEnd(fraction.length > 3 ? 6 : 3, '0')}`
}

/** Renders the table and compares it with the rendering by the database. Returns the number of statements. */
async function assertRendered(): Promise<number> {
  const { gate, count } = countingGate()
  const page = await readAll(gate)
  const expected = await app.sql`
    select row_to_json(t) as record, time_stamp::text as time, uuid
    from (select ${app.sql(Object.keys(TrafficRow.shape))} from traffic) t order by time_stamp desc, uuid desc`
  assert.equal(page.count, expected.length)
  const found = JSON.parse(`[${page.json}]`)
  assert.deepEqual(
    found,
    expected.map(({ record }) => ({
      ...record,
      time_stamp: shownTime(record.time_stamp),
      peer_resolved_at: shownTime(record.peer_resolved_at),
    })),
  )
  for (const row of found) assert.deepEqual(Object.keys(row), Object.keys(TrafficRow.shape))
  const plain = await app.db.read((sql) =>
    sql.unsafe(`select ${plainColumns(TrafficRow, 't')} from traffic t order by time_stamp desc, uuid desc`).raw(),
  )
  assert.equal(String(plainRows(TrafficRow, plain)), String(page.json), 'row by row it is the same')
  const rows = expected.map(({ record }) => fromRow(TrafficRow, record))
  assert.equal(JSON.stringify(rows), JSON.stringify(found), 'and so it is from rows as JSON')
  const last = expected.at(-1)
  assert.deepEqual(page.last, last ? [last.time, last.uuid] : null)
  return count.statements
}
const bare = (fields: Row = {}): Row => ({ uuid: 'u', time_stamp: '2024-05-01T10:00:00', ...fields })

// ---- Any values -----------------------------------------------------------------------------------------------------

const CONTROLS = Array.from({ length: 31 }, (_, i) => String.fromCharCode(i + 1))
const awkward = fc.constantFrom(
  ...CONTROLS,
  '"',
  '\\',
  '/',
  ' ',
  '!',
  '#',
  '\u007f',
  '\u0085',
  '\u2028',
  '\ufeff',
  '\ufffd',
  'é',
  '\u{1f680}',
)
const text = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(null, '', '\u0001', '\u001f', '\u0001\u001f', '\u001f\u0001', 'null', '"') },
  { weight: 2, arbitrary: fc.string({ unit: awkward, maxLength: 6 }) },
  { weight: 3, arbitrary: fc.string({ unit: 'grapheme', maxLength: 12 }).map((one) => one.replaceAll('\0', '')) },
)
const plain = fc.constantFrom(
  null,
  '',
  '10.0.0.1',
  'TCP',
  'a "quoted\\ name"',
  'é\u{1f680}\u2028',
  '\n\t\b\u0002\u001e',
)
const pad = (value: number, digits: number) => String(value).padStart(digits, '0')
const fraction = fc.oneof(
  fc.constant(0),
  fc.nat(999).map((ms) => ms * 1000),
  fc.nat(999_999),
  fc.constantFrom(1, 10, 100, 999_999, 100_000, 10_000, 999_000),
)
const time = fc
  .tuple(
    fc.integer({ min: 1, max: 9999 }),
    fc.integer({ min: 1, max: 12 }),
    fc.integer({ min: 1, max: 28 }),
    fc.nat(86_399),
    fraction,
  )
  .map(([year, month, day, second, micros]) => {
    const clock = [Math.floor(second / 3600), Math.floor(second / 60) % 60, second % 60]
      .map((part) => pad(part, 2))
      .join(':')
    return `${pad(year, 4)}-${pad(month, 2)}-${pad(day, 2)}T${clock}.${pad(micros, 6)}`
  })

const rowsOf = (value: fc.Arbitrary<string | null>, maxLength: number) =>
  fc
    .array(
      fc.record({
        ...Object.fromEntries(TEXTS.map((key) => [key, value])),
        time_stamp: time,
        peer_resolved_at: fc.option(time),
        syn_retries: fc.option(fc.oneof(fc.maxSafeInteger(), fc.integer({ min: -5, max: 5 }))),
      }),
      { maxLength },
    )
    // No two rows have the same uuid or flow.
    .map((rows) =>
      rows.map(
        (row, i): Row => ({
          ...row,
          uuid: `${(row as Row).uuid}${i}`,
          pod_port: `${(row as Row).pod_port}${i}`,
          traffic_in_out_port: `${i}`,
        }),
      ),
    )

test('for any values, a list equals the rendering by the database', { timeout: 900_000 }, async () => {
  let slow = 0
  await fc.assert(
    fc.asyncProperty(rowsOf(text, 6), async (rows) => {
      await hold(rows)
      if ((await assertRendered()) > 1) slow++
    }),
    { numRuns: depth(31, 250) },
  )
  assert.ok(slow > 0, 'none of them took the long way')
})

test('ordinary values, escapes among them, need one statement', { timeout: 900_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(rowsOf(plain, 12), async (rows) => {
      await hold(rows)
      assert.equal(await assertRendered(), 1)
    }),
    { numRuns: depth(15, 100) },
  )
})

// ---- Single values --------------------------------------------------------------------------------------------------

test('no rows', async () => {
  await hold([])
  const { gate, count } = countingGate()
  const page = await readAll(gate)
  assert.deepEqual([page.json.length, page.count, page.last, count.statements], [0, 0, null, 1])
})

for (const value of ['\u001f', '\u001fa', 'a\u001f', '\u001f\u001f', '\u0001\u001f', '\u0001'])
  test(`a value of ${JSON.stringify(value)} needs a second statement, in every column and row`, async () => {
    for (const key of TEXTS) {
      for (const row of [0, 1, 2]) {
        await hold([0, 1, 2].map((i) => bare({ uuid: `u${i}`, ...(i === row ? { [key]: value } : {}) })))
        assert.equal(await assertRendered(), 2, key)
      }
    }
  })

test('separators in several columns together need a second statement', async () => {
  await hold([
    bare({ uuid: '1', pod_name: 'a\u001fb', pod_namespace: '\u0001' }),
    bare({ uuid: '2', pod_name: 'c\u001fd', pod_namespace: '\u001f' }),
    bare({ uuid: '3\u001f4', pod_name: '\u0001\u001f\u0001' }),
  ])
  assert.equal(await assertRendered(), 2)
})

test('the mark of a null inside a longer value is an ordinary character', async () => {
  await hold([
    bare({ pod_name: 'a\u0001', pod_namespace: '\u0001a', decision: '\u0001\u0001', drop_cause: '\u0001\u001e' }),
  ])
  assert.equal(await assertRendered(), 1)
})

test('escaped characters and their neighbours in Unicode are right at every position of a text', async () => {
  for (const one of [
    '"',
    '\\',
    '\u001e',
    '\n',
    ' ',
    '!',
    '#',
    '[',
    ']',
    '~',
    '\u007f',
    '\u0080',
    '\u00dc',
    'é',
    '\u{1f680}',
  ]) {
    await hold(
      Array.from({ length: 11 }, (_, at) =>
        bare({ uuid: `u${at}`, pod_name: `${'x'.repeat(at)}${one}${'y'.repeat(10 - at)}` }),
      ),
    )
    assert.equal(await assertRendered(), 1, one)
  }
})

test('empty texts in every column', async () => {
  await hold([bare(Object.fromEntries(TEXTS.map((key) => [key, '']))), bare()])
  assert.equal(await assertRendered(), 1)
})

test('fractions have zero, three or six digits, as few as needed', async () => {
  const times = {
    '10:00:00': '10:00:00',
    '10:00:00.1': '10:00:00.100',
    '10:00:00.12': '10:00:00.120',
    '10:00:00.123': '10:00:00.123',
    '10:00:00.1234': '10:00:00.123400',
    '10:00:00.12345': '10:00:00.123450',
    '10:00:00.123456': '10:00:00.123456',
    '10:00:00.000001': '10:00:00.000001',
    '10:00:00.00001': '10:00:00.000010',
    '10:00:00.001': '10:00:00.001',
  }
  for (const [stored, shown] of Object.entries(times)) {
    await hold([bare({ time_stamp: `2024-05-01T${stored}`, peer_resolved_at: `0001-01-01T${stored}` })])
    assert.equal(await assertRendered(), 1)
    const { json } = await readAll(app.db.read)
    const { time_stamp, peer_resolved_at } = JSON.parse(String(json))
    assert.deepEqual([time_stamp, peer_resolved_at], [`2024-05-01T${shown}`, `0001-01-01T${shown}`])
  }
})

test('integers are exact to the last digit', async () => {
  for (const digits of ['0', '-1', '9007199254740991', '9223372036854775807', '-9223372036854775808']) {
    await hold([bare()])
    await app.sql`update traffic set syn_retries = ${digits}`
    const { json } = await readAll(app.db.read)
    assert.match(String(json), new RegExp(`"syn_retries":${digits}}$`))
  }
})

test('too many escapes need a second statement, fewer do not', async () => {
  const fill = (count: number, value: string) => app.sql`
    insert into traffic (uuid, time_stamp, pod_name)
    select n::text, timestamp '2024-05-01' + n * interval '1 second', ${value} from generate_series(1, ${count}::int) n`
  await app.sql`truncate traffic`
  await fill(2_000, '\u0002'.repeat(200))
  assert.equal(await assertRendered(), 2)
  await app.sql`truncate traffic`
  await fill(50, '"'.repeat(100))
  assert.equal(await assertRendered(), 1)
})

test('around the limit of escapes a list is complete with one statement or two', async () => {
  const ways = new Set<number>()
  for (let escapes = 64_000; escapes <= 68_000; escapes += 97) {
    await hold([bare({ pod_name: '"'.repeat(escapes) })])
    ways.add(await assertRendered())
  }
  assert.deepEqual([...ways].sort(), [1, 2])
})

// ---- Kinds of columns -----------------------------------------------------------------------------------------------

const Every = z.strictObject({
  plainText: z.string(),
  aWord: z.enum(['a', 'b']).nullable(),
  atTime: wireTime.nullable().describe('Described, and a time all the same.'),
  inZone: zonedTime.nullable(),
  anInteger: z.int().nullable(),
  aNumber: z.number().nullable(),
  isTrue: z.boolean().nullable(),
  anObject: z.record(z.string(), z.unknown()).nullable(),
  someTexts: z.array(z.string()).nullable(),
})
const KINDS =
  'plain_text text, a_word text, at_time timestamp, in_zone timestamp, an_integer bigint, a_number float8, is_true boolean, an_object json, some_texts text[]'
const everyRows = `select * from json_to_recordset($1::text::json) as r(${KINDS})`
const readEvery = listReader(Every, everyRows, ['atTime', 'plainText'])
const nulls = {
  a_word: null,
  at_time: null,
  in_zone: null,
  an_integer: null,
  a_number: null,
  is_true: null,
  an_object: null,
  some_texts: null,
}
const every = {
  plain_text: 'a "b" \\ \n é \u0001',
  a_word: 'b',
  at_time: '2024-05-01T10:00:00.25',
  in_zone: '2024-05-01T10:00:00.0625',
  an_integer: 9_007_199_254_740_991,
  a_number: 0.1,
  is_true: false,
  an_object: { 'a "key"': [1, null, { b: 'é\u001f' }] },
  some_texts: ['x', 'a,b', '"', '\\', '{}', 'null', ''],
}

for (const mark of ['', '\u001f'])
  test(`every kind of column, ${mark === '' ? 'joined' : 'row by row'}`, async () => {
    const rows = [
      { ...nulls, plain_text: `first${mark}` },
      every,
      { ...every, some_texts: [], is_true: true },
      { ...nulls, plain_text: 'last' },
    ]
    const { gate, count } = countingGate()
    const page = await readEvery(gate, JSON.stringify(rows))
    const found = JSON.parse(`[${page.json}]`)
    assert.equal(count.statements, mark === '' ? 1 : 2)
    assert.deepEqual([page.count, page.last], [4, [null, 'last']])
    const empty = {
      aWord: null,
      atTime: null,
      inZone: null,
      anInteger: null,
      aNumber: null,
      isTrue: null,
      anObject: null,
      someTexts: null,
    }
    const full = {
      plainText: every.plain_text,
      aWord: 'b',
      atTime: '2024-05-01T10:00:00.250',
      inZone: '2024-05-01T10:00:00.062500Z',
      anInteger: every.an_integer,
      aNumber: 0.1,
      isTrue: false,
      anObject: every.an_object,
      someTexts: every.some_texts,
    }
    const shown = [
      { plainText: `first${mark}`, ...empty },
      full,
      { ...full, someTexts: [], isTrue: true },
      { plainText: 'last', ...empty },
    ]
    assert.deepEqual(found, shown)
    for (const [i, row] of found.entries()) {
      assert.deepEqual(Object.keys(row), Object.keys(Every.shape))
      assert.deepEqual(Every.safeParse(row).error?.issues ?? [], [], `row ${i}`)
    }
  })

/** An object whose members are in columns of others: which, the column `way` decides. */
const Side = inColumns(z.strictObject({ name: z.string().nullable(), at: wireTime.nullable() }), {
  from: { by: 'way', of: { OUT: { name: 'mine', at: 'my_time' }, IN: { name: 'theirs', at: 'their_time' } } },
  to: { by: 'way', of: { OUT: { name: 'theirs', at: 'their_time' }, IN: { name: 'mine', at: 'my_time' } } },
})
const Way = z.strictObject({ way: z.string().nullable(), mine: z.string().nullable(), from: Side, to: Side })
const ways = fc.array(
  fc.record({
    way: fc.constantFrom('OUT', 'IN', 'IN', 'OUT', null, '', 'I', 'INN', 'OUT\u001f'),
    ...{
      mine: plain,
      theirs: fc.oneof({ weight: 9, arbitrary: plain }, text),
      my_time: fc.option(time),
      their_time: fc.option(time),
    },
  }),
  { minLength: 1, maxLength: 8 },
)

test('members that are in other columns are taken from those, row by row', async () => {
  let joinedOnes = 0
  await fc.assert(
    fc.asyncProperty(
      ways,
      fc.subarray(['way', 'mine', 'from', 'to'] as const, { minLength: 1 }),
      async (rows, keys) => {
        const record = Way.pick(Object.fromEntries(keys.map((key) => [key, true])) as never) as unknown as typeof Way
        const source = `json_to_recordset($1::text::json) t(way text, mine text, theirs text, my_time timestamp, their_time timestamp)`
        const values = [JSON.stringify(rows)]
        const [row] = await app.db.read((sql) =>
          sql.unsafe(`select ${joinedColumns(record, 't')} from ${source}`, values).raw(),
        )
        const inRows = await app.db.read((sql) =>
          sql.unsafe(`select ${plainColumns(record, 't')} from ${source}`, values).raw(),
        )
        const sides = ({ mine, theirs, my_time, their_time }: (typeof rows)[number]) => ({
          mine: { name: mine, at: my_time && parseNaive(my_time) },
          theirs: { name: theirs, at: their_time && parseNaive(their_time) },
        })
        const expected = rows.map((one) => {
          const { mine, theirs } = sides(one)
          const none = { name: null, at: null }
          const [from, to] = one.way === 'OUT' ? [mine, theirs] : one.way === 'IN' ? [theirs, mine] : [none, none]
          const all = { way: one.way, mine: one.mine, from, to }
          return Object.fromEntries(Object.keys(record.shape).map((key) => [key, all[key as keyof typeof all]]))
        })
        assert.deepEqual(JSON.parse(`[${plainRows(record, inRows)}]`), expected)
        const joined = joinedRows(record, row!)
        if (joined === null) return
        joinedOnes++
        assert.deepEqual(JSON.parse(`[${joined.json}]`), expected)
      },
    ),
    { numRuns: depth(300, 5_000) },
  )
  assert.ok(joinedOnes > depth(100, 2_000))
})

test('a record with a key that no column can hold is refused when its reader is declared', () => {
  const bad = z.strictObject({ a: z.union([z.string(), z.number()]) })
  assert.throws(() => listReader(bad, 'select 1 as a'), /no column has the kind union/)
})

test('a look-up gives the first row for each key, or null, for any keys', async () => {
  await app.sql`truncate pod_syscalls`
  const names = ['a', 'b "quoted"', 'c\\d', '{e,f}', 'null', 'NULL', '', ' ', 'é,\u{1f680}', '\n', '"', '{', '\u001f']
  await app.sql`
    insert into pod_syscalls (pod_name, pod_namespace, syscalls, arch, time_stamp)
    select n, 'of ' || n, 'read', 'x86_64', timestamp '2024-05-01' from json_array_elements_text(${JSON.stringify(names)}::text::json) n`
  const Name = z.strictObject({ podNamespace: z.string(), n: z.int() })
  const look = batchedLookup<{ name: string; other: string }>(
    Name,
    { name: 'text', other: 'timestamp' },
    `select p.pod_namespace, g.n from pod_syscalls p cross join generate_series(1, 3) g(n)
     where p.pod_name = k.name and k.other = timestamp '2024-05-01 10:00:00.5' order by g.n desc`,
  )
  const asked = [...names, 'nobody', 'a', 'nobody else', ...names]
  const found = await Promise.all(asked.map((name) => look(app.db, { name, other: '2024-05-01T10:00:00.500' })))
  assert.deepEqual(
    found.map((json) => json && JSON.parse(String(json))),
    asked.map((name) => (names.includes(name) ? { podNamespace: `of ${name}`, n: 3 } : null)),
  )
  assert.equal(await look(app.db, { name: 'a', other: '2024-05-01T10:00:00' }), null)
})
