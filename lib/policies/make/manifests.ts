/** Policies as NetworkPolicy and as CiliumNetworkPolicy. */
import type { Manifest } from '../../text/yaml.ts'
import { textOfBlock } from '../block.ts'
import type { DirectionName } from '../match.ts'
import { type Labels, NAMESPACE_NAME } from '../policy.ts'
import type { Format, RulePeer, RulePort } from './peers.ts'
import { exceptOf } from './prune.ts'
import type { MadeRule } from './rules.ts'

export interface Made {
  readonly name: string
  readonly namespace: string
  readonly annotations: Readonly<Record<string, string>>
  /** Selects all pods of the namespace where it is empty. */
  readonly selector: Labels
  /** The rules of each direction in which the pods are isolated. */
  readonly rules: Readonly<Partial<Record<DirectionName, readonly MadeRule[]>>>
}

const sorted = (labels: Labels): Labels =>
  Object.fromEntries(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))

const metadataOf = ({ name, namespace, annotations }: Made) => ({
  name,
  namespace,
  ...(Object.keys(annotations).length > 0 ? { annotations: sorted(annotations) } : {}),
})

export const manifestOf = (format: Format, made: Made): Manifest =>
  format === 'cilium' ? ciliumPolicy(made) : networkPolicy(made)

function networkPolicy(made: Made): Manifest {
  const { namespace, selector, rules } = made
  const listed = (list: readonly MadeRule[], side: 'from' | 'to') =>
    list.map(({ peers, ports }) => ({
      ...(peers.some(({ type }) => type === 'anyone')
        ? {}
        : { [side]: peers.map((one) => kubernetesPeer(one, namespace)) }),
      ports: ports.map(({ protocol, port }) => ({ protocol, ...(port === null ? {} : { port }) })),
    }))
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: metadataOf(made),
    spec: {
      podSelector: matching(selector),
      policyTypes: [...(rules.ingress ? ['Ingress'] : []), ...(rules.egress ? ['Egress'] : [])],
      ...(rules.ingress && rules.ingress.length > 0 ? { ingress: listed(rules.ingress, 'from') } : {}),
      ...(rules.egress && rules.egress.length > 0 ? { egress: listed(rules.egress, 'to') } : {}),
    },
  }
}

const matching = (labels: Labels) => (Object.keys(labels).length === 0 ? {} : { matchLabels: sorted(labels) })

function kubernetesPeer(peer: RulePeer, own: string): object {
  if (peer.type === 'pods') {
    const pods = { podSelector: matching(peer.labels) }
    if (peer.namespace === own) return pods
    return { namespaceSelector: matching({ [NAMESPACE_NAME]: peer.namespace }), ...pods }
  }
  if (!('block' in peer)) throw new TypeError(`no peer of Kubernetes: ${peer.type}`)
  const except = exceptOf(peer)
  return { ipBlock: { cidr: textOfBlock(peer.block), ...(except.length > 0 ? { except } : {}) } }
}

const NAMESPACE_OF_POD = 'k8s:io.kubernetes.pod.namespace'

function ciliumPolicy(made: Made): Manifest {
  const { namespace, selector, rules } = made
  const listed = (list: readonly MadeRule[], side: 'from' | 'to') => {
    const all = list.flatMap((rule) => ciliumRules(rule, namespace, side))
    // A rule without anything allows nothing, but isolates.
    return all.length > 0 ? all : [{}]
  }
  return {
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumNetworkPolicy',
    metadata: metadataOf(made),
    spec: {
      endpointSelector: matching(selector),
      ...(rules.ingress ? { ingress: listed(rules.ingress, 'from') } : {}),
      ...(rules.egress ? { egress: listed(rules.egress, 'to') } : {}),
    },
  }
}

/** Cilium refuses longer lists of ports. */
const MAX_CILIUM_PORTS = 40

const inChunks = <T>(list: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(list.length / size) }, (_, i) => list.slice(i * size, (i + 1) * size))

/** Pods, addresses and entities each need a rule of their own: together they would all have to match. */
function ciliumRules({ peers, ports }: MadeRule, own: string, side: 'from' | 'to'): object[] {
  const toPorts = inChunks(ports.map(ciliumPort), MAX_CILIUM_PORTS).map((chunk) => ({ ports: chunk }))
  if (peers.some(({ type }) => type === 'anyone')) return [{ toPorts }]
  const pods = peers.filter((one) => one.type === 'pods')
  const blocks = peers.filter((one) => 'block' in one)
  const endpoints = pods.map(({ namespace, labels }) => ({
    matchLabels: sorted({ ...labels, ...(namespace === own ? {} : { [NAMESPACE_OF_POD]: namespace }) }),
  }))
  const cidrs = blocks.map((one) => ({ cidr: textOfBlock(one.block), except: exceptOf(one) }))
  return [
    ...(pods.length > 0 ? [{ [`${side}Endpoints`]: endpoints, toPorts }] : []),
    ...(blocks.length === 0
      ? []
      : cidrs.some(({ except }) => except.length > 0)
        ? [
            {
              [`${side}CIDRSet`]: cidrs.map(({ cidr, except }) => (except.length > 0 ? { cidr, except } : { cidr })),
              toPorts,
            },
          ]
        : [{ [`${side}CIDR`]: cidrs.map(({ cidr }) => cidr), toPorts }]),
    ...(peers.some(({ type }) => type === 'nodes') ? [{ [`${side}Entities`]: ['host', 'remote-node'], toPorts }] : []),
    ...(peers.some(({ type }) => type === 'apiserver') ? [{ [`${side}Entities`]: ['kube-apiserver'], toPorts }] : []),
  ]
}

/** The port 0 stands for all ports. */
const ciliumPort = ({ protocol, port }: RulePort) => ({ port: String(port ?? 0), protocol })
