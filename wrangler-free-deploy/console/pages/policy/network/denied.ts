/** Groups the edges that a trial denied by peer, so that the page shows each peer once. */
import type { components } from '../../../api/schema.d.ts'

export type DeniedEdge = components['schemas']['DeniedEdge']
export type Side = DeniedEdge['from']

export interface DeniedGroup {
  readonly key: string
  /** The end whose policies deny the edge, and the other end. */
  readonly isolated: Side
  readonly peer: Side
  /** `from`: the peer opens the connections; `to`: it accepts them. */
  readonly direction: 'from' | 'to'
  readonly edges: readonly DeniedEdge[]
  readonly flows: number
}

/** `orders/Deployment/web`, `orders/Service/web`, or an address. */
export function sideText({ kind, namespace, name, workload, ip }: Side): string {
  if (kind === 'workload') return `${namespace}/${workload}`
  if (kind === 'pod') return `${namespace}/Pod/${name}`
  if (kind === 'service') return `${namespace}/Service/${name}`
  if (kind === 'namespace') return `${namespace}`
  return `${kind} ${ip ?? ''}`.trim()
}

/** Groups with the most flows first. An edge that both ends deny belongs to the end that accepts the connection. */
export function groupDenied(edges: readonly DeniedEdge[]): DeniedGroup[] {
  const groups = new Map<string, DeniedGroup & { edges: DeniedEdge[]; flows: number }>()
  for (const edge of edges) {
    const isIngress = edge.deniedBy.some(({ direction }) => direction === 'ingress')
    const [isolated, peer] = isIngress ? [edge.to, edge.from] : [edge.from, edge.to]
    const direction = isIngress ? 'from' : 'to'
    const key = JSON.stringify([sideText(isolated), direction, sideText(peer)])
    const group = groups.get(key) ?? { key, isolated, peer, direction, edges: [], flows: 0 }
    group.edges.push(edge)
    group.flows += edge.flows
    groups.set(key, group)
  }
  return [...groups.values()].sort((one, other) => other.flows - one.flows)
}

/** The filter of flows that matches a side, without the prefix `from_` or `to_`. */
export function filterOfSide({ kind, namespace, name, workload, ip }: Side): readonly [string, string] | null {
  if (kind === 'workload') return ['workload', `${namespace}/${workload}`]
  if (kind === 'pod') return ['pod', `${namespace}/${name}`]
  if (kind === 'service') return ['service', `${namespace}/${name}`]
  return ip === null ? null : ['ip', ip]
}
