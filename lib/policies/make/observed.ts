/**
 * What the connections of a workload ask a policy to allow, in one direction: pairs of a peer and a port
 * (docs/contract.md#network-policies).
 */
import type { Slice } from '../../event-loop/slices.ts'
import { type Block, blockOf, textOfBlock } from '../block.ts'
import type { DirectionName } from '../evaluate.ts'
import type { Connection, End, Facts, PodGroup, Service, Workload } from '../facts.ts'
import type { Labels } from '../policy.ts'
import type { Topology } from '../topology.ts'
import { selectionOf, workloadText } from './labels.ts'

/** Pods behind a service or of a workload. `others` are workloads that the labels of a workload select, too. */
export interface PodsPeer {
  readonly type: 'pods'
  readonly namespace: string
  readonly labels: Labels
  readonly isService: boolean
  readonly others: readonly string[]
}

export type RulePeer =
  | PodsPeer
  | { readonly type: 'node' | 'external' | 'unresolved'; readonly block: Block }
  /** All nodes, and all pods on the host network. */
  | { readonly type: 'nodes' }
  /** The API server, which only Cilium knows. */
  | { readonly type: 'apiserver' }
  /** Any endpoint of a service without a selector. */
  | { readonly type: 'anyone' }

/** A port that the server listens on: a number, a name, or null for all ports of the protocol. */
export interface RulePort {
  readonly protocol: string
  readonly port: number | string | null
}

/** A peer and a port that have to be allowed, because of some connections. */
export interface Pair {
  readonly peer: RulePeer
  readonly port: RulePort
  /** The peer for people, such as `shop/Deployment/web`. */
  readonly names: readonly string[]
  readonly connections: readonly Connection[]
}

export interface Wanted {
  readonly format: 'kubernetes' | 'cilium'
  readonly cidr: 'exact' | '24'
}

/** The connections of a workload in a direction: also those to the services that select it. */
export function connectionsOf(
  workload: Workload,
  connections: readonly Connection[],
  direction: DirectionName,
  topology: Topology,
): Connection[] {
  const isIt = (end: End) =>
    end.type === 'workload'
      ? end.namespace === workload.namespace && end.kind === workload.kind && end.name === workload.name
      : end.type === 'pod' &&
        workload.kind === 'Pod' &&
        end.namespace === workload.namespace &&
        end.name === workload.name
  return connections.filter(({ from, to }) =>
    direction === 'egress' ? isIt(from) : isIt(to) || (to.type === 'service' && topology.isBehind(workload, to)),
  )
}

/** Finds the pairs of connections. */
export class Observer {
  readonly #wanted: Wanted
  readonly #services: ReadonlyMap<string, Service>
  readonly #groups = new Map<string, PodGroup[]>()
  readonly #peers = new Map<string, readonly RulePeer[] | string>()

  constructor({ services, pods }: Facts, wanted: Wanted) {
    this.#wanted = wanted
    this.#services = new Map(services.map((one) => [`${one.namespace}/${one.name}`, one]))
    for (const one of pods) {
      const groups = this.#groups.get(one.workload.namespace)
      if (groups === undefined) this.#groups.set(one.workload.namespace, [one])
      else groups.push(one)
    }
  }

  /** The pods of a namespace. */
  podsOf(namespace: string): readonly PodGroup[] {
    return this.#groups.get(namespace) ?? []
  }

  /** The pairs of connections that were not dropped. Notes say what no pair allows. */
  async observe(
    connections: readonly Connection[],
    direction: DirectionName,
    notes: Set<string>,
    slice: Slice,
  ): Promise<Pair[]> {
    const pairs = new Map<string, { port: RulePort; names: Set<string>; connections: Connection[]; key: string }>()
    const merged = new Map<string, RulePeer>()
    for (const connection of connections) {
      if (slice.isOver) await slice.next()
      if (connection.isDropped) continue
      const port = this.#portOf(connection)
      const other = direction === 'egress' ? connection.to : connection.from
      const peers = this.#peersOf(other)
      const fault = typeof port === 'string' ? port : typeof peers === 'string' ? peers : null
      if (fault !== null) {
        notes.add(`LEFT OUT: ${towards(direction)} ${endText(other)}: ${fault}`)
        continue
      }
      for (const peer of peers as readonly RulePeer[]) {
        const key = peerKey(peer)
        merged.set(key, mergedPeer(merged.get(key), peer))
        const pairKey = JSON.stringify([key, port])
        const pair = pairs.get(pairKey) ?? { port: port as RulePort, names: new Set(), connections: [], key }
        pair.names.add(endText(other))
        pair.connections.push(connection)
        pairs.set(pairKey, pair)
      }
    }
    return [...pairs.values()].map(({ key, ...one }) => ({
      ...one,
      peer: merged.get(key)!,
      names: [...one.names].sort(),
    }))
  }

