/** The peers and ports that a policy has to name for the ends of connections (docs/contract.md#network-policies). */
import { quoted } from '../../text/yaml.ts'
import { type Connection, type End, numberOfPort, type PodGroup, type Service } from '../facts.ts'
import { isIgnoredByCilium } from '../parse/cilium-labels.ts'
import { isLabelValue, isPortName } from '../parse/fields.ts'
import { type Pods, present, workloadText } from '../pods.ts'
import { isOfRevision, isValidLabel, selectionOf } from './labels.ts'
import { blocks, type RulePeer, type RulePort } from './peers.ts'
import { listed } from './widen.ts'

export interface Wanted {
  readonly format: 'kubernetes' | 'cilium'
  readonly cidr: 'exact' | '24'
}

/** A peer and its port. */
export interface Reached {
  readonly peer: RulePeer
  readonly port: RulePort
}

/** Peers and ports that a policy can name, and faults for those that none can. */
export interface Found {
  readonly reached: readonly Reached[]
  readonly faults: readonly string[]
  /** A comment of the policy: the peers allow more than what was seen. */
  readonly note?: string
}

interface FoundPeers {
  readonly peers: readonly RulePeer[]
  readonly faults: readonly string[]
}

const nothing = (fault: string) => ({ reached: [], peers: [], faults: [fault] })
const peersOrFault = (found: readonly RulePeer[] | string): FoundPeers =>
  typeof found === 'string' ? nothing(found) : { peers: found, faults: [] }

const isOnHost = ({ isHostNetwork }: PodGroup): boolean => isHostNetwork === true

export class Reach {
  readonly #wanted: Wanted
  readonly #services: ReadonlyMap<string, Service>
  readonly #pods: Pods
  readonly #found = new Map<string, Found>()
  readonly #peers = new Map<string, FoundPeers>()

  constructor(services: readonly Service[], pods: Pods, wanted: Wanted) {
    this.#wanted = wanted
    this.#services = new Map(services.map((one) => [`${one.namespace}/${one.name}`, one]))
    this.#pods = pods
  }

  /** The peers and ports that allow a connection with an end. */
  of(connection: Connection, other: End): Found {
    const port = this.#portOf(connection)
    if (typeof port === 'string') return nothing(port)
    if (other.type === 'service') return this.#behind(other, port)
    const { peers, faults } = this.#peersOf(other)
    return { reached: peers.map((peer) => ({ peer, port })), faults }
  }

