import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import net, { type AddressInfo } from 'node:net'
import test, { after } from 'node:test'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { createApp } from '../../lib/app/app.ts'
import { HttpError } from '../../lib/errors.ts'
import { access } from '../../lib/http/access.ts'
import { charge, kib } from '../../lib/http/charge.ts'
import { sendJson, sendPieces } from '../../lib/http/response/respond.ts'
import { route } from '../../lib/http/route.ts'
import { listen } from '../../lib/http/server/listen.ts'
import { MemoryBudget, type Share } from '../../lib/limits/memory-budget.ts'
import { startApp } from '../support/app.ts'
import { piecesFrom } from '../support/pieces.ts'
import { until } from '../support/until.ts'

// Started before the first test is declared, since tests run at once and mock the timers.
const app = await startApp({ BROKER_READ_ACQUIRE_WAIT_MS: '0' })
const LONG_MS = 60_000
const budget = (totalKib: number, waitMs = LONG_MS) => new MemoryBudget({ totalKib, waitMs })
const refused = (error: unknown) => error instanceof HttpError && error.status === 503

/** Named reads of the budget; `entered` has those admitted so far, in order. */
function visitors(of: MemoryBudget) {
  const entered: string[] = []
  const releases = new Map<string, () => void>()
  const come = (name: string, cost: number) => {
    const arrival = Promise.resolve(of.acquire(cost)).then((release) => {
      entered.push(name)
      releases.set(name, release)
    })
    arrival.catch(() => {})
    return arrival
  }
  const leave = async (name: string) => {
    releases.get(name)!()
    await new Promise(setImmediate)
  }
  return { entered, come, leave }
}

test('a read that fits is admitted at once, without a promise', () => {
  const one = budget(100)
  const releases = [one.acquire(40), one.acquire(60)]
  for (const release of releases) assert.equal(typeof release, 'function')
  assert.equal(one.availableKib, 0)
  for (const release of releases) (release as () => void)()
  assert.equal(one.availableKib, 100)
})

test('the least charge is one KiB, and fractions round up', () => {
  const one = budget(100)
  for (const cost of [0, -5, 0.2, 1]) assert.equal(typeof one.acquire(cost), 'function')
  assert.equal(one.availableKib, 96)
  one.acquire(2.1)
  assert.equal(one.availableKib, 93)
})

test('a release frees its charge once, however often it is called', () => {
  const one = budget(100)
  const release = one.acquire(30) as () => void
  one.acquire(30)
  release()
  release()
  release()
  assert.equal(one.availableKib, 70)
})

test('reads of about the same size are admitted in the order of arrival', async () => {
  const one = budget(110)
  const { entered, come, leave } = visitors(one)
  await come('a', 60)
  const large = come('large', 80)
  const next = come('next', 21)
  await new Promise(setImmediate)
  assert.deepEqual(entered, ['a'])
  assert.equal(one.availableKib, 50)
  await leave('a')
  await Promise.all([large, next])
  assert.deepEqual(entered, ['a', 'large', 'next'])
  assert.equal(one.availableKib, 9)
})

test('a later read waits behind the queue, even if it would fit', async () => {
  const one = budget(100)
  const { entered, come, leave } = visitors(one)
  await come('a', 60)
  for (const [name, cost] of [
    ['b', 50],
    ['c', 50],
    ['d', 20],
    ['e', 100],
    ['f', 26],
  ] as const)
    void come(name, cost)
  assert.equal(one.waiting, 5)
  await leave('a')
  assert.deepEqual(entered, ['a', 'b', 'c'])
  await leave('b')
  assert.deepEqual(entered, ['a', 'b', 'c', 'd'])
  await leave('c')
  await leave('d')
  assert.deepEqual(entered, ['a', 'b', 'c', 'd', 'e'])
  await leave('e')
  assert.deepEqual(entered, ['a', 'b', 'c', 'd', 'e', 'f'])
  await leave('f')
  assert.deepEqual([one.availableKib, one.waiting], [100, 0])
})

