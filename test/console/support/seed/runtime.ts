/** Agents' reports of running containers: syscalls, files, coverage, capabilities, denials, profiles, compute. */
import { nodeName, pick, type Workload } from './cluster.ts'
import type { Site } from './site.ts'
import { heartbeat, ranFiles, runtimeKey } from './supply-chain.ts'

const HOUR_SECS = 3_600
const MIB = 2 ** 20
const ENTRIES = 400
/** The agent of this node does not see which libraries are loaded. */
export const NODE_WITHOUT_PROBE = nodeName(9)

const COMMON = [
  ...['accept4', 'access', 'arch_prctl', 'bind', 'brk', 'clock_nanosleep', 'clone3', 'close', 'connect', 'dup'],
  ...['epoll_create1', 'epoll_ctl', 'epoll_pwait', 'eventfd2', 'execve', 'exit', 'exit_group', 'fcntl', 'fstat'],
  ...['futex', 'getdents64', 'getpid', 'getrandom', 'getsockname', 'getsockopt', 'gettid', 'ioctl', 'listen'],
  ...['lseek', 'madvise', 'mmap', 'mprotect', 'munmap', 'nanosleep', 'newfstatat', 'openat', 'pipe2', 'poll'],
  ...['prctl', 'pread64', 'prlimit64', 'read', 'recvfrom', 'recvmsg', 'rseq', 'rt_sigaction', 'rt_sigprocmask'],
  ...['rt_sigreturn', 'sched_getaffinity', 'sched_yield', 'sendmsg', 'sendto', 'set_robust_list'],
  ...['set_tid_address', 'setsockopt', 'shutdown', 'sigaltstack', 'socket', 'statx', 'tgkill', 'uname', 'wait4'],
  ...['write', 'writev'],
]
const SOME = ['chdir', 'fadvise64', 'fsync', 'getcwd', 'io_uring_setup', 'kill', 'memfd_create', 'mkdir', 'mlock']
const MORE = ['pwrite64', 'readlink', 'rename', 'setgid', 'setuid', 'sysinfo', 'timerfd_create', 'unlink', 'utimensat']

/** The syscalls that a workload uses. */
export const syscallsOf = (name: string): string[] => [
  ...COMMON,
  ...[...SOME, ...MORE].filter((call) => pick(`${name}/${call}`, 3) === 0),
]

const chunks = <T>(all: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size))

/** Posts a list in several bodies. */
export const postBatches = (site: Site, path: string, entries: readonly object[]) =>
  site.postAll(path, chunks(entries, ENTRIES))

export async function postSyscalls(site: Site, workloads: readonly Workload[]): Promise<void> {
  const entries = workloads.flatMap(({ namespace, name, pods }) =>
    pods.map((pod) => ({
      ...{ pod_name: pod.name, pod_namespace: namespace, arch: 'x86_64', time_stamp: site.ago(1) },
      syscalls: syscallsOf(name),
    })),
  )
  const [first, ...others] = chunks(entries, ENTRIES)
  await site.post('/pod/syscalls', first)
  await site.sql`analyze`
  await site.postAll('/pod/syscalls', others)
}

/** For some containers the list of files may have gaps: a probe is missing, lost events, or was attached late. */
function gapsOf(site: Site, name: string, node: string): object {
  if (node === NODE_WITHOUT_PROBE) return { lib_probe: false, mode: 'exec' }
  const n = pick(`${name}/gap`, 50)
  if (n === 0) return { events_dropped: 17 }
  if (n === 2) return { start_mode: 'backfill', probe_attached_at: site.ago(5 * HOUR_SECS) }
  return n === 3 ? { tracking_since: site.ago(2 * HOUR_SECS) } : {}
}

