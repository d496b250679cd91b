/** Label keys of Cilium's selectors, which have a source and may be those of a namespace. */

import { NAMESPACE_NAME, type Peer, type Requirement, type Selector } from '../policy.ts'
import { isLabelKey } from './fields.ts'

const POD_NAMESPACE = 'io.kubernetes.pod.namespace'
const NAMESPACE_LABELS = 'io.cilium.k8s.namespace.labels.'
/** Service accounts and names of clusters. */
const POLICY_LABELS = 'io.cilium.k8s.policy.'

/**
 * Labels that are no part of the identity of a pod unless Cilium is configured so, by the beginnings of their keys
 * ("Limiting Identity-Relevant Labels" in Cilium's documentation, and its source, `pkg/labelsfilter`).
 */
const IGNORED = new RegExp(
  `^(?:${[
    ...['io\\.kubernetes', 'kubernetes\\.io', 'k8s\\.io', '.*beta\\.kubernetes\\.io', 'topology\\.kubernetes\\.io'],
    ...['statefulset\\.kubernetes\\.io/pod-name', 'apps\\.kubernetes\\.io/pod-index'],
    ...['batch\\.kubernetes\\.io/job-completion-index', 'batch\\.kubernetes\\.io/controller-uid', 'controller-uid'],
    ...['pod-template-generation', 'pod-template-hash', 'controller-revision-hash', 'annotation', 'etcd_node'],
  ].join('|')})`,
)

const IGNORED_LABELS = 'Cilium ignores some labels, such as pod-template-hash, unless it is configured otherwise'

/** Whether no selector of Cilium matches a label of pods, as it is configured by default. */
export const isIgnoredByCilium = (key: string): boolean => IGNORED.test(key)

const SOURCE = /^[a-z][-a-z0-9.]{0,62}$/

/** Splits `k8s:app`; without a source any one is meant. Null for a text that is no key. */
export function sourceAndName(key: string): { readonly source: string; readonly name: string } | null {
  const colon = key.indexOf(':')
  const source = colon < 0 ? 'any' : key.slice(0, colon)
  const name = key.slice(colon + 1)
  const label = name.startsWith(NAMESPACE_LABELS) ? name.slice(NAMESPACE_LABELS.length) : name
  return SOURCE.test(source) && isLabelKey(label) ? { source, name } : null
}

/**
 * The requirements of a selector on pods and on their namespaces, or the reason why one cannot be evaluated. `ignored`
 * says why requirements are left out that may select more or fewer pods, else null.
 */
export type Split =
  | { readonly pods: Selector; readonly namespaces: Selector; readonly ignored: string | null; readonly reason: null }
  | { readonly reason: string }

export function split(selector: Selector): Split {
  const pods: Requirement[] = []
  const namespaces: Requirement[] = []
  let ignored: string | null = null
  for (const one of selector) {
    const { source, name } = sourceAndName(one.key)!
    if (source === 'reserved') return { reason: "Cilium's reserved labels are not known" }
    if (source !== 'any' && source !== 'k8s') return { reason: `labels of the source ${source} are not known` }
    if (name.startsWith(POLICY_LABELS)) return { reason: 'service accounts and names of clusters are not known' }
    if (name === POD_NAMESPACE) namespaces.push({ ...one, key: NAMESPACE_NAME })
    else if (name.startsWith(NAMESPACE_LABELS)) namespaces.push({ ...one, key: name.slice(NAMESPACE_LABELS.length) })
    else if (isIgnoredByCilium(name)) ignored = IGNORED_LABELS
    else pods.push({ ...one, key: name })
  }
  return { pods, namespaces, ignored, reason: null }
}

/** Pods in the namespace of the policy, unless the selector has a label of namespaces. */
export function endpointsOf(selector: Selector): Peer {
  const parts = split(selector)
  if (parts.reason !== null) return { kind: 'unknown', reason: parts.reason }
  const { pods, namespaces, ignored } = parts
  if (ignored !== null) return { kind: 'unknown', reason: ignored }
  return { kind: 'pods', namespaces: namespaces.length > 0 ? namespaces : null, pods }
}