// In a budget of 6400 KiB, small reads that passed larger ones hold at most 3200.
test('a read passes waiting reads that need at least four times as much', async () => {
  const one = budget(6_400)
  const { entered, come } = visitors(one)
  await come('a', 5_000)
  void come('large', 5_000)
  void come('not little', 1_251)
  await come('little', 312)
  assert.equal(typeof one.acquire(1), 'function')
  assert.deepEqual(entered, ['a', 'little'])
  assert.equal(one.waiting, 2)
})

test('no small read passes a large one that waits only for reads that passed it', async () => {
  const one = budget(6_400)
  const { entered, come, leave } = visitors(one)
  await come('a', 1_000)
  void come('large', 6_000)
  for (let i = 0; i < 5; i++) await come(`early ${i}`, 100)
  await leave('a')
  assert.equal(one.availableKib, 5_900)
  void come('late', 1)
  for (let i = 0; i < 5; i++) await leave(`early ${i}`)
  assert.deepEqual(entered.slice(6), ['large', 'late'])
})

test('reads that passed a larger one hold at most half of the budget', async () => {
  const one = budget(6_400)
  const { entered, come, leave } = visitors(one)
  await come('a', 2_000)
  void come('large', 6_400)
  for (let i = 0; i < 10; i++) void come(`small ${i}`, 400)
  await new Promise(setImmediate)
  assert.equal(entered.length, 9)
  await leave('small 3')
  assert.deepEqual(entered.slice(8), ['small 7', 'small 8'])
})

test('small reads are served in their order, and wait behind a large one that came before them', async () => {
  const one = budget(6_400)
  const { entered, come, leave } = visitors(one)
  await come('a', 6_390)
  void come('s1', 20)
  void come('s2', 6)
  void come('large', 6_400)
  void come('s3', 5)
  assert.deepEqual(entered, ['a'])
  await leave('a')
  assert.deepEqual(entered, ['a', 's1', 's2', 's3'])
  for (const name of ['s1', 's2']) await leave(name)
  assert.equal(one.waiting, 1)
  await leave('s3')
  assert.deepEqual(entered.slice(4), ['large'])
})

test('keep() shrinks a share, never enlarges it, and the freed KiB admit a waiting read', async () => {
  const one = budget(100)
  const share = one.enter(80) as Share
  const { entered, come } = visitors(one)
  void come('b', 50)
  share.keep(81 * 1024)
  assert.deepEqual([share.kib, one.availableKib], [80, 20])
  share.keep(50 * 1024 + 1)
  assert.deepEqual([share.kib, one.availableKib], [51, 49])
  share.keep(50 * 1024)
  await new Promise(setImmediate)
  assert.deepEqual([entered, share.kib, one.availableKib], [['b'], 50, 0])
  share.keep(60 * 1024)
  share.release()
  share.release()
  assert.equal(one.availableKib, 50)
})

test('renew() frees the share first, then waits for its turn without a time limit', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const one = budget(100, 5_000)
  const share = one.enter(60) as Share
  const { entered, come, leave } = visitors(one)
  void come('b', 90)
  let isRenewed = false
  const renewed = share.renew(50).then(() => {
    isRenewed = true
  })
  await new Promise(setImmediate)
  assert.deepEqual([entered, share.kib, one.availableKib], [['b'], 0, 10])
  t.mock.timers.tick(1_000_000)
  await new Promise(setImmediate)
  assert.equal(isRenewed, false)
  await leave('b')
  await renewed
  assert.deepEqual([share.kib, one.availableKib], [50, 50])
  share.release()
  assert.equal(one.availableKib, 100)
})

test('a share released during renew() leaves the queue and holds nothing', async () => {
  const one = budget(100)
  const share = one.enter(20) as Share
  one.acquire(80)
  const renewed = share.renew(50)
  const { entered, come } = visitors(one)
  void come('b', 20)
  assert.equal(one.waiting, 2)
  share.release()
  await renewed
  await new Promise(setImmediate)
  assert.deepEqual([share.kib, one.availableKib, one.waiting, entered], [0, 0, 0, ['b']])
  await share.renew(50)
  assert.equal(one.availableKib, 0)
})

