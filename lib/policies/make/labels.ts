/** Labels that select a workload (docs/contract.md#network-policies). */
import type { PodGroup, Workload } from '../facts.ts'
import { isIgnoredByCilium } from '../parse/cilium-labels.ts'
import { isLabelKey, isLabelValue } from '../parse/fields.ts'
import { type Pods, present, workloadText } from '../pods.ts'
import type { Labels, Selector } from '../policy.ts'
import type { Format } from './peers.ts'

/** Labels that change with a revision, a pod, a run, a version or a chart. */
const UNSTABLE = new Set([
  ...['pod-template-hash', 'controller-revision-hash', 'pod-template-generation', 'controller-uid', 'job-name'],
  ...['statefulset.kubernetes.io/pod-name', 'apps.kubernetes.io/pod-index', 'version', 'app.kubernetes.io/version'],
  ...['chart', 'helm.sh/chart', 'heritage', 'app.kubernetes.io/managed-by', 'helm.sh/revision'],
  ...[
    'rollouts-pod-template-hash',
    'service.istio.io/canonical-revision',
    'istio.io/rev',
    'tags.datadoghq.com/version',
  ],
  ...['serving.knative.dev/revision', 'serving.knative.dev/revisionUID'],
  'serving.knative.dev/configurationGeneration',
])
const UNSTABLE_PREFIXES = ['batch.kubernetes.io/', 'job-completion-index']

const isStable = (key: string): boolean => !UNSTABLE.has(key) && !UNSTABLE_PREFIXES.some((one) => key.startsWith(one))

/** Labels of one pod of a StatefulSet, which the next pod of its name has, too. */
const OF_POD = ['statefulset.kubernetes.io/pod-name', 'apps.kubernetes.io/pod-index']

/** Whether a service that selects pods by a label selects others, by another value, after the next revision. */
export const isOfRevision = (key: string): boolean => !isStable(key) && !OF_POD.includes(key)

/** Whether the API server accepts a label in a selector. It refuses an object with any other one as a whole. */
export const isValidLabel = ([key, value]: readonly [string, string]): boolean => isLabelKey(key) && isLabelValue(value)

/** Sets of labels are tried up to this size, and so many of them; beyond, all labels are taken together. */
const MAX_SEARCHED = 3
const MAX_SETS_TRIED = 2_000

const usable = (labels: Labels, format: Format): Labels =>
  Object.fromEntries(
    Object.entries(labels)
      .filter(([key, value]) => isStable(key) && isValidLabel([key, value]))
      .filter(([key]) => format !== 'cilium' || !isIgnoredByCilium(key))
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  )

/** The labels that select a workload; `others` are selected, too. */
export interface Selection {
  readonly labels: Labels
  readonly others: readonly Workload[]
  /** Whether they are the selector of the workload as it was posted. */
  readonly isPosted: boolean
}

/** Workloads that run from time to time have no pods in between. */
const COMES_BACK = ['Job', 'CronJob']

/**
 * The selector of a workload among the pods of its namespace: as posted; else the smallest set of labels that no other
 * workload has, or, where there is none, all its labels, with the workloads that share them. Workloads without a living
 * pod may come back; they are only given up where no set tells them apart. Null where no labels are known.
 */
export function selectionOf(workload: Workload, pods: Pods, format: Format): Selection | null {
  const own = present(pods.of(workload))
  const isOther = (one: PodGroup) => one.workload.kind !== workload.kind || one.workload.name !== workload.name
  const isRival = (one: PodGroup) => isOther(one) && (one.isLiving || COMES_BACK.includes(one.workload.kind))
  const selected = (labels: Labels) =>
    unique(
      pods
        .withAll(workload.namespace, labels)
        .filter(isRival)
        .map((one) => one.workload),
    )
  const posted = postedOf(own, format)
  const found = posted === null ? [] : selected(posted.labels)
  if (posted !== null && (posted.isWhole || found.length === 0))
    return { labels: posted.labels, others: found, isPosted: true }
  const shared = sharedOf(own, format)
  if (shared.length === 0) return null
  const labels = smallest(workload, shared, pods, isOther) ?? smallest(workload, shared, pods, isRival)
  if (labels !== null) return { labels, others: [], isPosted: false }
  const every = Object.fromEntries(shared)
  return { labels: every, others: selected(every), isPosted: false }
}

/** The selector as posted, without labels that may not be used; `isWhole` where it has none of these. */
function postedOf(own: readonly PodGroup[], format: Format): { labels: Labels; isWhole: boolean } | null {
  const [first] = own
    .flatMap(({ selectorLabels }) => (selectorLabels === null ? [] : [selectorLabels]))
    .map((posted) => ({ labels: usable(posted, format), count: Object.keys(posted).length }))
    .map(({ labels, count }) => ({
      labels,
      isWhole: Object.keys(labels).length === count,
      text: JSON.stringify(labels),
    }))
    .filter(({ text }) => text !== '{}')
    .sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : Number(b.isWhole) - Number(a.isWhole)))
  return first ?? null
}

/** The labels that all pods of a workload have. */
function sharedOf(own: readonly PodGroup[], format: Format): [string, string][] {
  if (own.length === 0) return []
  return Object.entries(usable(own[0]!.labels, format)).filter(([key, value]) =>
    own.every(({ labels }) => Object.hasOwn(labels, key) && labels[key] === value),
  )
}

/** The smallest set of labels that none of the others has, or null. */
function smallest(
  { namespace }: Workload,
  shared: readonly [string, string][],
  pods: Pods,
  isOther: (one: PodGroup) => boolean,
): Labels | null {
  const every = Object.fromEntries(shared)
  if (pods.withAll(namespace, every).some(isOther)) return null
  let tried = 0
  for (const one of subsets(shared)) {
    if (++tried > MAX_SETS_TRIED) break
    const labels = Object.fromEntries(one)
    if (!pods.withAll(namespace, labels).some(isOther)) return labels
  }
  return every
}

/** Sets of labels, the smallest first, in the order of their keys. */
function* subsets(labels: readonly [string, string][]): Generator<readonly [string, string][]> {
  for (let size = 1; size <= Math.min(MAX_SEARCHED, labels.length); size++) yield* choose(labels, size)
}

function* choose<T>(list: readonly T[], size: number): Generator<T[]> {
  if (size === 0) {
    yield []
    return
  }
  for (let i = 0; i <= list.length - size; i++)
    for (const rest of choose(list.slice(i + 1), size - 1)) yield [list[i]!, ...rest]
}

/** The keys of labels that no selector may have, because the API server would refuse it. */
export const invalidKeys = (groups: readonly PodGroup[]): string[] => [
  ...new Set(
    groups
      .flatMap(({ labels, selectorLabels }) => [...Object.entries(labels), ...Object.entries(selectorLabels ?? {})])
      .filter((one) => !isValidLabel(one))
      .map(([key]) => key),
  ),
]

const unique = (workloads: readonly Workload[]): Workload[] =>
  [...new Map(workloads.map((one) => [workloadText(one), one])).values()].sort((a, b) =>
    workloadText(a) < workloadText(b) ? -1 : 1,
  )

export const asSelector = (labels: Labels): Selector =>
  Object.entries(labels)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => ({ key, operator: 'In', values: [value] }))
