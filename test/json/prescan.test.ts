import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { HttpError } from '../../lib/errors.ts'
import { countObjects, prescanJson } from '../../lib/json/prescan.ts'
import { MAX_BODY_DEPTH, MAX_BODY_MEMBERS, MAX_BODY_VALUES, MAX_KEY_SEQUENCES } from '../../lib/limits/limits.ts'
import { depth } from '../support/depth.ts'

/** Counts the bytes that are read. */
function watched(text: string) {
  const looked = { furthest: -1 }
  const bytes = new Proxy(Buffer.from(text), {
    get: (of, key) => {
      if (typeof key === 'string' && /^\d+$/.test(key)) looked.furthest = Math.max(looked.furthest, Number(key))
      return Reflect.get(of, key, of)
    },
  })
  return { bytes, looked }
}
function refusal(work: () => unknown): [status: number, text: string] {
  try {
    work()
  } catch (error) {
    assert.ok(error instanceof HttpError, String(error))
    return [error.status, error.message]
  }
  return assert.fail('accepted')
}
const list = (of: string, count: number) => `[${Array(count).fill(of).join(',')}]`
const TOO_DEEP = [400, `Json deserialize error: nested deeper than ${MAX_BODY_DEPTH} levels`]
const TOO_MANY = [413, `body has more than ${MAX_BODY_VALUES} values`]
const TOO_MANY_MEMBERS = [413, `body has more than ${MAX_BODY_MEMBERS} keys and containers`]

test('property: of valid JSON objects and arrays are scanned, and the count of objects is exact or slightly too high', () => {
  const countOf = (value: unknown, isCounted: (one: object) => boolean): number =>
    typeof value === 'object' && value !== null
      ? Object.values(value).reduce((sum: number, one) => sum + countOf(one, isCounted), isCounted(value) ? 1 : 0)
      : 0
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), fc.constantFrom(undefined, 1), (value, indent) => {
      const bytes = Buffer.from(JSON.stringify(value, null, indent))
      assert.equal(
        prescanJson(bytes).containers,
        countOf(value, () => true),
      )
      assert.ok(countObjects(bytes) >= countOf(value, (one) => !Array.isArray(one)))
    }),
  )
})

test('brackets, commas and quotes in strings are text, whatever escapes precede them', () => {
  for (const text of ['"[[,,{{"', '"\\"[,"', '"\\\\\\"[,{"', '"é,[\\u005b,"', '"\u{1f418},["', '"', '"\\', '"\\"', ''])
    assert.equal(prescanJson(Buffer.from(text)).containers, 0, text)
  assert.equal(prescanJson(Buffer.from('"\\\\",[')).containers, 1)
  assert.equal(prescanJson(Buffer.from('["a,b","c"]')).containers, 1)
})

test('property: the end of a long text is found, whatever it contains and however far away it is', () => {
  const part = fc.oneof(
    fc.constantFrom('"', '\\', '\n', '[', '{', ',', ':', 'é'),
    fc.integer({ min: 4_090, max: 4_100 }).map((chars) => 'x'.repeat(chars)),
    fc.integer({ min: 0, max: 9_000 }).map((chars) => '[:'.repeat(chars)),
  )
  const text = fc.array(part, { maxLength: 12 }).map((parts) => parts.join(''))
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 4 }), (texts) => {
      const bytes = Buffer.from(JSON.stringify({ list: [...texts, {}], [texts[0]!]: [] }))
      assert.equal(prescanJson(bytes).containers, 4)
    }),
    { numRuns: depth(8, 40) },
  )
})
test('the search for the ends of long texts reads each byte once, with escapes in one text or in all others', () => {
  const plain = 'x'.repeat(5_000)
  for (const of of [plain, `${plain}\\"`, `${plain}\\n${plain}`]) {
    const bytes = Buffer.from(`["${plain}\\n",${list(`"${of}"`, 200).slice(1, -1)},"${plain}\\n"]`)
    let sought = 0
    bytes.indexOf = (byte, from) => {
      const found = Buffer.prototype.indexOf.call(bytes, byte, from)
      sought += (found === -1 ? bytes.length : found) - Number(from)
      return found
    }
    assert.equal(prescanJson(bytes).containers, 1)
    assert.ok(sought > 0 && sought < 2 * bytes.length, `${sought} of ${bytes.length} bytes`)
  }
})

