/** Node agents: each repeats a post with the same uuids until it is acknowledged, to any broker. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Client, Reply } from './client.ts'
import { type Flows, Ledger, type Series, uuidOf, type Versions } from './ledger.ts'

export const AGENTS = 4
const PODS_OF_AN_AGENT = 10
const SERVICES_OF_AN_AGENT = 3
const SYSCALL_NAMES = 400
const LARGEST_BATCH = 100
const [SHORTEST_PAUSE_MS, LONGEST_PAUSE_MS] = [200, 1_000]

const podName = (agent: number, k: number) => `storm-${agent}-${k}`
const podAddress = (agent: number, k: number) => `172.20.${agent}.${k + 1}`
const now = () => new Date().toISOString().slice(0, -1)
const random = (from: number, to: number) => from + Math.floor(Math.random() * (to - from + 1))

/** Flow number `n`, which differs from all others in each of the three keys. */
function flow(series: Series, n: number) {
  const agent = n % AGENTS
  const k = n % PODS_OF_AN_AGENT
  return {
    uuid: uuidOf(series, n),
    pod_name: podName(agent, k),
    pod_namespace: 'storm',
    pod_ip: podAddress(agent, k),
    pod_port: '0',
    ip_protocol: n % 10 === 0 ? 'UDP' : 'TCP',
    traffic_type: 'EGRESS',
    traffic_in_out_ip: `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`,
    traffic_in_out_port: '443',
    decision: 'ALLOW',
    time_stamp: now(),
  }
}

export class Agents {
  readonly #client: Client
  readonly #ledger: Ledger
  #stopped = false
  #loops: Promise<void>[] = []
  /** Count of requests answered 200. */
  answered = 0

  constructor(client: Client, ledger: Ledger) {
    this.#client = client
    this.#ledger = ledger
  }

  start(): void {
    for (let agent = 0; agent < AGENTS; agent++) {
      this.#loop(300, 900, () => this.#batch(random(1, LARGEST_BATCH)))
      this.#loop(20, 120, () => this.#single())
      this.#loop(50, 200, () => this.#pod(agent, random(0, PODS_OF_AN_AGENT - 1)))
      this.#loop(200, 800, () => this.#syscalls(agent, random(0, PODS_OF_AN_AGENT - 1)))
      this.#loop(300, 1_500, () => this.#service(agent, random(0, SERVICES_OF_AN_AGENT - 1)))
    }
    this.#loop(200, 800, () => this.#twins(random(1, 20)))
    this.#loop(100, 400, () => this.#repeat())
  }

