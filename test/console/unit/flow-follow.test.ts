import assert from 'node:assert/strict'
import test, { afterEach } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { type Flow, keyOf, together } from '../../../wrangler-free-deploy/console/pages/flows/flow.ts'
import { Follow, type FollowOptions } from '../../../wrangler-free-deploy/console/pages/flows/follow.ts'
import { until } from '../../support/until.ts'

const TIMING = { firstRetryMs: 5, longestRetryMs: 40, busyRetryMs: 20, tellMs: 1 }

const open = new Set<Follow>()
afterEach(() => {
  for (const follow of open) follow.stop()
  open.clear()
})

/** A stream that the test writes. */
class Stream {
  #controller!: ReadableStreamDefaultController<Uint8Array>
  readonly response: Response
  readonly resume: string | null

  constructor(resume: string | null, signal: AbortSignal) {
    this.resume = resume
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller
      },
    })
    signal.addEventListener('abort', () => this.#fail(signal.reason))
    this.response = new Response(body)
  }

  write(...lines: object[]): void {
    this.#controller.enqueue(Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join('')))
  }

  raw(text: string): void {
    this.#controller.enqueue(Buffer.from(text))
  }

  breakOff(): void {
    this.#fail(new Error('reset'))
  }

  #fail(reason: unknown): void {
    try {
      this.#controller.error(reason)
    } catch {} // It has ended already.
  }
}

interface Stub {
  readonly follow: Follow
  readonly streams: readonly Stream[]
  readonly last: Stream
  places: number
  uuids(): string[]
}

/** A follow whose answers are streams of the test, or the answers of `answer`. */
function followOf(options: Partial<FollowOptions> = {}, answer: (n: number) => Response | null = () => null): Stub {
  const streams: Stream[] = []
  let asked = 0
  const follow: Follow = new Follow({
    open: async (resume, signal) => {
      const given = answer(asked++)
      if (given !== null) return given
      const stream = new Stream(resume, signal)
      streams.push(stream)
      return stream.response
    },
    onPlace: () => {
      stub.places++
    },
    timing: TIMING,
    ...options,
  })
  open.add(follow)
  const stub: Stub = {
    follow,
    streams,
    get last() {
      return streams.at(-1)!
    },
    places: 0,
    uuids: () => follow.state.rows.map(({ uuid }) => uuid),
  }
  follow.subscribe(() => {})
  follow.start()
  return stub
}

const flow = (uuid: string, fields: object = {}) => ({ uuid, update: false, ...fields })
const opened = (stub: Stub, n: number) => until(`stream ${n}`, () => stub.streams.length >= n, 5_000)
const shows = (stub: Stub, uuids: readonly string[]) =>
  until(`the flows ${uuids}`, () => assert.deepEqual(stub.uuids(), uuids) === undefined, 5_000)
const is = (stub: Stub, phase: string) => until(phase, () => stub.follow.state.phase === phase, 5_000)

test('flows are shown once the token after them has arrived, newest first', async () => {
  const stub = followOf()
  await opened(stub, 1)
  stub.last.write({ heartbeat: true, resume: 't1' })
  await is(stub, 'live')
  assert.equal(stub.places, 1)
  stub.last.write(flow('a'), flow('b'))
  stub.last.raw('{"uuid":"c","upd')
  await delay(20)
  assert.deepEqual(stub.uuids(), [])
  stub.last.raw('ate":false}\n{"resume":"t2"}\n')
  await shows(stub, ['c', 'b', 'a'])
  assert.ok(stub.follow.state.asOfMs > Date.now() - 5_000)
  assert.equal(stub.places, 1)
})

test('a broken stream resumes from the last token, and no flow after it counts twice', async () => {
  const stub = followOf()
  await opened(stub, 1)
  stub.last.write(flow('a'), { resume: 't1' }, flow('b'))
  await shows(stub, ['a'])
  stub.last.breakOff()
  await opened(stub, 2)
  assert.equal(stub.last.resume, 't1')
  stub.last.write(flow('b'), flow('c'), { resume: 't2' })
  await shows(stub, ['c', 'b', 'a'])
  assert.equal(stub.places, 1)
})

