import assert from 'node:assert/strict'
import http from 'node:http'
import { after, before, describe, test } from 'node:test'
import type postgres from 'postgres'
import { type Broker, flow, get, post, type Reply, startBroker } from '../support/broker.ts'
import { createTestDatabase } from '../support/database.ts'
import { depth } from '../support/depth.ts'

const CLIENTS = 64
const ROUNDS = depth(2, 12)
const BATCHES = depth(40, 120)
const BATCH_FLOWS = 48

let first: Broker
let second: Broker
let sql: postgres.Sql
let clients: http.Agent[]
let nextFlow = 1

const fresh = (count: number) => Array.from({ length: count }, () => flow(nextFlow++))

async function stored(uuids: string[]): Promise<number> {
  const [row] = await sql`select count(*)::int as n from traffic where uuid in ${sql(uuids)}`
  return row!.n
}

/** The count of stored flows in an answer: a row or null for one flow, a number for a batch. */
function accepted({ status, json, text }: Reply): number {
  assert.equal(status, 200, text)
  return typeof json === 'number' ? json : json === null ? 0 : 1
}

const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0)

before(async () => {
  const database = await createTestDatabase()
  sql = database.adminSql
  first = await startBroker({ databaseUrl: database.url })
  second = await startBroker({ databaseUrl: database.url })
  clients = Array.from({ length: CLIENTS }, () => new http.Agent({ keepAlive: true, maxSockets: 1 }))
  // Each client has its connection before the test begins.
  await Promise.all(clients.map((agent) => get(`${first.url}/health`, { agent })))
})

after(() => {
  for (const agent of clients) agent.destroy()
})

describe('one process', { timeout: 900_000 }, () => {
  test('a flow posted by 64 clients at once is stored once, and exactly one answer is the row', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const [one] = fresh(1)
      const answers = await Promise.all(clients.map((agent) => post(`${first.url}/pod/traffic`, one, { agent })))
      for (const { status, text } of answers) assert.equal(status, 200, text)
      const rows = answers.filter(({ json }) => json !== null)
      assert.equal(rows.length, 1)
      assert.equal(rows[0]!.json.uuid, one!.uuid)
      assert.equal(rows[0]!.json.pod_name, one!.pod_name)
      assert.equal(await stored([one!.uuid]), 1)
    }
  })

  test('64 UDP flows of one connection with different uuids and peer ports are stored as one row', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const address = `172.16.0.${round}`
      const variants = fresh(CLIENTS).map((one, i) => ({
        ...one,
        ip_protocol: 'UDP',
        traffic_in_out_ip: address,
        traffic_in_out_port: String(i),
      }))
      const answers = await Promise.all(
        clients.map((agent, i) => post(`${first.url}/pod/traffic`, variants[i], { agent })),
      )
      assert.equal(sum(answers.map(accepted)), 1)
      assert.equal(await stored(variants.map(({ uuid }) => uuid)), 1)
    }
  })

  test('a flow posted at once alone and inside batches is stored once, with the other flows of each batch', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const [one] = fresh(1)
      const others = fresh(CLIENTS)
      const answers = await Promise.all(
        clients.map((agent, i) =>
          i % 2 === 0
            ? post(`${first.url}/pod/traffic`, one, { agent })
            : post(`${first.url}/pod/traffic/batch`, [others[i], one, one], { agent }),
        ),
      )
      assert.equal(sum(answers.map(accepted)), 1 + CLIENTS / 2, 'one winner, and what each batch had of its own')
      assert.equal(await stored([one!.uuid]), 1)
      assert.equal(await stored(others.map(({ uuid }) => uuid)), CLIENTS / 2)
    }
  })
})

describe('two processes on one database', { timeout: 900_000 }, () => {
  test('posts to both processes in turn: each process knows the flows that the other stored', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const [one, ...more] = fresh(10)
      const [here, there] = round % 2 === 0 ? [first, second] : [second, first]
      assert.equal(accepted(await post(`${here.url}/pod/traffic`, one)), 1)
      assert.equal(accepted(await post(`${there.url}/pod/traffic`, one)), 0)
      assert.equal(accepted(await post(`${there.url}/pod/traffic/batch`, [...more, one])), more.length)
      assert.equal(accepted(await post(`${here.url}/pod/traffic/batch`, [one, ...more])), 0)
      assert.equal(await stored([one!, ...more].map(({ uuid }) => uuid)), 1 + more.length)
    }
  })

  test('overlapping batches to both processes at once are stored once, and the answers add up to the rows', async () => {
    const [before] = await sql`select count(*)::int as n from traffic`
    const pool = fresh((BATCHES * BATCH_FLOWS) / 4)
    // Every flow is in about four batches; neighbours share most of theirs and go to different processes.
    const batches = Array.from({ length: BATCHES }, (_, b) =>
      Array.from({ length: BATCH_FLOWS }, (_, i) => {
        const one = pool[(b * (BATCH_FLOWS / 4) + ((i * 7) % BATCH_FLOWS)) % pool.length]!
        // Another uuid, so that only the key identifies the flow.
        return b % 3 === 0 ? { ...one, uuid: `${one.uuid}-${b}` } : one
      }),
    )
    const answers: Promise<Reply>[] = []
    for (const [b, batch] of batches.entries()) {
      const agent = clients[b % CLIENTS]!
      answers.push(post(`${(b % 2 === 0 ? first : second).url}/pod/traffic/batch`, batch, { agent }))
      if (b % 5 === 0)
        answers.push(post(`${second.url}/pod/traffic`, batch[0]), post(`${first.url}/pod/traffic`, batch[0]))
    }
    const counts = (await Promise.all(answers)).map(accepted)
    const [after] = await sql`
      select count(*)::int as n, count(distinct (pod_ip, traffic_in_out_ip, traffic_in_out_port, decision))::int as flows
      from traffic where traffic_in_out_ip not like '172.16.%'`
    const [total] = await sql`select count(*)::int as n from traffic`
    assert.equal(after!.n, after!.flows, 'a flow is there twice')
    const posted = new Set(batches.flat().map(({ traffic_in_out_ip }) => traffic_in_out_ip))
    assert.equal(total!.n - before!.n, posted.size)
    assert.equal(sum(counts), posted.size)
  })
})
