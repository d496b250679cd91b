/**
 * Network policies as they are evaluated: NetworkPolicy (networking.k8s.io/v1) and CiliumNetworkPolicy (cilium.io/v2)
 * in one form (docs/contract.md#network-policies).
 */

export type Labels = Readonly<Record<string, string>>

/** A requirement on one label. `values` is empty for `Exists` and `DoesNotExist`. */
export interface Requirement {
  readonly key: string
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
  readonly values: readonly string[]
}

/** All requirements have to hold; none selects everything. `matchLabels` are requirements with one value of `In`. */
export type Selector = readonly Requirement[]

/** The label with which the API server marks each namespace with its name. */
export const NAMESPACE_NAME = 'kubernetes.io/metadata.name'

export interface Policy {
  readonly kind: 'NetworkPolicy' | 'CiliumNetworkPolicy'
  readonly namespace: string
  readonly name: string
  /** The place in the posted stream, from 1. A document of kind List has several policies. */
  readonly document: number
  /** Selects pods of the namespace. */
  readonly subject: Selector
  /** Null where the policy has no effect on the selected pods in this direction. */
  readonly ingress: Direction | null
  readonly egress: Direction | null
}

export interface Direction {
  readonly allow: readonly Rule[]
  /** Deny rules win over all allow rules, also those of other policies. Only Cilium has them. */
  readonly deny: readonly Rule[]
  /** Isolates nothing by itself: without another policy all is allowed that is not denied. Only Cilium has this. */
  readonly isWithoutDefaultDeny?: true
}

export interface Rule {
  /** The place in the document, such as `spec.ingress[0]`. */
  readonly path: string
  /** Any of them has to match; null matches every peer, an empty list none. */
  readonly peers: readonly Peer[] | null
  /** Any of them has to match; null matches every port of every protocol, an empty list none. */
  readonly ports: readonly PortRange[] | null
  /** Why it cannot be told whether a connection that matches is really allowed (rules of layer 7), else null. */
  readonly unknown: string | null
}

export type Peer =
  /** Pods that `pods` selects, in the namespaces that `namespaces` selects; null is the namespace of the policy. */
  | { readonly kind: 'pods'; readonly namespaces: Selector | null; readonly pods: Selector }
  /**
   * Addresses in `cidr` and in none of `except`. `isForPods` is false where the block never matches pods and nodes of
   * the cluster (Cilium).
   */
  | { readonly kind: 'block'; readonly cidr: string; readonly except: readonly string[]; readonly isForPods: boolean }
  /** Entities of Cilium, those that can be told. `nodes` are `host` and `remote-node` together. */
  | { readonly kind: 'world' | 'cluster' | 'all' | 'nodes' }
  /** It cannot be told what it matches (a DNS name, a group of a cloud provider). */
  | { readonly kind: 'unknown'; readonly reason: string }

/** `ICMP` and `ICMPV6` are some of their types. `OTHER` is one beside these, such as VRRP: they are not told apart. */
export type Protocol = 'TCP' | 'UDP' | 'SCTP' | 'ICMP' | 'ICMPV6' | 'OTHER'

export interface PortRange {
  /** Null is every protocol. */
  readonly protocol: Protocol | null
  /** A number, the name of a port of the server's pods, or null for every port. */
  readonly port: number | string | null
  /** The last port where `port` is a number, included; null is `port` alone. */
  readonly endPort: number | null
}
