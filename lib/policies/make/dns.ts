import type { Service } from '../facts.ts'
import type { Pair } from './peers.ts'

/** The namespaces that resolvers of a cluster run in. */
export const RESOLVER_NAMESPACES = ['kube-system', 'openshift-dns']
const PORT = 53

/** Whether a resolver was seen: something on port 53, or a service of that port. */
export const isResolverSeen = (pairs: readonly Pair[]): boolean =>
  pairs.some(({ connections }) => connections.some(({ port }) => port === String(PORT)))

/** The pairs of the usual rule: the resolver of the cluster, as its service says where that is known. */
export function usualResolver(services: readonly Service[]): Pair[] {
  const [service] = services
    .filter((one) => RESOLVER_NAMESPACES.includes(one.namespace) && one.selector !== null)
    .filter(({ ports }) => ports.some(({ port, protocol }) => port === PORT && protocol === 'UDP'))
    .sort((a, b) => (`${a.namespace}/${a.name}` < `${b.namespace}/${b.name}` ? -1 : 1))
  const namespace = service?.namespace ?? 'kube-system'
  const labels = service?.selector ?? { 'k8s-app': 'kube-dns' }
  return ['UDP', 'TCP'].map((protocol) => {
    const target = service?.ports.find((one) => one.port === PORT && one.protocol === protocol)?.targetPort ?? PORT
    return {
      peer: { type: 'pods', namespace, labels, isService: true, others: [] },
      port: { protocol, port: target },
      ...{ names: [`the resolver of the cluster`], connections: [] },
    }
  })
}
