/**
 * Clusters, connections in them, and NetworkPolicies as people write them, from small alphabets so that labels, names,
 * addresses and ports collide. Every policy is one that the API server accepts.
 */
import fc from 'fast-check'
import type { AddressEnd, PodEnd } from '../../lib/policies/match.ts'
import { type Labels, NAMESPACE_NAME } from '../../lib/policies/policy.ts'

// ---- Policies as JSON -----------------------------------------------------------------------------------------------

/** Null stands for an absent field wherever one may be absent. */
type Optional<T> = T | null | undefined

export interface LabelSelector {
  matchLabels?: Optional<Labels>
  matchExpressions?: Optional<readonly { key: string; operator: string; values?: Optional<readonly string[]> }[]>
}

export interface PolicyPeer {
  podSelector?: Optional<LabelSelector>
  namespaceSelector?: Optional<LabelSelector>
  ipBlock?: Optional<{ cidr: string; except?: Optional<readonly string[]> }>
}

export interface PolicyPort {
  protocol?: Optional<string>
  port?: Optional<number | string>
  endPort?: Optional<number>
}

export interface PolicyRule {
  from?: Optional<PolicyPeer[]>
  to?: Optional<PolicyPeer[]>
  ports?: Optional<PolicyPort[]>
}

export interface NetworkPolicyObject {
  apiVersion: string
  kind: string
  metadata: { name: string; namespace?: Optional<string> }
  spec: {
    podSelector?: Optional<LabelSelector>
    policyTypes?: Optional<readonly string[]>
    ingress?: Optional<PolicyRule[]>
    egress?: Optional<PolicyRule[]>
  }
}

// ---- Labels and selectors -------------------------------------------------------------------------------------------

const NAMESPACES = ['default', 'shop', 'data'] as const
/** Most pods and policies are in one namespace, so that most pods are isolated. */
const namespace = fc.oneof(
  { weight: 5, arbitrary: fc.constant(NAMESPACES[0]) },
  { weight: 2, arbitrary: fc.constant(NAMESPACES[1]) },
  { weight: 1, arbitrary: fc.constant(NAMESPACES[2]) },
)

/** Pods and namespaces share keys. Objects have a member `constructor` without having a label of that name. */
const VALUES = ['web', 'db', '']
const KEYS = ['app', 'app', 'example.com/tier', 'team', 'constructor']

const labels = (maxKeys: number): fc.Arbitrary<Labels> =>
  fc.dictionary(fc.constantFrom(...KEYS), fc.constantFrom(...VALUES), { maxKeys, noNullPrototype: true })

/** The field as given, often missing, sometimes null. */
const optional = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<Optional<T>> =>
  fc.oneof(
    { weight: 6, arbitrary },
    { weight: 3, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constant(null) },
  )

const requirement = (keys: readonly string[], values: readonly string[]) =>
  fc.oneof(
    fc.record({
      key: fc.constantFrom(...keys),
      operator: fc.constantFrom('In', 'In', 'NotIn'),
      values: fc.array(fc.constantFrom(...values), { minLength: 1, maxLength: 3 }),
    }),
    fc.record(
      {
        key: fc.constantFrom(...keys),
        operator: fc.constantFrom('Exists', 'DoesNotExist'),
        values: fc.constantFrom([], null),
      },
      { requiredKeys: ['key', 'operator'] },
    ),
  )

