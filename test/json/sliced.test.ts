import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { HttpError } from '../../lib/errors.ts'
import { parseJson, type Tolerated } from '../../lib/json/parse.ts'
import { prescanJson } from '../../lib/json/prescan.ts'
import { parseList } from '../../lib/json/sliced.ts'
import { depth } from '../support/depth.ts'
import { turnsOf } from '../support/turns.ts'

/** The value, or the message of the refusal. */
async function outcome(work: () => unknown): Promise<unknown> {
  try {
    return { value: await work() }
  } catch (error) {
    assert.ok(error instanceof HttpError, String(error))
    return `${error.status} ${error.message}`
  }
}

/** Wherever it is split, the list equals the list parsed as one text, or is refused with the same message. */
async function sameAsWhole(text: string, cuts: number[]): Promise<void> {
  assert.deepEqual(
    await outcome(() => parseList(Buffer.from(text), outermost(text, cuts))),
    await outcome(() => parseJson(text)),
    `${text.slice(0, 200)} cut at ${cuts}`,
  )
}

/** The list from the first opening bracket to the last closing one. */
function outermost(text: string, cuts: number[]) {
  const bytes = Buffer.from(text)
  const [from, to] = [bytes.indexOf('[') + 1, bytes.lastIndexOf(']')]
  return { from, to, cuts: cuts.filter((at) => at >= from && at < to) }
}

const commas = (text: string) => [...Buffer.from(text).entries()].filter(([, byte]) => byte === 0x2c).map(([at]) => at)

test('property: a list in parts is the same list, wherever it is split', () => {
  const lists = fc
    .array(fc.jsonValue({ maxDepth: 3 }), { minLength: 1, maxLength: 8 })
    .map((list) => JSON.stringify(list))
  const hold = fc.asyncProperty(lists, fc.infiniteStream(fc.boolean()), async (text, kept) => {
    await sameAsWhole(
      text,
      commas(text).filter(() => kept.next().value),
    )
  })
  return fc.assert(hold)
})

test('property: invalid JSON is refused with the same message as in one text', () => {
  const parts = ['[', ']', '{', '}', ',', ',', '"', '"a"', '"a":', '1', '"\\u0000"', 'nul', 'é', ' ', '\\']
  const texts = fc.array(fc.constantFrom(...parts), { maxLength: 14 }).map((some) => `[1,${some.join('')},2]`)
  const hold = fc.asyncProperty(texts, fc.infiniteStream(fc.boolean()), async (text, kept) => {
    await sameAsWhole(
      text,
      commas(text).filter(() => kept.next().value),
    )
  })
  return fc.assert(hold, { numRuns: depth(200, 2_000) })
})

test('parts that are lists by themselves do not make invalid text a list', async () => {
  for (const text of [
    '[1,,2]',
    '[,1]',
    '[1,]',
    '1,2',
    '[1],[2]',
    '[[1],2',
    '[1,2]]',
    '{"a":1},2]',
    ' [ 1 , "a,b" , [2,3] ] ',
    ',',
    '[1,2]x',
  ])
    await sameAsWhole(text, commas(text))
})

test('the position of forbidden text counts from the start of the list', async () => {
  const text = `[${Array(40).fill('{"a":"x"}').join(',')},{"a":"\\u0000"},1]`
  assert.equal(
    await outcome(() => parseList(Buffer.from(text), outermost(text, commas(text)))),
    '400 Json deserialize error: [40].a: U+0000 is not allowed',
  )
})

test('a prescanned list is split between its elements into parts of at least 64 KiB, and other JSON is not', async () => {
  const element = `{"a":[1,2,{"b":"],[,"}],"c":"${'x'.repeat(1_000)}"}`
  const text = `[${Array(1_500).fill(element).join(',')}]`
  const { list } = prescanJson(Buffer.from(text))
  assert.ok(list?.isOutermost)
  const { cuts } = list
  assert.ok(cuts.length >= 20 && cuts.length <= 24, `${cuts.length} cuts`)
  let before = 0
  for (const cut of cuts) {
    assert.equal((cut - element.length - 1) % (element.length + 1), 0, 'a cut is behind an element')
    assert.ok(cut - before >= 64 * 1024)
    before = cut
  }
  await sameAsWhole(text, cuts)
  assert.equal(prescanJson(Buffer.from(`{"a":${text}}`)).list?.isOutermost, false)
  assert.equal(prescanJson(Buffer.from(`[${text}]`)).list, null)
})

test('other work runs between two parts of a long list', async () => {
  const names = (i: number) => `[${Array.from({ length: 400 }, (_, k) => `"n${i}-${k}"`).join(',')}]`
  const bytes = Buffer.from(`[${Array.from({ length: 900 }, (_, i) => names(i)).join(',')}]`)
  const parsed = parseList(bytes, prescanJson(bytes).list!) as Promise<string[][]>
  const turns = await turnsOf(parsed)
  assert.equal((await parsed).length, 900)
  assert.ok(turns >= 2, `${turns} turns`)
})

