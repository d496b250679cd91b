import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { DatabaseBusy, DatabaseUnavailable, type Gate } from '../../lib/db/index.ts'
import { MAX_SLICE_MS } from '../../lib/event-loop/slices.ts'
import { FlowWriter, SeenFlows } from '../../lib/traffic/index.ts'
import { startApp } from '../support/app.ts'
import { whileRefused } from '../support/routes.ts'
import { until } from '../support/until.ts'

// However slow the machine, each post joins the queue in the turn of its call: no slice is ever over.
mock.method(performance, 'now', () => 0)

const app = await startApp()
/** With little patience. */
const hasty = await startApp({}, app)
const { sql } = app

type Flow = Parameters<FlowWriter['write']>[0][number]

let made = 0

/** A flow with a uuid and a pair of addresses of its own. */
function flow(fields: Partial<Flow> = {}): Flow {
  made++
  return {
    uuid: `w-${made}`,
    time_stamp: '2024-05-01T10:00:00',
    pod_name: 'web-0',
    pod_ip: '10.1.0.1',
    pod_port: '0',
    ip_protocol: 'TCP',
    traffic_type: 'EGRESS',
    traffic_in_out_ip: `10.2.${made >> 8}.${made & 255}`,
    traffic_in_out_port: '443',
    decision: 'ALLOW',
    ...fields,
  }
}
/** The same flow under another uuid. */
const again = (one: Flow, fields: Partial<Flow> = {}): Flow => ({ ...one, uuid: `w-${++made}`, ...fields })

/**
 * A writer on the real database. Its statements are counted and, while `hold` is set, kept from being sent until `release`, in
 * the order in which they were made.
 */
function makeWriter(clock = { now: 0 }, real = app.db.ingest) {
  const waiting: (() => void)[] = []
  const control = {
    hold: false,
    statements: 0,
    get waiting() {
      return waiting.length
    },
    release() {
      waiting.shift()!()
    },
    releaseAll() {
      control.hold = false
      while (waiting.length > 0) control.release()
    },
  }
  const counted = async <T>(run: () => Promise<T>): Promise<T> => {
    control.statements++
    if (control.hold) await new Promise<void>((resolve) => waiting.push(resolve))
    return run()
  }
  const gate = Object.assign(((statement: never) => counted(() => real(statement))) as unknown as Gate, {
    json: ((statement) => counted(() => real.json(statement))) as Gate['json'],
    within: real.within,
  })
  const seen = new SeenFlows({ maxKeys: 1_000, generationMs: 1_000, now: () => clock.now })
  const writer = new FlowWriter(gate, seen)
  const write = (...flows: Flow[]) => writer.write(flows, { records: false })
  return { writer, write, seen, control }
}
const storedUuids = async (...flows: Flow[]) => {
  const uuids = flows.map(({ uuid }) => uuid)
  const rows =
    await sql`select uuid from traffic where uuid in (select json_array_elements_text(${JSON.stringify(uuids)}::text::json))`
  return new Set(rows.map(({ uuid }) => uuid as string))
}
const isSettled = async (promise: Promise<unknown>) => {
  const pending = Symbol()
  return (await Promise.race([promise, turn(pending)])) !== pending
}

test('answers after commit, and not before', async () => {
  const { write, control } = makeWriter()
  control.hold = true
  const one = flow()
  const answer = write(one)
  assert.equal(control.waiting, 1)
  assert.equal(await isSettled(answer), false)
  assert.equal((await storedUuids(one)).size, 0)
  control.releaseAll()
  assert.deepEqual(await answer, [one.uuid])
  assert.equal((await storedUuids(one)).size, 1)
})

test('no flows and nothing but repeats take no statement', async () => {
  const { write, control } = makeWriter()
  const one = flow()
  await write(one)
  const { statements } = control
  assert.deepEqual(await write(), [])
  assert.deepEqual(await write(again(one), again(one)), [])
  assert.equal(control.statements, statements)
})

test('what arrives while two statements are in flight is stored together by the next', async () => {
  const { write, control } = makeWriter()
  control.hold = true
  const answers = [write(flow())]
  assert.equal(control.waiting, 1)
  answers.push(write(flow()))
  await turn()
  assert.equal(control.waiting, 2)
  for (let i = 0; i < 50; i++) answers.push(write(flow(), flow()))
  await turn()
  assert.equal(control.waiting, 2)
  control.releaseAll()
  const counts = (await Promise.all(answers)).map((inserted) => inserted.length)
  assert.deepEqual(counts, [1, 1, ...Array(50).fill(2)])
  assert.equal(control.statements, 3)
})