const selectorOf = (keys: readonly string[], values: readonly string[]): fc.Arbitrary<LabelSelector> =>
  fc.oneof(
    { weight: 2, arbitrary: fc.constantFrom({}, { matchLabels: {} }, { matchExpressions: [] }) },
    {
      weight: 3,
      arbitrary: fc.record({
        matchLabels: fc.dictionary(fc.constantFrom(...keys), fc.constantFrom(...values), {
          ...{ minKeys: 1, maxKeys: 1, noNullPrototype: true },
        }),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({ matchExpressions: fc.array(requirement(keys, values), { minLength: 1, maxLength: 2 }) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        matchLabels: optional(
          fc.dictionary(fc.constantFrom(...keys), fc.constantFrom(...values), { maxKeys: 2, noNullPrototype: true }),
        ),
        matchExpressions: optional(fc.array(requirement(keys, values), { maxLength: 2 })),
      }),
    },
  )

const podSelector = selectorOf(KEYS, VALUES)
const namespaceSelector = fc.oneof(
  selectorOf(KEYS, VALUES),
  selectorOf([NAMESPACE_NAME], NAMESPACES),
  fc.record({
    matchLabels: fc.record({ [NAMESPACE_NAME]: fc.constantFrom(...NAMESPACES) }),
    matchExpressions: fc.array(requirement(KEYS, VALUES), { minLength: 1, maxLength: 1 }),
  }),
)

// ---- Peers and ports ------------------------------------------------------------------------------------------------

/** Addresses of pods and of others: the blocks below tell most of them apart. */
const IPV4 = ['10.0.0.1', '10.0.0.2', '10.0.0.130', '10.0.1.1', '10.128.0.1', '192.0.2.7', '255.255.255.255']
const IPV6 = ['fd00::1', 'fd00::2', 'fd00::1:0:0:1', 'fd00:0:1::1', '2001:db8::7', '::1']

/** Blocks, and blocks within them. Prefixes end at and between the borders of bytes; IPv6 has several spellings. */
const BLOCKS: Readonly<Record<string, readonly string[]>> = {
  '0.0.0.0/0': ['10.0.0.0/8', '10.0.0.0/9', '192.0.2.0/24', '10.0.0.1/32', '255.255.255.255/32', '0.0.0.0/1'],
  '10.0.0.0/8': ['10.0.0.0/9', '10.128.0.0/9', '10.0.0.0/24', '10.0.0.2/32'],
  '10.0.0.0/24': ['10.0.0.0/25', '10.0.0.128/25', '10.0.0.0/31', '10.0.0.2/31'],
  '10.0.0.0/23': ['10.0.0.0/24', '10.0.1.0/24', '10.0.1.1/32'],
  '10.0.0.0/30': ['10.0.0.0/31', '10.0.0.1/32', '10.0.0.2/32'],
  '10.0.0.1/32': [],
  '128.0.0.0/1': ['192.0.0.0/4', '255.255.255.254/31'],
  '::/0': ['fd00::/8', 'FD00::/64', '2001:0db8::/32', '::1/128', '8000::/1'],
  'fd00::/8': ['fd00::/47', 'fd00::/48', 'fd00:0:1::/48', 'fd00::/64', 'fd00::2/128'],
  'fd00::/64': ['fd00::/96', 'fd00:0:0:0::/127', 'fd00::1:0:0:0/80', 'fd00::1/128'],
  'fd00:0000::/126': ['fd00::/127', 'fd00::2/127'],
  '2001:DB8::/29': ['2001:db8::/32', '2001:db8:0:0:0:0:0:7/128'],
}

const ipBlock = fc.oneof(
  { weight: 1, arbitrary: fc.constantFrom('0.0.0.0/0', '::/0').map((cidr) => ({ cidr })) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(...Object.entries(BLOCKS)).chain(([cidr, inner]) =>
      fc.record(
        {
          cidr: fc.constant(cidr),
          except:
            inner.length === 0 ? fc.constantFrom([], null) : fc.array(fc.constantFrom(...inner), { maxLength: 2 }),
        },
        { requiredKeys: ['cidr'] },
      ),
    ),
  },
)

const peer: fc.Arbitrary<PolicyPeer> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ podSelector }) },
  { weight: 3, arbitrary: fc.record({ namespaceSelector }) },
  { weight: 3, arbitrary: fc.record({ podSelector, namespaceSelector }) },
  { weight: 4, arbitrary: fc.record({ ipBlock }) },
  {
    weight: 1,
    arbitrary: fc.oneof(
      fc.record({ podSelector, namespaceSelector: fc.constant(null), ipBlock: fc.constant(null) }),
      fc.record({ podSelector: fc.constant(null), namespaceSelector, ipBlock: fc.constant(null) }),
      fc.record({ podSelector: fc.constant(null), namespaceSelector: fc.constant(null), ipBlock }),
    ),
  },
)

const PROTOCOLS = ['TCP', 'UDP', 'SCTP'] as const
/** The least and the greatest port are among them. */
const PORTS = [1, 53, 80, 8080, 8081, 65_535]
const PORT_NAMES = ['http', 'metrics', 'constructor']

const protocol = optional(fc.constantFrom('TCP', 'TCP', ...PROTOCOLS))
const policyPort: fc.Arbitrary<PolicyPort> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ protocol, port: fc.constantFrom(...PORTS) }) },
  { weight: 3, arbitrary: fc.record({ protocol, port: fc.constantFrom(...PORT_NAMES) }) },
  { weight: 1, arbitrary: fc.record({ protocol, port: fc.constantFrom(null, undefined), endPort: fc.constant(null) }) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(protocol, fc.constantFrom(...PORTS), fc.constantFrom(...PORTS))
      .map(([sent, a, b]) => ({ protocol: sent, port: Math.min(a, b), endPort: Math.max(a, b) })),
  },
)

const rule = (side: 'from' | 'to'): fc.Arbitrary<PolicyRule> =>
  fc
    .record({
      peers: optional(fc.array(peer, { maxLength: 3 })),
      ports: optional(fc.array(policyPort, { maxLength: 3 })),
    })
    .map(({ peers, ports }) => ({ [side]: peers, ports }))

