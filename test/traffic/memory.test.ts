import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { Database } from '../../lib/db/index.ts'
import { SeenFlows, watchMemory } from '../../lib/traffic/index.ts'
import { startApp } from '../support/app.ts'
import { until } from '../support/until.ts'

const EVERY_MS = 1_000
const app = await startApp()
const { sql } = app

const deleteSome = () => sql`
  insert into traffic_deletion (statements) values (1) on conflict (is_only) do update set statements = traffic_deletion.statements + 1`

/** A watch whose clock the test moves. Its questions are counted, and fail or wait when told to. */
function start(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const seen = new SeenFlows({ maxKeys: 10, generationMs: 1_000_000, now: () => 0 })
  const control = { asked: 0, answered: 0, fails: false, release: null as (() => void) | null, waits: false }
  const ingest = async (statement: Parameters<Database['ingest']>[0]) => {
    control.asked++
    try {
      if (control.waits) await new Promise<void>((resolve) => (control.release = resolve))
      if (control.fails) throw new Error('no answer')
      return await app.db.ingest(statement)
    } finally {
      control.answered++
    }
  }
  const watch = watchMemory({ db: { ingest } as unknown as Database, seen, log: app.deps.log, everyMs: EVERY_MS })
  t.after(() => watch.stop())
  const settled = async () => {
    await until('the question is answered', () => control.answered === control.asked)
    await turn()
  }
  /** Lets the time of one question pass, and waits for its answer. */
  const round = () => {
    t.mock.timers.tick(EVERY_MS)
    return settled()
  }
  return { seen, control, watch, round, settled, tick: () => t.mock.timers.tick(EVERY_MS) }
}

test('what is remembered is forgotten once flows were deleted, and not before', async (t) => {
  const { seen, round } = start(t)
  seen.add('before the first question')
  await round()
  assert.equal(seen.size, 0, 'whether flows were deleted before is not known')
  for (let i = 0; i < 3; i++) {
    seen.add('a')
    await round()
    await round()
    assert.equal(seen.has('a'), true)
    await deleteSome()
    assert.equal(seen.has('a'), true)
    await round()
    assert.equal(seen.size, 0)
  }
})

test('the first deletion ever is one', async (t) => {
  await sql`truncate traffic_deletion`
  const { seen, round } = start(t)
  seen.add('a')
  await round()
  seen.add('a')
  await round()
  assert.equal(seen.has('a'), true)
  await deleteSome()
  await round()
  assert.equal(seen.size, 0)
})

test('a database that has gone back, as a standby may, counts as another', async (t) => {
  await deleteSome()
  await deleteSome()
  const { seen, round } = start(t)
  seen.add('a')
  await round()
  seen.add('a')
  await sql`update traffic_deletion set statements = statements - 1`
  await round()
  assert.equal(seen.size, 0)
})

test('nothing is asked while nothing is remembered, nor after the stop', async (t) => {
  const { seen, control, watch, round, tick } = start(t)
  for (let i = 0; i < 5; i++) await round()
  assert.equal(control.asked, 0)
  seen.add('a')
  await round()
  assert.equal(control.asked, 1)
  seen.add('a')
  watch.stop()
  tick()
  assert.equal(control.asked, 1)
})

test('one question at a time; an error forgets nothing, and the next question finds what happened meanwhile', async (t) => {
  const { seen, control, round, settled, tick } = start(t)
  seen.add('a')
  await round()
  seen.add('a')
  control.waits = true
  for (let i = 0; i < 5; i++) tick()
  assert.equal(control.asked, 2)
  control.waits = false
  control.fails = true
  control.release!()
  await settled()
  await round()
  assert.equal(control.asked, 3)
  assert.equal(seen.has('a'), true)
  await deleteSome()
  control.fails = false
  await round()
  assert.equal(seen.size, 0)
})

test('without an answer for ten seconds all is forgotten, and once more after ten more', async (t) => {
  const { seen, control, round, settled, tick } = start(t)
  seen.add('a')
  await round()
  for (const kind of ['waits', 'fails'] as const) {
    seen.add('a')
    await round()
    control[kind] = true
    for (let turn = 0; turn < 2; turn++) {
      seen.add('a')
      for (let i = 0; i < 10; i++) {
        tick()
        if (kind === 'fails') await settled()
      }
      assert.equal(seen.has('a'), true)
      tick()
      assert.equal(seen.size, 0)
    }
    control[kind] = false
    control.release?.()
    await settled()
  }
})

test('an answer that came in time, and a while in which nothing was remembered, begin the ten seconds anew', async (t) => {
  const { seen, control, round } = start(t)
  seen.add('a')
  await round()
  seen.add('a')
  const fail = async (rounds: number) => {
    control.fails = true
    for (let i = 0; i < rounds; i++) await round()
    control.fails = false
  }
  await fail(9)
  await round()
  await fail(10)
  assert.equal(seen.has('a'), true)
  seen.delete('a')
  await round()
  seen.add('b')
  await fail(10)
  assert.equal(seen.has('b'), true)
})

test('a role without any right may ask', async () => {
  const role = `nobody_${process.pid}`
  await sql.unsafe(`create role ${role}; grant select on traffic_deletion to ${role}`)
  try {
    await sql.begin(async (session) => {
      await session.unsafe(`set local role ${role}`)
      let asked = 0
      const ingest = async (statement: (sql: unknown) => unknown) => {
        asked++
        return statement(session)
      }
      const seen = new SeenFlows({ maxKeys: 10, generationMs: 1_000_000, now: () => 0 })
      seen.add('a')
      const errors: unknown[] = []
      const log = { debug: (fields: object) => errors.push(fields) }
      const watch = watchMemory({ db: { ingest } as unknown as Database, seen, log: log as never, everyMs: 1 })
      await until('all is forgotten, since the answer is the first one', () => asked > 0 && seen.size === 0)
      watch.stop()
      assert.deepEqual(errors, [])
    })
  } finally {
    await sql.unsafe(`drop owned by ${role}; drop role ${role}`)
  }
})
