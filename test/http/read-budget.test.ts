import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import type { AddressInfo } from 'node:net'
import test, { after } from 'node:test'
import { access } from '../../lib/http/access.ts'
import { createApp } from '../../lib/http/app.ts'
import { route } from '../../lib/http/context.ts'
import { HttpError } from '../../lib/http/errors.ts'
import { listen } from '../../lib/http/listen.ts'
import { charge, kib, ReadBudget } from '../../lib/http/read-budget.ts'
import { sendJson, sendStream } from '../../lib/http/respond.ts'
import { startApp } from '../support/app.ts'
import { until } from '../support/until.ts'

const LONG_MS = 60_000
const budget = (totalKib: number, waitMs = LONG_MS) => new ReadBudget({ totalKib, waitMs })
const refused = (error: unknown) => error instanceof HttpError && error.status === 503

/** Who has been let in so far, by name, in that order. */
function visitors(of: ReadBudget) {
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

test('what fits is let in at once, without a promise', () => {
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

test('a release counts once, however often it is called', () => {
  const one = budget(100)
  const release = one.acquire(30) as () => void
  one.acquire(30)
  release()
  release()
  release()
  assert.equal(one.availableKib, 70)
})

test('first come, first served: a small read does not pass a large one that waits', async () => {
  const one = budget(100)
  const { entered, come, leave } = visitors(one)
  await come('a', 60)
  const large = come('large', 80)
  const small = come('small', 10)
  await new Promise(setImmediate)
  assert.deepEqual(entered, ['a'])
  assert.equal(one.availableKib, 40)
  await leave('a')
  await Promise.all([large, small])
  assert.deepEqual(entered, ['a', 'large', 'small'])
  assert.equal(one.availableKib, 10)
})

test('who comes later waits behind the line, even when it would fit', async () => {
  const one = budget(100)
  const { entered, come, leave } = visitors(one)
  await come('a', 60)
  for (const [name, cost] of [
    ['b', 50],
    ['c', 50],
    ['d', 1],
    ['e', 100],
    ['f', 1],
  ] as const)
    void come(name, cost)
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
  assert.equal(one.availableKib, 100)
})

test('a read over the total is charged the total and runs alone', async () => {
  const one = budget(100)
  const { entered, come, leave } = visitors(one)
  await come('huge', 1_000)
  assert.equal(one.availableKib, 0)
  void come('small', 1)
  void come('huge too', 1_000)
  await leave('huge')
  assert.deepEqual(entered, ['huge', 'small'])
  await leave('small')
  assert.deepEqual(entered, ['huge', 'small', 'huge too'])
  await leave('huge too')
  assert.equal(one.availableKib, 100)
})

test('who waits too long is shed with 503, is counted, and takes nothing', async (t) => {
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

test('when the head of the line gives up, who is behind it and fits is let in', async (t) => {
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

test('who was let in is not shed when its wait would have ended', async (t) => {
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

test('without a wait what does not fit is shed at once', () => {
  const one = budget(100, 0)
  const release = one.acquire(70) as () => void
  assert.throws(() => one.acquire(31), refused)
  assert.equal(one.shed, 1)
  assert.equal(typeof one.acquire(30), 'function')
  release()
  assert.equal(typeof one.acquire(70), 'function')
})

test('kib rounds bytes up to whole KiB, at least one', () => {
  assert.deepEqual([kib(0), kib(1), kib(1024), kib(1025), kib(5_000 * 4_096)], [1, 1, 1, 2, 20_000])
})

// From here on: the budget under routes.
const app = await startApp({ BROKER_READ_ACQUIRE_WAIT_MS: '0' })
let stall: Promise<void> = Promise.resolve()
let seenAvailable = -1
const probe = createApp(app.deps, [
  route().get('/held', access('open'), charge(1_000), (c) => {
    seenAvailable = app.deps.budget.availableKib
    return sendJson(c, '[]')
  }),
  route().get('/fails', access('open'), charge(1_000), () => {
    throw new Error('on purpose')
  }),
  route().get(
    '/stream',
    access('open'),
    charge(() => 2_000),
    (c) =>
      sendStream(
        c,
        new ReadableStream({
          async pull(controller) {
            controller.enqueue(Buffer.from('[1,'))
            await stall
            controller.enqueue(Buffer.from('2]'))
            controller.close()
          },
        }),
      ),
  ),
])
const whole = app.deps.budget.totalKib

test('a route holds its charge while it works, and gives it back, whatever comes of it', async () => {
  assert.equal((await probe.request('/held')).status, 200)
  assert.equal(seenAvailable, whole - 1_000)
  assert.equal(app.deps.budget.availableKib, whole)
  assert.equal((await probe.request('/fails')).status, 500)
  assert.equal(app.deps.budget.availableKib, whole)
})

test('over a socket the charge is held until the answer has left, and given back when the client goes', async () => {
  const { server } = await listen(probe.fetch, [{ host: '127.0.0.1', port: 0 }])
  after(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const get = async (path: string) => {
    const sent = request({ port, path })
    sent.on('error', () => {})
    const [answer] = await once(sent.end(), 'response')
    return { sent, answer }
  }
  let go = () => {}
  stall = new Promise((resolve) => {
    go = resolve
  })
  const first = await get('/stream')
  assert.equal(app.deps.budget.availableKib, whole - 2_000)
  const second = await get('/stream')
  assert.equal(app.deps.budget.availableKib, whole - 4_000)
  second.sent.destroy()
  await until('the charge of the client that left', () => app.deps.budget.availableKib === whole - 2_000)
  go()
  const chunks = await first.answer.toArray()
  assert.equal(Buffer.concat(chunks).toString(), '[1,2]')
  await until('the charge of the answer that has left', () => app.deps.budget.availableKib === whole)
  const failed = await get('/fails')
  failed.answer.resume()
  assert.equal(failed.answer.statusCode, 500)
  await until('the charge of the answer that failed', () => app.deps.budget.availableKib === whole)
})

test('what is shed is counted for the metrics', async () => {
  const before = app.deps.budget.shed
  const release = await app.deps.budget.acquire(whole)
  const answer = await probe.request('/held')
  assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '1'])
  release()
  assert.equal(app.deps.budget.shed, before + 1)
  assert.match((await app.get('/metrics')).text, new RegExp(`^broker_read_shed_total ${before + 1}$`, 'm'))
})
