/** One large namespace: 25 tenants with 300 workloads and 3 000 pods, a quarter of them on one node. */
import { makeWorkload, nodeName, Placement, type Pod, pick, type Workload } from './cluster.ts'
import { ROLES, TENANTS } from './names.ts'
import { type Package, STACKS } from './packages.ts'
import { computeKey, denialOf, minutePosts, type Overrides } from './runtime.ts'
import type { Site } from './site.ts'
import { runtimeKey } from './supply-chain.ts'

const NAMESPACE = 'tenants'
const SCALE = 3
/** A workload with many pods: the first one. */
const MORE_PODS = 375
const BUSY_NODE = 0
const ON_BUSY_NODE = 4
const HOUR_SECS = 3_600
const CULPRITS = 10
const NS_PER_MS = 1_000_000
const MS_PER_SECOND = 1_000

export function makeTenants(placement: Placement): Workload[] {
  let made = 0
  const nodeOf = () => (made++ % ON_BUSY_NODE === 0 ? BUSY_NODE : undefined)
  return TENANTS.flatMap((tenant, t) =>
    ROLES.map((role, r) => {
      const pods = role.pods * SCALE + (t === 0 && r === 0 ? MORE_PODS : 0)
      return makeWorkload(placement, NAMESPACE, tenant, { ...role, pods }, 0, nodeOf)
    }),
  )
}

interface Placed {
  readonly workload: Workload
  readonly pod: Pod
}

/** Each container waits for the next ones on its node; one in ten is short of CPU for that. */
export function waits(workloads: readonly Workload[]): Overrides {
  const byNode = new Map<string, Placed[]>()
  for (const workload of workloads)
    for (const pod of workload.pods) byNode.set(pod.node, [...(byNode.get(pod.node) ?? []), { workload, pod }])
  const all = [...byNode.values()].flatMap((placed) =>
    placed.map(({ pod }, n): [string, object] => {
      const others = Array.from({ length: CULPRITS }, (_, i) => placed[(n + 1 + i) % placed.length]!)
      const blame = others.map((other, i) => ({
        ...{ kind: 'pod', ref: `${NAMESPACE}/${other.pod.name}/${other.workload.container}` },
        container_uid: computeKey(other.workload, other.pod).container_uid,
        ...{ count: 20 + pick(pod.name, 60), wait_ns: (2 + pick(`${pod.name}/${i}`, 90)) * NS_PER_MS },
      }))
      const isShort = pick(`${pod.name}/short`, 10) === 0
      const runq = { count: 9_000, p50_us: 400, p95_us: 18_000, p99_us: 31_000, max_us: 64_000 }
      return [pod.name, { blame, ...(isShort && { runq }) }]
    }),
  )
  return { sample: new Map(), minute: new Map(all) }
}

/** Minutes of the containers on the busy node, as its agent posts them now: findings are of the last five. */
export function newMinutes(nodes: number, minutes: number): object[] {
  const tenants = makeTenants(new Placement(nodes))
  const ago = (secs: number) => new Date(Date.now() - secs * MS_PER_SECOND).toISOString()
  return minutePosts([nodeName(BUSY_NODE)], tenants, minutes, waits(tenants).minute, ago)
}

const DENIED = [
  ['ptrace', 101],
  ['io_uring_setup', 425],
  ['bpf', 321],
  ['mount', 165],
] as const

/** Denials of two pods of three, by node. */
export function manyDenials(site: Site, workloads: readonly Workload[]): Map<string, object[]> {
  const denials = new Map<string, object[]>()
  for (const workload of workloads)
    for (const pod of workload.pods) {
      if (pick(`${pod.name}/denied`, 3) === 0) continue
      const [syscall, syscallNr] = DENIED[pick(pod.name, DENIED.length)]!
      const lastSeen = site.zonedAgo(60 + pick(pod.uid, 40 * HOUR_SECS))
      const denial = denialOf(site, workload, pod, { syscall, syscallNr, arch: 'x86_64', lastSeen })
      const firstSeen = site.zonedAgo(44 * HOUR_SECS)
      denials.set(pod.node, [...(denials.get(pod.node) ?? []), { ...denial, firstSeen }])
    }
  return denials
}

/** Libraries that the workloads of the first tenant loaded, and programs that none of their images has. */
export function manyFiles(site: Site, workloads: readonly Workload[], packages: readonly Package[]): object[] {
  const seen = { first_seen: site.ago(20 * 24 * HOUR_SECS), last_seen: site.ago(HOUR_SECS) }
  return workloads.slice(0, ROLES.length).flatMap((workload) => {
    const of = runtimeKey(workload, workload.pods[0]!.name)
    const libraries = packages.flatMap(({ files }) => files.map((path) => ({ kind: 'lib', path: `/${path}` })))
    const scripts = STACKS.map((_, i) => ({ kind: 'exec', path: `/tmp/.cache/job-${i}`, origin: 'writableLayer' }))
    return [...libraries, ...scripts].map((file) => ({
      ...{ ...of, path_complete: true, source: 'ebpf', origin: 'image', ...seen, ...file },
    }))
  })
}
