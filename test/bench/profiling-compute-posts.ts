/** Posts as agents send them: of each node one after the other, rendered but for their time. */
import { CONTAINERS_PER_NODE, type Dataset, identityOf, nodeOf } from './profiling-compute-dataset.ts'
import { TOKENS } from './supply-chain-broker.ts'

/** As long as every time that takes its place. */
const NO_TIME = '0000-00-00T00:00:00.000Z'

interface Post {
  readonly path: string
  readonly body: unknown
}

/** As many as agents tell of. */
const CULPRITS = 10

/** Whom it waited for. */
const blameOf = (n: number, data: Dataset) =>
  Array.from({ length: CULPRITS }, (_, i) => {
    const { namespace, pod_name, container_uid } = identityOf((n + 1 + i) % data.containers, data)
    return {
      cgroup_id: 4_711 + n,
      kind: 'pod',
      ref: `${namespace}/${pod_name}/app`,
      container_uid,
      count: 90,
      wait_ns: 8_000_000 * (i + 1),
    }
  })
const runqOf = (n: number) => ({
  ...{ count: 400 + n, p50_us: 90, p95_us: 900, p99_us: 1_900, max_us: 4_000, overflow: 0 },
  hist: Array.from({ length: 24 }, (_, bucket) => (bucket < 13 ? n + bucket : 0)),
})
const pressure = { psi_some10: 12.5, psi_full10: 2.25 }
const cpuCounts = {
  quota_usec: 100_000,
  period_usec: 100_000,
  request_millis: 500,
  limit_millis: 1_000,
  nr_periods: 50,
  nr_throttled: 5,
  throttled_usec: 40_000,
}
const memoryCounts = {
  limit: 536_870_912,
  request: 268_435_456,
  events_high: 3,
  events_max: 2,
  oom_kill: 0,
  refault: 70,
  pgmajfault: 9,
}

/** What a node posts every few seconds. */
export const samplesOf = (node: number, data: Dataset): Post => ({
  path: '/pod/compute/batch',
  body: {
    ...{
      node: nodeOf(node),
      ts: NO_TIME,
      interval_ms: 5_000,
      ctxt_per_sec: 1_200.5,
      contention_loaded: true,
      unknown_blame_share: 0.125,
    },
    node_pressure: { cpu_some10: 10.5, cpu_full10: 1.25, mem_some10: 1, mem_full10: 0.5 },
    node_capacity: { cpu_cores: 16, memory_bytes: 68_719_476_736 },
    bpf_occupancy: { runq_enqueued: 11, runq_hist: 12, pair: 13 },
    containers: containersOf(node, (n) => ({
      ...identityOf(n, data),
      cgroup_id: 4_711 + n,
      cpu: { usage_usec: 2_500_000 + n, ...cpuCounts, ...pressure },
      memory: { current: 300_000_000 + n, working_set: 200_000_000, ...memoryCounts, ...pressure },
      runq: runqOf(n),
      blame: blameOf(n, data),
    })),
  },
})

const gauge = (avg: number) => ({ avg, max: avg + 100, last: avg + 10 })
const pressures = { psi_some10: { avg: 4.5, max: 12.25 }, psi_full10: { avg: 0.5, max: 1.75 } }

/** What it posts once a minute. */
export const minutesOf = (node: number, data: Dataset): Post => ({
  path: '/pod/compute/history/batch',
  body: {
    ...{ node: nodeOf(node), ts: NO_TIME, interval_ms: 60_000, resolution_secs: 60 },
    containers: containersOf(node, (n) => ({
      ...identityOf(n, data),
      cgroup_id: 4_711 + n,
      samples: 12,
      cpu: { usage_usec: 30_000_000, usage_millis: gauge(500 + (n % 400)), ...cpuCounts, ...pressures },
      memory: { current: gauge(300_000_000 + n), working_set: gauge(200_000_000), ...memoryCounts, ...pressures },
      runq: runqOf(n),
      blame: blameOf(n, data),
    })),
  },
})

const containersOf = (node: number, one: (n: number) => unknown) =>
  Array.from({ length: CONTAINERS_PER_NODE }, (_, i) => one(node * CONTAINERS_PER_NODE + i))

/** Of all nodes in turn. No two have the same time, to the millisecond, so that each is new. */
export class Posts {
  /** Of one post. */
  readonly rows = CONTAINERS_PER_NODE
  readonly #rendered: readonly (readonly [before: Buffer, after: Buffer])[]
  #lastMs = 0

  constructor(postOf: (node: number, data: Dataset) => Post, data: Dataset) {
    this.#rendered = Array.from({ length: data.nodes }, (_, node) => {
      const { path, body } = postOf(node, data)
      const text = JSON.stringify(body)
      const head = `POST ${path} HTTP/1.1\r\nhost: broker\r\nauthorization: Bearer ${TOKENS.BROKER_TOKEN_INGEST}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n`
      const [before, after] = `${head}${text}`.split(NO_TIME) as [string, string]
      return [Buffer.from(before), Buffer.from(after)]
    })
  }

  /** Number `i`. */
  next(i: number): Buffer {
    this.#lastMs = Math.max(Date.now(), this.#lastMs + 1)
    const [before, after] = this.#rendered[i % this.#rendered.length]!
    return Buffer.concat([before, Buffer.from(new Date(this.#lastMs).toISOString()), after])
  }
}