export async function postFiles(site: Site, workloads: readonly Workload[]): Promise<void> {
  const files = workloads.flatMap((workload) => ranFiles(site, workload))
  await postBatches(site, '/runtime/executables', files)
  // One workload in thirty was not watched at all.
  const watched = workloads.filter(({ name }) => pick(`${name}/watched`, 30) > 0)
  const heartbeats = watched.flatMap((workload) =>
    workload.pods.map(({ node }, i) => heartbeat(site, workload, i, gapsOf(site, workload.name, node))),
  )
  await postBatches(site, '/runtime/coverage', heartbeats)
  const checks = watched.flatMap((workload) => {
    const seen = { first_seen: site.ago(19 * 24 * HOUR_SECS), last_seen: site.ago(HOUR_SECS) }
    const check = (capability: string, granted: boolean, count: number) => ({
      ...{ ...runtimeKey(workload, workload.pods[0]!.name), capability, granted, count, ...seen },
    })
    return [
      ...(workload.role.name === 'gateway' ? [check('NET_BIND_SERVICE', true, 12)] : []),
      ...(workload.role.name === 'db' ? [check('CHOWN', true, 3), check('SETUID', true, 2)] : []),
      ...(pick(`${workload.name}/denied`, 25) === 0 ? [check('SYS_PTRACE', false, 4)] : []),
    ]
  })
  await postBatches(site, '/runtime/capabilities', checks)
}

const profileName = ({ kind, name }: Workload) => `${kind.toLowerCase()}-${name}`
const FILE_ROOT = 'kguardian'

/** A seccomp resource that allows the given syscalls. */
export const resourceOf = ({ kind, name }: Workload, names: readonly string[]) => ({
  hash: `hash-of-${name}`,
  spec: {
    ...{ defaultAction: 'SCMP_ACT_ERRNO', architectures: ['SCMP_ARCH_X86_64'] },
    syscalls: [{ names, action: 'SCMP_ACT_ALLOW' }],
    workloadRef: { kind, name },
  },
  distribution: { ready: 50, total: 50, state: 'Ready' },
})

export const putResource = (site: Site, workload: Workload, names: readonly string[]) =>
  site.send('PUT', `/seccomp/crs/${workload.namespace}/${profileName(workload)}`, resourceOf(workload, names))

/** Reports the profile files of each node. Nodes in `behind` have only some of them. */
export async function postNodeProfiles(
  site: Site,
  workloads: readonly Workload[],
  nodes: readonly string[],
  behind: readonly string[],
): Promise<void> {
  const files = workloads.map((one) => ({
    path: `${FILE_ROOT}/${one.namespace}/${profileName(one)}.json`,
    hash: `hash-of-${one.name}`,
  }))
  for (const node_name of nodes)
    await site.post('/seccomp/node-status', {
      node_name,
      files: behind.includes(node_name) ? files.slice(0, 3) : files,
    })
}

/** Some APIs have a profile: mostly with all observed syscalls, sometimes with fewer. */
export async function putProfiles(site: Site, workloads: readonly Workload[]): Promise<Workload[]> {
  const confined = workloads.filter(({ role }, i) => role.name === 'api' && i % 36 === 0)
  for (const workload of confined) {
    const names = syscallsOf(workload.name)
    await putResource(site, workload, pick(workload.name, 4) === 0 ? names.slice(0, -2) : names)
  }
  return confined
}

export const denialOf = (site: Site, { namespace }: Workload, pod: { name: string; uid: string }, more: object) => ({
  ...{ podUid: pod.uid, podName: pod.name, podNamespace: namespace, action: 'SCMP_ACT_ERRNO', count: 3 },
  ...{ firstSeen: site.zonedAgo(30 * HOUR_SECS), lastSeen: site.zonedAgo(26 * HOUR_SECS), ...more },
})

/** Denial reports of all nodes except the silent ones; a few have denials. */
export async function postDrains(site: Site, nodes: readonly string[], denials: ReadonlyMap<string, object[]>) {
  await site.postAll(
    '/seccomp/denials',
    nodes.map((node) => ({ node, capturing: true, intervalSeconds: 60, denials: denials.get(node) ?? [] })),
  )
}

export const computeKey = ({ namespace, container }: Workload, pod: { name: string; uid: string }) => ({
  ...{ container_uid: `${pod.uid}/${container}`, pod_uid: pod.uid, pod_name: pod.name, namespace, container },
})

/** Mean use of CPU and memory of a container; `wave` is a place in its day. */
export function useOf(name: string, wave: number) {
  const millis = 40 + pick(`${name}/cpu`, 420)
  const mebi = 90 + pick(`${name}/memory`, 700)
  return {
    millis: Math.round(millis * (1 + 0.5 * Math.sin(wave)) + pick(`${name}/${wave}`, 20)),
    bytes: (mebi + Math.round(12 * Math.sin(wave / 2))) * MIB,
    limits: { request_millis: 2 * millis, limit_millis: 4 * millis },
    memory: { request: Math.round(mebi * 1.2) * MIB, limit: mebi * 2 * MIB },
  }
}