test('a statement takes whole posts until it has a thousand flows; the others wait for the next', async () => {
  const { write, control } = makeWriter()
  control.hold = true
  const first = [write(flow()), write(flow())]
  await turn()
  const sizes = [600, 600, 1_500, 10]
  const answers = sizes.map((size) => write(...Array.from({ length: size }, () => flow())))
  control.release()
  await first[0]
  await until('the next is sent', () => control.waiting === 2)
  control.release()
  await first[1]
  await until('another is sent', () => control.waiting === 2)
  control.releaseAll()
  assert.deepEqual(
    (await Promise.all(answers)).map((inserted) => inserted.length),
    sizes,
  )
  assert.equal(control.statements, 5)
})

test('a long post is prepared in slices, between which others pass; what both hold is stored once', async (t) => {
  const { write, control } = makeWriter()
  let now = 0
  t.mock.method(performance, 'now', () => ++now)
  const [shared, twice] = [flow(), flow()]
  const long = [...Array.from({ length: 500 }, () => flow()), shared, twice, again(twice)]
  const first = write(...long)
  const second = write(again(shared), flow())
  // One step of the clock a flow: the long one is at the end of its first slice, and the other is sent already.
  assert.ok(now < 2 * MAX_SLICE_MS, `${now}`)
  assert.equal(control.statements, 1)
  assert.equal((await second).length, 2)
  assert.equal((await first).length, 501)
})

test('each post hears of its own flows, as uuids or as records', async () => {
  const { writer, write, control } = makeWriter()
  control.hold = true
  const first = write(flow())
  const [one, two, three] = [flow(), flow(), flow()]
  const answers = [
    writer.write([one], { records: true }),
    writer.write([two, again(one)], { records: false }),
    writer.write([again(two)], { records: true }),
    writer.write([three], { records: true }),
  ]
  await turn()
  control.releaseAll()
  await first
  const [a, b, c, d] = await Promise.all(answers)
  assert.deepEqual(
    [a, d].map((rows) => rows!.map((row) => (row as { uuid: string; time_stamp: string }).uuid)),
    [[one.uuid], [three.uuid]],
  )
  assert.equal((a![0] as unknown as Flow).time_stamp, one.time_stamp)
  assert.equal(b!.length, 1)
  assert.deepEqual(c, [])
})

test('a repeat of a flow in flight waits for its outcome and is then a duplicate', async () => {
  const { write, control } = makeWriter()
  control.hold = true
  const one = flow()
  const first = write(one)
  const second = write(again(one))
  await turn()
  assert.equal(await isSettled(second), false)
  assert.equal(control.waiting, 1)
  control.releaseAll()
  assert.deepEqual(await first, [one.uuid])
  assert.deepEqual(await second, [])
})

test('a repeat of a flow in flight that fails is stored in its place', async () => {
  const { write, control } = makeWriter()
  control.hold = true
  const one = flow({ pod_name: 'U+0000 \0' })
  const first = assert.rejects(write(one))
  const second = again(one, { pod_name: 'web-0' })
  const answer = write(second)
  control.releaseAll()
  await first
  assert.deepEqual(await answer, [second.uuid])
})

test('a fault of one post fails it alone', async () => {
  const { write, control } = makeWriter()
  control.hold = true
  const first = write(flow())
  const before = write(flow(), flow())
  const faulty = flow()
  const failing = write(faulty, flow({ decision: '\0' }))
  const after = [flow(), flow()]
  const next = write(...after)
  await turn()
  control.releaseAll()
  const outcomes = await Promise.allSettled([first, before, failing, next])
  assert.deepEqual(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'rejected', 'fulfilled'],
  )
  assert.equal((await storedUuids(faulty)).size, 0)
  assert.equal((await storedUuids(...after)).size, 2)
  // Nothing of it is left open or remembered.
  assert.deepEqual(await write(again(faulty)), [`w-${made}`])
})

test('a database that is busy fails all who wait for the statement; what they sent is new afterwards', async () => {
  const { write, seen } = makeWriter({ now: 0 }, hasty.db.ingest)
  const flows = Array.from({ length: 6 }, () => flow())
  await whileRefused(hasty.sql, 'traffic', async () => {
    const outcomes = await Promise.allSettled(flows.map((one) => write(one)))
    for (const outcome of outcomes) assert.ok(outcome.status === 'rejected' && outcome.reason instanceof DatabaseBusy)
  })
  assert.equal(seen.size, 0)
  for (const one of flows) assert.deepEqual(await write(one), [one.uuid])
})

