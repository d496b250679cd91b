import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { z } from 'zod'
import { MAX_SLICE_MS } from '../../lib/event-loop/slices.ts'
import { listOf, maxItemsOf, recordOf } from '../../lib/http/request/first-fault.ts'
import { turnsOf } from '../support/turns.ts'

/** A schema of text that counts its checks; each check takes `ms` of a mocked clock. */
function counted(t: TestContext, ms = 0) {
  const clock = { now: 0, judged: 0 }
  t.mock.method(performance, 'now', () => clock.now)
  const schema = z.string().check(() => {
    clock.judged++
    clock.now += ms
  })
  return { schema, clock }
}
const firstIssue = (result: z.ZodSafeParseResult<unknown>) => {
  assert.ok(!result.success)
  assert.equal(result.error.issues.length, 1)
  const [{ path, message }] = result.error.issues as [z.core.$ZodIssue]
  return [path, message]
}

test('a valid array is returned with its transformed elements, in order', async () => {
  const schema = listOf(z.string().transform(Number), 3)
  for (const sent of [[], ['1'], ['1', '2', '3']]) {
    const expected = { success: true, data: sent.map(Number) }
    assert.deepEqual(schema.safeParse(sent), expected)
    assert.deepEqual(await schema.safeParseAsync(sent), expected)
  }
  assert.equal(maxItemsOf(schema), 3)
  assert.equal(maxItemsOf(schema.meta({ description: 'x' })), 3)
  assert.equal(maxItemsOf(z.array(z.string()).max(3)), null)
})

test('only the first bad element is reported, by index and path, and none after it is checked', async (t) => {
  const { schema, clock } = counted(t)
  const list = listOf(z.object({ a: z.object({ b: schema }) }), 1_000)
  const sent = Array.from({ length: 1_000 }, (_, i) => ({ a: { b: i % 100 === 99 ? i : 'x' } }))
  const expected = [[99, 'a', 'b'], 'Invalid input: expected string, received number']
  assert.deepEqual(firstIssue(list.safeParse(sent)), expected)
  assert.equal(clock.judged, 99)
  assert.deepEqual(firstIssue(await list.safeParseAsync(sent)), expected)
  assert.equal(clock.judged, 198)
})

test('no element is checked if the value is no array or has too many elements', async (t) => {
  const { schema, clock } = counted(t)
  const list = listOf(schema, 3)
  assert.deepEqual(firstIssue(list.safeParse(['', '', '', ''])), [[], 'Too big: expected array to have <=3 items'])
  for (const sent of [{}, 'x', null, { length: 1, 0: 'a' }, 7]) {
    assert.match(String(firstIssue(await list.safeParseAsync(sent))[1]), /^Invalid input: expected array, received /)
    assert.equal(clock.judged, 0)
  }
})

test('a record is checked up to the first bad value, which is reported by its key', (t) => {
  const { schema, clock } = counted(t)
  const record = recordOf(schema)
  const sent = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`k${i}`, i < 7 ? 'x' : i]))
  assert.deepEqual(firstIssue(record.safeParse(sent)), [['k7'], 'Invalid input: expected string, received number'])
  assert.equal(clock.judged, 7)
  const { data } = recordOf(z.unknown()).safeParse(JSON.parse('{"__proto__":{"x":1}}'))
  assert.equal(Object.getPrototypeOf(data), Object.prototype)
  assert.deepEqual(record.safeParse(JSON.parse('{"a":"b","":"","__proto__":"c"}')), {
    success: true,
    data: { a: 'b', '': '' },
  })
  for (const bad of [[], 'x', null, 7])
    assert.match(String(firstIssue(record.safeParse(bad))[1]), /^Invalid input: expected record, received /)
})

test('the JSON Schema of lists and records is complete', () => {
  const schema = z.object({ list: listOf(z.string(), 3), map: recordOf(z.string()).nullish() })
  assert.deepEqual(z.toJSONSchema(schema, { io: 'input' }).properties, {
    list: { type: 'array', maxItems: 3, items: { type: 'string' } },
    map: {
      anyOf: [
        { type: 'object', propertyNames: { type: 'string' }, additionalProperties: { type: 'string' } },
        { type: 'null' },
      ],
    },
  })
})

test('a long array is checked in slices, and the event loop turns between them; a short one at once', async (t) => {
  const { schema } = counted(t, 1)
  const list = listOf(schema, 1_000)
  const sent = Array(1_000).fill('x')
  // The first slice runs before the event loop turns.
  const slices = Math.floor(1_000 / MAX_SLICE_MS) - 1
  const turns = await turnsOf(list.safeParseAsync(sent))
  assert.ok(turns >= slices && turns <= slices + 2, `${turns} turns for ${slices} slices`)
  assert.ok((await turnsOf(list.safeParseAsync(sent.slice(0, MAX_SLICE_MS - 1)))) <= 1)
})

test('concurrent long arrays take turns: one slice in each turn of the event loop', async (t) => {
  const { schema, clock } = counted(t, 1)
  const list = listOf(schema, 100)
  const done: number[] = []
  // The first slice of each runs before the event loop turns.
  const all = Array.from({ length: 5 }, (_, i) => list.safeParseAsync(Array(100).fill('x')).then(() => done.push(i)))
  let last = clock.judged
  let worst = 0
  let isDone = false
  const watch = () => {
    worst = Math.max(worst, clock.judged - last)
    last = clock.judged
    if (!isDone) setImmediate(watch)
  }
  setImmediate(watch)
  await Promise.all(all)
  isDone = true
  assert.deepEqual(done, [0, 1, 2, 3, 4])
  assert.ok(worst <= MAX_SLICE_MS, `${worst} elements were judged in one turn`)
})