export function sampleOf(workload: Workload, pod: { name: string; uid: string }, more: object = {}): object {
  const { millis, bytes, limits, memory } = useOf(pod.name, 0)
  return {
    ...computeKey(workload, pod),
    cpu: { usage_usec: millis * 5_000, ...limits, nr_periods: 50, nr_throttled: pick(pod.name, 9) === 0 ? 4 : 0 },
    memory: { current: bytes + 20 * MIB, working_set: bytes, ...memory },
    runq: { count: 400, p50_us: 40, p95_us: 600, p99_us: 1_400, max_us: 6_000, overflow: 0 },
    ...more,
  }
}

export function minuteOf(
  workload: Workload,
  pod: { name: string; uid: string },
  wave: number,
  more: object = {},
): object {
  const { millis, bytes, limits, memory } = useOf(pod.name, wave)
  return {
    ...computeKey(workload, pod),
    cpu: {
      ...{ usage_millis: { avg: millis, max: Math.round(millis * 1.6), last: millis }, ...limits },
      ...{ nr_periods: 600, nr_throttled: 3, psi_some10: { avg: 1.5, max: 6 } },
    },
    memory: {
      current: { avg: bytes + 20 * MIB, max: bytes + 30 * MIB, last: bytes + 20 * MIB },
      ...{ working_set: { avg: bytes, max: bytes + 8 * MIB, last: bytes }, ...memory },
    },
    runq: { count: 4_800, p50_us: 40, p95_us: 600, p99_us: 1_400, max_us: 9_000, overflow: 0 },
    ...more,
  }
}

export interface Overrides {
  /** By pod name: fields that replace those of its sample or its minutes. */
  readonly sample: ReadonlyMap<string, object>
  readonly minute: ReadonlyMap<string, object>
}

type Placed = { readonly workload: Workload; readonly pod: Workload['pods'][number] }

function placedOn(nodes: readonly string[], workloads: readonly Workload[]): ReadonlyMap<string, readonly Placed[]> {
  const byNode = new Map<string, Placed[]>(nodes.map((node) => [node, []]))
  for (const workload of workloads) for (const pod of workload.pods) byNode.get(pod.node)?.push({ workload, pod })
  return byNode
}

/** Request bodies with the last minutes of the containers on these nodes. `ago` returns a time that many seconds ago. */
export function minutePosts(
  nodes: readonly string[],
  workloads: readonly Workload[],
  minutes: number,
  minute: Overrides['minute'],
  ago: (secs: number) => string,
): object[] {
  const byNode = [...placedOn(nodes, workloads)]
  return Array.from({ length: minutes }, (_, i) =>
    byNode.map(([node, containers]) => ({
      ...{ node, ts: ago(20 + i * 60) },
      containers: containers.map(({ workload, pod }) => minuteOf(workload, pod, i / 10, minute.get(pod.name))),
    })),
  ).flat()
}

/** The latest sample of every node and container, and the last minutes of each. */
export async function postCompute(
  site: Site,
  workloads: readonly Workload[],
  nodes: readonly string[],
  minutes: number,
  { sample, minute }: Overrides,
): Promise<void> {
  await site.postAll(
    '/pod/compute/batch',
    [...placedOn(nodes, workloads)].map(([node, containers]) => ({
      ...{ node, ts: site.zonedAgo(2), interval_ms: 5_000, contention_loaded: true, ctxt_per_sec: 9_000 },
      node_pressure: { cpu_some10: 2 + pick(node, 12), cpu_full10: 0.4, mem_some10: 0.3, mem_full10: 0 },
      node_capacity: { cpu_cores: 16, memory_bytes: 64 * 1_024 * MIB },
      containers: containers.map(({ workload, pod }) => sampleOf(workload, pod, sample.get(pod.name))),
    })),
  )
  await site.postAll('/pod/compute/history/batch', minutePosts(nodes, workloads, minutes, minute, site.zonedAgo))
}

export async function postNodeFacts(site: Site, nodes: readonly string[]): Promise<void> {
  for (const node_name of nodes)
    await site.post('/node/facts', {
      ...{ node_name, provider: 'aws', distro: 'eks', cni: 'cilium', ip_family: 'ipv4', node_os: 'bottlerocket' },
      policy_enforcement: pick(node_name, 17) === 0 ? 'unknown' : 'enforced',
    })
}
