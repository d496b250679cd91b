/**
 * Samples while answers are lost and while the broker dies: a post is stored whole, with its containers and its node,
 * or not at all; acknowledged posts are stored (docs/contract.md#compute).
 */
import assert from 'node:assert/strict'
import http from 'node:http'
import { test } from 'node:test'
import { type Fields, SAMPLES, sample, tick } from '../compute/posts.ts'
import { connectTo, createDataDir, request, startBroker } from '../support/broker.ts'
import { startLossyApp } from '../support/lossy.ts'
import type { Fate } from '../support/proxy.ts'
import { until } from '../support/until.ts'

const STORE = 'store_samples'
/** The first attempt of a statement and its two repetitions. */
const ATTEMPTS = 3
const NODES = 40
const CONTAINERS = 15

/** Post number `n` of a node: its rows and its node contain `n`. */
function post(node: string, n: number): Fields {
  const containers = Array.from({ length: CONTAINERS }, (_, i) =>
    sample({ pod_name: `${node}-${i}`, namespace: node, memory: { current: n, refault: n } }),
  )
  return tick(n % 2 ? containers : containers.reverse(), { node, ctxt_per_sec: n })
}

const app = await startLossyApp()

test('a post is stored if answers or statements are lost once or twice, and is 503 if all attempts are lost', async () => {
  const stored = async () => {
    const rows = await app.sql<{ n: number }[]>`
      select distinct mem_current::int as n from compute_latest union select ctxt_per_sec::int from compute_node`
    return rows.map(({ n }) => n)
  }
  const lost: Fate[][] = [
    ['answer lost'],
    ['answer lost', 'answer lost'],
    ['question lost', 'answer lost'],
    ['question lost'],
  ]
  for (const [n, fates] of lost.entries()) {
    app.lose(STORE, ...fates)
    assert.deepEqual(
      [await app.post(SAMPLES, post('lossy', n)), app.toCome],
      [{ status: 200, text: `{"accepted":${CONTAINERS}}` }, 0],
    )
    assert.deepEqual(await stored(), [n])
  }
  app.lose(STORE, ...Array<Fate>(ATTEMPTS).fill('question lost'))
  assert.equal((await app.post(SAMPLES, post('lossy', 98))).status, 503)
  assert.deepEqual(await stored(), [lost.length - 1])
  app.lose(STORE, ...Array<Fate>(ATTEMPTS).fill('answer lost'))
  assert.equal((await app.post(SAMPLES, post('lossy', 99))).status, 503)
  assert.deepEqual(await stored(), [99])
})

/** A node that posts one sample after the other until there is no answer. */
class Agent {
  answered = 0
  sent = 0
  readonly done: Promise<void>

  constructor(url: string, node: string) {
    this.done = this.#run(url, node)
  }

  async #run(url: string, node: string): Promise<void> {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    for (;;) {
      const n = ++this.sent
      const reply = await request(`${url}${SAMPLES}`, {
        method: 'POST',
        body: JSON.stringify(post(node, n)),
        agent,
      }).catch(() => null)
      if (reply === null) break
      assert.deepEqual([reply.status, reply.text], [200, `{"accepted":${CONTAINERS}}`])
      this.answered = n
    }
    agent.destroy()
  }
}

test(`kill -9 of the broker while ${NODES} nodes post: acknowledged posts are stored, and no post in part`, {
  timeout: 120_000,
}, async () => {
  const dataDir = createDataDir()
  const broker = await startBroker({ dataDir })
  const agents = Array.from({ length: NODES }, (_, i) => new Agent(broker.url, `node-${i}`))
  await until('each was answered a few times', () => agents.every(({ answered }) => answered >= 3), 60_000)
  broker.kill('SIGKILL')
  await broker.exited
  await Promise.all(agents.map(({ done }) => done))
  const successor = await startBroker({ dataDir })
  const sql = connectTo(dataDir)
  try {
    for (const [i, { answered, sent }] of agents.entries()) {
      const [row] = await sql<{ ns: number[]; containers: number; n: number }[]>`
        select array_to_json(array_agg(distinct l.mem_current)) as ns, count(*)::int as containers, min(n.ctxt_per_sec) as n
        from compute_latest l join compute_node n on n.node = l.node where l.namespace = ${`node-${i}`}`
      const { ns, containers, n } = row!
      assert.deepEqual([ns, containers], [[n], CONTAINERS], 'a post is whole')
      assert.ok(n === answered || n === sent, `post ${n} of ${sent}, of which ${answered} were answered`)
    }
  } finally {
    await sql.end({ timeout: 1 })
  }
  assert.deepEqual(await successor.stop(), { code: 0, signal: null })
})