test('a read over the total is charged the total and runs alone', async () => {
  const one = budget(100)
  const { entered, come, leave } = visitors(one)
  await come('huge', 1_000)
  assert.equal(one.availableKib, 0)
  void come('other', 2)
  void come('huge too', 1_000)
  await leave('huge')
  assert.deepEqual(entered, ['huge', 'other'])
  await leave('other')
  assert.deepEqual(entered, ['huge', 'other', 'huge too'])
  await leave('huge too')
  assert.equal(one.availableKib, 100)
})

test('a read that waits too long is shed with 503, is counted, and holds nothing', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const one = budget(100, 5_000)
  const { entered, come, leave } = visitors(one)
  await come('a', 100)
  const arrivals = [come('huge', 250), come('small', 7)]
  t.mock.timers.tick(4_999)
  assert.equal(one.shed, 0)
  t.mock.timers.tick(1)
  const [huge, small] = await Promise.all(arrivals.map((arrival) => arrival.catch((error) => error as HttpError)))
  assert.ok(refused(huge) && refused(small))
  assert.deepEqual((huge as HttpError).headers, { 'retry-after': '1' })
  assert.match((huge as HttpError).message, /^read memory budget exhausted: .*needs 100 KiB of a 100 KiB budget/)
  assert.match((small as HttpError).message, /needs 7 KiB of a 100 KiB budget/)
  assert.equal(one.shed, 2)
  await leave('a')
  assert.equal(one.availableKib, 100)
  assert.deepEqual(entered, ['a'])
})

test('when the first read of the queue is shed, the next one is admitted if it fits', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const one = budget(100, 5_000)
  const { entered, come } = visitors(one)
  await come('a', 60)
  const head = come('head', 80)
  t.mock.timers.tick(1_000)
  void come('next', 40)
  t.mock.timers.tick(4_000)
  await assert.rejects(head, refused)
  await new Promise(setImmediate)
  assert.deepEqual(entered, ['a', 'next'])
  assert.deepEqual([one.shed, one.availableKib], [1, 0])
})

test('an admitted read is not shed when its time limit passes', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const one = budget(100, 5_000)
  const { entered, come, leave } = visitors(one)
  await come('a', 100)
  void come('b', 100)
  t.mock.timers.tick(4_999)
  await leave('a')
  t.mock.timers.tick(10_000)
  assert.deepEqual(entered, ['a', 'b'])
  assert.deepEqual([one.shed, one.availableKib], [0, 0])
})

test('with a wait of 0 a read that does not fit is shed at once', () => {
  const one = budget(100, 0)
  const release = one.acquire(70) as () => void
  assert.throws(() => one.acquire(31), refused)
  assert.equal(one.shed, 1)
  assert.equal(typeof one.acquire(30), 'function')
  release()
  assert.equal(typeof one.acquire(70), 'function')
})

/** A random step: a read arrives, leaves, or changes its share, or time passes. */
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('come' as const), kib: fc.integer({ min: 1, max: 1_400 }) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('come' as const), kib: fc.integer({ min: 1, max: 20 }) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom('leave' as const, 'keep' as const, 'renew' as const, 'grow' as const),
      kib: fc.nat(600),
      who: fc.nat(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('tick' as const) }) },
)