test('a long text is not read again for each colon after it', () => {
  let reads = 0
  const bytes = new Proxy(Buffer.from(`{"${'k'.repeat(1_000)}"${':'.repeat(1_000)}`), {
    get: (of, key) => {
      reads++
      const value = Reflect.get(of, key, of)
      return typeof value === 'function' ? value.bind(of) : value
    },
  })
  assert.equal(prescanJson(bytes).containers, 1)
  assert.ok(reads < 10_000, `${reads} reads`)
})

test('only elements of the outermost array are counted', () => {
  prescanJson(Buffer.from(list('0', 5)), 5)
  prescanJson(Buffer.from(` \n[${list('0', 50)},{"a":[1,2,3,4,5,6,7],"b":1,"c":1,"d":1,"e":1,"f":1}]`), 5)
  prescanJson(Buffer.from('{"a":1,"b":[1,2,3,4,5,6,7],"c":"1,2,3,4,5,6","d":1,"e":1,"f":1}'), 5)
  for (const text of [list('0', 6), ` ${list('[0,0]', 6)}`, list('{"a":[0],"b":""}', 6)])
    assert.deepEqual(
      refusal(() => prescanJson(Buffer.from(text), 5)),
      [413, 'body has more than 5 elements'],
    )
})

test('nesting and the number of values have exact limits', () => {
  prescanJson(Buffer.from('['.repeat(MAX_BODY_DEPTH) + ']'.repeat(MAX_BODY_DEPTH)))
  assert.deepEqual(
    refusal(() => prescanJson(Buffer.from(`${'{"a":['.repeat(MAX_BODY_DEPTH / 2)}[`))),
    TOO_DEEP,
  )
  // The array counts too.
  prescanJson(Buffer.from(list('0', MAX_BODY_VALUES - 1)))
  assert.deepEqual(
    refusal(() => prescanJson(Buffer.from(list('0', MAX_BODY_VALUES)))),
    TOO_MANY,
  )
  for (const of of ['[]', '{}']) {
    prescanJson(Buffer.from(list(of, MAX_BODY_MEMBERS - 1)))
    assert.deepEqual(
      refusal(() => prescanJson(Buffer.from(list(of, MAX_BODY_MEMBERS)))),
      TOO_MANY_MEMBERS,
    )
  }
  // A key counts as one value, and its object as another.
  prescanJson(Buffer.from(`{"a":${list('{"k":0}', (MAX_BODY_MEMBERS - 4) / 2)},"b":0}`))
  assert.deepEqual(
    refusal(() => prescanJson(Buffer.from(`{"a":${list('{"k":0}', (MAX_BODY_MEMBERS - 2) / 2)},"b":0}`))),
    TOO_MANY_MEMBERS,
  )
})

const MANY_SEQUENCES = [413, `body has more than ${MAX_KEY_SEQUENCES} different sequences of keys`]
const objects = (count: number, keys: number, first = 0) =>
  Array.from(
    { length: count },
    (_, i) => `{${Array.from({ length: keys }, (_, k) => `"k${first + i * keys + k}":0`).join(',')}}`,
  ).join(',')

