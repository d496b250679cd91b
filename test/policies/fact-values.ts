/** Clusters and their connections, from small alphabets so that names, labels and addresses collide. */
import fc from 'fast-check'
import type { Connection, End, Facts, PodGroup, Service, Workload } from '../../lib/policies/facts.ts'

export const NAMESPACES = ['shop', 'data', 'kube-system'] as const

/** Pods of one workload may number their ports differently, as they do while a rollout runs. */
const NAMED_PORTS = [
  { http: 8080, metrics: 9090, dns: 5353 },
  { http: 80, metrics: 9090, dns: 53 },
]
/** Addresses of no pod, some of them in the networks of pods. */
const PUBLIC = Array.from({ length: 40 }, (_, i) => `93.184.${i}.34`).concat('2600:1f18::1', '2600:1f18::2')
const UNRESOLVED = ['169.254.20.10', '10.200.0.1', '10.200.0.2', '10.200.1.1', 'fd12::1', '10.1.0.77', '10.1.1.77']
const NODES = ['192.168.0.1', '192.168.0.2', 'fd00::1']
const PORTS = ['53', '80', '443', '5432', '8080', '9090', '40001', '40002', '40003', '40004', '40005', '40006']

/** Most are in one namespace, so that selectors match pods of several workloads. */
const namespace = fc.constantFrom(...NAMESPACES, NAMESPACES[0], NAMESPACES[0], NAMESPACES[0])

const app = fc.constantFrom('web', 'web', 'api', 'db')

const workload = fc.record({
  namespace,
  kind: fc.constantFrom('Deployment', 'StatefulSet', 'CronJob', 'DaemonSet'),
  app,
  tier: fc.option(fc.constantFrom('front', 'back')),
  selector: fc.constantFrom('own' as const, 'app' as const, 'tier' as const, 'none' as const),
  isDualStack: fc.boolean(),
  revisions: fc.integer({ min: 1, max: 3 }),
  livingRevisions: fc.integer({ min: 1, max: 3 }),
  namedPorts: fc.tuple(...[0, 1, 2].map(() => fc.constantFrom(...NAMED_PORTS))),
})
type WorkloadValues = typeof workload extends fc.Arbitrary<infer T> ? T : never

/**
 * Each workload has a label of its own beside those that it shares, so that its policy can select it. Its selector may
 * be a shared one, so that the rules of its peers also match others.
 */
function podsOf(values: WorkloadValues, n: number): PodGroup[] {
  const { namespace, kind, app, tier, selector, isDualStack, revisions, livingRevisions, namedPorts } = values
  const name = { 'app.kubernetes.io/name': `name-${n}` }
  const shared = { app, ...(tier === null ? {} : { tier }) }
  const selectors = { own: name, app: { app }, tier: shared, none: null }
  return Array.from({ length: revisions }, (_, revision) => ({
    workload: { namespace, kind, name: `w-${n}` },
    labels: { ...shared, ...name, 'pod-template-hash': `h-${n}-${revision}` },
    selectorLabels: selectors[selector],
    namedPorts: namedPorts[revision]!,
    isHostNetwork: false,
    isLiving: revision < livingRevisions,
    ips: [`10.1.${n}.${revision}`, ...(isDualStack ? [`fd10::${n}:${revision}`] : [])],
  }))
}

const service = fc.record({
  namespace,
  by: fc.constantFrom('app', 'tier', 'both'),
  app,
  tier: fc.constantFrom('front', 'back'),
  target: fc.constantFrom<number | string>(80, 8080, 5353, 'http', 'dns'),
})

function serviceOf(values: typeof service extends fc.Arbitrary<infer T> ? T : never, n: number): Service {
  const { namespace, by, app, tier, target } = values
  return {
    ...{ namespace, name: `s-${n}` },
    selector: { ...(by === 'tier' ? {} : { app }), ...(by === 'app' ? {} : { tier }) },
    ports: [
      { port: 80, protocol: 'TCP', targetPort: target },
      { port: 53, protocol: 'UDP', targetPort: target },
      { port: 443, protocol: 'TCP', targetPort: 443 },
    ],
  }
}

