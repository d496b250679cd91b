/** SIGTERM while payloads are read, wait or are stored: none is lost, and none keeps the process alive. */
import assert from 'node:assert/strict'
import http from 'node:http'
import net from 'node:net'
import { before, describe, type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { TOKENS } from '../support/app.ts'
import { type Broker, get, type Reply, request, startBroker } from '../support/broker.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { depth, onlyFull } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { bodyOf, imageOf, postPayload, rowsOf, storedVersions } from './supply-chain.ts'

/** One payload is being stored, and eight of the largest may wait. */
const HELD = 9
const REFUSED = 3
const SENDERS = 12

let database: TestDatabase

before(async () => {
  database = await createTestDatabase()
})

const start = () => startBroker({ databaseUrl: database.url, env: TOKENS })

let images = 0
const newPayload = () => {
  const image = images++
  return { image, body: bodyOf({ kind: 'vulnerabilities', image, version: 1 }) }
}
const send = (broker: Broker, agent?: http.Agent) => {
  const { image, body } = newPayload()
  return postPayload(broker, 'vulnerabilities', image, body, agent)
}

/** Posts a payload that is nearly as large as a body may be, not compressed. */
const sendLarge = (broker: Broker) => {
  const { image, body } = newPayload()
  return request(`${broker.url}/images/${imageOf(image)}/vulnerabilities`, {
    method: 'POST',
    body: JSON.stringify({ ...body, unknown: 'x'.repeat(1_000_000) }),
    headers: { authorization: `Bearer ${TOKENS.BROKER_TOKEN_SUPPLYCHAIN}` },
  })
}

/** Keeps every payload from being stored until the returned function is called. */
async function holdHeaders(t: TestContext): Promise<() => Promise<void>> {
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  let isHeld = () => {}
  const held = new Promise<void>((resolve) => {
    isHeld = resolve
  })
  const done = database.adminSql.begin(async (sql) => {
    await sql`lock table image_report in access exclusive mode`
    isHeld()
    await released
  })
  const releaseHeaders = async () => {
    release()
    await done
  }
  t.after(releaseHeaders)
  await held
  return releaseHeaders
}

const isWaiting = async () => {
  const [row] = await database.adminSql<{ n: number }[]>`
    select count(*)::int as n from pg_stat_activity
    where datname = current_database() and application_name = 'cluster-telemetry-broker' and wait_event_type = 'Lock'`
  return row!.n > 0
}

const isDraining = async (broker: Broker) => (await get(`${broker.admin}/readyz`)).text === 'draining'

describe('SIGTERM', { timeout: 900_000 }, () => {
  test('the payload being stored and the waiting ones are answered; those beyond the queue were refused before', async (t) => {
    const broker = await start()
    const releaseHeaders = await holdHeaders(t)
    const refused: Reply[] = []
    const answers = Array.from({ length: HELD + REFUSED }, async () => {
      const reply = await sendLarge(broker)
      if (reply.status === 503) refused.push(reply)
      return reply
    })
    await until(
      'one is being stored, and the others wait or are refused',
      async () => (await isWaiting()) && refused.length === REFUSED,
    )
    broker.kill('SIGTERM')
    await until('the broker drains', () => isDraining(broker))
    await releaseHeaders()

    const replies = await Promise.all(answers)
    const stored = replies.filter(({ status }) => status === 200)
    for (const { json } of stored) assert.deepEqual(json, { status: 'stored', items: rowsOf(1) })
    assert.equal(stored.length, HELD)
    for (const { headers, text } of refused) {
      assert.equal(headers['retry-after'], '5')
      assert.equal(text, '8 payloads are waiting to be stored; retry in 5 seconds')
    }
    assert.equal(refused.length, REFUSED)
    assert.deepEqual(await broker.exited, { code: 0, signal: null })
    assert.equal(broker.stderr, '')
    assert.equal((await storedVersions(database.adminSql)).size, stored.length)
  })

  test('a body that is still arriving is read to its end and stored', async (t) => {
    const broker = await start()
    const { image, body } = newPayload()
    const bytes = gzipSync(JSON.stringify(body))
    const upload = http.request(`${broker.url}/images/${imageOf(image)}/vulnerabilities`, {
      method: 'POST',
      agent: false,
      headers: {
        authorization: `Bearer ${TOKENS.BROKER_TOKEN_SUPPLYCHAIN}`,
        'content-encoding': 'gzip',
        'content-length': bytes.length,
        expect: '100-continue',
      },
    })
    t.after(() => upload.destroy())
    const answered = new Promise<http.IncomingMessage>((resolve, reject) => {
      upload.once('response', resolve)
      upload.once('error', reject)
    })
    await new Promise((resolve) => {
      upload.once('continue', resolve)
      upload.flushHeaders()
    })
    upload.write(bytes.subarray(0, 100))
    broker.kill('SIGTERM')
    await until('the broker drains', () => isDraining(broker))
    upload.end(bytes.subarray(100))
    const answer = await answered
    assert.equal(answer.statusCode, 200)
    answer.resume()
    assert.deepEqual(await broker.exited, { code: 0, signal: null }, 'its worker thread is idle')
    assert.equal(broker.stderr, '')
    assert.ok((await storedVersions(database.adminSql)).has(`vulnerabilities ${imageOf(image)}`))
  })

  /** Sends the beginning of a body, of which the rest never comes. */
  async function startBody(t: TestContext, broker: Broker): Promise<void> {
    const socket = net.connect({ host: '127.0.0.1', port: broker.port })
    t.after(() => socket.destroy())
    socket.on('error', () => {})
    let received = ''
    socket.setEncoding('latin1').on('data', (text) => {
      received += text
    })
    const head = `POST /images/${imageOf(images++)}/vulnerabilities HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${TOKENS.BROKER_TOKEN_SUPPLYCHAIN}`
    socket.write(`${head}\r\ncontent-length: 100000\r\nexpect: 100-continue\r\n\r\n`)
    await until('the broker reads it', () => received.startsWith('HTTP/1.1 100'))
    socket.write('{')
  }

  test('an idle worker thread does not keep the process alive', { skip: onlyFull }, async () => {
    const broker = await start()
    assert.equal((await send(broker)).status, 200)
    assert.deepEqual(await broker.stop(), { code: 0, signal: null })
    assert.equal(broker.stderr, '')
  })

  test('during ingest: each payload is answered, refused or sees its connection end, and acknowledged ones are stored; a body without an end does not keep the process alive', async (t) => {
    const broker = await start()
    await startBody(t, broker)
    const stored: number[] = []
    let others = 0
    let isOver = false
    const senders = Array.from({ length: SENDERS }, async () => {
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
      while (!isOver) {
        const { image, body } = newPayload()
        const reply = await postPayload(broker, 'vulnerabilities', image, body, agent).catch(() => null)
        if (reply === null) break
        assert.ok(reply.status === 200 || reply.status === 503, reply.text)
        if (reply.status === 200) stored.push(image)
        else {
          others++
          assert.equal(reply.headers['retry-after'], '5')
        }
      }
      agent.destroy()
    })
    t.after(() => {
      isOver = true
    })
    await until('payloads are stored', () => stored.length >= depth(15, 30))
    broker.kill('SIGTERM')
    await Promise.all(senders)
    assert.deepEqual(await broker.exited, { code: 0, signal: null })
    assert.equal(broker.stderr, '')
    t.diagnostic(`${stored.length} stored, ${others} refused`)
    const found = await storedVersions(database.adminSql)
    for (const image of stored)
      assert.ok(found.has(`vulnerabilities ${imageOf(image)}`), 'an acknowledged payload is lost')
  })
})
