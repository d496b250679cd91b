/**
 * Results of one image from several senders at once, through two replicas, and while broker or database die: exactly
 * one whole result is stored, the newest wins, and no acknowledged result is lost
 * (docs/contract.md#signatures-and-attestations).
 */
import assert from 'node:assert/strict'
import http from 'node:http'
import { after, before, describe, type TestContext, test } from 'node:test'
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
import { depth, onlyFull } from '../support/depth.ts'
import { startLossyApp } from '../support/lossy.ts'
import type { Fate } from '../support/proxy.ts'
import { until } from '../support/until.ts'
import { bodyOf, imageOf, know, postResult, storedMarks } from './attestations.ts'

const ROUNDS = depth(4, 25)
const VERSIONS = 4
const SENDERS = depth(4, 6)
const IMAGES = 5
/** Acknowledged results before the fault and after the recovery. */
const BEFORE = depth(30, 60)
const AFTER = depth(20, 60)
const BROKER_KILLS = depth(1, 3)
/** The first attempt of a statement and its two repetitions. */
const ATTEMPTS = 3
/** Pause of a client after a refusal. */
const CLIENT_PAUSE_MS = depth(25, 5)

const shuffled = <T>(list: readonly T[]): T[] =>
  list
    .map((one) => ({ one, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ one }) => one)

const dataDir = createDataDir()
const start = () => startBroker({ dataDir, env: TOKENS })
let broker: Broker

before(async () => {
  broker = await start()
})

describe('different results of one image sent to two replicas at once', { timeout: 900_000 }, () => {
  const TWINS = ['a', 'b', 'c']
  let sql: ReturnType<typeof connectTo>
  let replicas: Broker[]
  /** The images before these are for the tests of death. */
  let images = IMAGES

  before(async () => {
    replicas = [broker, await start()]
    sql = connectTo(dataDir)
    await know(sql, IMAGES + 2 * ROUNDS)
  })

  after(async () => {
    await sql.end({ timeout: 1 })
    await replicas[1]!.stop()
  })

  test('the newest result is stored, and each result has at most one answer 201', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const image = images++
      const sent = shuffled(
        Array.from({ length: VERSIONS }, (_, n) => n + 1).flatMap((version) => replicas.map((to) => ({ version, to }))),
      )
      const answers = await Promise.all(
        sent.map(async ({ version, to }) => ({ version, reply: await postResult(to, bodyOf(image, version)) })),
      )
      const stored = answers.filter(({ reply }) => reply.status === 201).map(({ version }) => version)
      assert.equal(new Set(stored).size, stored.length)
      assert.ok(stored.includes(VERSIONS))
      for (const { version, reply } of answers) {
        assert.ok([200, 201, 409].includes(reply.status), reply.text)
        if (version === VERSIONS) assert.notEqual(reply.status, 409)
      }
      assert.equal((await storedMarks(sql)).get(imageOf(image)), String(VERSIONS))
    }
  })

  test('of several results of one time the first that is stored stays, and all others are 409', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const image = images++
      const sent = shuffled(TWINS.flatMap((twin) => replicas.map((to) => ({ twin, to }))))
      const answers = await Promise.all(
        sent.map(async ({ twin, to }) => ({ twin, reply: await postResult(to, bodyOf(image, 1, twin)) })),
      )
      const mark = (await storedMarks(sql)).get(imageOf(image))
      const won = answers.filter(({ twin }) => `1${twin}` === mark).map(({ reply }) => reply.status)
      assert.deepEqual(won.sort(), [200, 201])
      for (const { twin, reply } of answers) if (`1${twin}` !== mark) assert.equal(reply.status, 409, reply.text)
    }
  })
})

test('a post whose answers of the database are all lost is 503, and its repeat is 200', async () => {
  const lossy = await startLossyApp({}, TOKENS)
  await know(lossy.sql, 1)
  const post = (version: number) =>
    lossy.post(`/images/${imageOf(0)}/attestation`, bodyOf(0, version), TOKENS.BROKER_TOKEN_SUPPLYCHAIN)
  for (const version of [1, 2]) {
    lossy.lose('select store_attestation', ...Array<Fate>(ATTEMPTS).fill('answer lost'))
    assert.equal((await post(version)).status, 503)
    assert.equal(lossy.toCome, 0)
    assert.equal((await post(version)).status, 200)
    assert.equal((await storedMarks(lossy.sql)).get(imageOf(0)), String(version))
  }
})

/** The answers to all clients, by image. */
class Ledger {
  readonly #next = new Map<number, number>()
  /** The newest version that a broker said it stored. */
  readonly stored = new Map<number, number>()
  /** Versions without an answer, or refused: each may be stored or not. */
  readonly unknown = new Map<number, Set<number>>()

