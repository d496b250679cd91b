import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { sharedRead } from '../../lib/db/folded.ts'
import { startApp } from '../support/app.ts'
import { whileLocked } from '../support/routes.ts'
import { until } from '../support/until.ts'

const { db, sql } = await startApp()
await sql`create table shared (id int)`
await sql`insert into shared values (7)`

/** A read of two keys that notes each statement; they wait while the table is locked. */
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

test('ten equal readers cost two statements: that of the first, and one for all who came while it was under way', async () => {
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

test('readers of several keys cost a statement each, and each gets its own', async () => {
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

test('who comes later reads anew', async () => {
  const { asked, read } = reader()
  await read(db, 'a')
  await sql`update shared set id = 8`
  assert.equal(JSON.parse(String(await read(db, 'a'))).id, 8)
  assert.equal(asked.length, 2)
})
