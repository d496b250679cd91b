import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { ListScan, MAX_ELEMENT_BYTES, MAX_OTHER_BYTES } from '../../lib/image-trust/list-scan.ts'
import { BadAnswer } from '../../lib/image-trust/unavailable.ts'
import { isReadRight } from '../support/escaped-keys.ts'

/** The result of scanning bytes in pieces of these lengths, repeated; null if they are refused. */
function scanned(
  bytes: Buffer,
  lengths: readonly number[] = [bytes.length || 1],
): { elements: unknown[]; rest: unknown } | null {
  const elements: unknown[] = []
  const scan = new ListScan('results', (element) => elements.push(element))
  try {
    for (let at = 0, i = 0; at < bytes.length; i++) {
      const length = lengths[i % lengths.length]!
      scan.push(bytes.subarray(at, at + length))
      at += length
    }
    return { elements, rest: scan.end() }
  } catch (error) {
    assert.ok(error instanceof BadAnswer, String(error))
    return null
  }
}

/** The same result by parsing everything at once. */
function parsed(text: string): { elements: unknown[]; rest: unknown } | null {
  try {
    const rest = JSON.parse(text)
    const isObject = typeof rest === 'object' && rest !== null && !Array.isArray(rest)
    if (!isObject || !Array.isArray(rest.results)) return { elements: [], rest }
    return { elements: rest.results, rest: { ...rest, results: [] } }
  } catch {
    return null
  }
}

const lengths = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 })
const awkward = fc.constantFrom('"', '\\', '],[', '{"results":[', '\u{1f600}\ufffd', '\u0000', 'results', '', 'é')
const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { maxDepth: 4 },
    awkward,
    fc.jsonValue({ maxDepth: 2 }),
    fc.array(tie('any'), { maxLength: 4 }),
    tie('object'),
  ),
  object: fc.dictionary(awkward, tie('any'), { maxKeys: 4, noNullPrototype: true }),
})).any
const body = fc
  .tuple(
    fc.dictionary(fc.oneof(awkward, fc.string()), value, { maxKeys: 3, noNullPrototype: true }),
    fc.oneof(fc.array(value, { maxLength: 6 }), value),
  )
  .map(([others, results]) => ({ ...others, results }))
const spaced = fc
  .tuple(body, fc.constantFrom(0, 1, '\t'))
  .map(([one, space]) => JSON.stringify(one, null, space))
  .filter(isReadRight)

test('the scan gives the same elements and rest as parsing at once, wherever the bytes are split', () => {
  fc.assert(
    fc.property(spaced, lengths, (text, lengths) => {
      assert.deepEqual(scanned(Buffer.from(text), lengths), parsed(text))
    }),
    { numRuns: 2_000 },
  )
})

test('the result is the same wherever the bytes are split in two or three', () => {
  const text = '{"\\"":"\\\\","results":["\\"],",{"]":["\\\\"]} , [] ],"\\"":"\\""}'
  const bytes = Buffer.from(text)
  const whole = parsed(text)
  assert.equal(whole?.elements.length, 3)
  for (let a = 1; a < bytes.length; a++)
    for (let b = 1; b < bytes.length; b++) assert.deepEqual(scanned(bytes, [a, b, bytes.length]), whole, `${a}, ${b}`)
})

test('malformed JSON is refused, valid JSON without a repeated list is not', () => {
  const hurt = fc
    .tuple(
      spaced,
      fc.nat(),
      fc.nat(2),
      fc.constantFrom('"', '\\', ',', ':', '[', ']', '{', '}', ' ', 'x', '"results":['),
    )
    .map(([text, place, taken, put]) => {
      const at = place % (text.length + 1)
      return text.slice(0, at) + put + text.slice(at + taken)
    })
    .filter(isReadRight)
  // One of two lists would be lost, so a repeated list is refused although it is valid JSON.
  const isTwice = (text: string) => text.split('results').length > 2
  fc.assert(
    fc.property(hurt, lengths, (text, lengths) => {
      // Half a surrogate pair has no UTF-8 form.
      fc.pre(text.isWellFormed())
      const got = scanned(Buffer.from(text), lengths)
      if (got === null && isTwice(text)) return
      assert.deepEqual(got, parsed(text))
    }),
    { numRuns: 5_000 },
  )
})

test('a repeated list key is refused, in any spelling', () => {
  for (const text of [
    '{"results":[1],"results":[2]}',
    '{"results":[1],"r\\u0065sults":[2]}',
    '{"results":7,"results":[]}',
    '{"results":[],"results":7}',
  ])
    assert.equal(scanned(Buffer.from(text), [1]), null, text)
  assert.deepEqual(scanned(Buffer.from('{"a":{"results":[1]},"results":[2],"b":[{"results":[3]}]}'))?.elements, [2])
})

test('bytes that are not UTF-8 are refused inside and outside the list; the replacement character is accepted', () => {
  const within = (bad: Buffer) => Buffer.concat([Buffer.from('{"results":["'), bad, Buffer.from('"]}')])
  const without = (bad: Buffer) => Buffer.concat([Buffer.from('{"x":"'), bad, Buffer.from('","results":[]}')])
  for (const put of [within, without]) {
    for (const bad of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0xaf]])
      assert.equal(scanned(put(Buffer.from(bad)), [1]), null)
    assert.notEqual(scanned(put(Buffer.from('\ufffd')), [1]), null)
  }
})

test('the length of an element is limited, and so is the text outside the list', () => {
  const element = (bytes: number, more = '') => Buffer.from(`{"results":[1,"${'x'.repeat(bytes - 2)}"${more}]}`)
  const other = (bytes: number) => Buffer.from(`{"x":"${'x'.repeat(bytes - 21)}","results":[7]}`)
  for (const lengths of [[1_000_000], [1], [4_000, 100]]) {
    assert.equal(scanned(element(MAX_ELEMENT_BYTES), lengths)?.elements.length, 2)
    assert.equal(scanned(element(MAX_ELEMENT_BYTES + 1), lengths), null)
    assert.equal(scanned(element(MAX_ELEMENT_BYTES, ',2'), lengths)?.elements.length, 3)
    assert.equal(scanned(element(MAX_ELEMENT_BYTES + 1, ',2'), lengths), null)
    assert.equal(scanned(other(MAX_OTHER_BYTES), lengths)?.elements.length, 1)
    assert.equal(scanned(other(MAX_OTHER_BYTES + 1), lengths), null)
  }
})

test('deep nesting counts like any other text', () => {
  const deep = '['.repeat(MAX_ELEMENT_BYTES / 2) + ']'.repeat(MAX_ELEMENT_BYTES / 2)
  assert.equal(scanned(Buffer.from(`{"results":[${deep}]}`))?.elements.length, 1)
  assert.equal(scanned(Buffer.from('['.repeat(MAX_OTHER_BYTES))), null)
  assert.equal(scanned(Buffer.from(`{"results":[${'['.repeat(1_000_000)}`)), null)
  assert.equal(scanned(Buffer.from(']'.repeat(1_000))), null)
})