test('new keys after those before them are limited, repeated ones are not', () => {
  for (const [count, keys] of [
    [1, MAX_KEY_SEQUENCES],
    [MAX_KEY_SEQUENCES / 100, 100],
    [MAX_KEY_SEQUENCES, 1],
  ] as const) {
    prescanJson(Buffer.from(`{"a":[${objects(count, keys - 1)}]}`))
    assert.deepEqual(
      refusal(() => prescanJson(Buffer.from(`{"a":[${objects(Math.ceil(count * 1.1), Math.ceil(keys * 1.1))}]}`))),
      MANY_SEQUENCES,
    )
  }
  // The same objects three times, and the same key under other keys.
  const half = objects(1, MAX_KEY_SEQUENCES / 2)
  prescanJson(Buffer.from(`{"a":[${half},${half},${half}]}`))
  prescanJson(Buffer.from(`{"a":[${Array(30_000).fill('{"b":{"b":0}}').join(',')}`))
  // Keys are compared by content while a body has room for many different ones.
  for (const length of [2, 500, 4_000]) {
    const long = Array.from(
      { length: MAX_KEY_SEQUENCES * 1.1 },
      (_, i) => `"${'x'.repeat(length)}${String(i).padStart(5, '0')}":0`,
    )
    assert.deepEqual(
      refusal(() => prescanJson(Buffer.from(`{${long.join(',')}}`))),
      MANY_SEQUENCES,
    )
  }
  // The keys of an object do not include those of nested objects.
  prescanJson(Buffer.from(`{"a":[${Array(10_000).fill(`{"x":{"p":1,"q":2},"y":0,"z":0}`).join(',')}]}`))
  // The same keys in ever different orders cost as much as new keys.
  const rotated = Array.from(
    { length: 2_000 },
    (_, i) => `{"r${i}":0,${Array.from({ length: 20 }, (_, k) => `"${k}":0`).join(',')}}`,
  )
  assert.deepEqual(
    refusal(() => prescanJson(Buffer.from(`{"a":[${rotated.join(',')}]}`))),
    MANY_SEQUENCES,
  )
})

test('sequences of keys are counted separately in each part of a list', () => {
  const filling = `"${'x'.repeat(20_000)}"`
  const all = Array.from({ length: 40 }, (_, i) => `[${objects(10, 100, 1_000 * i)},${filling}]`).join(',')
  prescanJson(Buffer.from(`[${all}]`))
  for (const text of [`{"a":[${all}]}`, `["",[${all}]]`, `[${filling.repeat(4)},[${all}],0]`])
    assert.deepEqual(
      refusal(() => prescanJson(Buffer.from(text))),
      MANY_SEQUENCES,
    )
})

test('text that closes more brackets than it opened is scanned to its end', () => {
  assert.deepEqual(
    refusal(() => prescanJson(Buffer.from(`]]}}[{"a":[]]}]{"a":[${objects(MAX_KEY_SEQUENCES * 1.1, 1)}`))),
    MANY_SEQUENCES,
  )
})

for (const [what, text, expected, furthest] of [
  ['zeros', list('0', 1_048_501), [413, 'body has more than 10000 elements'], 20_000],
  ['flows without a time', list('{"uuid":"z"}', 160_001), [413, 'body has more than 10000 elements'], 130_000],
  ['empty objects', list('{}', 600_000), [413, 'body has more than 10000 elements'], 30_000],
  ['brackets', '['.repeat(2 * 1024 * 1024), TOO_DEEP, MAX_BODY_DEPTH],
  ['objects in objects', '{"a":'.repeat(400_000), TOO_DEEP, 5 * MAX_BODY_DEPTH],
  ['values within one element', `[${list('0', 1_000_000)}]`, TOO_MANY, 2 * MAX_BODY_VALUES],
] as const) {
  test(`2 MiB of ${what} are refused at the first byte above the limit`, () => {
    const { bytes, looked } = watched(text)
    assert.deepEqual(
      refusal(() => prescanJson(bytes, 10_000)),
      expected,
    )
    assert.ok(looked.furthest <= furthest, `${looked.furthest} bytes were read`)
  })
}

test('elements of each array that is a member of the outermost object are limited, no others', () => {
  const refuses = (text: string, max: number) => refusal(() => prescanJson(Buffer.from(text), undefined, max))
  for (const one of ['0', '{}', '[1,2,3]', '"a,b"', '{"a":[1,2,3,4]}']) {
    const all = `{"a":${list(one, 3)},"b":{"c":${list('0', 9)}},"d":${list(one, 3)},"e":[],"f":1,"g":2,"h":3}`
    assert.equal(prescanJson(Buffer.from(all), undefined, 3).list, null)
    assert.deepEqual(refuses(all, 2), [413, 'body has more than 2 elements'])
  }
  assert.equal(prescanJson(Buffer.from(`[${list('0', 9)}]`), undefined, 3).containers, 2)
  const { bytes, looked } = watched(`{"a":${list('0', 100)}}`)
  assert.throws(() => prescanJson(bytes, undefined, 3))
  assert.equal(looked.furthest, '{"a":[0,0,0,'.length - 1)
})
