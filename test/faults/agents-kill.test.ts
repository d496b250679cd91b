/**
 * The broker is killed while agents post executables, heartbeats and samples: acknowledged posts are stored, and each
 * post is stored whole or not at all (docs/contract.md#executables, #runtime-coverage, #compute).
 */
import assert from 'node:assert/strict'
import http from 'node:http'
import { test } from 'node:test'
import type postgres from 'postgres'
import { SAMPLES } from '../compute/posts.ts'
import { at, PATH as EXECUTABLES, executable } from '../runtime/executables.ts'
import { PATH as HEARTBEATS, heartbeat } from '../runtime/heartbeats.ts'
import { request, startBroker } from '../support/broker.ts'
import { createTestDatabase } from '../support/database.ts'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { CONTAINERS, post as samplesOf } from './compute-samples.ts'

/** Of each kind. */
const AGENTS = depth(10, 40)
const POSTS_OF_EACH = 3
/** Executables and containers that all agents post. */
const SHARED = Array.from({ length: 5 }, (_, n) => `shared${n}`)
const OWN = ['a', 'b', 'c']

/** Sends one post after the other until there is no answer. */
class Agent {
  /** Numbers of posts. */
  readonly answered: number[] = []
  readonly sent: number[] = []
  readonly done: Promise<void>

  constructor(url: string, bodyOf: () => { n: number; body: object }) {
    this.done = this.#run(url, bodyOf)
  }

  async #run(url: string, bodyOf: () => { n: number; body: object }): Promise<void> {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    for (;;) {
      const { n, body } = bodyOf()
      this.sent.push(n)
      const reply = await request(url, { method: 'POST', body: JSON.stringify(body), agent }).catch(() => null)
      if (reply === null) break
      assert.equal(reply.status, 200, reply.text)
      this.answered.push(n)
    }
    agent.destroy()
  }
}

const agents = (start: (i: number) => Agent) => Array.from({ length: AGENTS }, (_, i) => start(i))

/** Agents whose posts have entries of their own, and some that all posts share; every other agent reverses them. */
function sharing(url: string, entriesOf: (n: number) => object[]): Agent[] {
  let posts = 0
  return agents(
    (i) =>
      new Agent(url, () => {
        const n = ++posts
        return { n, body: i % 2 ? entriesOf(n) : entriesOf(n).reverse() }
      }),
  )
}

const START = Date.UTC(2026, 0, 1)
const second = (n: number) => new Date(START + n * 1_000).toISOString().slice(0, -1)

/** `rows` has the count of stored entries of each post, and `last` the post that shared entries are of. */
function assertStored(of: Agent[], rows: readonly { n: number; entries: number }[], last: readonly number[]): void {
  const found = new Set(rows.map(({ n }) => n))
  for (const n of of.flatMap(({ answered }) => answered)) assert.ok(found.has(n), `post ${n} was answered`)
  for (const { n, entries } of rows) assert.equal(entries, OWN.length, `a part of post ${n}`)
  assert.deepEqual(last, [Math.max(...found)], 'the last of all posts that are stored')
}

const kinds: Record<
  string,
  { start: (url: string) => Agent[]; check: (sql: postgres.Sql, of: Agent[]) => Promise<void> }
> = {
  executables: {
    start: (url) =>
      sharing(`${url}${EXECUTABLES}`, (n) => [
        ...OWN.map((name) => executable({ path: `/own/${n}/${name}` })),
        ...SHARED.map((name) => executable({ path: `/${name}`, last_seen: at(300 * n) })),
      ]),
    async check(sql, of) {
      const rows = await sql<{ n: number; entries: number }[]>`
        select split_part(path, '/', 3)::integer as n, count(*)::integer as entries
        from runtime_executable where path like '/own/%' group by 1`
      const shared = await sql<{ last: string }[]>`
        select distinct wire_time(last_seen) as last from runtime_executable where path like '/shared%'`
      const posts = new Map(of.flatMap(({ sent }) => sent).map((n) => [at(300 * n), n]))
      assertStored(
        of,
        rows,
        shared.map(({ last }) => posts.get(last)!),
      )
    },
  },
  heartbeats: {
    start: (url) =>
      sharing(`${url}${HEARTBEATS}`, (n) => {
        const times = { heartbeat_at: second(n), tracking_since: second(0) }
        return [
          ...OWN.map((name) => heartbeat({ container_id: `own${n}x${name}`, ...times })),
          ...SHARED.map((container_id) => heartbeat({ container_id, ...times, heartbeat_secs: 86_400 })),
        ]
      }),
    async check(sql, of) {
      const rows = await sql<{ n: number; entries: number }[]>`
        select substr(split_part(container_id, 'x', 1), 4)::integer as n, count(*)::integer as entries
        from runtime_coverage where container_id like 'own%' group by 1`
      const shared = await sql<{ n: number }[]>`
        select distinct extract(epoch from last_heartbeat - timestamp '2026-01-01')::integer as n
        from runtime_coverage where container_id like 'shared%'`
      assertStored(
        of,
        rows,
        shared.map(({ n }) => n),
      )
    },
  },
  samples: {
    start: (url) =>
      agents((i) => {
        let n = 0
        return new Agent(`${url}${SAMPLES}`, () => ({ n: ++n, body: samplesOf(`node-${i}`, n) }))
      }),
    async check(sql, of) {
      for (const [i, { answered, sent }] of of.entries()) {
        const [row] = await sql<{ ns: number[]; containers: number; n: number }[]>`
          select array_to_json(array_agg(distinct l.mem_current)) as ns, count(*)::int as containers, min(n.ctxt_per_sec) as n
          from compute_latest l join compute_node n on n.node = l.node where l.namespace = ${`node-${i}`}`
        const { ns, containers, n } = row!
        assert.deepEqual([ns, containers], [[n], CONTAINERS], 'a post is whole')
        const [known, last] = [answered.at(-1)!, sent.at(-1)!]
        assert.ok(n === known || n === last, `post ${n} of ${last}, of which ${known} were answered`)
      }
    },
  },
}

test(`kill -9 of the broker while ${AGENTS} agents of each kind post: acknowledged posts are stored, and no post in part`, {
  timeout: 120_000,
}, async () => {
  const database = await createTestDatabase()
  const start = () => startBroker({ databaseUrl: database.url })
  const broker = await start()
  const posting = Object.values(kinds).map(({ start, check }) => ({ of: start(broker.url), check }))
  const all = posting.flatMap(({ of }) => of)
  await until(
    'each was answered a few times',
    () => all.every(({ answered }) => answered.length >= POSTS_OF_EACH),
    60_000,
  )
  broker.kill('SIGKILL')
  await broker.exited
  await Promise.all(all.map(({ done }) => done))
  // Each agent ended with a post without an answer.
  const successor = await start()
  for (const { of, check } of posting) await check(database.adminSql, of)
  assert.deepEqual(await successor.stop(), { code: 0, signal: null })
})