  /** The port that the server listens on, or the reason why it is not known. */
  #portOf({ to, port, protocol }: Connection): RulePort | string {
    if (!/^\d{1,5}$/.test(port) || Number(port) === 0 || Number(port) > 65_535)
      return `its port ${quoted(port)} is none`
    if (!['TCP', 'UDP', 'SCTP'].includes(protocol.toUpperCase()))
      return `no policy knows the protocol ${quoted(protocol)}`
    const found = { protocol: protocol.toUpperCase(), port: Number(port) }
    if (to.type !== 'service') return found
    const service = this.#services.get(`${to.namespace}/${to.name}`)
    if (service === undefined) return 'the service is not known any more'
    const served = service.ports.find((one) => one.port === found.port && one.protocol === found.protocol)
    if (served === undefined) return `it has no port ${port}/${found.protocol}`
    const { targetPort } = served
    if (typeof targetPort === 'string' && service.selector === null)
      return `it has no selector, so no pod names its target port ${quoted(targetPort)}`
    if (typeof targetPort === 'string' && !isPortName(targetPort))
      return `its target port ${quoted(targetPort)} is no name of a port`
    return { ...found, port: targetPort }
  }

  #peersOf(end: Exclude<End, { type: 'service' }>): FoundPeers {
    if (end.type === 'node') return this.#nodes([end.ip])
    if (end.type === 'external' || end.type === 'unresolved')
      return peersOrFault(blocks(end.type, [end.ip], this.#wanted.cidr === '24'))
    const key = JSON.stringify(end)
    const found = this.#peers.get(key) ?? this.#podsOf(end as End & { type: 'workload' | 'pod' })
    this.#peers.set(key, found)
    return found
  }

  /** Cilium knows nodes by themselves, and not by address. */
  #nodes(ips: readonly (string | null)[]): FoundPeers {
    return peersOrFault(this.#wanted.format === 'cilium' ? [{ type: 'nodes' }] : blocks('node', ips, false))
  }

  /** The pods behind a service, by its selector; those on the host network, which no selector matches, by address. */
  #behind(end: End & { type: 'service' }, port: RulePort): Found {
    const key = JSON.stringify([end.namespace, end.name, port])
    const found = this.#found.get(key) ?? this.#lookBehind(end, port)
    this.#found.set(key, found)
    return found
  }

  #lookBehind({ namespace, name }: End & { type: 'service' }, port: RulePort): Found {
    const selector = this.#services.get(`${namespace}/${name}`)?.selector
    if (selector === undefined) return nothing('the service is not known any more')
    if (selector === null) {
      const isApiServer = this.#wanted.format === 'cilium' && namespace === 'default' && name === 'kubernetes'
      return { reached: [{ peer: { type: isApiServer ? 'apiserver' : 'anyone' }, port }], faults: [] }
    }
    if (!isLabelValue(namespace) || !Object.entries(selector).every(isValidLabel))
      return nothing('its selector is none of Kubernetes')
    const groups = present(this.#pods.withAll(namespace, selector))
    if (this.#wanted.format === 'cilium' && Object.keys(selector).some(isIgnoredByCilium))
      return this.#workloadsBehind(groups, port, 'Cilium ignores labels of its selector')
    if (Object.keys(selector).some(isOfRevision))
      return this.#workloadsBehind(groups, port, 'labels of its selector change with a revision or a version')
    const onHost = groups.filter(isOnHost)
    const peer: RulePeer = { type: 'pods', namespace, labels: selector, isService: true, others: [] }
    const found = onHost.map((group) => this.#onHost(group, port))
    return {
      reached: [
        ...(groups.length > 0 && onHost.length === groups.length ? [] : [{ peer, port }]),
        ...found.flatMap(({ reached }) => reached),
      ],
      faults: found.flatMap(({ faults }) => faults),
    }
  }

  /** The workloads of pods behind a service, and why its selector is not used. */
  #workloadsBehind(groups: readonly PodGroup[], port: RulePort, why: string): Found {
    if (groups.length === 0) return nothing(`${why}, and no pod behind it is known`)
    const workloads = new Map(groups.map(({ workload }) => [workloadText(workload), workload]))
    const found = [...workloads.values()].map((one) => this.#peersOf({ type: 'workload', ...one }))
    const note = `${why}: all pods of ${listed([...workloads.keys()].map(quoted).sort())} are allowed`
    return {
      reached: found.flatMap(({ peers }) => peers.map((peer) => ({ peer, port }))),
      faults: found.flatMap(({ faults }) => faults),
      note,
    }
  }

  /** Pods on the host network have addresses of nodes, which have no names of ports. */
  #onHost({ ips, namedPorts }: PodGroup, { protocol, port: wanted }: RulePort): Found {
    const number = typeof wanted === 'string' ? numberOfPort(namedPorts ?? {}, wanted, protocol) : wanted
    if (typeof wanted === 'string' && number === null)
      return nothing(`its pods on the host network have no port ${wanted}`)
    const port = { protocol, port: number }
    const { peers, faults } = this.#nodes(ips)
    return { reached: peers.map((peer) => ({ peer, port })), faults }
  }

  #podsOf(end: End & { type: 'workload' | 'pod' }): FoundPeers {
    const workload = end.type === 'workload' ? end : { namespace: end.namespace, kind: 'Pod', name: end.name }
    const own = present(this.#pods.of(workload))
    const onHost = own.filter(isOnHost)
    const nodes = onHost.length === 0 ? { peers: [], faults: [] } : this.#nodes(onHost.flatMap(({ ips }) => ips))
    if (onHost.length > 0 && onHost.length === own.length) return nodes
    const selection = isLabelValue(workload.namespace) ? selectionOf(workload, this.#pods, this.#wanted.format) : null
    if (selection === null) return { ...nodes, faults: [...nodes.faults, 'no labels of its pods are known'] }
    const { labels } = selection
    const others = selection.others.map((one) => quoted(workloadText(one)))
    const pods: RulePeer = { type: 'pods', namespace: workload.namespace, labels, isService: false, others }
    return { peers: [pods, ...nodes.peers], faults: nodes.faults }
  }
}
