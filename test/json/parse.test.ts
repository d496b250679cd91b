import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { HttpError } from '../../lib/errors.ts'
import { checkFreeForm, parseJson } from '../../lib/json/parse.ts'
import { MAX_JSON_DEPTH } from '../../lib/limits/limits.ts'

/** The message of the 400 that it throws. */
function refusal(work: () => unknown): string {
  try {
    work()
  } catch (error) {
    assert.ok(error instanceof HttpError, String(error))
    assert.equal(error.status, 400)
    assert.match(error.message, /^Json deserialize error: /)
    return error.message.slice('Json deserialize error: '.length)
  }
  return assert.fail('accepted')
}
const deep = (depth: number, inside = '') => `${'['.repeat(depth)}${inside}${']'.repeat(depth)}`

test('JSON is parsed as by JSON.parse', () => {
  for (const text of [
    'null',
    '7',
    '"a"',
    '[]',
    '{"a":[1,{"b":null}],"a":2}',
    ' \n{"\\u0041":"\\u00e9"}\t',
    '"\\ud83d\\ude00"',
    '1e999',
  ])
    assert.deepEqual(parseJson(text), JSON.parse(text))
})

test('property: the output of JSON.stringify is parsed to the same value', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) =>
      assert.deepEqual(parseJson(JSON.stringify(value)), JSON.parse(JSON.stringify(value))),
    ),
  )
})

test('a syntax error is reported by its position, without quoting the text', () => {
  for (const text of [
    '',
    '{',
    '{"secret":hunter2}',
    'hunter2',
    '[1,]',
    "{'a':1}",
    'NaN',
    '"a',
    '\u{feff}{}',
    '"\u{1}"',
    '{}{}',
  ]) {
    const message = refusal(() => parseJson(text))
    assert.match(message, /^invalid JSON: (at position \d+|unexpected end)$/, text)
    assert.ok(!message.includes('hunter2'))
  }
  assert.equal(
    refusal(() => parseJson('{"a":1} x')),
    'invalid JSON: at position 8',
  )
})

test('text that the database cannot store is tolerated under certain keys of the outermost object only', () => {
  for (const text of ['{"a":"\\u0000","b":1}', '{"a":[{"\\ud800":1}]}'])
    assert.deepEqual(parseJson(text, ['a']), JSON.parse(text))
  for (const text of [
    '{"b":"\\u0000"}',
    '{"b":{"a":"\\u0000"}}',
    '["\\u0000"]',
    '"\\u0000"',
    '{"\\u0000":1}',
    '{"__proto__":"\\u0000"}',
  ])
    assert.match(
      refusal(() => parseJson(text, ['a'])),
      /U\+0000 is not allowed$/,
    )
})

test('megabytes of brackets are refused or parsed, and never overflow the stack', () => {
  assert.match(
    refusal(() => parseJson('['.repeat(1024 * 1024))),
    /^invalid JSON/,
  )
  assert.match(
    refusal(() => parseJson('{"a":'.repeat(300_000))),
    /^invalid JSON/,
  )
  const value = parseJson(deep(200_000))
  assert.ok(Array.isArray(value))
  assert.match(
    refusal(() => parseJson(deep(200_000, '"\\u0000"'))),
    /U\+0000 is not allowed$/,
  )
  assert.match(
    refusal(() => checkFreeForm(value, 'spec')),
    /^spec: nested deeper than 100 levels$/,
  )
})

const PLACES: [text: string, place: string][] = [
  ['"@"', ''],
  ['{"name":"@"}', 'name: '],
  ['{"a":{"b":["x",{"c":"@"}]}}', 'a.b[1].c: '],
  ['[["x"],["y","@"]]', '[1][1]: '],
  ['{"@":1}', ''],
  ['{"a":{"@":1}}', 'a: '],
]
for (const [text, place] of PLACES) {
  test(`the place of bad text in ${text} is ${JSON.stringify(place)}`, () => {
    assert.equal(
      refusal(() => parseJson(text.replace('@', 'a\\u0000'))),
      `${place}U+0000 is not allowed`,
    )
    for (const half of ['\\ud800', '\\uDBFFx', '\\udc00', 'x\\uDFFF', '\\ude00\\ud83d', '\\ud83d\\ud83d\\ude00'])
      assert.equal(
        refusal(() => parseJson(text.replace('@', half))),
        `${place}half a surrogate pair is not allowed`,
      )
  })
}

