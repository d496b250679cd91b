/** Agents that post to all brokers and read all the time, never repeat a post, and remember every answer. */
import http from 'node:http'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type postgres from 'postgres'
import { type Broker, flow, request } from '../../support/broker.ts'
import { podPost } from '../../support/records.ts'

const AGENTS_PER_BROKER = 3
const BATCH_FLOWS = 5
/** Pause after an acknowledged post; agents wait longer after a refused one. */
const PAUSE_MS = 10
const REFUSED_PAUSE_MS = 100

let nextFlow = 1

/** Flows that nobody has posted before. Their time is now, so that no job deletes them. */
export const newFlows = (count: number) =>
  Array.from({ length: count }, () => ({ ...flow(nextFlow++), time_stamp: presentTime() }))

const presentTime = () => new Date().toISOString().slice(0, 23)

const keptAlive = () => new http.Agent({ keepAlive: true, maxSockets: 1 })

/** The answers of one broker since the last `reset`. */
class Times {
  #acknowledgedAt = performance.now()
  longestGapMs = 0
  slowestMs = 0
  /** Posts acknowledged. */
  count = 0

  answered(isAcknowledged: boolean, startedAt: number): void {
    const now = performance.now()
    this.slowestMs = Math.max(this.slowestMs, now - startedAt)
    if (!isAcknowledged) return
    this.longestGapMs = Math.max(this.longestGapMs, now - this.#acknowledgedAt)
    this.#acknowledgedAt = now
    this.count++
  }

  reset(): void {
    this.longestGapMs = 0
    this.slowestMs = 0
    this.count = 0
  }
}

export class Agents {
  /** Acknowledged flows, by uuid. */
  readonly acknowledged: string[] = []
  /** Counts of answers by status, and of requests without one by the code of their error. */
  readonly answers = new Map<number | string, number>()
  /** Acknowledged posts whose answer is not that of new flows. */
  readonly wrong: string[] = []
  /** The last acknowledged version of each pod, and the last one that was posted. */
  readonly #pods = new Map<string, { acknowledged: number; posted: number }>()
  readonly #times: ReadonlyMap<Broker, Times>
  readonly #loops: Promise<void>[]
  #isStopped = false

  /** The agents stop with the test. */
  constructor(t: TestContext, brokers: readonly Broker[]) {
    this.#times = new Map(brokers.map((broker) => [broker, new Times()]))
    this.#loops = brokers.flatMap((broker, at) =>
      Array.from({ length: AGENTS_PER_BROKER }, (_, agent) => this.#run(broker, `web-${at}-${agent}`)),
    )
    t.after(() => this.stop())
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#loops)
  }

  get refused(): number {
    return this.answers.get(503) ?? 0
  }

  /** Begins a new measurement. */
  reset(): void {
    for (const times of this.#times.values()) times.reset()
  }

  /** The fewest posts that a broker acknowledged since `reset`. */
  get fewest(): number {
    return Math.min(...[...this.#times.values()].map(({ count }) => count))
  }

  /** The longest time since `reset` in which a broker acknowledged nothing, of all brokers. */
  get longestGapMs(): number {
    return Math.max(...[...this.#times.values()].map(({ longestGapMs }) => longestGapMs))
  }

  /** The longest time that a post waited for its answer since `reset`. */
  get slowestMs(): number {
    return Math.max(...[...this.#times.values()].map(({ slowestMs }) => slowestMs))
  }

  async #run(broker: Broker, pod: string): Promise<void> {
    const agent = keptAlive()
    for (let turn = 0; !this.#isStopped; turn++) {
      const isAcknowledged = await this.#post(broker, pod, turn, agent)
      await delay(isAcknowledged ? PAUSE_MS : REFUSED_PAUSE_MS)
    }
    agent.destroy()
  }

  async #post(broker: Broker, pod: string, turn: number, agent: http.Agent): Promise<boolean> {
    const startedAt = performance.now()
    const send = async (path: string, body?: unknown) => {
      const options = body === undefined ? { agent } : { agent, method: 'POST', body: JSON.stringify(body) }
      const answer = await request(`${broker.url}${path}`, options).catch((error: NodeJS.ErrnoException) => ({
        status: error.code ?? error.message,
        json: undefined,
        text: '',
      }))
      this.answers.set(answer.status, (this.answers.get(answer.status) ?? 0) + 1)
      if (body !== undefined) this.#times.get(broker)!.answered(answer.status === 200, startedAt)
      return answer
    }
    if (turn % 4 === 3) return (await send('/pod/traffic?limit=10')).status === 200
    if (turn % 4 === 0) {
      const versions = this.#pods.get(pod) ?? { acknowledged: 0, posted: 0 }
      this.#pods.set(pod, versions)
      versions.posted++
      const { status } = await send(
        '/pod/spec',
        podPost({ pod_name: pod, pod_identity: `v${versions.posted}`, time_stamp: presentTime() }),
      )
      if (status === 200) versions.acknowledged = versions.posted
      return status === 200
    }
    const isBatch = turn % 4 === 1
    const flows = newFlows(isBatch ? BATCH_FLOWS : 1)
    const { status, json, text } = await send(`/pod/traffic${isBatch ? '/batch' : ''}`, isBatch ? flows : flows[0])
    if (status !== 200) return false
    this.acknowledged.push(...flows.map(({ uuid }) => uuid))
    if (isBatch ? json !== flows.length : json?.uuid !== flows[0]!.uuid) this.wrong.push(text.slice(0, 200))
    return true
  }

  /** Acknowledged flows that the database lacks, flows that it has more than once, and pods that are older there. */
  async compare(sql: postgres.Sql): Promise<{ missing: string[]; repeated: string[]; olderPods: string[] }> {
    const rows = await sql<{ uuid: string; count: number }[]>`
      select uuid, count(*)::int as count from traffic group by uuid`
    const stored = new Map(rows.map(({ uuid, count }) => [uuid, count]))
    const pods = await sql<{ pod_name: string; pod_identity: string }[]>`select pod_name, pod_identity from pod`
    const versions = new Map(pods.map(({ pod_name, pod_identity }) => [pod_name, Number(pod_identity.slice(1))]))
    return {
      missing: this.acknowledged.filter((uuid) => !stored.has(uuid)),
      repeated: rows.filter(({ count }) => count > 1).map(({ uuid }) => uuid),
      olderPods: [...this.#pods].flatMap(([name, { acknowledged }]) =>
        acknowledged > (versions.get(name) ?? 0) ? [`${name} v${acknowledged}, stored v${versions.get(name)}`] : [],
      ),
    }
  }
}

const MEASURED_POSTS = 600
const WARM_UP_POSTS = 200

/** Batches of new flows that are acknowledged in a second, over all brokers, with so many posts at once. */
export async function acknowledgedPerSecond(brokers: readonly Broker[], atOnce: number): Promise<number> {
  const agents = Array.from({ length: atOnce }, keptAlive)
  const run = async (posts: number) => {
    const startedAt = performance.now()
    let left = posts
    await Promise.all(
      agents.map(async (agent, at) => {
        const { url } = brokers[at % brokers.length]!
        while (left-- > 0) {
          const body = JSON.stringify(newFlows(BATCH_FLOWS))
          const { status, text } = await request(`${url}/pod/traffic/batch`, { method: 'POST', body, agent })
          if (status !== 200) throw new Error(`${status} ${text}`)
        }
      }),
    )
    return Math.round((posts / (performance.now() - startedAt)) * 1_000)
  }
  try {
    await run(WARM_UP_POSTS)
    return await run(MEASURED_POSTS)
  } finally {
    for (const agent of agents) agent.destroy()
  }
}
