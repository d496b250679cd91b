/** Facts about a cluster that policies are made from and tried on (docs/contract.md#network-policies). */
import { isLoopback } from './address-block.ts'
import type { Labels } from './policy.ts'

/** `kind` and `name` of a pod without an owner are `Pod` and its own name. */
export interface Workload {
  readonly namespace: string
  readonly kind: string
  readonly name: string
}

/** Numbers of container ports by name and protocol, such as `http/TCP`; earlier releases stored names alone. */
export type NamedPorts = Readonly<Record<string, number>>

/** The number of a named port; null where no container has it. */
export function numberOfPort(ports: NamedPorts, name: string, protocol: string): number | null {
  const key = [`${name}/${protocol.toUpperCase()}`, name].find((one) => Object.hasOwn(ports, one))
  return key === undefined ? null : ports[key]!
}

/** Pods of one workload that agree in everything below. */
export interface PodGroup {
  readonly workload: Workload
  readonly labels: Labels
  /** Whether they may have further labels: a pod without a manifest has at least those that select its workload. */
  readonly hasPartialLabels?: boolean
  /** The selector of the workload, as posted; null where it was not. */
  readonly selectorLabels: Labels | null
  /** Null where no manifest was posted. */
  readonly namedPorts: NamedPorts | null
  /** Null where it is not known. */
  readonly isHostNetwork: boolean | null
  readonly isLiving: boolean
  /** The addresses of all of them. */
  readonly ips: readonly string[]
}

export interface ServicePort {
  readonly port: number
  readonly protocol: string
  /** A number, or the name of a port of the pods. */
  readonly targetPort: number | string
}

export interface Service {
  readonly namespace: string
  readonly name: string
  /** Null where the service has no selector: what is behind it is not known. */
  readonly selector: Labels | null
  readonly ports: readonly ServicePort[]
}

/** A side of a connection. */
export type End =
  | ({ readonly type: 'workload' } & Workload)
  /** A pod of which no workload is known. */
  | { readonly type: 'pod'; readonly namespace: string; readonly name: string }
  /** Only the side that was connected to. */
  | { readonly type: 'service'; readonly namespace: string; readonly name: string }
  /** A node or a pod on the host network; a public address; any other address. Null where no address was seen. */
  | { readonly type: 'node' | 'external' | 'unresolved'; readonly ip: string | null }

/** The workload of an end, or the pod as one; null of services and addresses. */
export const workloadOfEnd = (end: End): Workload | null =>
  end.type === 'workload' ? end : end.type === 'pod' ? { namespace: end.namespace, kind: 'Pod', name: end.name } : null

export const isLoopbackEnd = (end: End): boolean => 'ip' in end && end.ip !== null && isLoopback(end.ip)

/** Flows of the window from one end to another, as one side reported them. */
export interface Connection {
  readonly from: End
  readonly to: End
  /** The port of the server, or of the service where `to` is one; a text as agents sent it. */
  readonly port: string
  /** As agents sent it, such as `TCP`. */
  readonly protocol: string
  /** Whether the flows were seen to be dropped. */
  readonly isDropped: boolean
  readonly seenBy: 'from' | 'to'
  readonly flows: number
  /** Naive UTC, such as `2026-01-31T09:00:00`. */
  readonly firstSeenAt: string
  readonly lastNewAt: string
  /** The row of `flow_edge`; null while the flow is pending. */
  readonly edgeId: string | null
}

/** A workload and the nodes of its pods, to tell whether it was watched. */
export interface Watched {
  /** The first record of any of its pods, naive UTC; null where none is known. */
  readonly since: string | null
  /** Nodes of its pods whose agent no longer posts, sorted. */
  readonly silentNodes: readonly string[]
}

/** The facts about some workloads. */
export interface Facts {
  readonly pods: readonly PodGroup[]
  readonly services: readonly Service[]
  readonly connections: readonly Connection[]
}