test('in random sequences the budget is never exceeded, a read that fits does not wait, and none passes one of similar size', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const TOTAL = 1_280
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const one = budget(TOTAL, 5_000)
      interface Visitor {
        kib: number
        share?: Share
        isRenewing: boolean
        isGrowing: boolean
      }
      let waiting: Visitor[] = []
      const inside: Visitor[] = []
      const grant = (visitor: Visitor, share: Share) => {
        const before = waiting.includes(visitor) ? waiting.slice(0, waiting.indexOf(visitor)) : waiting
        for (const other of before) assert.ok(other.kib >= 4 * visitor.kib, `${visitor.kib} KiB passed ${other.kib}`)
        waiting = waiting.filter((other) => other !== visitor)
        visitor.share = share
        inside.push(visitor)
      }
      const settle = () => new Promise(setImmediate)
      for (const { kind, ...more } of steps) {
        if (kind === 'come') {
          const visitor: Visitor = {
            kib: Math.min((more as { kib: number }).kib, TOTAL),
            isRenewing: false,
            isGrowing: false,
          }
          const share = one.enter(visitor.kib)
          if (share instanceof Promise) {
            waiting.push(visitor)
            share.then(
              (granted) => grant(visitor, granted),
              () => {
                waiting = waiting.filter((other) => other !== visitor)
              },
            )
          } else grant(visitor, share)
        } else if (kind === 'tick') t.mock.timers.tick(2_000)
        else if (inside.length > 0) {
          const { who, kib: amount } = more as { who: number; kib: number }
          const at = who % inside.length
          const visitor = inside[at]!
          if (kind === 'leave') {
            inside.splice(at, 1)
            visitor.share!.release()
          } else if (visitor.isGrowing) continue
          else if (kind === 'keep') visitor.share!.keep(amount * 1024)
          else if (kind === 'grow') {
            if (visitor.isRenewing) continue
            visitor.isGrowing = true
            const done = () => {
              visitor.isGrowing = false
            }
            visitor.share!.grow((visitor.share!.kib + amount) * 1024).then(done, done)
          } else if (!visitor.isRenewing) {
            visitor.isRenewing = true
            visitor.share!.renew(Math.max(1, amount)).then(() => {
              visitor.isRenewing = false
            })
          }
        }
        await settle()
        const held = inside.reduce((sum, { share }) => sum + share!.kib, 0)
        assert.equal(one.availableKib, TOTAL - held)
        assert.ok(one.availableKib >= 0)
        const asking = inside.filter(({ isRenewing, isGrowing }) => isRenewing || isGrowing)
        assert.equal(one.waiting, waiting.length + asking.length)
        // Does not hold while a share that grows or is renewed may be before it.
        if (waiting[0] && asking.length === 0) assert.ok(waiting[0].kib > one.availableKib)
      }
      // No read starves: when admitted reads leave, all waiting ones are admitted in the end.
      while (inside.length > 0 || waiting.length > 0) {
        assert.ok(inside.length > 0, 'who waits waits for nobody')
        inside.shift()!.share!.release()
        await settle()
      }
      assert.deepEqual([one.availableKib, one.waiting], [TOTAL, 0])
    }),
    { numRuns: 300 },
  )
})

test('a large read waits only for reads admitted before it and those that passed it, however many small ones arrive', async () => {
  const costs = fc.array(fc.integer({ min: 1, max: 100 }), { maxLength: 30 })
  await fc.assert(
    fc.asyncProperty(costs, fc.integer({ min: 1_401, max: 6_400 }), async (early, large) => {
      const one = budget(6_400)
      const { entered, come, leave } = visitors(one)
      await come('before', 5_000)
      void come('large', large)
      early.forEach((cost, i) => void come(`early ${i}`, cost))
      await new Promise(setImmediate)
      const passed = entered.slice(1)
      await leave('before')
      for (let i = 0; !entered.includes('large'); i++) {
        assert.ok(passed.length > 0, 'it waits for one that came later and had not passed')
        void come(`late ${i}`, 1)
        await leave(passed.shift()!)
      }
      assert.deepEqual(
        entered.slice(0, entered.indexOf('large')).filter((name) => name.startsWith('late')),
        [],
      )
    }),
    { numRuns: 200 },
  )
})

const MIB = 1_024
const bytesOf = (kib: number) => kib * 1_024

test('a share grows by four MiB at a time, and releases them with the rest', async () => {
  const one = budget(100 * MIB)
  const share = one.enter(2 * MIB) as Share
  await share.grow(bytesOf(2 * MIB))
  assert.equal(share.kib, 2 * MIB)
  await share.grow(bytesOf(2 * MIB) + 1)
  assert.deepEqual([share.kib, one.availableKib], [6 * MIB, 94 * MIB])
  await share.grow(bytesOf(11 * MIB))
  await share.grow(bytesOf(1_000 * MIB))
  assert.deepEqual([share.kib, one.availableKib], [100 * MIB, 0])
  share.keep(bytesOf(5 * MIB))
  assert.deepEqual([share.kib, one.availableKib], [5 * MIB, 95 * MIB])
  share.release()
  await share.grow(bytesOf(9 * MIB))
  assert.deepEqual([share.kib, one.availableKib], [0, 100 * MIB])
})