test('a database that is busy is asked once for all who wait, and not for each of them', async () => {
  const { write, control } = makeWriter({ now: 0 }, hasty.db.ingest)
  await whileRefused(hasty.sql, 'traffic', async () => {
    const outcomes = await Promise.allSettled(Array.from({ length: 50 }, () => write(flow())))
    for (const outcome of outcomes) assert.ok(outcome.status === 'rejected' && outcome.reason instanceof DatabaseBusy)
  })
  assert.equal(control.statements, 2, 'the first post, and all others')
})

test('nor when it gets busy while the posts of a statement that failed go one by one', async () => {
  const { write, control } = makeWriter({ now: 0 }, hasty.db.ingest)
  control.hold = true
  const first = write(flow())
  const posts = [write(flow({ decision: '\0' })), ...Array.from({ length: 49 }, () => write(flow()))]
  await turn()
  control.release()
  await first
  control.release()
  await until('the first of them goes alone', () => control.waiting === 1 && control.statements === 3)
  control.release()
  await assert.rejects(posts[0]!, (error) => !(error instanceof DatabaseBusy))
  await until('the next goes alone', () => control.waiting === 1)
  await whileRefused(hasty.sql, 'traffic', async () => {
    control.releaseAll()
    const outcomes = await Promise.allSettled(posts.slice(1))
    for (const outcome of outcomes) assert.ok(outcome.status === 'rejected' && outcome.reason instanceof DatabaseBusy)
  })
  assert.equal(control.statements, 4)
})

test('beyond fifty thousand waiting flows a post is refused at once, and those who wait are served', async () => {
  const { write, control } = makeWriter()
  control.hold = true
  const first = [write(flow()), write(flow())]
  await turn()
  // All repeats of one flow: they fill the queue, and settle at little cost.
  const one = flow()
  const waiting = Array.from({ length: 51 }, () => write(...Array.from({ length: 1_000 }, () => again(one))))
  await assert.rejects(write(flow()), (error) => error instanceof DatabaseUnavailable && error.code === 'LINE_FULL')
  control.releaseAll()
  const counts = (await Promise.all([...first, ...waiting])).map((inserted) => inserted.length)
  assert.equal(
    counts.reduce((sum, count) => sum + count, 0),
    3,
  )
  const last = flow()
  assert.deepEqual(await write(last), [last.uuid])
})

// ---- Remembered keys ------------------------------------------------------------------------------------------------

test('keys of stored and of known flows are remembered until their time is over', async () => {
  const clock = { now: 0 }
  const { write, seen, control } = makeWriter(clock)
  const [stored, known] = [flow(), flow()]
  await makeWriter().write(known)
  await write(stored, again(known))
  assert.equal(seen.size, 2)
  const { statements } = control
  await sql`delete from traffic where uuid in (${stored.uuid}, ${known.uuid})`
  clock.now += 1_999
  assert.deepEqual(await write(again(stored), again(known)), [])
  assert.equal(control.statements, statements)
  clock.now += 1
  const back = [again(stored), again(known)]
  assert.equal((await write(...back)).length, 2)
  assert.equal((await storedUuids(...back)).size, 2)
})

test('what a statement says that was sent before all was forgotten is not remembered', async () => {
  const { write, seen, control } = makeWriter()
  const stored = flow()
  const known = flow()
  const udp = flow({ ip_protocol: 'UDP' })
  await makeWriter().write(known)
  control.hold = true
  const posts = [write(stored), write(again(known), udp, again(udp, { pod_port: '9' }))]
  await until('both are on their way', () => control.waiting > 0)
  control.release()
  await until('the next waits', () => control.waiting > 0)
  seen.clear()
  control.releaseAll()
  await Promise.all(posts)
  for (const one of [stored, known, udp, again(udp, { pod_port: '9' })]) {
    const before = control.statements
    assert.deepEqual(await write(again(one)), [])
    assert.equal(control.statements, before + 1, 'asked again')
    assert.deepEqual(await write(again(one)), [])
    assert.equal(control.statements, before + 1, 'and remembered now')
  }
})

test('a flow with a null is never remembered, in one whose uuid is taken neither', async () => {
  const { write, seen } = makeWriter()
  const taken = flow()
  await makeWriter().write(taken)
  await write(flow({ pod_port: null }), flow({ decision: undefined }), flow({ uuid: taken.uuid }))
  assert.equal(seen.size, 0)
})