  next(image: number): number {
    const version = (this.#next.get(image) ?? 0) + 1
    this.#next.set(image, version)
    return version
  }

  acknowledge(image: number, version: number): void {
    this.stored.set(image, Math.max(version, this.stored.get(image) ?? 0))
  }

  doubt(image: number, version: number): void {
    this.unknown.set(image, (this.unknown.get(image) ?? new Set()).add(version))
  }
}

/** Clients that post newer results of shared images. */
class Stream {
  acknowledged = 0
  cut = 0
  /** Every answer except 201 and 409. */
  readonly refused: Reply[] = []
  #stopped = false
  readonly #clients: Promise<void>[]

  constructor(t: TestContext, broker: Broker, ledger: Ledger) {
    t.after(() => this.stop())
    this.#clients = Array.from({ length: SENDERS }, (_, client) => this.#post(broker, ledger, client))
  }

  async #post(broker: Broker, ledger: Ledger, client: number): Promise<void> {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    for (let n = client; !this.#stopped; n++) {
      const image = n % IMAGES
      const version = ledger.next(image)
      const reply = await postResult(broker, bodyOf(image, version), agent).catch(() => undefined)
      if (reply?.status === 201) {
        this.acknowledged++
        ledger.acknowledge(image, version)
      } else if (reply?.status !== 409) {
        // 409: another client sent a newer result of the same image, so this one is not stored.
        if (reply) this.refused.push(reply)
        else this.cut++
        ledger.doubt(image, version)
        await delay(CLIENT_PAUSE_MS)
      }
    }
    agent.destroy()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#clients)
  }
}

/** Each result is whole and not older than acknowledged, and is 200 when it is posted again. */
async function settle(broker: Broker, dataDir: string, ledger: Ledger): Promise<void> {
  const sql = connectTo(dataDir)
  try {
    const found = await storedMarks(sql)
    for (const [image, version] of ledger.stored) {
      const stored = Number(found.get(imageOf(image)))
      assert.ok(stored >= version, `image ${image}: ${version} was acknowledged, ${stored} is stored`)
      assert.ok(stored === version || ledger.unknown.get(image)?.has(stored), `image ${image}: nobody sent ${stored}`)
      assert.equal((await postResult(broker, bodyOf(image, stored))).status, 200)
    }
    assert.equal(ledger.stored.size, IMAGES)
  } finally {
    await sql.end({ timeout: 1 })
  }
}

const ledger = new Ledger()

describe('kill -9 of the broker', { timeout: 900_000 }, () => {
  test('while results are posted leaves each result whole and loses no acknowledged one', async (t) => {
    for (let kill = 0; kill < BROKER_KILLS; kill++) {
      const stream = new Stream(t, broker, ledger)
      await until('results are acknowledged', () => stream.acknowledged >= BEFORE)
      broker.kill('SIGKILL')
      assert.deepEqual(await broker.exited, { code: null, signal: 'SIGKILL' })
      await stream.stop()
      assert.ok(stream.cut >= SENDERS, 'every client had a result on its way')
      assert.deepEqual(stream.refused, [])

      broker = await start()
      await settle(broker, dataDir, ledger)
    }
  })
})

describe('the database dies while results are posted, and the broker stays up', { timeout: 900_000 }, () => {
  for (const [name, signal, skip] of [
    ['kill -9 of the postmaster', 'SIGKILL', false],
    ['an immediate stop', 'SIGQUIT', onlyFull],
  ] as const) {
    test(`${name}: only 503, then recovery by itself; each result is whole and no acknowledged one is lost`, {
      skip,
    }, async (t) => {
      const postmaster = postmasterPid(dataDir)!
      const stream = new Stream(t, broker, ledger)
      await until('results are acknowledged', () => stream.acknowledged >= BEFORE)
      assert.deepEqual(stream.refused, [])

      process.kill(postmaster, signal)
      await until('the database is gone', () => postmasterPid(dataDir) !== postmaster)
      const acknowledged = stream.acknowledged
      await until('results are acknowledged again', () => stream.acknowledged >= acknowledged + AFTER)
      await until('the broker is ready', async () => (await get(`${broker.admin}/readyz`)).status === 200)
      await stream.stop()

      assert.equal(broker.hasExited, false)
      assert.equal(stream.cut, 0, 'a request had no answer')
      for (const { status, headers, text } of stream.refused) {
        assert.equal(status, 503, text)
        assert.equal(headers['retry-after'], '1')
      }
      assert.equal(broker.stderr, '')
      await settle(broker, dataDir, ledger)
    })
  }

  test('after these faults the broker stops with 0', async () => {
    assert.deepEqual(await broker.stop(), { code: 0, signal: null })
    assert.equal(postmasterPid(dataDir), undefined)
  })
})
