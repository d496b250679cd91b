/** Requests of agents and scanners to be measured, made from the bodies of the other benchmarks. */
import { gzipSync } from 'node:zlib'
import { flowBatch, podAddress, podName, podSpec, syscalls } from '../bodies.ts'
import { post } from '../client.ts'
import { CONTAINERS_PER_NODE, datasetOf, identityOf } from '../profiling-compute-dataset.ts'
import { minutesOf, samplesOf } from '../profiling-compute-posts.ts'
import { request } from '../reads.ts'
import { TOKENS } from '../supply-chain-broker.ts'
import { Dataset, imageDigest } from '../supply-chain-dataset.ts'
import { ranPath } from '../workloads-data.ts'
import { DEFAULTS } from './parameters.ts'

/** Combinations of a namespace and a workload name in `podSpec`. */
const WORKLOADS = 40 * 97
export const NAMESPACES = 40
const IMAGES = 400
/** Images with findings: those of the first workloads. */
export const SCANNED_IMAGES = 100
export const scans = new Dataset({
  images: SCANNED_IMAGES,
  findings: 1_000,
  workloads: SCANNED_IMAGES,
  namespaces: NAMESPACES,
})
export const COMPONENTS = 1_000

/** Naive UTC, so many seconds before now. */
const ago = (secs: number) => new Date(Date.now() - secs * 1_000).toISOString().slice(0, -1)

const workloadOf = (pod: number) => pod % WORKLOADS
const imageOf = (pod: number) => imageDigest(workloadOf(pod) % IMAGES)
const owner = (pod: number) => ({
  pod_namespace: `shop-${pod % NAMESPACES}`,
  workload_kind: 'Deployment',
  workload_name: `checkout-api-${pod % 97}`,
})

/** Each second pod has two containers. */
export function pod(i: number, node = `node-${i % 50}`, count = 1 + (i % 2)): Buffer {
  const container = (name: string, digest: string) => ({
    ...{ name, kind: 'regular', image: `registry.example.test/shop/${name}:1.2.3`, digest, digest_kind: 'repo' },
    ...{ repository: `registry.example.test/shop/${name}`, tag: '1.2.3', state: 'running' },
  })
  const containers = [container('app', imageOf(i)), container('proxy', imageDigest(i % 4))].slice(0, count)
  return post(
    '/pod/spec',
    JSON.stringify({ ...JSON.parse(podSpec(i)), time_stamp: ago(0), node_name: node, containers }),
  )
}

export const service = (i: number) =>
  post(
    '/svc/spec',
    JSON.stringify({
      ...{ svc_ip: `10.96.${i >> 8}.${i & 255}`, svc_name: `checkout-api-${i % 97}`, time_stamp: ago(0) },
      svc_namespace: `shop-${i % NAMESPACES}`,
      service_spec: {
        metadata: { name: `checkout-api-${i % 97}`, uid: podName(i) },
        spec: {
          selector: { 'app.kubernetes.io/name': `checkout-api-${i % 97}` },
          ports: [{ name: 'http', port: 80, targetPort: 8_080, protocol: 'TCP' }],
        },
      },
    }),
  )

export const nodeFacts = (i: number) =>
  post(
    '/node/facts',
    JSON.stringify({
      ...{ node_name: `node-${i}`, provider: 'aws', distro: 'eks', cni: 'cilium', ip_family: 'ipv4' },
      ...{ node_os: 'bottlerocket', policy_enforcement: 'enforced' },
    }),
  )

export const podSyscalls = (i: number) => post('/pod/syscalls', syscalls(i, ago(0)))

/** Of so many batches a pod takes part in one, with so many flows, each over another edge of its workload. */
const PODS_PER_BATCH = 5
const PORTS = ['443', '8080', '5432', '6379', '9092']

