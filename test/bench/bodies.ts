/** Bodies with the names, addresses, ports and sizes that agents send. */

export const podName = (i: number) => `checkout-api-${i % 97}-7c9f6d5b8-${i.toString(16).padStart(5, '0')}`
export const podAddress = (i: number) =>
  `10.${40 + Math.floor(i / 62_500)}.${Math.floor(i / 250) % 250}.${(i % 250) + 1}`

const startedMs = Date.now()
/** Naive UTC, so many milliseconds after the program began. */
const time = (ms: number) => new Date(startedMs + ms).toISOString().slice(0, -1)
/** Agents post every pod once a minute: a pod that is not from today is swept away under the benchmark. */
const NOW = time(0)
const POD_START = new Date(startedMs - 86_400_000).toISOString()
const FLOWS_PER_BATCH = 100
const PODS_PER_BATCH = 5

/** A manifest of about 1.5 kB, of which the broker keeps a fifth. */
export function podSpec(i: number): string {
  const labels = {
    'app.kubernetes.io/name': `checkout-api-${i % 97}`,
    'pod-template-hash': '7c9f6d5b8',
    team: 'payments',
  }
  const env = Array.from({ length: 12 }, (_, k) => ({ name: `SETTING_${k}`, value: 'v'.repeat(40) }))
  return JSON.stringify({
    pod_name: podName(i),
    pod_ip: podAddress(i),
    pod_namespace: `shop-${i % 40}`,
    pod_obj: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: podName(i),
        namespace: `shop-${i % 40}`,
        uid: uuid(i, 7),
        labels,
        annotations: { 'checksum/config': 'a'.repeat(64) },
      },
      spec: {
        nodeName: `node-${i % 50}`,
        containers: [{ name: 'app', image: 'registry.example/shop/checkout:1.2.3', env }],
      },
      status: { phase: 'Running', startTime: POD_START, podIP: podAddress(i), podIPs: [{ ip: podAddress(i) }] },
    },
    time_stamp: NOW,
    node_name: `node-${i % 50}`,
    is_dead: false,
    pod_identity: `checkout-api-${i % 97}`,
    workload_selector_labels: labels,
    workload_kind: 'Deployment',
    workload_name: `checkout-api-${i % 97}`,
  })
}

/** Flow number `n` of pod `source`: three in four leave it, a tenth is UDP, no two are duplicates. */
function flow(n: number, source: number, pods: number) {
  const outgoing = n % 4 !== 0
  return {
    uuid: uuid(n, 4),
    pod_name: podName(source),
    pod_namespace: `shop-${source % 40}`,
    pod_ip: podAddress(source),
    pod_port: outgoing ? '0' : String(1_024 + (n % 60_000)),
    ip_protocol: n % 10 === 9 ? 'UDP' : 'TCP',
    traffic_type: outgoing ? 'EGRESS' : 'INGRESS',
    // Spread: of one pod to one peer there is one flow of UDP, whatever the port.
    traffic_in_out_ip: podAddress((Math.imul(n ^ (n >>> 15), 2_654_435_761) >>> 0) % pods),
    traffic_in_out_port: outgoing ? String(1_024 + (n % 60_000)) : '0',
    decision: 'ALLOW',
    // A thousand a second, the last ones now.
    time_stamp: `${time((n % 3_600_000) - 3_600_000)}${String(n % 1_000).padStart(3, '0')}`,
  }
}

/** Batch number `b` among flows of `pods` pods: each batch is of one node, so of a few pods. */
export function flowBatch(b: number, pods: number): string {
  const flows = Array.from({ length: FLOWS_PER_BATCH }, (_, k) =>
    flow(b * FLOWS_PER_BATCH + k, (b * PODS_PER_BATCH + (k % PODS_PER_BATCH)) % pods, pods),
  )
  return JSON.stringify(flows)
}

export const singleFlow = (n: number, pods: number) => JSON.stringify(flow(n, n % pods, pods))

/** The syscalls of a pod, as an agent repeats them. */
export const syscalls = (i: number, time_stamp = NOW) =>
  JSON.stringify([{ pod_name: podName(i), pod_namespace: '', syscalls: SYSCALLS, arch: 'x86_64', time_stamp }])

const SYSCALLS = [
  ...[
    'read',
    'write',
    'close',
    'fstat',
    'mmap',
    'mprotect',
    'munmap',
    'brk',
    'rt_sigaction',
    'rt_sigprocmask',
    'ioctl',
    'pread64',
  ],
  ...[
    'access',
    'pipe',
    'select',
    'sched_yield',
    'madvise',
    'dup',
    'nanosleep',
    'getpid',
    'socket',
    'connect',
    'accept',
    'sendto',
  ],
  ...[
    'recvfrom',
    'shutdown',
    'bind',
    'listen',
    'getsockname',
    'setsockopt',
    'clone',
    'execve',
    'exit',
    'wait4',
    'kill',
    'uname',
  ],
  ...[
    'fcntl',
    'getcwd',
    'readlink',
    'futex',
    'epoll_wait',
    'openat',
    'newfstatat',
    'accept4',
    'epoll_create1',
    'pipe2',
    'getrandom',
  ],
]

const uuid = (n: number, kind: number) => {
  const hex = (Math.imul(n, 2_654_435_761) >>> 0).toString(16).padStart(8, '0')
  return `${hex}-${(n & 0xffff).toString(16).padStart(4, '0')}-4${kind.toString(16).padStart(3, '0')}-8000-${n.toString(16).padStart(12, '0')}`
}
