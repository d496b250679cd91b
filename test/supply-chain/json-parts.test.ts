/** Splitting a payload before parsing accepts and refuses the same texts as parsing at once. */

import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { HttpError } from '../../lib/errors.ts'
import { MAX_ELEMENT_MEMBERS, MAX_OTHER_MEMBERS, MAX_PAYLOAD_DEPTH } from '../../lib/limits/limits.ts'
import { partsOf } from '../../lib/supply-chain/json-parts.ts'
import { depth } from '../support/depth.ts'
import { isReadRight } from '../support/escaped-keys.ts'

const MAX_ELEMENTS = 100

/** The value of a text, rebuilt from its parts; or its refusal. */
function assembled(text: string, maxElements = MAX_ELEMENTS): unknown {
  try {
    const { rest, length, element } = partsOf(Buffer.from(text), 'list', maxElements)
    const elements = Array.from({ length }, (_, i) => element(i))
    if (length === 0) return rest
    assert.deepEqual((rest as { list: unknown }).list, [])
    return { ...(rest as object), list: elements }
  } catch (error) {
    if (error instanceof HttpError) return error
    throw error
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Both refuse, or both give the same value. */
function assertSame(text: string): void {
  const [ours, theirs] = [assembled(text), parsed(text)]
  if (ours instanceof HttpError) {
    // Only the split parser refuses repeated keys.
    if (!/ is there twice$/.test(ours.message)) assert.equal(theirs, undefined, `${text}\n${ours.message}`)
    assert.equal(ours.status, 400)
  } else {
    assert.notEqual(theirs, undefined, `${text} was taken`)
    assert.deepEqual(ours, theirs, text)
  }
}

const SPELLINGS = [
  '{"list":[]}',
  '{"list":[ \n\t\r]}',
  '{"list":[1]}',
  ' { "a" : 1 , "list" : [ 1 , "two" , [ 3 ] , { "list" : [ 4 , 5 ] } ] , "b" : [ 6 ] } ',
  '{"a":{"list":[1,2]},"list":[3]}',
  '{"a":["list",[1,2]],"b":"list"}',
  '{"\\u006cist":[1,2]}',
  '{"list":["]","[","\\"","\\\\","},{",","]}',
  '{"a":"\\\\","list":[1]}',
  '{"list":null}',
  '{"list":{"list":[1]}}',
  '{"list":"[1,2]"}',
  '{"":[1],"list":[2]}',
  '{"__proto__":[1],"list":[{"__proto__":1}]}',
  '[{"list":[1,2]}]',
  '["list",[1]]',
  '"list"',
  '7',
  'null',
]
const FAULTS = [
  ...[
    '',
    '{',
    '}',
    '[',
    '{}{}',
    '{"list"',
    '{"list":',
    '{"list":[',
    '{"list":[1',
    '{"list":[1}',
    '{"list":[1]',
    '{"list":[1]]}',
  ],
  ...[
    '{"list":[,]}',
    '{"list":[1,]}',
    '{"list":[,1]}',
    '{"list":[1 2]}',
    '{"list":[1]2}',
    '{"list":2[1]}',
    '{"list":[1],}',
  ],
  ...[
    '{"list" [1]}',
    '{list:[1]}',
    "{'list':[1]}",
    '{"list":[1][2]}',
    '{"list":[[1]}',
    '{"list":[{]}',
    '{"list":[\u00a0]}',
  ],
  ...[
    '{"list":[1]}x',
    'x{"list":[1]}',
    '\ufeff{"list":[1]}',
    '{"list":["\n"]}',
    '{"list":["a]}',
    '{"list":[1,"\\x"]}',
    '{"li\\xst":[1]}',
  ],
  ...[
    '{"list":[1}]',
    '{"list":[{1]}]',
    '["list":[1]]',
    '{"list",[1]}',
    '{"a":1,[1]}',
    '{"list":[01]}',
    '{"list":[1],"a":}',
    '}{"list":[1]',
  ],
]
test('valid JSON is accepted in any spelling; other text is refused', () => {
  for (const text of SPELLINGS) {
    assert.notEqual(parsed(text), undefined, text)
    assertSame(text)
  }
  for (const text of FAULTS) {
    assert.equal(parsed(text), undefined, text)
    assertSame(text)
  }
})

const key = fc.oneof(fc.constantFrom('list', 'a', '', '\\', '"', 'é'), fc.string({ maxLength: 3 }))
const leaf = fc.oneof(
  fc.constantFrom('list', '],[', '"', '\\"', '}', '\u2028', 'é', '\u{1f600}'),
  fc.string({ maxLength: 6 }),
  fc.double(),
  fc.boolean(),
  fc.constant(null),
)
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    leaf,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(key, tie('value'), { maxKeys: 4 }),
  ),
}))
const withList = fc
  .tuple(
    fc.dictionary(key, value, { maxKeys: 3 }),
    fc.array(value, { maxLength: 6 }),
    fc.dictionary(key, value, { maxKeys: 3 }),
  )
  .map(([before, list, after]) => ({ ...before, list, ...after, ...(after.list === undefined ? {} : { list }) }))