test('when two shares grow, one waits until the other has finished, so they do not deadlock', async () => {
  const one = budget(20 * MIB)
  const [a, b] = [one.enter(2 * MIB) as Share, one.enter(2 * MIB) as Share]
  await a.grow(bytesOf(6 * MIB))
  let isGrown = false
  const grown = b.grow(bytesOf(6 * MIB)).then(() => {
    isGrown = true
  })
  await a.grow(bytesOf(18 * MIB))
  assert.deepEqual([isGrown, a.kib, one.waiting], [false, 18 * MIB, 1])
  // Finished growing, though still held for its reader.
  a.keep(bytesOf(10 * MIB))
  await grown
  assert.deepEqual([b.kib, one.availableKib, one.waiting], [6 * MIB, 4 * MIB, 0])
})

test('a growing share is served before waiting reads, except small ones', async () => {
  const one = budget(20 * MIB)
  const { entered, come, leave } = visitors(one)
  const share = one.enter(2 * MIB) as Share
  await come('a', 14 * MIB)
  await come('b', 3 * MIB)
  void come('c', 3 * MIB)
  const grown = share.grow(bytesOf(6 * MIB)).then(() => void entered.push('grown'))
  await come('little', MIB / 2)
  await leave('b')
  assert.deepEqual(entered, ['a', 'b', 'little'])
  await leave('little')
  await grown
  assert.deepEqual([entered, one.waiting], [['a', 'b', 'little', 'grown'], 1])
})

test('a share that waits too long to grow is shed with 503, and holds its KiB until it is released', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const one = budget(20 * MIB, 5_000)
  const share = one.enter(2 * MIB) as Share
  one.acquire(16 * MIB)
  const grown = share.grow(bytesOf(6 * MIB)).catch((error) => error as HttpError)
  t.mock.timers.tick(5_000)
  const error = await grown
  assert.ok(refused(error))
  assert.match((error as HttpError).message, /^read memory budget exhausted: .*needs 6144 KiB of a 20480 KiB budget/)
  assert.deepEqual([one.shed, one.waiting, share.kib, one.availableKib], [1, 0, 2 * MIB, 2 * MIB])
  share.release()
  assert.equal(one.availableKib, 4 * MIB)
  const hasty = budget(4 * MIB, 0)
  const [first, second] = [hasty.enter(MIB) as Share, hasty.enter(MIB) as Share]
  await assert.rejects(first.grow(bytesOf(3 * MIB)), refused)
  first.release()
  await second.grow(bytesOf(3 * MIB))
  assert.equal(second.kib, 4 * MIB)
})

test('a share released while it waits to grow leaves the queue, and the next share grows', async () => {
  const one = budget(20 * MIB)
  const [a, b] = [one.enter(2 * MIB) as Share, one.enter(2 * MIB) as Share]
  const release = (await one.acquire(16 * MIB)) as () => void
  const grown = [a.grow(bytesOf(6 * MIB)), b.grow(bytesOf(6 * MIB))]
  assert.equal(one.waiting, 2)
  a.release()
  await grown[0]
  assert.deepEqual([one.waiting, one.availableKib], [1, 2 * MIB])
  release()
  await grown[1]
  assert.deepEqual([b.kib, one.availableKib], [6 * MIB, 14 * MIB])
})

test('kib rounds bytes up to whole KiB, at least one', () => {
  assert.deepEqual([kib(0), kib(1), kib(1024), kib(1025), kib(5_000 * 4_096)], [1, 1, 1, 2, 20_000])
})

// ---- The budget of routes
let stall: Promise<void> = Promise.resolve()
let seenAvailable = -1
const LARGE_BYTES = 2 * 1024 * 1024
const probe = createApp(app.deps, [
  route().get('/held', access('open'), charge(1_000), (c) => {
    seenAvailable = app.deps.budget.availableKib
    return sendJson(c, '[]')
  }),
  route().get('/fails', access('open'), charge(1_000), () => {
    throw new Error('on purpose')
  }),
  route().get('/large', access('open'), charge(10_000), (c) => sendJson(c, Buffer.alloc(LARGE_BYTES, 0x20))),
  route().get('/stalled', access('open'), charge(1_000), async (c) => {
    await stall
    return sendJson(c, '[]')
  }),
  route().get(
    '/stream',
    access('open'),
    charge(() => 2_000),
    (c) =>
      sendPieces(
        c,
        piecesFrom(
          (async function* () {
            yield '[1,'
            await c.get('share')?.renew(2_000)
            await stall
            yield '2]'
          })(),
        ),
      ),
  ),
])
const whole = app.deps.budget.totalKib