test('UDP and other protocols are remembered apart: each has its own rule', async () => {
  const { write, control } = makeWriter()
  const tcp = flow()
  await write(tcp)
  const { statements } = control
  assert.deepEqual(await write(again(tcp, { ip_protocol: 'SCTP' })), [])
  assert.equal(control.statements, statements)
  assert.deepEqual(await write(again(tcp, { ip_protocol: 'UDP' })), [])
  assert.equal(control.statements, statements + 1)
})

// ---- Order ----------------------------------------------------------------------------------------------------------

test('flows that wait for the outcome of one in flight are stored together, and it suppresses none of them if it was not stored', async () => {
  const { write, control } = makeWriter()
  const stored = flow({ ip_protocol: 'UDP', pod_port: '1', traffic_in_out_port: '1' })
  const ports = (a: string, b: string) => again(stored, { pod_port: a, traffic_in_out_port: b })
  await makeWriter().write(stored)
  control.hold = true
  // Known to the table, which nobody here knows yet: the two after it wait for it, and it suppresses neither.
  const known = write(ports('2', '1'))
  const [one, two] = [ports('2', '2'), ports('2', '3')]
  const [first, second] = [write(one), write(two)]
  await turn()
  assert.equal(control.waiting, 1)
  control.releaseAll()
  assert.deepEqual(await known, [])
  assert.deepEqual(await first, [one.uuid])
  assert.deepEqual(await second, [])
  assert.equal(control.statements, 3)
})

test('a flow that waits is not overtaken by a later one that would suppress it', async () => {
  const { write } = makeWriter()
  const taken = flow()
  await write(taken)
  const first = flow({ uuid: taken.uuid, ip_protocol: 'UDP', pod_port: '1', traffic_in_out_port: '1' })
  const waits = again(first, { traffic_in_out_port: '2' })
  const overtakes = again(first, { ip_protocol: 'TCP', traffic_in_out_port: '3' })
  const inserted = await write(first, waits, overtakes)
  assert.deepEqual(inserted.sort(), [waits.uuid, overtakes.uuid].sort())
})

test('a long chain of possible duplicates takes two statements: one asks what is known, one stores', async () => {
  const { write, control } = makeWriter()
  const base = flow({ ip_protocol: 'UDP' })
  const chain = Array.from({ length: 5_000 }, (_, i) =>
    again(base, { pod_port: `c${i >> 1}`, traffic_in_out_port: `c${(i + 1) >> 1}` }),
  )
  const inserted = await write(...chain)
  assert.deepEqual(new Set(inserted), new Set(chain.filter((_, i) => i % 2 === 0).map(({ uuid }) => uuid)))
  assert.equal(control.statements, 2)
})

test('many duplicates of one new flow take two statements', async () => {
  const { write, control } = makeWriter()
  const first = flow({ ip_protocol: 'UDP' })
  const others = Array.from({ length: 900 }, (_, i) => again(first, { traffic_in_out_port: `${i}` }))
  assert.deepEqual(await write(first, ...others), [first.uuid])
  assert.equal(control.statements, 2)
})

test('of two flows of different days with the same uuid, the one that another process made a duplicate meanwhile is none', async () => {
  const { write, control } = makeWriter()
  const first = flow()
  const second = flow({ uuid: first.uuid, time_stamp: '2024-05-02T10:00:00' })
  control.hold = true
  const written = write(first, second)
  control.release()
  await until('the second statement is about to be sent', async () => control.waiting === 1)
  const elsewhere = again(first)
  assert.deepEqual(await makeWriter().write(elsewhere), [elsewhere.uuid])
  control.releaseAll()
  const [stored, ...others] = (await written) as { uuid: string; time_stamp: string }[]
  assert.deepEqual([stored?.time_stamp, others], [second.time_stamp, []])
})

test('what is suppressed by a flow that another process made a duplicate meanwhile is judged again', async () => {
  const { write, control } = makeWriter()
  const base = flow({ ip_protocol: 'UDP', pod_port: '1', traffic_in_out_port: '1' })
  const [first, second] = [base, again(base, { traffic_in_out_port: '2' })]
  control.hold = true
  const written = write(first, second)
  control.release()
  await until('the second statement is about to be sent', async () => control.waiting === 1)
  // Of the two it is a duplicate of the first alone.
  const elsewhere = again(base, { pod_port: '9' })
  assert.deepEqual(await makeWriter().write(elsewhere), [elsewhere.uuid])
  control.releaseAll()
  assert.deepEqual(await written, [second.uuid])
  assert.deepEqual(await storedUuids(first, second, elsewhere), new Set([second.uuid, elsewhere.uuid]))
})
