/**
 * The history of compute while answers are lost, while two replicas receive posts and while the broker dies: a post is
 * stored whole, with its minutes and their pairs, or not at all; acknowledged posts are stored; nothing is stored twice
 * (docs/contract.md#compute).
 */
import assert from 'node:assert/strict'
import http from 'node:http'
import { test } from 'node:test'
import { MINUTES, minute, minutes } from '../compute/minutes.ts'
import { culprit, type Fields, inSecs } from '../compute/posts.ts'
import { request, startBroker } from '../support/broker.ts'
import { createTestDatabase } from '../support/database.ts'
import { depth } from '../support/depth.ts'
import { startLossyApp } from '../support/lossy.ts'
import type { Fate } from '../support/proxy.ts'
import { until } from '../support/until.ts'

const STORE = 'store_minutes'
/** The first attempt of a statement and its two repetitions. */
const ATTEMPTS = 3
const NODES = depth(8, 30)
const CONTAINERS = 12

/** Post number `n` of a node, with a time of its own: `secs` from now. */
function post(node: string, n: number, secs = n - 3_000): Fields {
  const containers = Array.from({ length: CONTAINERS }, (_, i) =>
    minute({
      pod_name: `${node}-${i}`,
      namespace: node,
      memory: { refault: n },
      blame: [culprit(1 + n), culprit(1 + n)],
    }),
  )
  return minutes(n % 2 ? containers : containers.reverse(), { node, ts: inSecs(secs) })
}

/** The counts of rows and pairs of each post of a node. */
const STORED = `
  select m.mem_refault::int as n, count(*)::int as rows, sum(p.pairs)::int as pairs
  from (select id, container_id, ts, mem_refault from compute_minute union all select id, container_id, ts, mem_refault from compute_folded) m
  join compute_container c on c.id = m.container_id
  cross join lateral (select count(*) as pairs from compute_contention p where p.victim_id = m.container_id and p.ts = m.ts and p.wait_ns = m.mem_refault + 1) p
  where c.namespace = $1
  group by 1 order by 1`
const whole = (ns: readonly number[]) => ns.map((n) => ({ n, rows: CONTAINERS, pairs: 2 * CONTAINERS }))

const app = await startLossyApp()

test('a post, also of a future time, is stored once if answers or statements are lost, and is 503 if all attempts are lost', async () => {
  const lost: Fate[][] = [
    ['answer lost'],
    ['answer lost', 'answer lost'],
    ['question lost', 'answer lost'],
    ['question lost'],
  ]
  const stored = async () => [...(await app.sql.unsafe(STORED, ['lossy']))].map((row) => ({ ...row }))
  const known: number[] = []
  for (const [i, fates] of lost.entries())
    for (const [n, secs, resolution_secs] of [
      [10 * i, undefined, 60],
      [10 * i + 1, 900 + i, 60],
      [10 * i + 2, 1_200 + i, 300],
    ] as const) {
      app.lose(STORE, ...fates)
      const sent = { ...post('lossy', n, secs), resolution_secs }
      assert.deepEqual(
        [await app.post(MINUTES, sent), app.toCome],
        [{ status: 200, text: `{"accepted":${CONTAINERS}}` }, 0],
      )
      assert.equal((await app.post(MINUTES, sent)).status, 200)
      known.push(n)
      assert.deepEqual(await stored(), whole(known))
    }
  app.lose(STORE, ...Array<Fate>(ATTEMPTS).fill('question lost'))
  assert.equal((await app.post(MINUTES, post('lossy', 98))).status, 503)
  assert.deepEqual(await stored(), whole(known))
  app.lose(STORE, ...Array<Fate>(ATTEMPTS).fill('answer lost'))
  const last = post('lossy', 99)
  assert.equal((await app.post(MINUTES, last)).status, 503)
  assert.equal((await app.post(MINUTES, last)).status, 200)
  assert.deepEqual(await stored(), whole([...known, 99]))
})

/** A node that posts one minute after the other to all brokers at once, until an answer is missing. */
class Agent {
  answered = 0
  readonly sent: Fields[] = []
  readonly done: Promise<void>

  constructor(urls: readonly string[], node: string) {
    this.done = this.#run(urls, node)
  }

  async #run(urls: readonly string[], node: string): Promise<void> {
    const agent = new http.Agent({ keepAlive: true, maxSockets: urls.length })
    for (let isOver = false; !isOver; ) {
      const body = post(node, this.sent.length)
      this.sent.push(body)
      const replies = await Promise.all(
        urls.map((url) =>
          request(`${url}${MINUTES}`, { method: 'POST', body: JSON.stringify(body), agent }).catch(() => null),
        ),
      )
      for (const reply of replies)
        if (reply !== null) assert.deepEqual([reply.status, reply.text], [200, `{"accepted":${CONTAINERS}}`])
      isOver = replies.includes(null)
      if (replies.some((reply) => reply !== null)) this.answered = this.sent.length
    }
    agent.destroy()
  }
}

test(`kill -9 of one of two brokers while ${NODES} nodes post to both: each post is stored once and whole`, {
  timeout: 120_000,
}, async () => {
  const database = await createTestDatabase()
  const start = () => startBroker({ databaseUrl: database.url })
  const broker = await start()
  const other = await start()
  const agents = Array.from({ length: NODES }, (_, i) => new Agent([broker.url, other.url], `node-${i}`))
  await until('each was answered a few times', () => agents.every(({ answered }) => answered >= 3), 60_000)
  other.kill('SIGKILL')
  await other.exited
  await Promise.all(agents.map(({ done }) => done))
  // Each node repeats its last two posts, one of which had no answer.
  for (const { sent } of agents)
    for (const body of sent.slice(-2)) {
      const { status } = await request(`${broker.url}${MINUTES}`, { method: 'POST', body: JSON.stringify(body) })
      assert.equal(status, 200)
    }
  for (const [i, { sent }] of agents.entries())
    assert.deepEqual(
      [...(await database.adminSql.unsafe(STORED, [`node-${i}`]))].map((row) => ({ ...row })),
      whole(sent.map((_, n) => n)),
    )
  assert.deepEqual(await broker.stop(), { code: 0, signal: null })
})