/** As if the list of `text` between `from` and `to` were split at those of its commas that are `kept`. */
async function listedAsWhole(
  text: string,
  from: number,
  to: number,
  tolerated: Tolerated,
  isKept: (at: number) => boolean,
): Promise<void> {
  const bytes = Buffer.from(text)
  const cuts = commas(text).filter((at) => at >= from && at < to && isKept(at))
  assert.deepEqual(
    await outcome(() => parseList(bytes, { from, to, cuts }, tolerated)),
    await outcome(() => parseJson(text, tolerated, false)),
    `${text.slice(0, 200)} cut at ${cuts}`,
  )
}

const tolerated = fc.constantFrom<Tolerated>([], ['k'], ['other'], 'all')

test('property: an object with a split list is the same object, whatever else is in it, or is refused with the same message', () => {
  const key = fc.constantFrom('k', 'other', 'é', '', '__proto__', 'constructor')
  const value = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom('\0', ['\ud800'], { '\0': 1 }))
  const members = fc.array(fc.tuple(key, value), { maxLength: 3 })
  const text = (some: [string, unknown][]) =>
    some.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`)
  const hold = fc.asyncProperty(
    members,
    key,
    fc.array(value, { maxLength: 6 }),
    members,
    tolerated,
    fc.infiniteStream(fc.boolean()),
    async (before, key, list, after, tolerated, kept) => {
      const head = Buffer.byteLength(`{${[...text(before), `${JSON.stringify(key)}:[`].join(',')}`)
      const elements = JSON.stringify(list).slice(1, -1)
      const whole = `{${[...text(before), `${JSON.stringify(key)}:[${elements}]`, ...text(after)].join(',')}}`
      await listedAsWhole(whole, head, head + Buffer.byteLength(elements), tolerated, () => kept.next().value)
    },
  )
  return fc.assert(hold, { numRuns: depth(100, 1_000) })
})

test('property: invalid JSON is refused as in one text, wherever a list was found in it', () => {
  const parts = ['[', ']', '{', '}', ',', ',', '"', '"a"', '"a":', '1', '"\\u0000"', 'nul', 'é', ' ', '\\']
  const some = fc.array(fc.constantFrom(...parts), { maxLength: 8 }).map((some) => some.join(''))
  const hold = fc.asyncProperty(
    some,
    some,
    some,
    tolerated,
    fc.infiniteStream(fc.boolean()),
    async (before, list, after, tolerated, kept) => {
      const head = `{"k":[${before}`
      const from = Buffer.byteLength(head)
      await listedAsWhole(
        `${head}1,${list},2]${after}}`,
        from,
        from + Buffer.byteLength(`1,${list},2`),
        tolerated,
        () => kept.next().value,
      )
    },
  )
  return fc.assert(hold, { numRuns: depth(200, 2_000) })
})

test('only the first long list of an object is split', async () => {
  const element = `{"a":[1,2,{"b":"],[,"}],"c":"${'x'.repeat(1_000)}"}`
  const list = Array(300).fill(element).join(',')
  const head = '{"short":[1,2,3],"deep":{"list":[1,2]},"k":['
  const text = `${head}${list}],"again":[${list}],"z":{}}`
  const { list: listed } = prescanJson(Buffer.from(text))
  assert.ok(listed !== null)
  assert.equal(listed.isOutermost, false)
  assert.deepEqual([listed.from, listed.to], [head.length, head.length + list.length])
  assert.ok(listed.cuts.length >= 4 && listed.cuts.length <= 5, `${listed.cuts.length} cuts`)
  for (const cut of listed.cuts)
    assert.equal((cut - head.length - element.length) % (element.length + 1), 0, 'a cut is behind an element')
  assert.deepEqual(await parseList(Buffer.from(text), listed, []), JSON.parse(text))
  assert.equal(prescanJson(Buffer.from(`[${list}]`)).list?.isOutermost, true)
  for (const other of [
    `[[${list}]]`,
    `{"a":{"b":[${list}]}}`,
    `{"a":[${element}]}`,
    `{"a":[${list}`,
    `{"a":"${list.replaceAll('"', '')}"}`,
  ])
    assert.equal(prescanJson(Buffer.from(other)).list, null, other.slice(0, 40))
})

test('other work runs between two parts of a list in an object', async () => {
  const names = (i: number) => `[${Array.from({ length: 400 }, (_, k) => `"n${i}-${k}"`).join(',')}]`
  const list = `[${Array.from({ length: 900 }, (_, i) => names(i)).join(',')}]`
  const bytes = Buffer.from(`{"k":${list}}`)
  const parsed = parseList(bytes, prescanJson(bytes).list!) as Promise<{ k: string[][] }>
  const turns = await turnsOf(parsed)
  assert.deepEqual(await parsed, { k: JSON.parse(list) })
  assert.ok(turns >= 2, `${turns} turns`)
})