const connection = fc.record({
  own: fc.nat(),
  isEgress: fc.boolean(),
  peer: fc.oneof(
    { weight: 4, arbitrary: fc.record({ type: fc.constant('workload' as const), at: fc.nat() }) },
    { weight: 3, arbitrary: fc.record({ type: fc.constant('service' as const), at: fc.nat() }) },
    {
      weight: 3,
      arbitrary: fc.record({
        type: fc.constantFrom('external' as const, 'unresolved' as const, 'node' as const),
        at: fc.nat(),
      }),
    },
  ),
  port: fc.nat(),
  protocol: fc.constantFrom('TCP', 'TCP', 'UDP'),
  isDropped: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
  flows: fc.integer({ min: 1, max: 9 }),
})

const ADDRESSES = { external: PUBLIC, unresolved: UNRESOLVED, node: NODES }

/** All pods and services are known. */
export const facts: fc.Arbitrary<Facts> = fc
  .record({
    workloads: fc.array(workload, { minLength: 1, maxLength: 6 }),
    ports: fc.oneof(fc.constant(PORTS), fc.subarray(PORTS, { minLength: 1, maxLength: 3 })),
    services: fc.array(service, { maxLength: 4 }),
    connections: fc.array(connection, { maxLength: 40 }),
    hasCaller: fc.boolean(),
  })
  .map((values) => {
    const pods = values.workloads.flatMap(podsOf)
    const workloads = [...new Map(pods.map((one) => [one.workload.name, one.workload])).values()]
    const services = values.services.map(serviceOf)
    const isBehind = ({ namespace, selector }: Service, one: PodGroup) =>
      one.isLiving &&
      one.workload.namespace === namespace &&
      Object.entries(selector!).every(([key, value]) => one.labels[key] === value)
    const used = services.filter((one) => pods.some((group) => isBehind(one, group)))
    const connections = values.connections.flatMap((one, n): Connection[] => {
      const own: End = { type: 'workload', ...pick(workloads, one.own) }
      const { type, at } = one.peer
      if (type === 'service' && used.length === 0) return []
      const target = type === 'service' ? pick(used, at) : null
      const peer: End =
        target !== null
          ? { type: 'service', namespace: target.namespace, name: target.name }
          : type === 'workload'
            ? { type, ...(pick(workloads, at) as Workload) }
            : { type: type as 'node', ip: pick(ADDRESSES[type as 'node'], at) }
      const isEgress = target !== null || one.isEgress
      const served =
        target === null ? { port: pick(values.ports, one.port), protocol: one.protocol } : pick(target.ports, at)
      return [
        {
          ...(isEgress ? { from: own, to: peer } : { from: peer, to: own }),
          ...{ port: String(served.port), protocol: served.protocol, isDropped: one.isDropped, flows: one.flows },
          ...{
            seenBy: isEgress ? 'from' : 'to',
            firstSeenAt: '2026-01-01T00:00:00',
            lastNewAt: '2026-01-02T00:00:00',
          },
          edgeId: `00000000-0000-0000-0000-${String(n).padStart(12, '0')}`,
        },
      ]
    })
    const called = values.hasCaller ? callsOf(workloads, used) : []
    return { pods, services, connections: [...connections, ...called] }
  })

/** A workload that calls all others, directly and through services, so that rules for it allow the same flows. */
const callsOf = (workloads: readonly Workload[], services: readonly Service[]): Connection[] =>
  [
    ...workloads.map((one) => ({ to: { type: 'workload' as const, ...one }, port: '8080' })),
    ...services.map(({ namespace, name }) => ({ to: { type: 'service' as const, namespace, name }, port: '80' })),
  ].map(({ to, port }, n) => ({
    ...{ from: { type: 'workload' as const, ...workloads[0]! }, to, port, protocol: 'TCP', isDropped: false, flows: 1 },
    ...{ seenBy: 'from', firstSeenAt: '2026-01-01T00:00:00', lastNewAt: '2026-01-02T00:00:00' },
    edgeId: `20000000-0000-0000-0000-${String(n).padStart(12, '0')}`,
  }))

const pick = <T>(list: readonly T[], n: number): T => list[n % list.length]!