/** Batch number `b`: the peers of a workload are the pods of twenty workloads, and a few addresses outside. */
export function flows(b: number, pods: number, size = 100): Buffer[] {
  const batch = JSON.parse(flowBatch(b, pods)) as Record<string, string>[]
  const changed = batch.map((flow, k) => {
    const source = (b * PODS_PER_BATCH + (k % PODS_PER_BATCH)) % pods
    const edge = Math.floor(k / PODS_PER_BATCH)
    const peer = (workloadOf(source) * 7 + edge * 131) % WORKLOADS
    // The peers of a later round are other pods of these workloads.
    const round = Math.floor((b * PODS_PER_BATCH) / pods)
    const replica = (Math.floor(source / WORKLOADS) + round) % Math.max(1, Math.ceil(pods / WORKLOADS))
    const port = PORTS[edge % PORTS.length]!
    const isOutgoing = flow.traffic_type === 'EGRESS'
    return {
      ...flow,
      traffic_in_out_ip: edge >= 18 ? `52.${peer % 200}.7.${edge}` : podAddress((peer + replica * WORKLOADS) % pods),
      traffic_in_out_port: isOutgoing ? port : '0',
      pod_port: isOutgoing ? '0' : port,
    }
  })
  const parts = Array.from({ length: 100 / size }, (_, i) => changed.slice(i * size, (i + 1) * size))
  return parts.map((part) => post('/pod/traffic/batch', JSON.stringify(part)))
}

const digits = (n: number, length: number) => String(n).padStart(length, '0')
const containerId = (pod: number, name: string) => `${name}0${digits(pod, 60)}`

/** The file number `j` of the container of a workload. */
const executable = (workload: number, j: number, lastSeenSecs: number) => ({
  ...owner(workload),
  ...{ pod_name: podName(workload), container_name: 'app', image_digest: imageOf(workload) },
  ...{ kind: j % 4 === 0 ? 'exec' : 'lib', path: `${ranPath(workload % IMAGES, j, COMPONENTS)}-${j}` },
  ...{ path_complete: true, source: 'ebpf', origin: 'image', first_seen: ago(7_200), last_seen: ago(lastSeenSecs) },
})

/** All files of the container of a workload, when it starts. */
export const startedExecutables = (workload: number) =>
  post(
    '/runtime/executables',
    JSON.stringify(Array.from({ length: DEFAULTS.executablesPerContainer }, (_, j) => executable(workload, j, 3_600))),
  )

/** Files that a node repeats at a time. */
export const REPEATED_FILES = 20
export const repeatedExecutables = (i: number, workloads: number) =>
  post(
    '/runtime/executables',
    JSON.stringify(
      Array.from({ length: REPEATED_FILES }, (_, j) =>
        executable(
          i % workloads,
          (Math.floor(i / workloads) * REPEATED_FILES + j) % DEFAULTS.executablesPerContainer,
          1,
        ),
      ),
    ),
  )

/** Heartbeats of the containers of node `i`, of which the first pod is `first`. */
export const heartbeats = (i: number, agoSecs: number, count = CONTAINERS_PER_NODE, first = i * count) =>
  post(
    '/runtime/coverage',
    JSON.stringify(
      Array.from({ length: count }, (_, k) => ({
        ...owner(first + k),
        ...{ pod_name: podName(first + k), container_name: 'app', image_digest: imageOf(first + k) },
        ...{ container_id: containerId(first + k, 'a'), node_name: `node-${i}`, mode: 'full' },
        ...{ exec_probe: true, lib_probe: true, cap_probe: true, cap_hook: 'cap_capable', start_mode: 'start' },
        ...{ tracking_since: ago(7_200), events_dropped: 0, unsent: 0, incomplete: false, ended: false },
        ...{ heartbeat_at: ago(agoSecs), heartbeat_secs: DEFAULTS.heartbeatSecs },
      })),
    ),
  )

