import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { DatabaseBusy, DatabaseUnavailable } from '../../lib/db/errors.ts'
import { createFold } from '../../lib/db/fold.ts'
import { depth } from '../support/depth.ts'

/** A `run` whose statements the test ends by hand. */
function bench<Item>() {
  const statements: { items: Item[]; end: () => void; fail: (error: Error) => void }[] = []
  const run = (items: Item[]) =>
    new Promise<string[]>((resolve, reject) => {
      statements.push({ items, end: () => resolve(items.map((item) => `=${item}`)), fail: reject })
    })
  return { run, statements, sent: () => statements.map(({ items }) => items) }
}

describe('fold', () => {
  test('an idle fold sends the first call before it returns', () => {
    const { run, sent } = bench<string>()
    void createFold({ run })('a')
    assert.deepEqual(sent(), [['a']])
  })

  test('what arrives in one turn while a statement is in flight shares the second lane', async () => {
    const { run, sent } = bench<string>()
    const call = createFold({ run })
    for (const item of ['a', 'b', 'c']) void call(item)
    await turn()
    assert.deepEqual(sent(), [['a'], ['b', 'c']])
  })

  test('with all lanes busy, calls are sent together when one is free', async () => {
    const { run, statements, sent } = bench<string>()
    const call = createFold({ run, lanes: 1 })
    const answers = ['a', 'b', 'c', 'd'].map(call)
    await turn()
    assert.deepEqual(sent(), [['a']])
    statements[0]!.end()
    assert.equal(await answers[0], '=a')
    assert.deepEqual(sent(), [['a'], ['b', 'c', 'd']])
    statements[1]!.end()
    assert.deepEqual(await Promise.all(answers), ['=a', '=b', '=c', '=d'])
  })

  test('sends at most maxItems and maxWeight, and an overweight item alone', async () => {
    const { run, statements, sent } = bench<number>()
    const call = createFold({ run, lanes: 1, maxItems: 3, weight: (item: number) => item, maxWeight: 10 })
    for (const item of [1, 1, 1, 1, 5, 99, 6, 6]) void call(item)
    for (let i = 0; i < 6; i++) {
      statements[i]?.end()
      await turn()
    }
    assert.deepEqual(sent(), [[1], [1, 1, 1], [5], [99], [6], [6]])
  })

  test('equal keys are never in flight together and keep their order', async () => {
    const { run, statements, sent } = bench<string>()
    const call = createFold({ run, key: (item: string) => item[0]! })
    const answers = ['a1', 'a2', 'b1', 'a3', 'b2'].map(call)
    await turn()
    assert.deepEqual(sent(), [['a1'], ['b1']])
    statements[0]!.end()
    await turn()
    assert.deepEqual(sent()[2], ['a2'])
    statements[1]!.end()
    statements[2]!.end()
    await turn()
    for (const statement of statements.slice(3)) statement.end()
    assert.deepEqual(await Promise.all(answers), ['=a1', '=a2', '=b1', '=a3', '=b2'])
  })

  test('one bad item does not fail its neighbours', async () => {
    const sent: string[][] = []
    const call = createFold({
      lanes: 1,
      run: async (items: string[]) => {
        sent.push(items)
        await turn()
        if (items.includes('bad')) throw new Error('bad item')
        return items
      },
    })
    const settled = await Promise.allSettled(['first', 'a', 'bad', 'b'].map(call))
    assert.deepEqual(
      settled.map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'rejected', 'fulfilled'],
    )
    assert.deepEqual(sent, [['first'], ['a', 'bad', 'b'], ['a'], ['bad'], ['b']])
    assert.equal(await call('after'), 'after')
  })

  for (const error of [new DatabaseUnavailable('gone', '08006'), new DatabaseBusy('slow', '57014')]) {
    test(`${error.name} goes to everybody without a second statement`, async () => {
      const { run, statements } = bench<string>()
      const call = createFold({ run, lanes: 1 })
      const answers = Promise.allSettled(['a', 'b', 'c'].map(call))
      statements[0]!.end()
      await turn()
      statements[1]!.fail(error)
      const reasons = (await answers).map((answer) => (answer.status === 'rejected' ? answer.reason : answer.value))
      assert.deepEqual(reasons, ['=a', error, error])
      assert.equal(statements.length, 2)
    })
  }

  test('stops trying one by one once the database is gone', async () => {
    let statements = 0
    const call = createFold({
      lanes: 1,
      run: async (items: number[]) => {
        statements++
        await turn()
        if (items.length > 1) throw new Error('bad batch')
        if (items[0]! > 1) throw new DatabaseUnavailable('gone', '08006')
        return items
      },
    })
    const settled = await Promise.allSettled([0, 1, 2, 3, 4].map(call))
    assert.deepEqual(
      settled.map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'rejected', 'rejected', 'rejected'],
    )
    assert.equal(statements, 4)
  })

  test('a statement with the wrong number of results fails all its callers', async () => {
    const call = createFold({ lanes: 1, run: async (items: number[]) => items.slice(1) })
    await assert.rejects(call(1), /0 results for 1 items/)
  })

  test('a run that throws outright rejects and frees its lane', async () => {
    let isBroken = true
    const call = createFold({
      lanes: 1,
      run: (items: number[]) => {
        if (isBroken) throw new TypeError('thrown')
        return Promise.resolve(items)
      },
    })
    await assert.rejects(call(1), TypeError)
    isBroken = false
    assert.equal(await call(2), 2)
  })

  test('refuses calls beyond maxWaiting', async () => {
    const { run, statements } = bench<number>()
    const call = createFold({ run, lanes: 1, maxWaiting: 2 })
    const answers = [1, 2, 3].map(call)
    await assert.rejects(call(4), DatabaseUnavailable)
    statements[0]!.end()
    await turn()
    statements[1]!.end()
    assert.deepEqual(await Promise.all(answers), ['=1', '=2', '=3'])
  })

  test('property: every caller gets the answer to its own item, within the bounds, keys apart', async () => {
    const calls = fc.array(fc.record({ key: fc.nat(6), turns: fc.nat(3), bad: fc.boolean() }), { maxLength: 60 })
    await fc.assert(
      fc.asyncProperty(
        calls,
        fc.integer({ min: 1, max: 3 }),
        fc.integer({ min: 1, max: 5 }),
        async (plan, lanes, maxItems) => {
          const inFlight = new Set<string>()
          const order: number[] = []
          let busy = 0
          type Item = { id: number; key: number; bad: boolean }
          const call = createFold({
            lanes,
            maxItems,
            key: (item: Item) => String(item.key),
            run: async (items: Item[]) => {
              assert.ok(++busy <= lanes && items.length <= maxItems)
              for (const { key } of items) {
                assert.ok(!inFlight.has(String(key)))
                inFlight.add(String(key))
              }
              await turn()
              for (const { key } of items) inFlight.delete(String(key))
              busy--
              if (items.some(({ bad }) => bad)) throw new Error('bad')
              order.push(...items.map(({ id }) => id))
              return items.map(({ id }) => id)
            },
          })
          const answers: Promise<number | string>[] = []
          for (const [id, { key, turns, bad }] of plan.entries()) {
            for (let i = 0; i < turns; i++) await turn()
            answers.push(call({ id, key, bad }).catch(() => 'bad'))
          }
          const results = await Promise.all(answers)
          assert.deepEqual(
            results,
            plan.map(({ bad }, id) => (bad ? 'bad' : id)),
          )
          for (const key of new Set(plan.map((item) => item.key))) {
            const ofKey = order.filter((id) => plan[id]!.key === key)
            assert.deepEqual(
              ofKey,
              ofKey.toSorted((a, b) => a - b),
            )
          }
        },
      ),
      { numRuns: depth(12, 60) },
    )
  })
})