test('a route holds its charge while it runs, and releases it after success and after failure', async () => {
  assert.equal((await probe.request('/held')).status, 200)
  assert.equal(seenAvailable, whole - 1_000)
  assert.equal(app.deps.budget.availableKib, whole)
  assert.equal((await probe.request('/fails')).status, 500)
  assert.equal(app.deps.budget.availableKib, whole)
})

const { server } = await listen(probe.fetch, [{ host: '127.0.0.1', port: 0 }])
const { port } = server.address() as AddressInfo
after(() => {
  server.closeAllConnections()
  server.close()
})
const get = async (path: string) => {
  const sent = request({ port, path })
  sent.on('error', () => {})
  const [answer] = await once(sent.end(), 'response')
  return { sent, answer }
}
const heldKib = () => whole - app.deps.budget.availableKib

test('over a socket the charge is held until the answer has been sent or the client disconnects', async () => {
  let go = () => {}
  stall = new Promise((resolve) => {
    go = resolve
  })
  const first = await get('/stream')
  await until('two chunks are charged', () => heldKib() === 2_000)
  const second = await get('/stream')
  await until('four chunks are charged', () => heldKib() === 4_000)
  second.sent.destroy()
  await until('the charge of the client that left', () => heldKib() === 2_000)
  go()
  const chunks = await first.answer.toArray()
  assert.equal(Buffer.concat(chunks).toString(), '[1,2]')
  await until('the charge of the answer that has left', () => heldKib() === 0)
  const failed = await get('/fails')
  failed.answer.resume()
  assert.equal(failed.answer.statusCode, 500)
  await until('the charge of the answer that failed', () => heldKib() === 0)
})

test('a finished answer is charged its size, whatever was charged for making it', async () => {
  // No answer is sent before the first one of the connection is ready.
  let go = () => {}
  stall = new Promise((resolve) => {
    go = resolve
  })
  const socket = net.connect({ host: '127.0.0.1', port })
  socket.write(['/stalled', '/held', '/large'].map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''))
  await until('both are there', () => heldKib() === 1_000 + 1 + kib(LARGE_BYTES))
  socket.destroy()
  go()
  await until('all is given back', () => heldKib() === 0)
})

test('a client that disconnects while it waits holds nothing when its turn comes', async (t) => {
  const waitingBudget = new MemoryBudget({ totalKib: 1_000, waitMs: LONG_MS })
  const patient = createApp({ ...app.deps, budget: waitingBudget }, [
    route().get('/held', access('open'), charge(1_000), (c) => sendJson(c, '[]')),
  ])
  const { server: other } = await listen(patient.fetch, [{ host: '127.0.0.1', port: 0 }])
  t.after(() => other.close())
  const release = await waitingBudget.acquire(1)
  for (const requests of [1, 3]) {
    const socket = net.connect({ host: '127.0.0.1', port: (other.address() as AddressInfo).port })
    socket.write('GET /held HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(requests))
    await until('it waits in line', () => waitingBudget.waiting === (requests === 1 ? 1 : 4))
    socket.destroy()
  }
  await until('the server has seen them go', async () => (await promisify(other.getConnections.bind(other))()) === 0)
  release()
  await until('nobody waits', () => waitingBudget.waiting === 0)
  await until('all is free', () => waitingBudget.availableKib === 1_000)
})

test('shed reads are counted in the metrics', async () => {
  const before = app.deps.budget.shed
  const release = await app.deps.budget.acquire(whole)
  const answer = await probe.request('/held')
  assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '1'])
  release()
  assert.equal(app.deps.budget.shed, before + 1)
  assert.match((await app.get('/metrics')).text, new RegExp(`^broker_read_shed_total ${before + 1}$`, 'm'))
})