const spelled = fc
  .tuple(
    fc.oneof({ weight: 4, arbitrary: withList }, { weight: 1, arbitrary: value }),
    fc.constantFrom(undefined, 1, '\t', '\r\n'),
  )
  .map(([one, blank]) => JSON.stringify(one, null, blank) ?? 'null')
  .filter(isReadRight)

test('property: the parts of a value are those of JSON.parse', () => {
  fc.assert(
    fc.property(spelled, (text) => {
      assert.deepEqual(assembled(text), JSON.parse(text))
    }),
    { numRuns: depth(100, 2_000) },
  )
})

const piece = fc.constantFrom(
  '[',
  ']',
  '{',
  '}',
  ',',
  ':',
  '"',
  '\\',
  '"list":',
  ' ',
  '0',
  '1',
  'e',
  '-',
  'null',
  '\\u',
  '\u00a0',
  '\0',
)
const mutation = fc.record({ at: fc.nat(), length: fc.nat({ max: 3 }), piece: fc.oneof(piece, fc.constant('')) })

test('property: a changed text is accepted exactly if JSON.parse accepts it, with the same value', () => {
  let taken = 0
  fc.assert(
    fc.property(spelled, fc.array(mutation, { minLength: 1, maxLength: 3 }), (text, mutations) => {
      const mutated = mutations.reduce((one, { at, length, piece }) => {
        const start = at % (one.length + 1)
        return one.slice(0, start) + piece + one.slice(start + length)
      }, text)
      // Half a character is not UTF-8; decoded, it would be another text.
      if (!mutated.isWellFormed() || !isReadRight(mutated)) return
      if (parsed(mutated) !== undefined) taken++
      assertSame(mutated)
    }),
    { numRuns: depth(200, 5_000) },
  )
  assert.ok(taken > depth(20, 100), `${taken} were JSON`)
})

const refused = (text: string | Buffer, maxElements = MAX_ELEMENTS): [number, string] => {
  try {
    const { length, element } = partsOf(Buffer.from(text), 'list', maxElements)
    for (let i = 0; i < length; i++) element(i)
  } catch (error) {
    if (error instanceof HttpError) return [error.status, error.message]
    throw error
  }
  return [0, 'taken']
}

test('a key may occur once in its object, in any spelling and at any depth', () => {
  assert.deepEqual(refused('{"a":1,"a":1}'), [400, 'Json deserialize error: "a" is there twice'])
  assert.deepEqual(refused('{"list":[1],"\\u006cist":[2]}'), [400, 'Json deserialize error: "list" is there twice'])
  assert.deepEqual(refused('{"a":{"b":{"c":":","c":2}}}'), [400, 'Json deserialize error: "c" is there twice'])
  assert.deepEqual(refused('{"list":[{"a":":\\"{"},{"b":[{"\\\\":1},{"\\\\":1,"\\u005c":2}]}]}'), [
    400,
    'Json deserialize error: list[1]: "\\\\" is there twice',
  ])
  assert.deepEqual(refused('{"list":[{"__proto__":1,"__proto__":2}]}')[0], 400)
})

