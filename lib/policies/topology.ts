import { type End, type Facts, numberOfPort, type PodGroup, type Service, type Workload } from './facts.ts'
import type { EvaluatedEnd, PodEnd } from './match.ts'
import { grouped, keyOfWorkload, Pods, present } from './pods.ts'

/** Pods or an address that a connection may have reached, with the port on which they listen; null is not known. */
export interface Target {
  readonly end: EvaluatedEnd
  readonly port: number | null
}

/** The ends of an edge that a target is looked for of. */
interface Reached {
  readonly to: End
  readonly port: string
  readonly protocol: string
}

const portNumber = (text: string): number | null => (/^\d{1,5}$/.test(text) && text !== '0' ? Number(text) : null)

/** Which pods are behind the ends of connections. */
export class Topology {
  readonly pods: Pods
  readonly #services = new Map<string, Service>()
  readonly #keys = new Map<End, string>()
  readonly #ends = new Map<End, readonly EvaluatedEnd[]>()
  readonly #reached = new Map<string, { to: End; port: string }>()
  readonly #backends = new Map<Service, ReadonlyMap<string, readonly PodEnd[]>>()

  constructor({ pods, services }: Pick<Facts, 'pods' | 'services'>) {
    this.pods = new Pods(pods)
    for (const one of services) this.#services.set(keyOfName(one), one)
  }

  /** Equal for equal ends. */
  keyOf(end: End): string {
    let key = this.#keys.get(end)
    if (key === undefined) {
      key = JSON.stringify(end)
      this.#keys.set(end, key)
    }
    return key
  }

  /** The end that a connection reached: the workload behind a service that selects all its pods, and its port. */
  behindService(connection: Reached): { to: End; port: string } {
    const { to, port, protocol } = connection
    if (to.type !== 'service') return connection
    const key = [this.keyOf(to), port, protocol].join('\0')
    const known = this.#reached.get(key)
    if (known !== undefined) return known
    const reached = this.#lookBehind(connection, to)
    this.#reached.set(key, reached)
    return reached
  }

  #lookBehind(connection: Reached, to: End & { type: 'service' }): { to: End; port: string } {
    const backends = this.#backendsOf(to)
    const [only] = backends.keys()
    if (backends.size !== 1 || !this.#selectsAll(to, workloadOf(only!))) return { to, port: connection.port }
    const targets = this.targetsOf(connection)
    const ports = new Set(targets.map((one) => one.port))
    const [number] = ports
    if (ports.size !== 1 || typeof number !== 'number') return { to, port: connection.port }
    return { to: { type: 'workload', ...workloadOf(only!) }, port: String(number) }
  }

  #selectsAll(end: End & { type: 'service' }, workload: Workload): boolean {
    const { namespace, selector } = this.#services.get(keyOfName(end))!
    const selected = new Set(this.pods.withAll(namespace, selector!))
    return present(this.pods.of(workload)).every((one) => selected.has(one))
  }

  /** The pods of an end, or its address. */
  podsOf(end: End): readonly EvaluatedEnd[] {
    let found = this.#ends.get(end)
    if (found === undefined) {
      found = this.#lookUp(end)
      this.#ends.set(end, found)
    }
    return found
  }

  #lookUp(end: End): readonly EvaluatedEnd[] {
    if (end.type === 'service') return [...this.#backendsOf(end).values()].flat()
    if (end.type !== 'workload' && end.type !== 'pod') return [{ type: end.type, ip: end.ip }]
    const workload = end.type === 'workload' ? end : { namespace: end.namespace, kind: 'Pod', name: end.name }
    const groups = present(this.pods.of(workload))
    return groups.length > 0 ? groups.map(podEnd) : [unknownPod(end.namespace)]
  }

  /** The pods that a connection reached, each with the port that it listens on, or its address. */
  targetsOf({ to, port, protocol }: Reached): readonly Target[] {
    const number = portNumber(port)
    if (to.type !== 'service') return this.podsOf(to).map((end) => ({ end, port: number }))
    const pods = this.podsOf(to)
    const service = this.#services.get(keyOfName(to))
    const target = service?.ports.find(
      (one) => one.port === number && one.protocol === protocol.toUpperCase(),
    )?.targetPort
    if (pods.length === 0) {
      // Endpoints that no selector chose listen on ports of their own.
      const isKnown = typeof target === 'number' && service!.selector !== null
      return [{ end: { type: 'unknown', ip: null }, port: isKnown ? target : null }]
    }
    const portOf = (end: EvaluatedEnd) => (typeof target === 'string' ? namedPort(end, target, protocol) : target)
    return pods.map((end) => ({ end, port: portOf(end) ?? null }))
  }

  /** Whether a service selects pods of a workload. */
  isBehind(workload: Workload, service: End & { type: 'service' }): boolean {
    return workload.namespace === service.namespace && this.#backendsOf(service).has(keyOfWorkload(workload))
  }

  /** The pods that a service selects, by workload. */
  #backendsOf(end: End & { type: 'service' }): ReadonlyMap<string, readonly PodEnd[]> {
    const service = this.#services.get(keyOfName(end))
    if (service === undefined || service.selector === null) return new Map()
    const known = this.#backends.get(service)
    if (known !== undefined) return known
    const { selector } = service
    const selected = this.pods.withAll(service.namespace, selector)
    const backends = new Map<string, PodEnd[]>()
    for (const [key, groups] of grouped(present(selected), ({ workload }) => keyOfWorkload(workload)))
      backends.set(key, groups.map(podEnd))
    this.#backends.set(service, backends)
    return backends
  }
}

const podEnd = ({ workload, labels, hasPartialLabels = false, ips, namedPorts, isHostNetwork }: PodGroup): PodEnd => ({
  ...{ type: 'pod', namespace: workload.namespace, namespaceLabels: null, labels, hasPartialLabels },
  ...{ ips, namedPorts, isHostNetwork },
})

const unknownPod = (namespace: string): PodEnd => ({
  ...{ type: 'pod', namespace, namespaceLabels: null, labels: null, ips: [], namedPorts: null, isHostNetwork: null },
})

const namedPort = (end: EvaluatedEnd, name: string, protocol: string): number | null =>
  end.type === 'pod' && end.namedPorts !== null ? numberOfPort(end.namedPorts, name, protocol) : null

const keyOfName = ({ namespace, name }: { namespace: string; name: string }) => JSON.stringify([namespace, name])

function workloadOf(key: string): Workload {
  const [namespace, kind, name] = JSON.parse(key)
  return { namespace, kind, name }
}
