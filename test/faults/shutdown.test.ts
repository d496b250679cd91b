import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { before, describe, type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { type Broker, flow, get, post, type Reply, request, startBroker } from '../support/broker.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { depth, onlyFull } from '../support/depth.ts'
import { undisturbed } from '../support/undisturbed.ts'
import { until } from '../support/until.ts'

const CLIENTS = 8
const POSTS_BEFORE = 100
const POSTS_AFTER = 100
/** Between the posts of a client. */
const PAUSE_MS = depth(10, 0)
const LIST_ROWS = depth(12_000, 20_000)
const STREAMED_ROWS = depth(LIST_ROWS, 60_000)
/** The other signal that ends a broker; the full checks have a test of its own. */
const SIGNAL = depth('SIGINT', 'SIGTERM')
/** Time that a stopping broker gives the requests in flight before it cuts them. */
const FINISH_REQUESTS_MS = 12_000

let database: TestDatabase
let nextFlow = 1

before(async () => {
  database = await createTestDatabase()
  await database.adminSql`
    insert into traffic (uuid, pod_name, pod_ip, pod_port, traffic_in_out_ip, traffic_in_out_port, traffic_type, decision, time_stamp)
    select 'streamed-' || n, 'streamed', '10.2.0.1', '0', '10.3.0.' || n, '443', 'EGRESS', 'ALLOW', timestamp '2026-01-01' + n * interval '1 second'
    from generate_series(1, ${STREAMED_ROWS}::int) n`
})

const start = (env: NodeJS.ProcessEnv = {}) => startBroker({ databaseUrl: database.url, env })

/** A raw connection: the test writes every byte. */
class Wire {
  readonly socket: net.Socket
  received = ''
  /** The other side has ended the connection. */
  ended = false

  constructor(port: number) {
    this.socket = net.connect({ host: '127.0.0.1', port, noDelay: true, allowHalfOpen: true })
    this.socket.setEncoding('latin1')
    this.socket.on('data', (text) => {
      this.received += text
    })
    this.socket.on('end', () => {
      this.ended = true
    })
    this.socket.on('error', () => {})
  }

  async sees(pattern: RegExp): Promise<RegExpExecArray> {
    return until(`the server sends ${pattern}`, () => pattern.exec(this.received))
  }
}

function wire(t: TestContext, { port }: Broker): Wire {
  const opened = new Wire(port)
  t.after(() => opened.socket.destroy())
  return opened
}

/** Locks the table of flows until the returned function is called. */
async function lockTraffic(t: TestContext): Promise<() => Promise<void>> {
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  let locked = () => {}
  const isLocked = new Promise<void>((resolve) => {
    locked = resolve
  })
  const done = database.adminSql.begin(async (held) => {
    await held`lock table traffic in access exclusive mode`
    locked()
    await released
  })
  const unlock = async () => {
    release()
    await done
  }
  t.after(unlock)
  await isLocked
  return unlock
}

const waiting = async (statements: number) => {
  const [row] = await database.adminSql`
    select count(*)::int as n from pg_stat_activity
    where datname = current_database() and application_name = 'cluster-telemetry-broker' and wait_event_type = 'Lock'`
  return row!.n >= statements
}

const isRefused = (port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = net.connect({ host: '127.0.0.1', port })
    socket.on('connect', () => {
      socket.destroy()
      resolve(false)
    })
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'))
  })

/** Time from `stopping` to `stopped` in the log. */
function stoppingMs({ log }: Broker): number {
  const at = (message: string) => Date.parse(String(log.find(({ msg }) => msg === message)?.time))
  return at('stopped') - at('stopping')
}

