/**
 * Followers of flows on several replicas behind a pooler, while agents post and replicas are killed. Each follower
 * keeps a file as a real reader does: what came behind its last token is dropped when its connection ends.
 */
import http from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { type Broker, flow, post, startBroker } from '../support/broker.ts'
import { startPooler } from '../support/pooler.ts'
import { until } from '../support/until.ts'

const POSTERS = 8
const BATCH_FLOWS = 5
const RETRY_MS = 50
const LONGEST_DELAY_MS = 60_000

/** Brokers of an earlier storm remember its flows. */
let nextFlow = 1

export interface StormOptions {
  databaseUrl: string
  /** How many to start, or those that run. */
  replicas: number | Broker[]
  followers: number
  /** Between two batches of a poster. */
  pauseMs: number
}

class FollowingReader {
  readonly #storm: Storm
  readonly #url: () => string
  /** The flows of its file by number: a hundred files of a million flows fit in memory. */
  readonly flows: number[] = []
  updates = 0
  connections = 0
  #unsure: number[] = []
  #unsureUpdates = 0
  #resume = ''
  #isStopped = false
  readonly done: Promise<void>

  /** `url` of where it asks; by default any replica. */
  constructor(storm: Storm, url = () => storm.anyUrl()) {
    this.#storm = storm
    this.#url = url
    this.done = this.#run()
  }

  stop(): void {
    this.#isStopped = true
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      await this.#follow().catch(() => {})
      this.#unsure = []
      this.#unsureUpdates = 0
      if (!this.#isStopped) await delay(RETRY_MS)
    }
  }

  #follow(): Promise<void> {
    const start = this.#resume === '' ? '&since=2000-01-01T00:00:00' : `&resume=${this.#resume}`
    const url = `${this.#url()}/flows?follow=true&fields=uuid${start}`
    return new Promise((resolve, reject) => {
      const request = http.get(url, { agent: false }, (answer) => {
        if (answer.statusCode !== 200) {
          answer.resume()
          this.#storm.refusals.push(answer.statusCode!)
          reject(new Error(`${answer.statusCode}`))
          return
        }
        this.connections++
        let text = ''
        answer.setEncoding('utf8')
        answer.on('data', (part: string) => {
          text += part
          const lines = text.split('\n')
          text = lines.pop()!
          for (const line of lines) this.#take(JSON.parse(line))
          if (this.#isStopped) request.destroy()
        })
        answer.once('close', resolve)
        answer.once('error', reject)
      })
      request.once('error', reject)
      const stopped = setInterval(() => {
        if (this.#isStopped) request.destroy()
      }, RETRY_MS)
      request.once('close', () => clearInterval(stopped))
    })
  }

  #take(line: { uuid?: string; update?: boolean; resume?: string }): void {
    if (line.uuid !== undefined) {
      if (line.update) this.#unsureUpdates++
      else {
        const number = this.#storm.numberOf(line.uuid)
        this.#unsure.push(number)
        this.#storm.noteLine(number)
      }
      return
    }
    this.flows.push(...this.#unsure)
    this.updates += this.#unsureUpdates
    this.#unsure = []
    this.#unsureUpdates = 0
    this.#resume = line.resume!
  }
}

export class Storm {
  readonly #options: StormOptions
  readonly #databaseUrl: string
  readonly brokers: Broker[] = []
  readonly readers: FollowingReader[] = []
  readonly refusals: number[] = []
  /** How many lines of followers came so many milliseconds after the answer to the post; the last one is "or more". */
  readonly delays = new Uint32Array(LONGEST_DELAY_MS + 1)
  readonly #numbers = new Map<string, number>()
  readonly #answeredAt: number[] = []
  #posters: Promise<void>[] = []
  #isPosting = true
  #asked = 0
  stored = 0
  kills = 0

  private constructor(options: StormOptions, databaseUrl: string) {
    this.#options = options
    this.#databaseUrl = databaseUrl
  }

  static async start(options: StormOptions): Promise<Storm> {
    const { connection } = await startPooler(options.databaseUrl, 'swallowed')
    const { host, port, user, database } = connection
    const storm = new Storm(options, `postgres://${user}@${host}:${port}/${database}`)
    if (typeof options.replicas === 'number')
      for (let n = 0; n < options.replicas; n++) storm.brokers.push(await storm.#startBroker())
    else storm.brokers.push(...options.replicas)
    for (let n = 0; n < options.followers; n++) storm.readers.push(new FollowingReader(storm))
    storm.#posters = Array.from({ length: POSTERS }, () => storm.#post())
    return storm
  }

  #startBroker(): Promise<Broker> {
    return startBroker({ databaseUrl: this.#databaseUrl, env: { MIGRATE_ON_START: 'false' } })
  }

  /** Of each replica in turn: every replica has readers. */
  anyUrl(): string {
    return this.brokers[this.#asked++ % this.brokers.length]!.url
  }

  numberOf(uuid: string): number {
    const number = this.#numbers.get(uuid)
    if (number === undefined) throw new Error(`nobody posted ${uuid}`)
    return number
  }

  /** A line may come before the answer to the post. */
  noteLine(number: number): void {
    const at = this.#answeredAt[number] ?? performance.now()
    this.delays[Math.min(Math.round(performance.now() - at), LONGEST_DELAY_MS)]! += 1
  }

  /** The delay in milliseconds that this share of the lines had at most. */
  delayMs(share: number): number {
    let left = share * this.delays.reduce((sum, count) => sum + count, 0)
    return this.delays.findIndex((count) => {
      left -= count
      return left <= 0
    })
  }

  /** Adds a reader that asks elsewhere, as through a proxy. */
  addReader(url: string): void {
    this.readers.push(new FollowingReader(this, () => url))
  }

  /** Kills the oldest replica and starts another one. */
  async killOne(): Promise<void> {
    this.brokers.shift()!.kill()
    this.kills++
    this.brokers.push(await this.#startBroker())
  }

  async #post(): Promise<void> {
    while (this.#isPosting) {
      const numbers = Array.from({ length: BATCH_FLOWS }, () => nextFlow++)
      const batch = numbers.map((number) => flow(number))
      for (const [i, { uuid }] of batch.entries()) this.#numbers.set(uuid as string, numbers[i]!)
      // Posting again is safe, whatever became of the first attempt.
      for (;;) {
        const answer = await post(`${this.anyUrl()}/pod/traffic/batch`, batch, { agent: false as never }).catch(
          () => null,
        )
        if (answer?.status === 200) break
        await delay(RETRY_MS)
      }
      const now = performance.now()
      for (const number of numbers) this.#answeredAt[number] = now
      this.stored += batch.length
      await delay(this.#options.pauseMs)
    }
  }

  /** Stops the posters, waits until every reader has all flows, and ends the readers. */
  async finish(): Promise<void> {
    this.#isPosting = false
    await Promise.all(this.#posters)
    await until('every reader has as many flows as were posted', () =>
      this.readers.every(({ flows }) => flows.length >= this.stored),
    )
    for (const reader of this.readers) reader.stop()
    await Promise.all(this.readers.map(({ done }) => done))
  }
}