const rules = (side: 'from' | 'to') =>
  optional(
    fc.oneof(
      { weight: 1, arbitrary: fc.constant<PolicyRule[]>([]) },
      { weight: 4, arbitrary: fc.array(rule(side), { minLength: 1, maxLength: 3 }) },
    ),
  )

/** A NetworkPolicy. The kind and version are given, as kubectl demands. */
export const networkPolicy: fc.Arbitrary<NetworkPolicyObject> = fc.record({
  apiVersion: fc.constant('networking.k8s.io/v1'),
  kind: fc.constant('NetworkPolicy'),
  metadata: fc.record({
    name: fc.constantFrom('one', 'two', 'three'),
    /** Absent, null and empty are `default`. */
    namespace: fc.oneof(
      { weight: 3, arbitrary: namespace },
      { weight: 1, arbitrary: fc.constantFrom(undefined, null, '') },
    ),
  }),
  spec: fc.record({
    podSelector: optional(podSelector),
    policyTypes: fc.oneof(
      fc.constantFrom(undefined, null, []),
      fc.constantFrom(['Ingress'], ['Egress'], ['Ingress', 'Egress'], ['Egress', 'Ingress'], ['Egress', 'Egress']),
    ),
    ingress: rules('from'),
    egress: rules('to'),
  }),
})

/** The policies of a namespace add up; some have the same selector. */
export const networkPolicies = fc.array(networkPolicy, { minLength: 1, maxLength: 5 })

// ---- Clusters and connections ---------------------------------------------------------------------------------------

/** A pod of which everything is known. */
export interface KnownPod extends PodEnd {
  readonly namespaceLabels: Labels
  readonly labels: Labels
  readonly namedPorts: Readonly<Record<string, number>>
  readonly isHostNetwork: false
}
/** An address outside of the cluster, or of a node, or of which nothing is known. */
export interface KnownAddress extends AddressEnd {
  readonly ip: string
}

/** A connection in a cluster of which everything is known. */
export interface Flow {
  readonly from: KnownPod | KnownAddress
  readonly to: KnownPod | KnownAddress
  readonly port: number
  readonly protocol: string
}

const ips = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...IPV4).map((one) => [one]) },
  { weight: 2, arbitrary: fc.constantFrom(...IPV6).map((one) => [one]) },
  { weight: 4, arbitrary: fc.tuple(fc.constantFrom(...IPV4), fc.constantFrom(...IPV6)) },
)

const namespaces: fc.Arbitrary<Readonly<Record<string, Labels>>> = fc
  .tuple(...NAMESPACES.map(() => labels(2)))
  .map((each) => Object.fromEntries(NAMESPACES.map((name, i) => [name, { ...each[i], [NAMESPACE_NAME]: name }])))

const podValues = fc.record({
  namespace,
  labels: labels(3),
  ips,
  namedPorts: fc.dictionary(fc.constantFrom(...PORT_NAMES), fc.constantFrom(...PORTS), {
    ...{ maxKeys: 3, noNullPrototype: true },
  }),
})

/** Pods of namespaces that all have the label with their name, as the API server gives it. */
export const cluster: fc.Arbitrary<readonly KnownPod[]> = fc
  .tuple(namespaces, fc.array(podValues, { minLength: 1, maxLength: 5 }))
  .map(([known, pods]) =>
    pods.map((one) => ({
      ...{ type: 'pod', namespace: one.namespace, namespaceLabels: known[one.namespace]!, labels: one.labels },
      ...{ ips: one.ips, namedPorts: one.namedPorts, isHostNetwork: false },
    })),
  )

const address: fc.Arbitrary<KnownAddress> = fc.record({
  type: fc.constantFrom('external', 'node', 'unresolved'),
  ip: fc.constantFrom(...IPV4, ...IPV6),
})

/** Connections between pods, and between pods and addresses. */
export const flowsIn = (pods: readonly KnownPod[]): fc.Arbitrary<readonly Flow[]> => {
  const pod = fc.constantFrom(...pods)
  const ends = fc.oneof(
    { weight: 4, arbitrary: fc.tuple(pod, pod) },
    { weight: 1, arbitrary: fc.tuple(pod, address) },
    { weight: 1, arbitrary: fc.tuple(address, pod) },
  )
  const flow = fc.tuple(ends, fc.constantFrom(...PORTS), fc.constantFrom('TCP', 'TCP', ...PROTOCOLS))
  return fc.array(
    flow.map(([[from, to], port, sent]) => ({ from, to, port, protocol: sent })),
    { minLength: 1, maxLength: 4 },
  )
}

export interface Scene {
  readonly policies: readonly NetworkPolicyObject[]
  readonly flows: readonly Flow[]
}

/** Policies, and connections of one cluster. */
export const scene: fc.Arbitrary<Scene> = cluster.chain((pods) =>
  fc.record({ policies: networkPolicies, flows: flowsIn(pods) }),
)
