import type { Connection, Service } from '../facts.ts'
import type { Pods } from '../pods.ts'
import type { Pair } from './peers.ts'

/** The namespaces that resolvers of a cluster run in. */
export const RESOLVER_NAMESPACES = ['kube-system', 'openshift-dns']
const PORT = 53

/**
 * The protocols over which a resolver was seen: something on port 53, a service of that port, or pods that call their
 * port `dns`. A public one answers no names of the cluster.
 */
export const resolverProtocols = (pairs: readonly Pair[], pods: Pods): ReadonlySet<string> =>
  new Set(
    pairs
      .flatMap(({ connections }) => connections)
      .filter((one) => one.to.type !== 'external' && (one.port === String(PORT) || isNamedDns(one, pods)))
      .map(({ protocol }) => protocol),
  )

function isNamedDns({ to, port }: Connection, pods: Pods): boolean {
  if (to.type !== 'workload') return false
  return pods
    .of(to)
    .some(({ namedPorts }) =>
      Object.entries(namedPorts ?? {}).some(([name, number]) => name.startsWith('dns') && String(number) === port),
    )
}

/** Names of the service of the resolver; others on its port, such as filters of advertisements, come after them. */
const USUAL = ['kube-system/kube-dns', 'openshift-dns/dns-default']
const placeOf = (service: Service): string => {
  const text = `${service.namespace}/${service.name}`
  return `${USUAL.includes(text) ? 0 : 1}${text}`
}

/** The pairs of the usual rule: the resolver of the cluster, as its service says where that is known. */
export function usualResolver(services: readonly Service[]): Pair[] {
  const [service] = services
    .filter((one) => RESOLVER_NAMESPACES.includes(one.namespace) && one.selector !== null)
    .filter(({ ports }) => ports.some(({ port, protocol }) => port === PORT && protocol === 'UDP'))
    .sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1))
  const namespace = service?.namespace ?? 'kube-system'
  const labels = service?.selector ?? { 'k8s-app': 'kube-dns' }
  return ['UDP', 'TCP'].map((protocol) => {
    const target = service?.ports.find((one) => one.port === PORT && one.protocol === protocol)?.targetPort ?? PORT
    return {
      peer: { type: 'pods', namespace, labels, isService: true, others: [] },
      port: { protocol, port: target },
      ...{ names: ['the resolver of the cluster'], connections: [] },
    }
  })
}