  /** The port that the server listens on, or the reason why it is not known. */
  #portOf({ to, port, protocol }: Connection): RulePort | string {
    if (!/^\d{1,5}$/.test(port) || Number(port) === 0 || Number(port) > 65_535) return `its port ${port} is none`
    if (!['TCP', 'UDP', 'SCTP'].includes(protocol.toUpperCase())) return `no policy knows the protocol ${protocol}`
    const found = { protocol: protocol.toUpperCase(), port: Number(port) }
    if (to.type !== 'service') return found
    const service = this.#services.get(`${to.namespace}/${to.name}`)
    if (service === undefined) return 'the service is not known any more'
    const served = service.ports.find((one) => one.port === found.port && one.protocol === found.protocol)
    if (served === undefined) return `it has no port ${port}/${protocol}`
    return { ...found, port: served.targetPort }
  }

  #peersOf(end: End): readonly RulePeer[] | string {
    if (end.type === 'node') return this.#nodes([end.ip])
    if (end.type === 'external' || end.type === 'unresolved')
      return blocks(end.type, [end.ip], this.#wanted.cidr === '24')
    const key = endText(end)
    let found = this.#peers.get(key)
    if (found === undefined) {
      found = end.type === 'service' ? this.#serviceOf(end) : this.#podsOf(end as End & { type: 'workload' | 'pod' })
      this.#peers.set(key, found)
    }
    return found
  }

  /** Cilium knows nodes by themselves, and not by address. */
  #nodes(ips: readonly (string | null)[]): readonly RulePeer[] | string {
    return this.#wanted.format === 'cilium' ? [{ type: 'nodes' }] : blocks('node', ips, false)
  }

  #serviceOf({ namespace, name }: End & { type: 'service' }): readonly RulePeer[] | string {
    const service = this.#services.get(`${namespace}/${name}`)
    if (service === undefined) return 'the service is not known any more'
    if (service.selector === null)
      return this.#wanted.format === 'cilium' && namespace === 'default' && name === 'kubernetes'
        ? [{ type: 'apiserver' }]
        : [{ type: 'anyone' }]
    return [{ type: 'pods', namespace, labels: service.selector, isService: true, others: [] }]
  }

  #podsOf(end: End & { type: 'workload' | 'pod' }): readonly RulePeer[] | string {
    const workload = end.type === 'workload' ? end : { namespace: end.namespace, kind: 'Pod', name: end.name }
    const namespace = this.#groups.get(workload.namespace) ?? []
    const own = namespace.filter((one) => workloadText(one.workload) === workloadText(workload))
    if (own.some((one) => one.isLiving && one.isHostNetwork === true)) return this.#nodes(own.flatMap(({ ips }) => ips))
    const selection = selectionOf(workload, namespace)
    if (selection === null) return 'no labels of its pods are known'
    const others = selection.others.map(workloadText)
    return [{ type: 'pods', namespace: workload.namespace, labels: selection.labels, isService: false, others }]
  }
}

function blocks(
  type: 'node' | 'external' | 'unresolved',
  ips: readonly (string | null)[],
  isByNetwork: boolean,
): readonly RulePeer[] | string {
  const found = ips.map((ip) => (isByNetwork ? blockOf(ip, 24, 64) : blockOf(ip)))
  if (found.length === 0 || found.includes(null)) return 'its address is not known'
  return found.map((block) => ({ type, block: block! }))
}

export const towards = (direction: DirectionName): string => (direction === 'egress' ? 'egress to' : 'ingress from')

export const endText = (end: End): string =>
  end.type === 'workload'
    ? workloadText(end)
    : end.type === 'pod'
      ? `${end.namespace}/Pod/${end.name}`
      : end.type === 'service'
        ? `service ${end.namespace}/${end.name}`
        : `${end.type === 'unresolved' ? 'address' : end.type} ${end.ip ?? 'unknown'}`

/**
 * One of two equal peers, whichever comes first: a service may have the selector of a workload. The service then means
 * all pods that it selects.
 */
const mergedPeer = (known: RulePeer | undefined, peer: RulePeer): RulePeer =>
  known?.type === 'pods' && known.isService ? known : peer

/** Equal for equal peers. */
export const peerKey = (peer: RulePeer): string =>
  peer.type === 'pods'
    ? JSON.stringify(['pods', peer.namespace, Object.entries(peer.labels).sort(([a], [b]) => (a < b ? -1 : 1))])
    : !('block' in peer)
      ? JSON.stringify([peer.type])
      : JSON.stringify([peer.type, textOfBlock(peer.block)])
