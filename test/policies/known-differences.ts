/** Where cyclonus differs from the documentation of Kubernetes (README.md). */
import type { Labels } from '../../lib/policies/policy.ts'
import type { Flow, LabelSelector, NetworkPolicyObject, PolicyPeer, PolicyRule } from './policy-values.ts'

export interface KnownDifference {
  readonly name: string
  /** Whether cyclonus may match the selector against these labels and be wrong. */
  readonly applies: (selector: LabelSelector, labels: Labels) => boolean
  /** Selectors that cyclonus reads as documented, and of which exactly one matches what the given one matches. */
  readonly rewrite: (selector: LabelSelector) => readonly LabelSelector[]
}

/**
 * We are right. `Matches` of k8s.io/apimachinery/pkg/labels, which evaluates all label selectors: "The operator is
 * DoesNotExist or NotIn and Labels does not have the Requirement's key". In cyclonus `NotIn` demands the key.
 */
const notInWithoutTheKey: KnownDifference = {
  name: 'NotIn selects what lacks the key',
  applies: ({ matchExpressions }, labels) =>
    (matchExpressions ?? []).some(({ key, operator }) => operator === 'NotIn' && !Object.hasOwn(labels, key)),
  rewrite: (selector) => {
    const [first, ...others] = selector.matchExpressions ?? []
    if (first === undefined) return [selector]
    const ways = first.operator === 'NotIn' ? [{ key: first.key, operator: 'DoesNotExist' }, first] : [first]
    const rests = notInWithoutTheKey.rewrite({ ...selector, matchExpressions: others })
    return ways.flatMap((way) =>
      rests.map((rest) => ({ ...rest, matchExpressions: [way, ...(rest.matchExpressions ?? [])] })),
    )
  },
}

/**
 * We are right. LabelSelector of k8s.io/apimachinery/pkg/apis/meta/v1: "A single {key,value} in the matchLabels map is
 * equivalent to an element of matchExpressions, whose key field is "key", the operator is "In"", and that demands the
 * key. In cyclonus an empty value also matches where the label is missing.
 */
const emptyValueWithoutTheKey: KnownDifference = {
  name: 'an empty value in matchLabels demands the label',
  applies: ({ matchLabels }, labels) =>
    Object.entries(matchLabels ?? {}).some(([key, value]) => value === '' && !Object.hasOwn(labels, key)),
  rewrite: ({ matchLabels, matchExpressions }) => [
    {
      matchExpressions: [
        ...Object.entries(matchLabels ?? {}).map(([key, value]) => ({ key, operator: 'In', values: [value] })),
        ...(matchExpressions ?? []),
      ],
    },
  ],
}

export const KNOWN_DIFFERENCES: readonly KnownDifference[] = [notInWithoutTheKey, emptyValueWithoutTheKey]

/** Whether a selector of the policies meets labels of the flow where it matters. */
export function occurs({ applies }: KnownDifference, policies: readonly NetworkPolicyObject[], flow: Flow): boolean {
  const pods = [flow.from, flow.to].filter((end) => end.type === 'pod')
  const isAny = (selector: LabelSelector | null | undefined, labels: readonly Labels[]) =>
    selector != null && labels.some((one) => applies(selector, one))
  const podLabels = pods.map(({ labels }) => labels)
  const namespaceLabels = pods.map((one) => one.namespaceLabels)
  return policies.some(
    ({ spec }) =>
      isAny(spec.podSelector, podLabels) ||
      [...(spec.ingress ?? []), ...(spec.egress ?? [])]
        .flatMap(({ from, to }) => from ?? to ?? [])
        .some((peer) => isAny(peer.podSelector, podLabels) || isAny(peer.namespaceSelector, namespaceLabels)),
  )
}

/** The same policies, in words that cyclonus reads as documented. */
export const inItsWords = (policies: readonly NetworkPolicyObject[]): readonly NetworkPolicyObject[] =>
  policies.flatMap((policy) =>
    rewritten(policy.spec.podSelector).map((podSelector) => ({
      ...policy,
      spec: {
        ...policy.spec,
        podSelector,
        ingress: policy.spec.ingress?.map(ruleInItsWords),
        egress: policy.spec.egress?.map(ruleInItsWords),
      },
    })),
  )

const ruleInItsWords = (rule: PolicyRule): PolicyRule => ({
  ...rule,
  from: rule.from?.flatMap(peerInItsWords),
  to: rule.to?.flatMap(peerInItsWords),
})

const peerInItsWords = (peer: PolicyPeer): PolicyPeer[] =>
  rewritten(peer.podSelector).flatMap((podSelector) =>
    rewritten(peer.namespaceSelector).map((namespaceSelector) => ({ ...peer, podSelector, namespaceSelector })),
  )

const rewritten = <T extends LabelSelector | null | undefined>(selector: T): readonly (T | LabelSelector)[] =>
  selector == null
    ? [selector]
    : KNOWN_DIFFERENCES.reduce<readonly LabelSelector[]>((all, { rewrite }) => all.flatMap(rewrite), [selector])
