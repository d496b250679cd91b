/**
 * Broker or database dies while payloads are stored and replaced by newer ones: each stored payload is whole, old or
 * new, and acknowledged payloads are stored.
 */
import assert from 'node:assert/strict'
import http from 'node:http'
import { before, describe, type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { TOKENS } from '../support/app.ts'
import {
  type Broker,
  connectTo,
  createDataDir,
  get,
  postmasterPid,
  type Reply,
  startBroker,
} from '../support/broker.ts'
import { depth } from '../support/depth.ts'
import { until } from '../support/until.ts'
import { bodyOf, imageOf, type Kind, keyOf, pageOf, postPayload, storedVersions, type Version } from './supply-chain.ts'

const SENDERS = depth(4, 6)
const IMAGES = 5
const PAGES = 3
const PER_PAGE = 60
/** Acknowledged payloads before the fault and after the recovery. */
const BEFORE = depth(10, 25)
const AFTER = depth(10, 25)
const BROKER_KILLS = depth(1, 3)
/** Pause of a client after a refusal. */
const CLIENT_PAUSE_MS = depth(25, 5)

/** The answers to all clients. */
class Ledger {
  #next = new Map<string, number>()
  #images = IMAGES
  /** The newest version of each payload that a broker said it stored. */
  readonly stored = new Map<string, number>()
  /** Versions without an answer, or refused: each may be stored or not. */
  readonly unknown = new Map<string, Set<number>>()

  /** An image that gets only one version, since a second one would hide that the first was lost. */
  newImage(): number {
    return this.#images++
  }

  next(kind: Kind, image: number): Version {
    const key = keyOf(kind, imageOf(image))
    const version = (this.#next.get(key) ?? 0) + 1
    this.#next.set(key, version)
    return { kind, image, version }
  }

  acknowledge({ kind, image, version }: Version): void {
    const key = keyOf(kind, imageOf(image))
    this.stored.set(key, Math.max(version, this.stored.get(key) ?? 0))
  }

  doubt({ kind, image, version }: Version): void {
    const key = keyOf(kind, imageOf(image))
    this.unknown.set(key, (this.unknown.get(key) ?? new Set()).add(version))
  }
}

/** Clients that post newer versions of shared payloads. */
class Stream {
  acknowledged = 0
  cut = 0
  /** Every answer but success. */
  readonly refused: Reply[] = []
  #stopped = false
  readonly #ledger: Ledger
  readonly #clients: Promise<void>[]

  constructor(t: TestContext, broker: Broker, ledger: Ledger) {
    this.#ledger = ledger
    t.after(() => this.stop())
    this.#clients = Array.from({ length: SENDERS }, (_, client) => this.#post(broker, client))
  }

  async #post(broker: Broker, client: number): Promise<void> {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    for (let n = client; !this.#stopped; n++) {
      const sent = this.#ledger.next(
        n % 3 === 0 ? 'sbom' : 'vulnerabilities',
        n % 4 === 0 ? this.#ledger.newImage() : n % IMAGES,
      )
      const bodies =
        n % 6 === 0 ? Array.from({ length: PAGES }, (_, index) => pageOf(sent, index, PAGES, PER_PAGE)) : [bodyOf(sent)]
      for (const body of bodies) {
        const reply = await this.#attempt(postPayload(broker, sent.kind, sent.image, body, agent))
        if (reply === undefined) {
          this.#ledger.doubt(sent)
          break
        }
        if (reply.json.status === 'stored') {
          this.acknowledged++
          this.#ledger.acknowledge(sent)
        }
        // Another client may have sent a newer version of the same payload.
        if (reply.json.status === 'stale') break
        assert.match(reply.json.status, /^(stored|staged)$/)
      }
    }
    agent.destroy()
  }

  async #attempt(answer: Promise<Reply>): Promise<Reply | undefined> {
    try {
      const reply = await answer
      if (reply.status === 200 || reply.status === 202) return reply
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

/** Each payload is whole and not older than acknowledged, and its header matches its rows. */
async function settle(broker: Broker, dataDir: string, ledger: Ledger): Promise<void> {
  const sql = connectTo(dataDir)
  try {
    const found = await storedVersions(sql)
    for (const [key, version] of ledger.stored) {
      const stored = found.get(key)
      assert.ok(stored, `${key}: version ${version} was acknowledged, and nothing is stored`)
      assert.ok(stored.version >= version, `${key}: ${version} was acknowledged, ${stored.version} is stored`)
      assert.ok(
        stored.version === version || ledger.unknown.get(key)?.has(stored.version),
        `${key}: nobody sent ${stored.version}`,
      )
    }
    for (const kind of ['vulnerabilities', 'sbom'] as const) {
      for (let image = 0; image < IMAGES; image++) {
        const stored = found.get(keyOf(kind, imageOf(image)))
        // A set of pages is identified by its name, not by a hash.
        if (!stored || stored.rows === PAGES * PER_PAGE) continue
        const again = await postPayload(broker, kind, image, bodyOf({ kind, image, version: stored.version }))
        assert.equal(again.text, '{"status":"unchanged"}', 'the hash in the header is that of the rows')
      }
    }
    assert.deepEqual(await storedVersions(sql), found)
  } finally {
    await sql.end({ timeout: 1 })
  }
}

const failures = (broker: Broker) => broker.log.filter(({ level }) => level === 'error' || level === 'fatal')

const dataDir = createDataDir()
const ledger = new Ledger()
let broker: Broker

before(async () => {
  broker = await startBroker({ dataDir, env: TOKENS })
})

describe('kill -9 of the broker', { timeout: 900_000 }, () => {
  test('during ingest leaves each payload whole and loses no acknowledged one', async (t) => {
    for (let kill = 0; kill < BROKER_KILLS; kill++) {
      const stream = new Stream(t, broker, ledger)
      await until('payloads are acknowledged', () => stream.acknowledged >= BEFORE)
      broker.kill('SIGKILL')
      assert.deepEqual(await broker.exited, { code: null, signal: 'SIGKILL' })
      await stream.stop()
      assert.ok(stream.cut >= SENDERS, 'every client had a payload on its way')
      assert.deepEqual(stream.refused, [])

      broker = await startBroker({ dataDir, env: TOKENS })
      await settle(broker, dataDir, ledger)
    }
  })
})

describe('the database dies during ingest, and the broker stays up', { timeout: 900_000 }, () => {
  const deaths: { name: string; strike: (postmaster: number, backend: number) => void; survives?: boolean }[] = [
    { name: 'kill -9 of the postmaster', strike: (pid) => process.kill(pid, 'SIGKILL') },
    {
      name: 'kill -9 of the backend that stores',
      strike: (_, backend) => process.kill(backend, 'SIGKILL'),
      survives: true,
    },
    { name: 'an immediate stop', strike: (pid) => process.kill(pid, 'SIGQUIT') },
    { name: 'a fast stop', strike: (pid) => process.kill(pid, 'SIGINT') },
  ]
  for (const { name, strike, survives = false } of deaths) {
    test(`${name}: only 503, then recovery by itself; each payload is whole and no acknowledged one is lost`, async (t) => {
      const postmaster = postmasterPid(dataDir)!
      const stream = new Stream(t, broker, ledger)
      await until('payloads are acknowledged', () => stream.acknowledged >= BEFORE)
      assert.deepEqual(stream.refused, [])

      strike(postmaster, await aBackend(dataDir))
      await until('the database is gone', () => survives || postmasterPid(dataDir) !== postmaster)
      const before = stream.acknowledged
      await until('payloads are acknowledged again', () => stream.acknowledged >= before + AFTER)
      await until('the broker is ready', async () => (await get(`${broker.admin}/readyz`)).status === 200)
      await stream.stop()

      assert.equal(broker.hasExited, false)
      assert.equal(postmasterPid(dataDir) === postmaster, survives)
      assert.equal(stream.cut, 0, 'a request had no answer')
      for (const { status, headers, text } of stream.refused) {
        assert.equal(status, 503, text)
        assert.equal(headers['retry-after'], '1')
      }
      assert.deepEqual(failures(broker), [])
      assert.equal(broker.stderr, '')
      await settle(broker, dataDir, ledger)
    })
  }

  test('after these faults the broker stops with 0', async () => {
    assert.deepEqual(await broker.stop(), { code: 0, signal: null })
    assert.equal(postmasterPid(dataDir), undefined)
  })
})

/** The process id of a backend that stores a payload. */
async function aBackend(dataDir: string): Promise<number> {
  const sql = connectTo(dataDir, 1)
  try {
    return await until('a payload is being stored', async () => {
      const [row] = await sql<{ pid: number }[]>`
        select pid from pg_stat_activity
        where application_name = 'cluster-telemetry-broker' and query like '%select store_%' and pid <> pg_backend_pid()
        order by state = 'active' desc limit 1`
      return row?.pid
    })
  } finally {
    await sql.end({ timeout: 1 })
  }
}