test('after the end of a stream it resumes at once, but not in a tight loop', async () => {
  const stub = followOf()
  await opened(stub, 1)
  await delay(TIMING.firstRetryMs * 2)
  stub.last.write(flow('a'), { end: true, count: 1, resume: 't1' })
  await opened(stub, 2)
  assert.equal(stub.last.resume, 't1')
  for (let n = 2; n < 5; n++) {
    const startedAt = performance.now()
    stub.last.write({ end: true, count: 0, resume: `t${n}` })
    await opened(stub, n + 1)
    assert.ok(performance.now() - startedAt >= TIMING.firstRetryMs - 2)
  }
})

test('an update replaces the row of its uuid, or is kept for the list', async () => {
  const stub = followOf()
  await opened(stub, 1)
  stub.last.write(flow('a', { decision: null }), flow('b'), { resume: 't1' })
  await shows(stub, ['b', 'a'])
  stub.last.write({ ...flow('a', { decision: 'DROP' }), update: true }, { ...flow('old'), update: true })
  stub.last.write({ resume: 't2' })
  await until('the update', () => stub.follow.state.updates.has(keyOf(flow('old') as never)), 5_000)
  assert.deepEqual(stub.uuids(), ['b', 'a'])
  assert.equal(stub.follow.state.rows[1]!.decision, 'DROP')
  assert.ok(!('update' in stub.follow.state.rows[1]!))
})

test('flows of one uuid on two days are two rows', async () => {
  const stub = followOf()
  await opened(stub, 1)
  const [early, late] = ['2026-01-01T10:00:00', '2026-01-02T10:00:00'].map((time_stamp) => flow('a', { time_stamp }))
  stub.last.write(early!, late!, { resume: 't1' })
  await shows(stub, ['a', 'a'])
  stub.last.write({ ...early, decision: 'DROP', update: true }, { resume: 't2' })
  await until('the update', () => stub.follow.state.rows[1]!.decision === 'DROP', 5_000)
  assert.equal(stub.follow.state.rows[0]!.decision, undefined)
  const [live, listed] = [[late], [early]] as unknown as Flow[][]
  assert.deepEqual(together(live!, listed!, new Map()), [late, early])
})

test('a pause keeps the rows, counts new ones, and shows them afterwards', async () => {
  const stub = followOf()
  await opened(stub, 1)
  stub.last.write(flow('a'), { resume: 't1' })
  await shows(stub, ['a'])
  stub.follow.pause()
  stub.last.write(flow('b'), flow('c'), { ...flow('a'), update: true }, { resume: 't2' })
  await until('two wait', () => stub.follow.state.waiting === 2, 5_000)
  assert.deepEqual(stub.uuids(), ['a'])
  stub.follow.play()
  await shows(stub, ['c', 'b', 'a'])
  assert.equal(stub.follow.state.waiting, 0)
})

test('an unreachable broker is retried with growing delays', async () => {
  const times: number[] = []
  const stub = followOf({
    open: async () => {
      times.push(performance.now())
      throw new Error('The broker cannot be reached.')
    },
  })
  await until('five tries', () => times.length >= 5, 5_000)
  assert.equal(stub.follow.state.phase === 'lost' || stub.follow.state.phase === 'connecting', true)
  const waits = times.slice(1).map((time, i) => time - times[i]!)
  // A busy machine can only make the delays longer.
  for (const [i, wait] of waits.slice(0, 4).entries())
    assert.ok(wait >= TIMING.firstRetryMs * 2 ** i - 1, `waits of ${waits} ms`)
})

test('a silent stream is given up', async () => {
  const stub = followOf({ timing: { ...TIMING, silenceMs: 30 } })
  await opened(stub, 1)
  stub.last.write({ resume: 't1' })
  await opened(stub, 2)
  assert.equal(stub.last.resume, 't1')
})

