import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { createBatcher, createLanes, sharedRead } from '../../lib/db/batcher.ts'
import { DatabaseBusy, DatabaseUnavailable } from '../../lib/db/errors.ts'
import { startApp } from '../support/app.ts'
import { stopClock } from '../support/clock.ts'
import { depth } from '../support/depth.ts'
import { whileLocked } from '../support/routes.ts'
import { until } from '../support/until.ts'

const { db, sql } = await startApp()
await sql`create table shared (id int)`
await sql`insert into shared values (7)`

/** A `run` whose statements the test ends by hand. */
function bench<Item>() {
  const statements: { items: Item[]; end: () => void; fail: (error: Error) => void }[] = []
  const run = (items: Item[]) =>
    new Promise<string[]>((resolve, reject) => {
      statements.push({ items, end: () => resolve(items.map((item) => `=${item}`)), fail: reject })
    })
  return { run, statements, sent: () => statements.map(({ items }) => items) }
}

describe('createBatcher', () => {
  test('an idle batcher sends the first call before it returns', () => {
    const { run, sent } = bench<string>()
    void createBatcher({ run })('a')
    assert.deepEqual(sent(), [['a']])
  })

  test('calls of one turn while a statement is in flight share the second lane', async () => {
    const { run, sent } = bench<string>()
    const call = createBatcher({ run })
    for (const item of ['a', 'b', 'c']) void call(item)
    await turn()
    assert.deepEqual(sent(), [['a'], ['b', 'c']])
  })

  test('with all lanes busy, calls are sent together when one is free', async () => {
    const { run, statements, sent } = bench<string>()
    const call = createBatcher({ run, lanes: 1 })
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
    const call = createBatcher({ run, lanes: 1, maxItems: 3, weight: (item: number) => item, maxWeight: 10 })
    for (const item of [1, 1, 1, 1, 5, 99, 6, 6]) void call(item)
    for (let i = 0; i < 6; i++) {
      statements[i]?.end()
      await turn()
    }
    assert.deepEqual(sent(), [[1], [1, 1, 1], [5], [99], [6], [6]])
  })

  test('equal keys are never in flight together and keep their order', async () => {
    const { run, statements, sent } = bench<string>()
    const call = createBatcher({ run, key: (item: string) => item[0]! })
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
    const call = createBatcher({
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
    test(`${error.name} fails every caller without a second statement`, async () => {
      const { run, statements } = bench<string>()
      const call = createBatcher({ run, lanes: 1 })
      const answers = Promise.allSettled(['a', 'b', 'c'].map(call))
      statements[0]!.end()
      await turn()
      statements[1]!.fail(error)
      const reasons = (await answers).map((answer) => (answer.status === 'rejected' ? answer.reason : answer.value))
      assert.deepEqual(reasons, ['=a', error, error])
      assert.equal(statements.length, 2)
    })
  }

  test('stops retrying one by one once the database is unavailable', async () => {
    let statements = 0
    const call = createBatcher({
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
    const call = createBatcher({ lanes: 1, run: async (items: number[]) => items.slice(1) })
    await assert.rejects(call(1), /0 results for 1 items/)
  })

  test('a run that throws synchronously rejects and frees its lane', async () => {
    let isBroken = true
    const call = createBatcher({
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
    const call = createBatcher({ run, lanes: 1, maxWaiting: 2 })
    const answers = [1, 2, 3].map(call)
    await assert.rejects(call(4), DatabaseUnavailable)
    statements[0]!.end()
    await turn()
    statements[1]!.end()
    assert.deepEqual(await Promise.all(answers), ['=1', '=2', '=3'])
  })

  test('property: every caller gets the answer to its own item, the limits hold, and equal keys never overlap', async () => {
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
          const call = createBatcher({
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

/** Lanes whose batches take up to `maxItems` waiting items and are ended by the test. */
function laneBench(max: number, maxItems = Number.POSITIVE_INFINITY, patienceMs = 0) {
  const waiting: string[] = []
  const sent: string[][] = []
  const lanes = createLanes<string[]>(
    max,
    () => (waiting.length === 0 ? null : waiting.splice(0, maxItems)),
    (batch) => sent.push(batch),
    patienceMs,
  )
  const arrive = (...items: string[]) => {
    for (const item of items) {
      waiting.push(item)
      lanes.start()
    }
  }
  return { waiting, sent, lanes, arrive, finish: (n: number) => lanes.finish(sent[n]!) }
}

describe('createLanes', () => {
  test('an arrival with nothing in flight is sent before start returns', () => {
    const { sent, lanes, arrive, finish } = laneBench(2)
    arrive('a')
    assert.deepEqual(sent, [['a']])
    assert.deepEqual([...lanes.inFlight], sent)
    finish(0)
    assert.equal(lanes.inFlight.size, 0)
    arrive('b')
    assert.deepEqual(sent, [['a'], ['b']])
  })

  test('arrivals of one turn while a batch is in flight share a lane, those of the next turn use another', async () => {
    const { sent, arrive } = laneBench(3)
    arrive('a', 'b', 'c')
    assert.deepEqual(sent, [['a']])
    await turn()
    assert.deepEqual(sent, [['a'], ['b', 'c']])
    arrive('d', 'e')
    assert.deepEqual(sent.length, 2)
    await turn()
    assert.deepEqual(sent, [['a'], ['b', 'c'], ['d', 'e']])
  })

  test('with all lanes busy arrivals wait, and are sent when one is free', async () => {
    const { sent, waiting, arrive, finish } = laneBench(2)
    arrive('a', 'b')
    await turn()
    arrive('c', 'd')
    await turn()
    assert.deepEqual(sent, [['a'], ['b']])
    assert.deepEqual(waiting, ['c', 'd'])
    finish(0)
    assert.deepEqual(sent, [['a'], ['b'], ['c', 'd']])
  })

  test('free lanes take the waiting items in as many batches as there are lanes, and gathering adds no batch', async () => {
    const { sent, waiting, lanes, arrive, finish } = laneBench(2, 1)
    arrive('a', 'b', 'c', 'd')
    finish(0)
    assert.deepEqual(sent, [['a'], ['b'], ['c']])
    await turn()
    assert.deepEqual(waiting, ['d'])
    finish(1)
    finish(2)
    assert.deepEqual(sent, [['a'], ['b'], ['c'], ['d']])
    finish(3)
    assert.equal(lanes.inFlight.size, 0)
  })

  test('gathering sends one batch, and none when nothing is waiting', async () => {
    const { sent, waiting, arrive } = laneBench(3, 1)
    arrive('a', 'b', 'c')
    await turn()
    assert.deepEqual(sent, [['a'], ['b']])
    assert.deepEqual(waiting.splice(0), ['c'])
    arrive('d')
    waiting.pop()
    await turn()
    assert.equal(sent.length, 2)
    arrive('e')
    await turn()
    assert.deepEqual(sent, [['a'], ['b'], ['e']])
  })

  test('with patience only one lane is used while its batches end in time', async (t) => {
    const { tick } = stopClock(t)
    const { sent, waiting, arrive, finish } = laneBench(2, 2, 5)
    arrive('a', 'b', 'c')
    await turn()
    tick(4)
    assert.deepEqual(sent, [['a']])
    finish(0)
    assert.deepEqual(sent, [['a'], ['b', 'c']])
    arrive('d')
    tick(4)
    assert.deepEqual(waiting, ['d'])
    finish(1)
    assert.deepEqual(sent, [['a'], ['b', 'c'], ['d']])
    finish(2)
    tick(10)
    arrive('e')
    assert.deepEqual(sent.at(-1), ['e'])
  })

  test('with patience, items behind a slow batch get the other lane in time', async (t) => {
    const { tick } = stopClock(t)
    const { sent, waiting, arrive, finish, lanes } = laneBench(2, 1, 5)
    arrive('a', 'b', 'c', 'd')
    tick(5)
    assert.deepEqual(sent, [['a'], ['b']])
    tick(50)
    assert.deepEqual(waiting, ['c', 'd'])
    // A quick batch ends beside a slow one.
    finish(1)
    assert.deepEqual(sent.length, 2)
    tick(5)
    assert.deepEqual(sent, [['a'], ['b'], ['c']])
    finish(0)
    finish(2)
    assert.deepEqual(sent, [['a'], ['b'], ['c'], ['d']])
    arrive('e')
    tick(5)
    assert.deepEqual(sent.at(-1), ['e'])
    finish(3)
    finish(4)
    tick(5)
    assert.equal(lanes.inFlight.size, 0)
  })
})

/** A shared read that records each statement; statements wait while the table is locked. */
function reader() {
  const asked: string[] = []
  const read = sharedRead<string>((of, key) => {
    asked.push(key)
    return of.read.json(
      (s) => s`select json_build_object('key', ${key}::text, 'id', id) from shared`,
    ) as Promise<Buffer>
  })
  return { asked, read }
}

test('ten equal readers need two statements: one for the first, one for all that arrived meanwhile', async () => {
  const { asked, read } = reader()
  let bodies: Promise<Buffer>[] = []
  await whileLocked(sql, 'shared', async () => {
    bodies = Array.from({ length: 10 }, () => read(db, 'a'))
    await until('they wait', () => db.read.stats.inFlight === 2)
    await turn()
    assert.deepEqual(asked, ['a', 'a'])
  })
  for (const body of await Promise.all(bodies)) assert.deepEqual(JSON.parse(String(body)), { key: 'a', id: 7 })
  assert.deepEqual(asked, ['a', 'a'])
})

test('readers of several keys need one statement for each key, and each reader gets its own rows', async () => {
  const { asked, read } = reader()
  let bodies: Promise<Buffer>[] = []
  await whileLocked(sql, 'shared', async () => {
    bodies = ['a', 'a', 'b', 'a', 'b'].map((key) => read(db, key))
    await until('they wait', () => db.read.stats.inFlight === 3)
  })
  assert.deepEqual(
    (await Promise.all(bodies)).map((body) => JSON.parse(String(body)).key),
    ['a', 'a', 'b', 'a', 'b'],
  )
  assert.deepEqual(asked, ['a', 'a', 'b'])
})

test('a later reader reads again', async () => {
  const { asked, read } = reader()
  await read(db, 'a')
  await sql`update shared set id = 8`
  assert.equal(JSON.parse(String(await read(db, 'a'))).id, 8)
  assert.equal(asked.length, 2)
})
