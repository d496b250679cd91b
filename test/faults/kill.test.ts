import assert from 'node:assert/strict'
import http from 'node:http'
import { before, describe, type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type Broker,
  connectTo,
  createDataDir,
  flow,
  get,
  post,
  postmasterPid,
  type Reply,
  startBroker,
} from '../support/broker.ts'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'

const WRITERS = depth(4, 6)
const READERS = depth(1, 2)
const BATCH_FLOWS = 20
/** Acknowledged batches before the fault and after the recovery. */
const BATCHES_BEFORE = depth(12, 40)
const BATCHES_AFTER = depth(12, 40)
const BROKER_KILLS = depth(1, 3)
/** Pause of a client after a refusal. */
const CLIENT_PAUSE_MS = depth(25, 5)

type Batch = ReturnType<typeof flow>[]

/** Clients that post new batches, with the outcomes, and other clients that read. */
class Stream {
  readonly acknowledged: Batch[] = []
  readonly unknown: Batch[] = []
  /** Every answer except 200. */
  readonly refused: Reply[] = []
  /** Rows that the answers count as stored. */
  inserted = 0
  cut = 0
  #stopped = false
  #clients: Promise<void>[]

  constructor(t: TestContext, broker: Broker, numbers: Iterator<number>) {
    t.after(() => this.stop())
    this.#clients = [
      ...Array.from({ length: WRITERS }, () => this.#write(broker, numbers)),
      ...Array.from({ length: READERS }, () => this.#read(broker)),
    ]
  }

  async #write({ url }: Broker, numbers: Iterator<number>): Promise<void> {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    while (!this.#stopped) {
      const batch = Array.from({ length: BATCH_FLOWS }, () => flow(numbers.next().value))
      const answer = await this.#attempt(post(`${url}/pod/traffic/batch`, batch, { agent }))
      if (answer?.status === 200) {
        this.acknowledged.push(batch)
        this.inserted += answer.json
      } else this.unknown.push(batch)
    }
    agent.destroy()
  }

  async #read({ url }: Broker): Promise<void> {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    while (!this.#stopped) {
      const answer = await this.#attempt(get(`${url}/pod/traffic?limit=10`, { agent }))
      if (answer?.status === 200) assert.ok(Array.isArray(answer.json))
    }
    agent.destroy()
  }

  async #attempt(answer: Promise<Reply>): Promise<Reply | undefined> {
    try {
      const reply = await answer
      if (reply.status === 200) return reply
      this.refused.push(reply)
    } catch {
      this.cut++
    }
    await delay(CLIENT_PAUSE_MS)
    return undefined
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#clients)
  }
}

function* naturals() {
  for (let n = 1; ; n++) yield n
}

/** Repeats the posts without an answer; then every posted flow must be stored, and none twice. */
async function settle(
  broker: Broker,
  dataDir: string,
  { acknowledged, unknown, remembers }: Pick<Stream, 'acknowledged' | 'unknown'> & { remembers: boolean },
) {
  const sql = connectTo(dataDir)
  try {
    const uuids = async () => (await sql<{ uuid: string }[]>`select uuid from traffic`).map(({ uuid }) => uuid)
    const before = new Set(await uuids())
    const lost = acknowledged.flat().filter(({ uuid }) => !before.has(uuid))
    assert.deepEqual(lost, [], 'an acknowledged flow is lost')

    for (const batch of unknown) {
      const answer = await post(`${broker.url}/pod/traffic/batch`, batch)
      assert.equal(answer.status, 200, answer.text)
      // A statement is stored as a whole or not at all.
      const stored = batch.filter(({ uuid }) => before.has(uuid)).length
      // A broker that still knows the posts with lost answers counts their stored flows as new for their sender.
      assert.equal(answer.json, remembers ? BATCH_FLOWS : BATCH_FLOWS - stored)
      assert.ok(stored === 0 || stored === BATCH_FLOWS, `${stored} of a batch were stored`)
    }
    const posted = [...acknowledged, ...unknown].flat()
    assert.deepEqual((await uuids()).sort(), posted.map(({ uuid }) => uuid).sort())
    const [twice] = await sql`
      select count(*) - count(distinct (pod_ip, pod_port, traffic_in_out_ip, traffic_in_out_port, traffic_type, decision)) as n from traffic`
    assert.equal(Number(twice!.n), 0, 'a flow is stored twice')
    const { json } = await get(`${broker.url}/pod/traffic?limit=20000`)
    assert.equal(json.length, Math.min(posted.length, 20_000))
  } finally {
    await sql.end({ timeout: 1 })
  }
}

const failures = (broker: Broker) => broker.log.filter(({ level }) => level === 'error' || level === 'fatal')

const dataDir = createDataDir()
const numbers = naturals()
const all = { acknowledged: [] as Batch[], unknown: [] as Batch[] }
let broker: Broker

