/**
 * Drains while answers are lost, from two replicas at once, and while broker or database die: an acknowledged drain
 * counts exactly once, one that did not commit does not count, and the time of the last report of a node is stored in
 * the same transaction (docs/contract.md#denials).
 */
import assert from 'node:assert/strict'
import http from 'node:http'
import { before, describe, type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import type postgres from 'postgres'
import { byLabel, countedBy, denial, drain, heartbeat } from '../seccomp/drains.ts'
import {
  type Broker,
  connectTo,
  createDataDir,
  get,
  post,
  postmasterPid,
  type Reply,
  request,
  startBroker,
} from '../support/broker.ts'
import { depth } from '../support/depth.ts'
import { startLossyApp } from '../support/lossy.ts'
import type { Fate } from '../support/proxy.ts'
import { podPost } from '../support/records.ts'
import { until } from '../support/until.ts'

const PATH = '/seccomp/denials'
const STORE = 'store_denials'
/** The first attempt of a statement and its two repetitions. */
const ATTEMPTS = 3
const NODES = depth(12, 300)
const BROKER_KILLS = depth(1, 2)
const ACTIONS = ['SCMP_ACT_ERRNO', 'SCMP_ACT_LOG'] as const
/** Pods that all nodes have denials of. */
const SHARED = Array.from({ length: 5 }, (_, n) => `shared-${n}`)

const app = await startLossyApp()

describe('a lost answer of the database', { timeout: 900_000 }, () => {
  before(async () => {
    const pod = podPost({ pod_name: 'web-0', pod_namespace: 'shop', workload_kind: 'Deployment', workload_name: 'web' })
    assert.equal((await app.post('/pod/spec', pod)).status, 200)
  })

  /** The stored counts by syscall, the counter of the workload, and the counter of rows. */
  async function counts() {
    const rows = await app.sql<{ s: string; n: number }[]>`select syscall as s, count::float8 as n from seccomp_denial`
    return {
      stored: Object.fromEntries(rows.map(({ s, n }) => [s, n])),
      counted: countedBy(app.deps)['shop Deployment web'] ?? 0,
      rows: (await byLabel(app.deps.metrics.denialRows))['']!,
    }
  }
  const post = (syscalls: Record<string, number>, node = 'node-a') =>
    app.post(
      PATH,
      drain(
        Object.entries(syscalls).map(([syscall, count]) => denial({ podName: 'web-0', syscall, count })),
        { node },
      ),
    )

  test('a drain counts once in the rows and in the counters, if answers or statements are lost once or twice', async () => {
    for (const fates of [
      ['answer lost'],
      ['answer lost', 'answer lost'],
      ['question lost', 'answer lost'],
      ['question lost'],
    ] as Fate[][]) {
      const old = await counts()
      app.lose(STORE, ...fates)
      const { status, text } = await post({ a: 5, b: 7 })
      assert.deepEqual([status, text, app.toCome], [200, '{"accepted":2}', 0])
      const { stored, counted, rows } = await counts()
      assert.deepEqual([stored.a, stored.b], [(old.stored.a ?? 0) + 5, (old.stored.b ?? 0) + 7])
      assert.deepEqual([counted, rows], [old.counted + 12, old.rows + 2])
    }
  })

  test('an empty drain is stored as one report of its node', async () => {
    app.lose(STORE, 'answer lost', 'answer lost')
    assert.equal((await post({}, 'quiet')).text, '{"accepted":0}')
    assert.equal((await heartbeat(app, 'quiet'))!.posts.length, 1)
  })

  test('while the first attempt is still under way, the second waits for it, and no denial counts twice', async () => {
    const old = await counts()
    let release = () => {}
    const isReleased = new Promise<void>((resolve) => {
      release = resolve
    })
    let isHeld = () => {}
    const held = new Promise<void>((resolve) => {
      isHeld = resolve
    })
    // Another session holds a row that the first attempt needs.
    const holder = app.sql.begin(async (sql) => {
      await sql`select from seccomp_denial where syscall = 'a' for update`
      isHeld()
      await isReleased
    })
    await held
    app.lose(STORE, 'left')
    const answer = post({ a: 1, new: 2 })
    await until('both attempts wait', async () => {
      const rows = await app.sql`
        select from pg_stat_activity where application_name = 'lossy' and wait_event_type = 'Lock' and datname = current_database()`
      return rows.length === 2
    })
    release()
    await holder
    assert.deepEqual(await answer, { status: 200, text: '{"accepted":2}' })
    const { stored, counted } = await counts()
    assert.deepEqual([stored.a, stored.new, counted], [old.stored.a! + 1, 2, old.counted + 3])
  })

  test('all answers are lost: 503, the rows count the drain once, and again if the agent repeats it', async () => {
    const old = await counts()
    app.lose(STORE, ...Array<Fate>(ATTEMPTS).fill('answer lost'))
    assert.equal((await post({ a: 4 })).status, 503)
    assert.equal(app.toCome, 0)
    const between = await counts()
    assert.deepEqual(
      [between.stored.a, between.counted, between.rows],
      [old.stored.a! + 4, old.counted, old.rows],
      'the counter follows what was answered',
    )
    assert.equal((await post({ a: 4 })).status, 200)
    assert.equal((await counts()).stored.a, old.stored.a! + 8)
  })

  test('with random losses an answered drain counts once, and one with 503 counts once or not at all', async () => {
    const fate = fc.constantFrom<Fate>('answered', 'answer lost', 'question lost', 'left')
    const sent = fc.record({
      node: fc.constantFrom('x', 'y'),
      syscalls: fc.dictionary(fc.constantFrom('p', 'q'), fc.integer({ min: 1, max: 9 })),
      fates: fc.array(fate, { maxLength: ATTEMPTS }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(sent, { maxLength: 6 }), async (drains) => {
        await app.sql`truncate seccomp_denial`
        const start = (await counts()).counted
        let answered = 0
        const least: Record<string, number> = {}
        for (const { node, syscalls, fates } of drains) {
          const old = await counts()
          app.lose(STORE, ...fates)
          const { status } = await post(syscalls, node)
          app.lose(STORE)
          await until('no attempt is under way', async () => {
            const rows = await app.sql`
              select from pg_stat_activity where application_name = 'lossy' and state = 'active' and datname = current_database()`
            return rows.length === 0
          })
          const now = await counts()
          const sum = Object.values(syscalls).reduce((all, n) => all + n, 0)
          const isAdded = Object.entries(syscalls).every(([s, n]) => now.stored[s] === (old.stored[s] ?? 0) + n)
          if (status === 200) {
            assert.ok(isAdded)
            answered += sum
          } else {
            assert.equal(status, 503)
            assert.ok(isAdded || JSON.stringify(now.stored) === JSON.stringify(old.stored))
          }
          for (const [s, n] of Object.entries(now.stored)) least[s] = n
        }
        assert.equal((await counts()).counted - start, answered)
        assert.deepEqual((await counts()).stored, least)
      }),
      { numRuns: depth(4, 40) },
    )
  })
})

const dataDir = createDataDir()
let broker: Broker

before(async () => {
  broker = await startBroker({ dataDir })
  // Before all drains: those of unknown pods would be counted later.
  const owner = { pod_namespace: 'shop', workload_kind: 'Deployment', workload_name: 'shared' }
  for (const pod_name of SHARED)
    assert.equal((await post(`${broker.url}/pod/spec`, podPost({ ...owner, pod_name }))).status, 200)
})

test('two replicas store drains of the same pods at once, in opposite order: no deadlock, and every drain counts', {
  timeout: 900_000,
}, async (t) => {
  const replicas = [broker, await startBroker({ dataDir })]
  const sql = connectTo(dataDir)
  t.after(async () => {
    await replicas[1]!.stop()
    await sql`truncate seccomp_denial, seccomp_denial_node`
    await sql.end({ timeout: 1 })
  })
  const [rounds, pods] = [depth(4, 12), depth(100, 200)]
  const names = Array.from({ length: pods }, (_, n) => `pod-${n}`)
  const entries = names.flatMap((podName) => ACTIONS.map((action) => denial({ podName, action, count: 3 })))
  const orders = [entries, entries.toReversed()]
  const deadlocks = async () =>
    (await sql`select deadlocks from pg_stat_database where datname = current_database()`)[0]!.deadlocks
  const old = await deadlocks()
  for (let round = 0; round < rounds; round++) {
    const replies = await Promise.all(
      [0, 1, 2, 3].map((n) =>
        request(`${replicas[n % 2]!.url}${PATH}`, {
          method: 'POST',
          body: JSON.stringify(drain(orders[n < 2 ? n : 3 - n], { node: `node-${n}` })),
        }),
      ),
    )
    for (const { status, text } of replies) assert.deepEqual([status, text], [200, `{"accepted":${2 * pods}}`])
  }
  const rows = await sql<{ n: number }[]>`select distinct count::int as n from seccomp_denial`
  assert.deepEqual([...rows], [{ n: 3 * 4 * rounds }])
  assert.equal(await deadlocks(), old)
})

/** The node of each post by its name, for posts with and without an answer. */
class Ledger {
  #posts = 0
  readonly answered = new Map<string, string>()
  /** Posts without an answer, or refused. */
  readonly unknown = new Map<string, string>()

  next(): string {
    return `post-${++this.#posts}`
  }
}

/** A drain with entries of its own and entries shared by all posts, in the order of the keys or reversed. */
function bodyOf(post: string, node: string, isReversed: boolean): string {
  const own = ACTIONS.map((action) => denial({ podName: post, action, count: 2 }))
  const shared = SHARED.map((podName) => denial({ podName, podUid: podName }))
  const entries = [...own, ...shared]
  return JSON.stringify(drain(isReversed ? entries.reverse() : entries, { node }))
}

/** Nodes of a cluster, each of which sends one drain after the other. */
class Cluster {
  acknowledged = 0
  cut = 0
  readonly refused: Reply[] = []
  #stopped = false
  readonly #nodes: Promise<void>[]

  constructor(t: TestContext, broker: Broker, ledger: Ledger) {
    t.after(() => this.stop())
    this.#nodes = Array.from({ length: NODES }, (_, n) => this.#drain(broker, ledger, n))
  }

  async #drain(broker: Broker, ledger: Ledger, n: number): Promise<void> {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    const node = `node-${n}`
    while (!this.#stopped) {
      const post = ledger.next()
      const body = bodyOf(post, node, n % 2 === 0)
      const reply = await request(`${broker.url}${PATH}`, { method: 'POST', body, agent }).catch(() => undefined)
      if (reply?.status === 200) {
        assert.equal(reply.text, '{"accepted":7}')
        this.acknowledged++
        ledger.answered.set(post, node)
      } else {
        ledger.unknown.set(post, node)
        if (reply) this.refused.push(reply)
        else this.cut++
        await delay(50)
      }
    }
    agent.destroy()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#nodes)
  }
}

/** Posts are stored whole or not at all, answered ones always; the shared rows and the reporting nodes match them. */
async function settle(dataDir: string, ledger: Ledger): Promise<void> {
  const sql = connectTo(dataDir)
  try {
    const stored = await storedPosts(sql)
    for (const post of ledger.answered.keys()) assert.deepEqual(stored.get(post), [2, 2], `${post} was answered`)
    for (const [post, found] of stored) {
      assert.ok(ledger.answered.has(post) || ledger.unknown.has(post), `nobody sent ${post}`)
      assert.deepEqual(found, [2, 2], `half of ${post}, or twice`)
    }
    const shared = await sql<
      { n: number }[]
    >`select distinct count::int as n from seccomp_denial where pod_uid like 'shared-%'`
    assert.deepEqual([...shared], [{ n: stored.size }])
    const nodes = await sql<{ n: string }[]>`select node_name as n from seccomp_denial_node where capturing`
    const heard = new Set([...stored.keys()].map((post) => ledger.answered.get(post) ?? ledger.unknown.get(post)))
    assert.deepEqual(
      new Set(nodes.map(({ n }) => n)),
      heard,
      'a node was heard of exactly where a drain of it is stored',
    )
  } finally {
    await sql.end({ timeout: 1 })
  }
}

async function storedPosts(sql: postgres.Sql): Promise<Map<string, number[]>> {
  const rows = await sql<{ post: string; counts: string }[]>`
    select pod_name as post, json_agg(count order by action)::text as counts from seccomp_denial where pod_uid not like 'shared-%' group by pod_name`
  return new Map(rows.map(({ post, counts }) => [post, JSON.parse(counts)]))
}

const ledger = new Ledger()

test(`kill -9 of the broker while ${NODES} nodes drain: acknowledged drains count once, and others once or not at all`, {
  timeout: 900_000,
}, async (t) => {
  for (let kill = 0; kill < BROKER_KILLS; kill++) {
    const cluster = new Cluster(t, broker, ledger)
    await until('drains are acknowledged', () => cluster.acknowledged >= 2 * NODES)
    broker.kill('SIGKILL')
    await broker.exited
    await cluster.stop()
    assert.ok(cluster.cut > 0, 'drains were on their way')
    broker = await startBroker({ dataDir })
    await settle(dataDir, ledger)
  }
})

test(`the database dies while ${NODES} nodes drain: only 503, then recovery, and acknowledged drains count once`, {
  timeout: 900_000,
}, async (t) => {
  const before = ledger.answered.size
  for (const signal of depth(['SIGKILL'], ['SIGKILL', 'SIGQUIT']) satisfies NodeJS.Signals[]) {
    const postmaster = postmasterPid(dataDir)!
    const cluster = new Cluster(t, broker, ledger)
    await until('drains are acknowledged', () => cluster.acknowledged >= 2 * NODES)
    process.kill(postmaster, signal)
    await until('the database is gone', () => postmasterPid(dataDir) !== postmaster)
    const { acknowledged } = cluster
    await until('drains are acknowledged again', () => cluster.acknowledged >= acknowledged + NODES)
    await until('the broker is ready', async () => (await get(`${broker.admin}/readyz`)).status === 200)
    await cluster.stop()
    assert.equal(cluster.cut, 0, 'a request had no answer')
    for (const { status, headers, text } of cluster.refused) {
      assert.equal(status, 503, text)
      assert.ok(headers['retry-after'])
    }
    await settle(dataDir, ledger)
    const counted = /^svc_seccomp_denials_total\{.*workload="shared"\} (\d+)$/m.exec(
      (await get(`${broker.admin}/metrics`)).text,
    )?.[1]
    assert.equal(
      Number(counted),
      SHARED.length * (ledger.answered.size - before),
      'the counter has what was answered, each once',
    )
  }
  assert.deepEqual(await broker.stop(), { code: 0, signal: null })
})
