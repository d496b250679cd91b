import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { exactJson, exactly } from '../../lib/json/exact-integers.ts'
import { checkFreeForm, parseJson } from '../../lib/json/parse.ts'
import { depth } from '../support/depth.ts'

/** The written value of the key `k`. */
const written = (text: string) => exactJson(exactly((parseJson(text) as { k: unknown }).k))
const kept = (text: string) => assert.equal(written(`{"k":${text}}`), text)

test('integers beyond 2^53 keep their digits at any position', () => {
  kept('[9007199254740993,-9007199254740993,12345678901234567890,-18446744073709551615]')
  kept(`[${'9'.repeat(308)},-${'1'.repeat(309)}]`)
  kept('[1000000000000000000000,100000000000000000001]')
  kept('{"a":[[{"b":9007199254740993}],{"c":true,"d":9007199254740995}],"e":"9007199254740997","f":null}')
  assert.equal(
    written(' {\n"a" : 1 , "k":\t[ 9007199254740993 ,\r9007199254740995 ] }'),
    '[9007199254740993,9007199254740995]',
  )
})

test('every other number has the value of JSON.parse', () => {
  const numbers = [
    ...[
      '0',
      '-0',
      '1.0',
      '1e3',
      '9007199254740991',
      '-9007199254740991',
      '9007199254740992',
      '-9007199254740992',
      '0.12345678901234567890',
    ],
    ...[
      '1234567890123456789.5',
      '12345678901234567890e2',
      '1E-20',
      '1e+30',
      '123456789012345678901234567890E-5',
      '5e-324',
      '1e999',
      `${'9'.repeat(400)}`,
    ],
  ]
  for (const number of numbers) {
    // Beside one that is kept exactly, so that the text is parsed twice.
    const text = `[9007199254740993,${number},{"a":${number}}]`
    const plain = JSON.stringify(JSON.parse(number))
    assert.equal(written(`{"k":${text}}`), `[9007199254740993,${plain},{"a":${plain}}]`, number)
  }
})

test('a number beyond the range of a double is refused, also an integer', () => {
  for (const number of ['1e400', '9'.repeat(400)]) {
    const { k } = parseJson(`{"k":[9007199254740993,${number}]}`) as { k: unknown }
    assert.throws(() => checkFreeForm(exactly(k), 'k'), /k\[1\]: number out of range/)
  }
})

test('strings are unchanged, also with digits, quotes, backslashes or the end of a number', () => {
  for (const text of [
    '9007199254740993',
    ':9007199254740993,',
    '"9007199254740993',
    '\\',
    '\\\\"',
    '\\" :9007199254740993',
    ',9007199254740993]}',
    '\u{1f600}',
  ])
    kept(JSON.stringify({ [text]: text, a: [text, text] }).replace(/}$/, ',"n":9007199254740993}'))
})

test('keys of the prototype are ordinary keys, and the last of two equal keys counts', () => {
  kept('{"__proto__":9007199254740993,"constructor":{"prototype":9007199254740995},"toString":9007199254740997}')
  kept('{"isLosslessNumber":true,"value":"1","n":9007199254740993}')
  assert.equal(written('{"k":{"a":9007199254740993},"k":{"b":1,"b":9007199254740995}}'), '{"b":9007199254740995}')
})

test('no string of a client is read as a number', () => {
  const marked = JSON.stringify(exactly((parseJson('{"k":[9007199254740993]}') as { k: unknown }).k))
  // Brackets and quotes, then the mark.
  const mark = marked.slice(2, -2).replace('9007199254740993', '')
  assert.ok(mark.length >= 16)
  for (const guess of ['', '~', '~~', `${mark.slice(0, -2)}~`, mark.toUpperCase() === mark ? 'x' : mark.toUpperCase()])
    kept(JSON.stringify([`${guess}9007199254740993`]).replace(']', ',9007199254740993]'))
  // Knowing the mark is useless: it can only write an integer.
  for (const text of ['1,"a":2', '"', '00', '1.5', '', '-'])
    kept(JSON.stringify([mark + text]).replace(']', ',9007199254740993]'))
})

test('a body of a hundred thousand such integers is refused, one of ten thousand is accepted; there is no recursion into nesting', () => {
  const list = (n: number) => `[${Array.from({ length: n }, () => '9007199254740993').join(',')}]`
  assert.ok(written(`{"k":${list(10_000)}}`) === list(10_000))
  for (const n of [10_001, 116_000])
    assert.throws(() => written(`{"k":${list(n)}}`), { status: 400, message: /more than 10000 integers beyond 2\^53/ })
  const deep = parseJson(`{"k":${'['.repeat(500_000)}9007199254740993${']'.repeat(500_000)}}`) as { k: unknown }
  assert.throws(() => checkFreeForm(exactly(deep.k), 'k'), /k: nested deeper than 100 levels/)
})

test('a body without a long integer is parsed once: its value is returned as parsed', () => {
  for (const text of ['{"k":[1]}', '{"k":["900719925474099"]}', '{"k":[0.9007199254740993]}']) {
    const { k } = parseJson(text) as { k: unknown }
    assert.equal(exactly(k), k)
  }
  const list = parseJson('[[9007199254740993]]') as unknown[]
  assert.equal(exactly(list[0]), list[0])
})

const leaf = fc.oneof(
  fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }),
  fc.bigInt({ min: 2n ** 53n - 3n, max: 2n ** 53n + 3n }),
  fc.bigInt({ min: -(2n ** 53n) - 3n, max: -(2n ** 53n) + 3n }),
  fc.string({
    unit: fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom('"', '\\', '9007199254740993', ':', ',', '[', '{') },
      { weight: 1, arbitrary: fc.string() },
    ),
  }),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.boolean(),
  fc.constant(null),
)
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small' },
    leaf,
    fc.array(tie('tree')),
    fc.dictionary(fc.string(), tie('tree'), { noNullPrototype: true }),
  ),
}))

/** JSON with the digits of every bigint. */
function render(value: unknown): string {
  if (typeof value === 'bigint') return String(value)
  if (Array.isArray(value)) return `[${value.map(render).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  return `{${Object.entries(value)
    .map(([key, one]) => `${JSON.stringify(key)}:${render(one)}`)
    .join(',')}}`
}

test('property: every integer keeps its digits, and everything else has the value of JSON.parse', () => {
  fc.assert(
    fc.property(fc.array(tree), (value) => {
      const { k } = parseJson(`{"k":${render(value)}}`) as { k: unknown }
      assert.equal(exactJson(exactly(k)), render(value))
    }),
    { numRuns: depth(200, 2_000) },
  )
})