const CAPABILITIES = ['CHOWN', 'SETUID', 'SETGID', 'NET_BIND_SERVICE', 'DAC_OVERRIDE']
export const CAPABILITY_CONTAINERS = 8
/** Checks of some containers. */
export const capabilities = (i: number) =>
  post(
    '/runtime/capabilities',
    JSON.stringify(
      Array.from({ length: CAPABILITY_CONTAINERS }, (_, k) => i * CAPABILITY_CONTAINERS + k).flatMap((workload) =>
        CAPABILITIES.map((capability, c) => ({
          ...owner(workload),
          ...{ pod_name: podName(workload), container_name: 'app', image_digest: imageOf(workload), capability },
          ...{ granted: c % 2 === 0, probed: false, count: 3, first_seen: ago(300), last_seen: ago(0) },
        })),
      ),
    ),
  )

const DENIED = ['ptrace', 'mount', 'bpf', 'keyctl', 'unshare']
export const DENIALS_PER_POST = 50
/** A drain with denials of some pods. */
export const denials = (i: number) => {
  const seen = { firstSeen: `${ago(60)}Z`, lastSeen: `${ago(0)}Z` }
  return drain(
    `node-${i % 50}`,
    Array.from({ length: DENIALS_PER_POST }, (_, k) => {
      const n = Math.floor((i * DENIALS_PER_POST + k) / DENIED.length)
      return {
        ...{ podUid: podName(n), podName: podName(n), podNamespace: `shop-${n % NAMESPACES}` },
        ...{ syscall: DENIED[k % DENIED.length], syscallNr: 101 + (k % DENIED.length), action: 'SCMP_ACT_LOG' },
        ...{ arch: 'x86_64', count: 3, ...seen },
      }
    }),
  )
}
export const drain = (node: string, entries: readonly unknown[] = []) =>
  post('/seccomp/denials', JSON.stringify({ node, capturing: true, intervalSeconds: 10, denials: entries }))

const FILES_PER_NODE = 30
export const nodeFiles = (node: string) => {
  const files = Array.from({ length: FILES_PER_NODE }, (_, n) => ({
    path: `kguardian/shop-${n % NAMESPACES}/deployment-checkout-api-${n}.json`,
    hash: digits(n, 16),
  }))
  return post('/seccomp/node-status', JSON.stringify({ node_name: node, files }))
}

const scannerPost = (digest: string, kind: 'vulnerabilities' | 'sbom', body: string) =>
  request('POST', `/images/${digest}/${kind}`, TOKENS.BROKER_TOKEN_SUPPLYCHAIN, gzipSync(body), 'gzip')
/** What scanners found in an image, and how many findings that is. */
export const findings = (image: number, at: string) =>
  scans
    .payloads(image, { number: 0, at })
    .map(({ body, rows }) => ({ rows, bytes: scannerPost(imageDigest(image), 'vulnerabilities', body) }))
export const sbom = (image: number) => scannerPost(imageDigest(image), 'sbom', scans.sbom(image, COMPONENTS))

/** One node of containers. */
const ONE_NODE = datasetOf(1 / 300)
const MANY_NODES = datasetOf(1)
const MINUTE = minutesOf(0, ONE_NODE)
const SAMPLE = samplesOf(0, ONE_NODE)
type Gauges = Record<string, number>
interface MinuteOfContainer {
  cpu: Record<string, number | Gauges>
  memory: Record<string, number | Gauges>
  runq: { count: number; p50_us: number; p95_us: number; p99_us: number; max_us: number; hist: number[] }
  blame: { container_uid: string; count: number; wait_ns: number }[]
}
const PAGE_BYTES = 4_096
const NODE_MINUTE = MINUTE.body as { containers: MinuteOfContainer[] }
const NODE_SAMPLE = SAMPLE.body as { containers: object[] }

/** Numbers from 0 to below 1 that depend on the seed alone. */
function random(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0
    return (state >>> 8) / 16_777_216
  }
}