test('escapes that only resemble bad text are unchanged', () => {
  for (const text of [
    '"\\\\u0000"',
    '"\\\\ud800"',
    '"\\u0001\\u00000"'.replace('\\u00000', '\\u0010'),
    '"\\uD83D\\uDE00"',
    '"\\ud7ff\\ue000"',
  ])
    assert.deepEqual(parseJson(text), JSON.parse(text))
})

test('property: text is refused exactly when the database cannot store it', () => {
  const unit = fc.constantFrom('a', '\\u0000', '\\ud83d', '\\ude00', '\\\\', '\\u0041', 'é', '\\n')
  fc.assert(
    fc.property(fc.array(unit, { maxLength: 6 }), (units) => {
      const text = `{"k":["${units.join('')}"]}`
      const [held] = JSON.parse(text).k
      if (held.isWellFormed() && !held.includes('\0')) assert.deepEqual(parseJson(text), { k: [held] })
      else
        assert.match(
          refusal(() => parseJson(text)),
          /^k\[0\]: /,
        )
    }),
  )
})

test('a path has a few hundred characters at most, however deep it is', () => {
  const message = refusal(() => parseJson(`${'{"key":'.repeat(5_000)}"\\u0000"${'}'.repeat(5_000)}`))
  assert.ok(message.startsWith('key.key.key'))
  assert.ok(message.length < 400, String(message.length))
})

test('a path has a few hundred characters at most, however long its keys are', () => {
  const message = refusal(() => parseJson(`{"${'k'.repeat(1e6)}":"\\u0000"}`))
  assert.ok(message.length < 400, String(message.length))
})

test('free-form values may nest to the limit and no deeper', () => {
  const nested = (depth: number): unknown => JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`)
  checkFreeForm(nested(MAX_JSON_DEPTH), 'x')
  checkFreeForm(JSON.parse(deep(MAX_JSON_DEPTH)), 'x')
  for (const value of [nested(MAX_JSON_DEPTH + 1), { wide: [1, 2, nested(MAX_JSON_DEPTH)] }])
    assert.equal(
      refusal(() => checkFreeForm(value, 'x')),
      'x: nested deeper than 100 levels',
    )
})

test('numbers beyond a double are refused with their path; the largest double is accepted', () => {
  for (const value of [1.7976931348623157e308, -1.7976931348623157e308, 5e-324, -0, 2 ** 53 + 2])
    checkFreeForm({ a: [value] }, 'x')
  for (const text of ['1e309', '-1e309', '1'.repeat(310)])
    assert.equal(
      refusal(() => checkFreeForm(parseJson(`{"a":[{"b":0},{"b":${text}}]}`), 'x')),
      'x.a[1].b: number out of range',
    )
})

test('free-form values hold no text that the database cannot store, in a key or a value', () => {
  for (const [value, place] of [
    ['a\0', 'x'],
    [{ a: [{ b: '\0' }] }, 'x.a[0].b'],
    [{ a: [{ '\0': 1 }] }, 'x.a[0]'],
  ] as const)
    assert.equal(
      refusal(() => checkFreeForm(value, 'x')),
      `${place}: U+0000 is not allowed`,
    )
  assert.equal(
    refusal(() => checkFreeForm({ a: '\ud800' }, 'x')),
    'x.a: half a surrogate pair is not allowed',
  )
})

test('any other value is accepted', () => {
  for (const value of [null, undefined, true, '', 'text', [], {}, { a: null, '': '' }]) checkFreeForm(value, 'x')
})

test('a number that is the whole value is reported without a path', () => {
  assert.equal(
    refusal(() => checkFreeForm(Number.POSITIVE_INFINITY, 'x')),
    'x: number out of range',
  )
})