  /** Stops after the posts under way have been acknowledged. */
  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#loops)
  }

  #loop(fromMs: number, toMs: number, step: () => Promise<void>): void {
    const run = async () => {
      while (!this.#stopped) {
        await step()
        await delay(random(fromMs, toMs))
      }
    }
    this.#loops.push(run())
  }

  /** Posts until the answer is 200; returns the count of attempts. `onFailure` is called for each failed attempt. */
  async #post(
    path: string,
    body: object,
    onFailure: () => void = () => {},
  ): Promise<{ reply: Reply; attempts: number }> {
    const text = JSON.stringify(body)
    for (let attempts = 1; ; attempts++) {
      const reply = await this.#client.send('POST', path, text)
      if (reply.status === 200) {
        this.answered++
        return { reply, attempts }
      }
      onFailure()
      await delay(Math.max(reply.retryAfterMs * (0.5 + Math.random() / 2), random(SHORTEST_PAUSE_MS, LONGEST_PAUSE_MS)))
    }
  }

  async #batch(count: number): Promise<void> {
    await this.#flows('f', this.#ledger.take(count), count, true)
  }

  /** `fresh`: no other agent posts these flows, so that the first attempt stores them all. */
  async #flows(series: Series, from: number, count: number, fresh: boolean): Promise<Flows> {
    const body = Array.from({ length: count }, (_, k) => flow(series, from + k))
    const { reply, attempts } = await this.#post('/pod/traffic/batch', body)
    const claimed = Number(reply.text)
    const at = Date.now()
    if (fresh && attempts === 1 && claimed !== count)
      this.#mistaken(reply, `${claimed} of ${count} flows`, uuidOf(series, from))
    const flows = { from, count, series, claimed, at }
    if (series !== 'e') this.#ledger.acknowledge(flows)
    return flows
  }

  async #single(): Promise<void> {
    const n = this.#ledger.take(1)
    const { reply, attempts } = await this.#post('/pod/traffic', flow('f', n))
    const stored = reply.text.includes(uuidOf('f', n))
    if (attempts === 1 && !stored) this.#mistaken(reply, 'null', uuidOf('f', n))
    this.#ledger.acknowledge({ from: n, count: 1, series: 'f', claimed: stored ? 1 : 0, at: Date.now() })
  }

  #mistaken(reply: Reply, answer: string, uuid: string): void {
    const detail = `${reply.broker} answered ${answer} to the first post of new flows, request ${reply.requestId}, from ${uuid}`
    this.#client.record.violation('a new flow is not called a duplicate', detail, reply.startedAt)
  }

  /** The same flows in two posts at once: each flow is stored once. */
  async #twins(count: number): Promise<void> {
    const from = this.#ledger.take(count)
    await Promise.all([this.#flows('f', from, count, false), this.#flows('d', from, count, false)])
  }

  /** Acknowledged flows under other uuids: they are duplicates for every broker. */
  async #repeat(): Promise<void> {
    const known = this.#ledger.someAcknowledged()
    if (!known) return
    const count = Math.min(known.count, 20)
    const { claimed } = await this.#flows('e', known.from, count, false)
    if (claimed > 0) {
      const detail = `${claimed} repeats of ${uuidOf(known.series, known.from)} were stored, acknowledged ${new Date(known.at).toISOString()}`
      this.#client.record.violation('no flow is stored twice', detail, known.at)
    }
  }

  async #versioned(
    of: Map<string, Versions>,
    key: string,
    path: string,
    body: (version: number) => object,
  ): Promise<void> {
    const one = Ledger.version(of, key)
    const version = one.acknowledged + 1
    const { reply } = await this.#post(path, body(version), () => one.unsure.add(version))
    one.acknowledged = version
    one.requestId = reply.requestId
  }

  /** One post at a time: an agent waits for the answer before it posts the pod again. */
  async #pod(agent: number, k: number): Promise<void> {
    const name = podName(agent, k)
    await this.#versioned(this.#ledger.pods, name, '/pod/spec', (version) => ({
      pod_name: name,
      pod_ip: podAddress(agent, k),
      pod_namespace: 'storm',
      node_name: `node-${agent}`,
      is_dead: false,
      pod_identity: `v${version}`,
      started_at: '2026-01-01T00:00:00',
      workload_kind: 'Deployment',
      workload_name: `storm-${agent}`,
      pod_obj: {
        metadata: { name, uid: `uid-${agent}-${k}`, labels: { version: String(version) } },
        spec: { hostNetwork: false },
      },
      time_stamp: now(),
    }))
  }

  async #service(agent: number, k: number): Promise<void> {
    const address = `10.255.${agent}.${k + 1}`
    await this.#versioned(this.#ledger.services, address, '/svc/spec', (version) => ({
      svc_ip: address,
      svc_name: `service-${version}`,
      svc_namespace: 'storm',
      service_spec: { spec: { clusterIP: address, selector: { version: String(version) } } },
      time_stamp: now(),
    }))
  }

  async #syscalls(agent: number, k: number): Promise<void> {
    const name = podName(agent, k)
    const names = Array.from({ length: random(1, 5) }, () => `call_${random(1, SYSCALL_NAMES)}`)
    await this.#post('/pod/syscalls', [
      { pod_name: name, pod_namespace: '', syscalls: names, arch: 'x86_64', time_stamp: now() },
    ])
    const acknowledged = this.#ledger.syscalls.get(name) ?? new Set()
    this.#ledger.syscalls.set(name, acknowledged)
    for (const one of names) acknowledged.add(one)
  }
}

const PATHS = [
  ...[
    '/pod/info',
    '/pod/namespaces',
    '/svc/info',
    '/node/status',
    '/pod/traffic?limit=10',
    '/pod/traffic?limit=5000',
    '/audit/verdicts',
  ],
  ...[
    '/pod/list/node-1',
    '/pod/name/storm-1-1',
    '/pod/ip/172.20.1.2',
    '/pod/syscalls/storm-1-1',
    '/svc/ip/10.255.1.1',
    '/health',
    '/metrics',
  ],
]

/** Readers that send random requests one after the other. Each answer 200 must be whole. */
export class Readers {
  #stopped = false
  #loops: Promise<void>[] = []

  constructor(client: Client, count: number) {
    this.#loops = Array.from({ length: count }, async () => {
      while (!this.#stopped) {
        const path = PATHS[random(0, PATHS.length - 1)]!
        const { status, text, requestId } = await client.send('GET', path, null)
        if (status === 200 && /^[[{]/.test(text) && !/[\]}]$/.test(text)) {
          client.record.violation('a list is whole', `GET ${path}, ${text.length} characters, request ${requestId}`)
        }
        await delay(random(50, 300))
      }
    })
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await Promise.all(this.#loops)
  }
}