/** The minute of a container as an agent measures it: values of real containers differ from minute to minute. */
const minuteOf =
  (atMs: number) =>
  (one: MinuteOfContainer, n: number): MinuteOfContainer => {
    const next = random(Math.floor(atMs / 60_000) * 7_919 + n * 104_729)
    next()
    const whole = (below: number) => Math.floor(next() * below)
    const level = 40 + (n % 13) * 37
    const usage = level * (0.5 + next())
    const memory = (60_000 + n * 2_000 + whole(3_000)) * PAGE_BYTES
    const working = memory - whole(9_000) * PAGE_BYTES
    const pressure = (most: number) => {
      const avg = next() < 0.6 ? 0 : Math.round(next() * most * 100) / 100
      return { avg, max: avg * 2 }
    }
    const throttled = n % 4 === 0 ? whole(60) : 0
    return {
      ...one,
      cpu: {
        ...one.cpu,
        usage_millis: { avg: usage, max: usage * (1 + next()), last: usage * (0.5 + next()) },
        ...{ nr_periods: 600, nr_throttled: throttled, throttled_usec: throttled * whole(40_000) },
        ...{ psi_some10: pressure(20), psi_full10: pressure(4) },
      },
      memory: {
        ...one.memory,
        current: { avg: memory, max: memory + whole(2_000) * PAGE_BYTES, last: memory + whole(500) * PAGE_BYTES },
        working_set: { avg: working, max: working + whole(2_000) * PAGE_BYTES, last: working },
        ...{ psi_some10: pressure(5), psi_full10: pressure(1), events_high: 0, events_max: 0, oom_kill: 0 },
        ...{ refault: n % 5 === 0 ? whole(300) : 0, pgmajfault: n % 5 === 0 ? whole(20) : 0 },
      },
      runq: {
        ...one.runq,
        ...{ count: 200 + whole(5_000), p50_us: 20 + whole(80), p95_us: 200 + whole(900), p99_us: 900 + whole(4_000) },
        max_us: 4_000 + whole(30_000),
        hist: one.runq.hist.map((_, bucket) => (bucket < 13 ? whole(900 >> Math.abs(bucket - 5)) : 0)),
      },
      // Neighbors that often run beside it come back.
      blame: one.blame
        .slice(0, DEFAULTS.pairsPerContainerMinute)
        .map((_, p) => ({ ...one.blame[(whole(3) + p * 3) % one.blame.length]! }))
        .map((pair) => ({ ...pair, count: 1 + whole(300), wait_ns: 100_000 + whole(900_000_000) })),
    }
  }

/** The minute of all containers of a node. */
export const minute = (atMs: number) =>
  post(
    MINUTE.path,
    JSON.stringify({
      ...NODE_MINUTE,
      ts: new Date(atMs).toISOString(),
      containers: NODE_MINUTE.containers.map(minuteOf(atMs)),
    }),
  )

/** The last minute of container `n`, alone on its node. */
export const minuteOfOne = (node: string, n: number) => {
  const container = minuteOf(Date.now())(NODE_MINUTE.containers[n % CONTAINERS_PER_NODE]!, n)
  return post(
    MINUTE.path,
    JSON.stringify({
      ...{ ...NODE_MINUTE, node, ts: new Date().toISOString() },
      containers: [{ ...container, ...identityOf(n, MANY_NODES) }],
    }),
  )
}

/** The sample of the same. */
export const sampleOfOne = (node: string, n: number) =>
  post(
    SAMPLE.path,
    JSON.stringify({
      ...{ ...NODE_SAMPLE, node, ts: new Date().toISOString() },
      containers: [{ ...NODE_SAMPLE.containers[n % CONTAINERS_PER_NODE]!, ...identityOf(n, MANY_NODES) }],
    }),
  )

/** The sample of a node that measures no containers. */
export const nodeSample = (node: string, intervalMs = 300_000) =>
  post(
    '/pod/compute/batch',
    JSON.stringify({
      ...{ node, ts: new Date().toISOString(), interval_ms: intervalMs, compute_enabled: false },
      containers: [],
    }),
  )