before(async () => {
  broker = await startBroker({ dataDir })
})

describe('kill -9 of the broker', { timeout: 900_000 }, () => {
  test('during a stream of batches loses no acknowledged row, and batches without an answer may be posted again', async (t) => {
    for (let kill = 0; kill < BROKER_KILLS; kill++) {
      const stream = new Stream(t, broker, numbers)
      await until('batches are acknowledged', () => stream.acknowledged.length >= BATCHES_BEFORE)
      broker.kill('SIGKILL')
      assert.deepEqual(await broker.exited, { code: null, signal: 'SIGKILL' })
      await stream.stop()
      assert.ok(stream.cut >= WRITERS, 'every writer had a batch on its way')
      assert.deepEqual(stream.refused, [])
      assert.equal(stream.inserted, stream.acknowledged.length * BATCH_FLOWS)
      all.acknowledged.push(...stream.acknowledged)
      all.unknown.push(...stream.unknown)

      broker = await startBroker({ dataDir })
      await settle(broker, dataDir, { ...all, remembers: false })
      all.acknowledged.push(...all.unknown.splice(0))
    }
  })
})

describe('the database dies during a stream of batches, and the broker stays up', { timeout: 900_000 }, () => {
  const deaths: { name: string; strike: (postmaster: number, backend: number) => void; survives?: boolean }[] = [
    { name: 'kill -9 of the postmaster', strike: (pid) => process.kill(pid, 'SIGKILL') },
    { name: 'kill -9 of one backend', strike: (_, backend) => process.kill(backend, 'SIGKILL'), survives: true },
    { name: 'an immediate stop', strike: (pid) => process.kill(pid, 'SIGQUIT') },
    { name: 'a fast stop', strike: (pid) => process.kill(pid, 'SIGINT') },
  ]
  for (const { name, strike, survives = false } of deaths) {
    test(`${name}: at most 503 with Retry-After, then recovery by itself; no acknowledged flow is lost and none is stored twice`, async (t) => {
      const postmaster = postmasterPid(dataDir)!
      const stream = new Stream(t, broker, numbers)
      await until('batches are acknowledged', () => stream.acknowledged.length >= BATCHES_BEFORE)
      assert.deepEqual(stream.refused, [])

      const backend = await aBackend(dataDir)
      strike(postmaster, backend)
      // A server that is back within the broker's retries refuses no client.
      await until('the backend is gone', async () => !(await isBackend(dataDir, backend)))
      assert.equal((await get(`${broker.admin}/livez`)).status, 200)

      const before = stream.acknowledged.length
      await until('batches are acknowledged again', () => stream.acknowledged.length >= before + BATCHES_AFTER)
      await until('the broker is ready', async () => (await get(`${broker.admin}/readyz`)).status === 200)
      await stream.stop()
      const calm = new Stream(t, broker, numbers)
      await until('batches are acknowledged', () => calm.acknowledged.length >= BATCHES_AFTER)
      await calm.stop()

      assert.equal(broker.hasExited, false)
      assert.equal(postmasterPid(dataDir) === postmaster, survives)
      assert.equal(stream.cut + calm.cut, 0, 'a request had no answer')
      assert.deepEqual(calm.refused, [], 'refused after the recovery')
      for (const { status, headers, text } of stream.refused) {
        assert.equal(status, 503, text)
        assert.equal(headers['retry-after'], '1')
        assert.equal(text, 'database unavailable; retry in a moment')
      }
      assert.deepEqual(failures(broker), [])
      assert.equal(broker.stderr, '')
      all.acknowledged.push(...stream.acknowledged, ...calm.acknowledged)
      all.unknown.push(...stream.unknown, ...calm.unknown)
      await settle(broker, dataDir, { ...all, remembers: true })
      all.acknowledged.push(...all.unknown.splice(0))
    })
  }

  test('after these faults the broker stops with 0', async () => {
    assert.deepEqual(await broker.stop(), { code: 0, signal: null })
    assert.equal(postmasterPid(dataDir), undefined, 'the last broker out takes the database along')
  })
})

async function isBackend(dataDir: string, pid: number): Promise<boolean> {
  const sql = connectTo(dataDir, 1)
  try {
    return (await sql`select from pg_stat_activity where pid = ${pid}`).length > 0
  } finally {
    await sql.end({ timeout: 1 })
  }
}

async function aBackend(dataDir: string): Promise<number> {
  const sql = connectTo(dataDir, 1)
  try {
    const [row] = await sql`
      select pid from pg_stat_activity where application_name = 'cluster-telemetry-broker' and query like '%insert into traffic%' and pid <> pg_backend_pid() limit 1`
    return row!.pid
  } finally {
    await sql.end({ timeout: 1 })
  }
}