test('410 ends the follow until it starts anew', async () => {
  const stub = followOf({}, (n) => (n === 1 ? new Response('resume: too old', { status: 410 }) : null))
  await opened(stub, 1)
  stub.last.write(flow('a'), { resume: 't1' })
  await shows(stub, ['a'])
  stub.last.breakOff()
  await is(stub, 'gone')
  assert.equal(stub.follow.state.message, 'resume: too old')
  await delay(TIMING.longestRetryMs * 2)
  assert.equal(stub.streams.length, 1)
  stub.follow.restart()
  await opened(stub, 2)
  assert.equal(stub.last.resume, null)
  stub.last.write({ heartbeat: true, resume: 'n1' })
  await is(stub, 'live')
  assert.deepEqual(stub.uuids(), [])
  assert.equal(stub.places, 2)
})

test('503 is shown and retried; other refusals are not retried', async () => {
  const full = () => new Response('200 clients follow flows here', { status: 503, headers: { 'retry-after': '0' } })
  const stub = followOf({}, (n) => (n === 0 ? full() : null))
  await is(stub, 'busy')
  assert.match(stub.follow.state.message, /200 clients/)
  await opened(stub, 1)
  stub.last.write({ resume: 't1' })
  await is(stub, 'live')

  const wrong = followOf({}, () => new Response('limit: a followed stream has none', { status: 400 }))
  await is(wrong, 'failed')
  await delay(TIMING.longestRetryMs * 2)
  assert.equal(wrong.follow.state.phase, 'failed')
})

test('a hidden tab closes the stream, and resumes it later', async () => {
  const stub = followOf()
  await opened(stub, 1)
  stub.last.write(flow('a'), { resume: 't1' })
  await shows(stub, ['a'])
  stub.follow.hide()
  await is(stub, 'hidden')
  await delay(TIMING.longestRetryMs * 2)
  assert.equal(stub.streams.length, 1)
  stub.follow.show()
  await opened(stub, 2)
  assert.equal(stub.last.resume, 't1')
})

test('a stream without tokens, or with an endless line, is not read on', async () => {
  const endless = followOf()
  await opened(endless, 1)
  for (let i = 0; i < 20; i++) endless.last.raw('x'.repeat(100_000))
  await is(endless, 'failed')
  const tokenless = followOf()
  await opened(tokenless, 1)
  tokenless.last.write(...Array.from({ length: 10_001 }, (_, i) => flow(`${i}`)))
  await is(tokenless, 'failed')
})

test('live rows stand above the list, each once, and updates reach the list', () => {
  const row = (uuid: string, decision: string | null = null) => ({ uuid, time_stamp: '', decision }) as Flow
  const live = [row('c'), row('b')]
  const listed = [row('b'), row('a')]
  const rows = together(live, listed, new Map([[keyOf(row('a')), row('a', 'DROP')]]))
  assert.deepEqual(rows, [row('c'), row('b'), row('a', 'DROP')])
  assert.equal(together([], listed, new Map()), listed)
})

// flows-memory.test.ts measures the heap in a browser.
test('hours in fast motion: the stored rows are bounded, and removed ones are counted', async () => {
  const MAX_ROWS = 2_000
  const GROUP = 1_000
  const stub = followOf({ maxRows: MAX_ROWS })
  await opened(stub, 1)
  const side = { kind: 'pod', namespace: 'shop', workload: 'Deployment/api', ip: '10.0.0.1', port: '8080' }
  const uuidOf = (n: number) => `00000000-0000-0000-0000-${String(n).padStart(12, '0')}`
  let written = 0
  const feed = async (groups: number) => {
    for (let i = 0; i < groups; i++) {
      const lines: object[] = []
      for (let j = 0; j < GROUP; j++, written++)
        lines.push({
          ...flow(uuidOf(written)),
          ...{ decision: 'ALLOW', from: { ...side, name: `pod-${written}` }, to: side, update: j % 50 === 49 },
        })
      stub.last.write(...lines, { resume: `t${written}` })
      // As the page does, several times a second.
      stub.follow.state.rows.length
      await delay(0)
    }
    // The last one of a group is an update.
    const newest = uuidOf(written - 2)
    await until('all are read', () => stub.uuids()[0] === newest, 30_000)
  }
  await feed(300)
  const { rows, dropped, updates } = stub.follow.state
  assert.ok(rows.length >= MAX_ROWS && rows.length < MAX_ROWS + 1_000, `${rows.length} rows`)
  assert.equal(rows.length + dropped, written * 0.98)
  assert.ok(updates.size <= 2_000, `${updates.size} updates`)
})
