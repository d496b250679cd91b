/** Label keys of Cilium's selectors, which have a source and may be those of a namespace. */

import { NAMESPACE_NAME, type Peer, type Requirement, type Selector } from '../policy.ts'
import { isLabelKey } from './fields.ts'

const POD_NAMESPACE = 'io.kubernetes.pod.namespace'
const NAMESPACE_LABELS = 'io.cilium.k8s.namespace.labels.'
/** Service accounts and names of clusters. */
const POLICY_LABELS = 'io.cilium.k8s.policy.'

const SOURCE = /^[a-z][-a-z0-9.]{0,62}$/

/** Splits `k8s:app`; without a source any one is meant. Null for a text that is no key. */
export function sourceAndName(key: string): { readonly source: string; readonly name: string } | null {
  const colon = key.indexOf(':')
  const source = colon < 0 ? 'any' : key.slice(0, colon)
  const name = key.slice(colon + 1)
  const label = name.startsWith(NAMESPACE_LABELS) ? name.slice(NAMESPACE_LABELS.length) : name
  return SOURCE.test(source) && isLabelKey(label) ? { source, name } : null
}

/** The requirements of a selector on pods and on their namespaces, or the reason why one cannot be evaluated. */
export type Split =
  | { readonly pods: Selector; readonly namespaces: Selector; readonly reason: null }
  | { readonly reason: string }

export function split(selector: Selector): Split {
  const pods: Requirement[] = []
  const namespaces: Requirement[] = []
  for (const one of selector) {
    const { source, name } = sourceAndName(one.key)!
    if (source === 'reserved') return { reason: "Cilium's reserved labels are not known" }
    if (source !== 'any' && source !== 'k8s') return { reason: `labels of the source ${source} are not known` }
    if (name.startsWith(POLICY_LABELS)) return { reason: 'service accounts and names of clusters are not known' }
    if (name === POD_NAMESPACE) namespaces.push({ ...one, key: NAMESPACE_NAME })
    else if (name.startsWith(NAMESPACE_LABELS)) namespaces.push({ ...one, key: name.slice(NAMESPACE_LABELS.length) })
    else pods.push({ ...one, key: name })
  }
  return { pods, namespaces, reason: null }
}

/** Pods in the namespace of the policy, unless the selector has a label of namespaces. */
export function endpointsOf(selector: Selector): Peer {
  const parts = split(selector)
  if (parts.reason !== null) return { kind: 'unknown', reason: parts.reason }
  const { pods, namespaces } = parts
  return { kind: 'pods', namespaces: namespaces.length > 0 ? namespaces : null, pods }
}