describe('SIGTERM', { timeout: 900_000 }, () => {
  test('lets a slow upload and a slow statement finish, refuses new connections, and ends with 0', async (t) => {
    const broker = await start()
    const unlock = await lockTraffic(t)

    const stored = flow(nextFlow++)
    const slowStatement = post(`${broker.url}/pod/traffic`, stored, { agent: new http.Agent({ keepAlive: true }) })
    await until('a statement waits for the lock', () => waiting(1))

    const body = JSON.stringify([flow(nextFlow++), flow(nextFlow++)])
    const upload = wire(t, broker)
    const head = `POST /pod/traffic/batch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
    upload.socket.write(`${head}\r\nExpect: 100-continue\r\n\r\n`)
    await upload.sees(/^HTTP\/1\.1 100 Continue/)
    upload.socket.write(body.slice(0, 100))

    broker.kill('SIGTERM')
    const readiness = await until('the broker is not ready', async () => {
      const answer = await get(`${broker.admin}/readyz`)
      return answer.status !== 200 && answer
    })
    assert.equal(readiness.status, 503)
    assert.equal(readiness.text, 'draining')
    assert.equal((await get(`${broker.admin}/livez`)).status, 200)
    await until('new connections are refused', () => isRefused(broker.port))
    assert.equal(broker.hasExited, false)

    upload.socket.write(body.slice(100))
    await until('both statements wait for the lock', () => waiting(2))
    await unlock()

    const answer = await slowStatement
    assert.equal(answer.status, 200)
    assert.equal(answer.json.uuid, stored.uuid)
    assert.equal(answer.headers.connection, 'close')
    await upload.sees(/HTTP\/1\.1 200 OK\r\n.*connection: close\r\n.*\r\n\r\n2$/is)

    assert.deepEqual(await broker.exited, { code: 0, signal: null })
    assert.equal(broker.stderr, '')
    const [row] =
      await database.adminSql`select count(*)::int as n from traffic where uuid in ${database.adminSql([stored.uuid, ...JSON.parse(body).map((one: { uuid: string }) => one.uuid)])}`
    assert.equal(row!.n, 3)
  })

  test('a second one ends the process at once', async (t) => {
    const broker = await start()
    await lockTraffic(t)
    const cut = post(`${broker.url}/pod/traffic`, flow(nextFlow++)).then(
      () => 'answered',
      () => 'cut',
    )
    await until('a statement waits for the lock', () => waiting(1))
    broker.kill('SIGTERM')
    await until('the broker is not ready', async () => (await get(`${broker.admin}/readyz`)).status === 503)
    assert.equal(broker.hasExited, false)
    broker.kill('SIGTERM')
    // Without the second signal it would cut the request later and exit with 0.
    assert.deepEqual(await broker.exited, { code: 1, signal: null })
    assert.equal(await cut, 'cut')
  })

  test('SIGINT ends an idle broker with 0', { skip: onlyFull }, async () => {
    const broker = await start()
    broker.kill('SIGINT')
    assert.deepEqual(await broker.exited, { code: 0, signal: null })
  })

  test(`idle, busy and silent clients that keep their connections open do not keep the process alive: ${SIGNAL}`, async (t) => {
    const broker = await start()
    const question = 'GET /pod/traffic?limit=1 HTTP/1.1\r\nHost: x\r\n\r\n'
    const idle = wire(t, broker)
    idle.socket.write(question)
    await idle.sees(/\r\n\r\n\[/)
    const silent = wire(t, broker)
    await once(silent.socket, 'connect')

    const unlock = await lockTraffic(t)
    const busy = wire(t, broker)
    busy.socket.write(question)
    await until('a statement waits for the lock', () => waiting(1))
    broker.kill(SIGNAL)
    await until('the idle connection is closed', () => idle.ended)
    assert.equal(busy.ended, false)
    await unlock()
    await busy.sees(/^HTTP\/1\.1 200 OK\r\n.*connection: close\r\n.*\r\n\r\n\[/is)
    // No client closes its side of the connection.
    assert.deepEqual(await broker.exited, { code: 0, signal: null })
    assert.ok(
      stoppingMs(broker) < FINISH_REQUESTS_MS,
      `it took ${stoppingMs(broker)} ms, as long as one that has to be cut`,
    )
  })

  async function answersWhileDraining(): Promise<void> {
    // In production the broker accepts requests for a moment, until it is removed from all lists of endpoints.
    const broker = await start({ NODE_ENV: 'production' })
    broker.kill('SIGTERM')
    await until('the broker is not ready', async () => (await get(`${broker.admin}/readyz`)).status === 503)
    const agent = () => new http.Agent({ keepAlive: true })
    const answers = await Promise.all([
      get(`${broker.url}/health`, { agent: agent() }),
      get(`${broker.url}/pod/name/nobody`, { agent: agent() }),
      get(`${broker.url}/no/such/route`, { agent: agent() }),
      request(`${broker.url}/pod/info`, { method: 'OPTIONS', agent: agent() }),
      post(`${broker.url}/pod/traffic`, 'no flow', { agent: agent() }),
      post(`${broker.url}/pod/traffic`, flow(nextFlow++), { agent: agent() }),
    ])
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 404, 404, 404, 400, 200],
    )
    for (const { status, headers } of answers) assert.equal(headers.connection, 'close', `of the ${status}`)
    assert.deepEqual(await broker.exited, { code: 0, signal: null })
  }
  test('while the broker drains, every answer has the header `Connection: close`', () =>
    undisturbed(answersWhileDraining))
})

/** Posts one flow after the other: to the first server until it ends the connection or is gone, then to the second. */
class Client {
  readonly answered: { uuid: string; reply: Reply; resent: boolean }[] = []
  /** Count of requests without an answer, which were sent again. */
  cut = 0
  #agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  #stopped = false
  readonly done: Promise<void>

  constructor(t: TestContext, servers: Broker[]) {
    this.done = this.#run(servers)
    t.after(() => this.stop())
  }

  async #run([first, second]: Broker[]): Promise<void> {
    let server = first!
    while (!this.#stopped) {
      const one = flow(nextFlow++)
      let resent = false
      let reply: Reply | null = null
      while (reply === null) {
        reply = await post(`${server.url}/pod/traffic`, one, { agent: this.#agent }).catch(() => null)
        if (reply === null) {
          this.cut++
          resent = true
        }
        if (reply === null || reply.headers.connection === 'close') server = second!
      }
      this.answered.push({ uuid: one.uuid, reply, resent })
      await delay(PAUSE_MS)
    }
    this.#agent.destroy()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.done
  }
}

describe('a rolling restart under load', { timeout: 900_000, skip: onlyFull }, () => {
  async function roll(t: TestContext, env: NodeJS.ProcessEnv) {
    const servers = [await start(env), await start(env)]
    const clients = Array.from({ length: CLIENTS }, () => new Client(t, servers))
    const answered = () => clients.reduce((sum, client) => sum + client.answered.length, 0)
    await until('posts are answered', () => answered() >= POSTS_BEFORE)
    servers[0]!.kill('SIGTERM')
    assert.deepEqual(await servers[0]!.exited, { code: 0, signal: null })
    const before = answered()
    await until('posts are answered by the other', () => answered() >= before + POSTS_AFTER)
    for (const client of clients) await client.stop()
    assert.deepEqual(await servers[1]!.stop(), { code: 0, signal: null })

    const all = clients.flatMap((client) => client.answered)
    assert.deepEqual([...new Set(all.map(({ reply }) => reply.status))], [200])
    for (const { uuid, reply, resent } of all)
      assert.ok(reply.json?.uuid === uuid || (resent && reply.json === null), 'a new flow was called a duplicate')
    const rows =
      await database.adminSql`select uuid from traffic where uuid in ${database.adminSql(all.map(({ uuid }) => uuid))}`
    assert.equal(rows.length, all.length, 'an answered flow is not stored')
    return clients.reduce((sum, client) => sum + client.cut, 0)
  }

  test('clients that reconnect lose nothing', async (t) => {
    await roll(t, {})
  })

  test('with the delay of production, no connection ends during a request', async (t) => {
    await undisturbed(async () => assert.equal(await roll(t, { NODE_ENV: 'production' }), 0))
  })
})

describe('a slow reader of an unlimited list', { timeout: 900_000, skip: onlyFull }, () => {
  /** Requests the list and reads only its beginning. */
  async function startReading(broker: Broker): Promise<http.IncomingMessage> {
    const outgoing = http.get(`${broker.url}/pod/traffic/streamed`, { agent: false })
    // A reset connection also emits an error on the request.
    outgoing.on('error', () => {})
    const [incoming] = (await once(outgoing, 'response')) as [http.IncomingMessage]
    incoming.pause()
    assert.equal(incoming.statusCode, 200)
    assert.equal(incoming.headers['content-length'], undefined, 'it comes in pieces')
    return incoming
  }

  async function readAll(incoming: http.IncomingMessage): Promise<string> {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    return Buffer.concat(chunks).toString()
  }

  test('that goes on reading gets the whole list after SIGTERM', async () => {
    const broker = await start()
    const incoming = await startReading(broker)
    broker.kill('SIGTERM')
    await until('new connections are refused', () => isRefused(broker.port))
    const rows = JSON.parse(await readAll(incoming)) as { uuid: string }[]
    assert.equal(rows.length, STREAMED_ROWS)
    assert.equal(new Set(rows.map(({ uuid }) => uuid)).size, STREAMED_ROWS)
    assert.deepEqual(await broker.exited, { code: 0, signal: null })
  })

  test('that stops reading is cut after SIGTERM, and its read fails with ECONNRESET', async () => {
    const broker = await start()
    const incoming = await startReading(broker)
    // The error may be emitted before the list is read.
    incoming.on('error', () => {})
    broker.kill('SIGTERM')
    assert.deepEqual(await broker.exited, { code: 0, signal: null })
    await assert.rejects(readAll(incoming), { code: 'ECONNRESET' })
  })
})

describe('a reader that begins to read after SIGTERM', { timeout: 900_000 }, () => {
  /** Sends all requests at once, and reads nothing. */
  function ask(t: TestContext, broker: Broker, limits: readonly number[]): net.Socket {
    const socket = net.connect({ host: '127.0.0.1', port: broker.port }).setEncoding('latin1')
    t.after(() => socket.destroy())
    socket.on('error', () => {})
    socket.write(limits.map((limit) => `GET /pod/traffic?limit=${limit} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''))
    return socket
  }
  /** Reads to the end of the connection. */
  async function readAll(socket: net.Socket): Promise<string> {
    let received = ''
    for await (const text of socket) received += text
    return received
  }
  const lists = (received: string) =>
    received
      .split('HTTP/1.1 200 OK\r\n')
      .slice(1)
      .map((answer) => JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4)).length)

  test('gets a whole list that is larger than the buffers of the socket, or the answers to all requests that it sent at once', async (t) => {
    const all = [[LIST_ROWS], Array.from({ length: depth(12, 24) }, () => 1_000)]
    const broker = await start()
    const sockets = all.map((limits) => ask(t, broker, limits))
    await until('all is answered', () => (broker.statuses.get(200) ?? 0) > all.flat().length)
    broker.kill('SIGTERM')
    await until('new connections are refused', () => isRefused(broker.port))
    for (const [i, received] of (await Promise.all(sockets.map(readAll))).entries())
      assert.deepEqual(lists(received), all[i])
    assert.deepEqual(await broker.exited, { code: 0, signal: null })
    assert.ok(stoppingMs(broker) < FINISH_REQUESTS_MS)
  })
})
