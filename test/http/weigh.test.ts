import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { HttpError } from '../../lib/http/errors.ts'
import { countObjects, MAX_BODY_DEPTH, MAX_BODY_MEMBERS, MAX_BODY_VALUES, weigh } from '../../lib/http/weigh.ts'

/** Counts how many of the bytes were looked at. */
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

test('property: JSON is weighed for its objects and arrays, and objects alone are counted, perhaps some more', () => {
  const countOf = (value: unknown, isCounted: (one: object) => boolean): number =>
    typeof value === 'object' && value !== null
      ? Object.values(value).reduce((sum: number, one) => sum + countOf(one, isCounted), isCounted(value) ? 1 : 0)
      : 0
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), fc.constantFrom(undefined, 1), (value, indent) => {
      const bytes = Buffer.from(JSON.stringify(value, null, indent))
      assert.equal(
        weigh(bytes),
        countOf(value, () => true),
      )
      assert.ok(countObjects(bytes) >= countOf(value, (one) => !Array.isArray(one)))
    }),
  )
})

test('brackets, commas and quotes in strings are text, whatever is escaped before them', () => {
  for (const text of ['"[[,,{{"', '"\\"[,"', '"\\\\\\"[,{"', '"é,[\\u005b,"', '"\u{1f418},["', '"', '"\\', '"\\"', ''])
    assert.equal(weigh(Buffer.from(text)), 0, text)
  assert.equal(weigh(Buffer.from('"\\\\",[')), 1)
  assert.equal(weigh(Buffer.from('["a,b","c"]')), 1)
})

test('elements of the outermost array are counted, and no others', () => {
  weigh(Buffer.from(list('0', 5)), 5)
  weigh(Buffer.from(` \n[${list('0', 50)},{"a":[1,2,3,4,5,6,7],"b":1,"c":1,"d":1,"e":1,"f":1}]`), 5)
  weigh(Buffer.from('{"a":1,"b":[1,2,3,4,5,6,7],"c":"1,2,3,4,5,6","d":1,"e":1,"f":1}'), 5)
  for (const text of [list('0', 6), ` ${list('[0,0]', 6)}`, list('{"a":[0],"b":""}', 6)])
    assert.deepEqual(
      refusal(() => weigh(Buffer.from(text), 5)),
      [413, 'body has more than 5 elements'],
    )
})

test('nesting and values are bounded, to the one', () => {
  weigh(Buffer.from('['.repeat(MAX_BODY_DEPTH) + ']'.repeat(MAX_BODY_DEPTH)))
  assert.deepEqual(
    refusal(() => weigh(Buffer.from(`${'{"a":['.repeat(MAX_BODY_DEPTH / 2)}[`))),
    TOO_DEEP,
  )
  // The array counts, too.
  weigh(Buffer.from(list('0', MAX_BODY_VALUES - 1)))
  assert.deepEqual(
    refusal(() => weigh(Buffer.from(list('0', MAX_BODY_VALUES)))),
    TOO_MANY,
  )
  for (const of of ['[]', '{}']) {
    weigh(Buffer.from(list(of, MAX_BODY_MEMBERS - 1)))
    assert.deepEqual(
      refusal(() => weigh(Buffer.from(list(of, MAX_BODY_MEMBERS)))),
      TOO_MANY_MEMBERS,
    )
  }
  // A key is one, and its object another.
  weigh(Buffer.from(`{"a":${list('{"k":0}', (MAX_BODY_MEMBERS - 4) / 2)},"b":0}`))
  assert.deepEqual(
    refusal(() => weigh(Buffer.from(`{"a":${list('{"k":0}', (MAX_BODY_MEMBERS - 2) / 2)},"b":0}`))),
    TOO_MANY_MEMBERS,
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
  test(`2 MiB of ${what} are refused at the byte that is too much`, () => {
    const { bytes, looked } = watched(text)
    assert.deepEqual(
      refusal(() => weigh(bytes, 10_000)),
      expected,
    )
    assert.ok(looked.furthest <= furthest, `${looked.furthest} bytes were read`)
  })
}
