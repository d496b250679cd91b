/** Labels that select a workload (docs/contract.md#network-policies). */
import type { PodGroup, Workload } from '../facts.ts'
import type { Labels, Selector } from '../policy.ts'

/** Labels that change with a revision, a pod, a run, a version or a chart. */
const UNSTABLE = new Set([
  ...['pod-template-hash', 'controller-revision-hash', 'pod-template-generation', 'controller-uid', 'job-name'],
  ...['statefulset.kubernetes.io/pod-name', 'apps.kubernetes.io/pod-index', 'version', 'app.kubernetes.io/version'],
  ...[
    'chart',
    'helm.sh/chart',
    'heritage',
    'app.kubernetes.io/managed-by',
    'helm.sh/revision',
    'rollouts-pod-template-hash',
  ],
])
const UNSTABLE_PREFIXES = ['batch.kubernetes.io/', 'job-completion-index']

const isStable = (key: string): boolean => !UNSTABLE.has(key) && !UNSTABLE_PREFIXES.some((one) => key.startsWith(one))

/** What the API server accepts: a prefix that is a DNS subdomain, and names of at most 63 characters. */
const NAME = /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/
const PREFIX = /^(?=.{1,253}\/)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*\/(.*)$/

function isValid(key: string, value: string): boolean {
  const name = key.includes('/') ? PREFIX.exec(key)?.[4] : key
  return name !== undefined && NAME.test(name) && (value === '' || NAME.test(value))
}

/** Sets of labels are tried up to this size; beyond, all labels are taken together. */
const MAX_SEARCHED = 3

const usable = (labels: Labels): Labels =>
  Object.fromEntries(
    Object.entries(labels)
      .filter(([key, value]) => isStable(key) && isValid(key, value))
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  )

const hasAll = (labels: Labels, wanted: Labels): boolean =>
  Object.entries(wanted).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value)

/** The labels that select a workload; `others` are selected, too. Null where no labels are known. */
export interface Selection {
  readonly labels: Labels
  readonly others: readonly Workload[]
}

/** Workloads that run from time to time have no pods in between. */
const COMES_BACK = ['Job', 'CronJob']

/**
 * The selector of a workload among the pods of its namespace: as posted; else the smallest set of labels that no other
 * workload has, or, where there is none, all its labels, with the workloads that share them.
 */
export function selectionOf(workload: Workload, namespace: readonly PodGroup[]): Selection | null {
  const isOwn = (one: PodGroup) => one.workload.kind === workload.kind && one.workload.name === workload.name
  const all = namespace.filter(isOwn)
  const living = all.filter(({ isLiving }) => isLiving)
  const own = living.length > 0 ? living : all
  if (own.length === 0) return null
  const rivals = namespace.filter((one) => !isOwn(one) && (one.isLiving || COMES_BACK.includes(one.workload.kind)))
  const selected = (labels: Labels) => rivals.filter((one) => hasAll(one.labels, labels)).map((one) => one.workload)
  const posted = own.map(({ selectorLabels }) => JSON.stringify(usable(selectorLabels ?? {}))).sort()
  const [first] = posted.filter((one) => one !== '{}')
  if (first !== undefined) return { labels: JSON.parse(first), others: unique(selected(JSON.parse(first))) }
  const shared = Object.entries(usable(own[0]!.labels)).filter(([key, value]) =>
    own.every(({ labels }) => Object.hasOwn(labels, key) && labels[key] === value),
  )
  if (shared.length === 0) return null
  for (const labels of subsets(shared)) if (selected(labels).length === 0) return { labels, others: [] }
  const labels = Object.fromEntries(shared)
  return { labels, others: unique(selected(labels)) }
}

/** Sets of labels, the smallest first, in the order of their keys. */
function* subsets(labels: readonly [string, string][]): Generator<Labels> {
  for (let size = 1; size <= Math.min(MAX_SEARCHED, labels.length); size++)
    for (const one of choose(labels, size)) yield Object.fromEntries(one)
  if (labels.length > MAX_SEARCHED) yield Object.fromEntries(labels)
}

function* choose<T>(list: readonly T[], size: number): Generator<T[]> {
  if (size === 0) {
    yield []
    return
  }
  for (let i = 0; i <= list.length - size; i++)
    for (const rest of choose(list.slice(i + 1), size - 1)) yield [list[i]!, ...rest]
}

export const workloadText = ({ namespace, kind, name }: Workload): string => `${namespace}/${kind}/${name}`

const unique = (workloads: readonly Workload[]): Workload[] =>
  [...new Map(workloads.map((one) => [workloadText(one), one])).values()].sort((a, b) =>
    workloadText(a) < workloadText(b) ? -1 : 1,
  )

export const asSelector = (labels: Labels): Selector =>
  Object.entries(labels)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, value]) => ({ key, operator: 'In', values: [value] }))