test('a fault is reported with its position', () => {
  const message = (text: string) => refused(text)[1].replace('Json deserialize error: ', '')
  assert.equal(message('{"list":[1,2],"a":1 2}'), 'invalid JSON: at position 20')
  assert.equal(message('{"a":1 2,"list":[1,2]}'), 'invalid JSON: at position 7')
  assert.equal(message('{"list":[1,2],"a":'), 'invalid JSON: unexpected end')
  assert.equal(message('{"list":[1, 2 3]}'), 'list[1]: invalid JSON: at position 14')
  assert.equal(message('{"list":[1,]}'), 'list[1]: invalid JSON: unexpected end')
  // Node gives no position.
  assert.equal(message('{"list":[1,trx]}'), 'list[1]: invalid JSON')
  assert.equal(message('{"list":[1}'), 'invalid JSON: at position 10')
  assert.equal(message('{"list":[1'), 'invalid JSON: unexpected end')
})

test('bytes that are not UTF-8 are refused', () => {
  const text = Buffer.from('{"list":["x"]}')
  text[10] = 0xff
  assert.deepEqual(refused(text), [400, 'Json deserialize error: the body is not UTF-8'])
})

test('the length of the list is limited, which is reported before the end of the text', () => {
  const list = (n: number) => `{"list":[${Array(n).fill('0').join()}]}`
  assert.deepEqual(refused(list(MAX_ELEMENTS)), [0, 'taken'])
  assert.deepEqual(refused(list(MAX_ELEMENTS + 1)), [413, `body has more than ${MAX_ELEMENTS} list`])
  assert.deepEqual(refused(`${list(MAX_ELEMENTS + 1).slice(0, -2)},!`), [
    413,
    `body has more than ${MAX_ELEMENTS} list`,
  ])
})

test('nesting is bounded, inside the list and outside', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  for (const [at, depth] of [
    ['{"list":[@]}', MAX_PAYLOAD_DEPTH - 2],
    ['{"a":@}', MAX_PAYLOAD_DEPTH - 1],
    ['@', MAX_PAYLOAD_DEPTH],
  ] as const) {
    assert.deepEqual(refused(at.replace('@', nested(depth))), [0, 'taken'])
    assert.deepEqual(refused(at.replace('@', nested(depth + 1))), [
      400,
      `Json deserialize error: nested deeper than ${MAX_PAYLOAD_DEPTH} levels`,
    ])
  }
})

test('the values of one element are bounded, and those outside the list', () => {
  const zeros = (n: number) => `[${Array(n).fill('0').join()}]`
  // A bracket, and a comma between every two.
  assert.deepEqual(refused(`{"list":[0,${zeros(MAX_ELEMENT_MEMBERS)}]}`), [0, 'taken'])
  assert.deepEqual(refused(`{"list":[0,${zeros(MAX_ELEMENT_MEMBERS + 1)}]}`), [
    413,
    `body has more than ${MAX_ELEMENT_MEMBERS} values in list[1]`,
  ])
  // The outermost bracket, a colon, and the brackets of the value.
  assert.deepEqual(refused(`{"a":${zeros(MAX_OTHER_MEMBERS - 2)}}`), [0, 'taken'])
  assert.deepEqual(refused(`{"a":${zeros(MAX_OTHER_MEMBERS - 1)}}`), [
    413,
    `body has more than ${MAX_OTHER_MEMBERS} values outside list`,
  ])
})

test('lists whose values are denser than any payload are refused', () => {
  const list = (element: string) => `{"list":[${Array(MAX_ELEMENTS).fill(element).join()}]}`
  const keys = (n: number, key: (i: number) => string) =>
    `{${Array.from({ length: n }, (_, i) => `"${key(i)}":0`).join()}}`
  assert.deepEqual(refused(list(keys(1_000, (i) => `epss${i}`))), [0, 'taken'])
  const [status, message] = refused(list(`[${Array(1_000).fill('[]').join()}]`))
  assert.equal(status, 413)
  assert.match(message, /^body has more than \d+ values in list$/)
})
