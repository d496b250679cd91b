/** Pods by workload and by label, so that no look-up walks through a namespace. */
import type { PodGroup, Workload } from './facts.ts'
import type { Labels } from './policy.ts'

const keyOfLabel = (namespace: string, key: string, value: string) => JSON.stringify([namespace, key, value])

/** Equal for equal workloads. */
export const keyOfWorkload = ({ namespace, kind, name }: Workload) => JSON.stringify([namespace, kind, name])

/** A workload for people. */
export const workloadText = ({ namespace, kind, name }: Workload): string => `${namespace}/${kind}/${name}`

const hasAll = (labels: Labels, wanted: Labels): boolean =>
  Object.entries(wanted).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value)

/** The living pods, or the dead ones where none lives. */
export function present(groups: readonly PodGroup[]): readonly PodGroup[] {
  const living = groups.filter(({ isLiving }) => isLiving)
  return living.length > 0 ? living : groups
}

export function grouped<T>(list: readonly T[], keyOf: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of list) {
    const key = keyOf(one)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [one])
    else group.push(one)
  }
  return groups
}

export class Pods {
  readonly #byNamespace: ReadonlyMap<string, readonly PodGroup[]>
  readonly #byWorkload: ReadonlyMap<string, readonly PodGroup[]>
  readonly #byLabel = new Map<string, PodGroup[]>()

  constructor(groups: readonly PodGroup[]) {
    this.#byNamespace = grouped(groups, ({ workload }) => workload.namespace)
    this.#byWorkload = grouped(groups, ({ workload }) => keyOfWorkload(workload))
    for (const one of groups)
      for (const [label, value] of Object.entries(one.labels)) {
        const key = keyOfLabel(one.workload.namespace, label, value)
        const found = this.#byLabel.get(key)
        if (found === undefined) this.#byLabel.set(key, [one])
        else found.push(one)
      }
  }

  ofNamespace(namespace: string): readonly PodGroup[] {
    return this.#byNamespace.get(namespace) ?? []
  }

  of(workload: Workload): readonly PodGroup[] {
    return this.#byWorkload.get(keyOfWorkload(workload)) ?? []
  }

  /** The pods of a namespace that have all of some labels; no label selects all of them. */
  withAll(namespace: string, labels: Labels): readonly PodGroup[] {
    let rarest: readonly PodGroup[] | null = null
    for (const [key, value] of Object.entries(labels)) {
      const found = this.#byLabel.get(keyOfLabel(namespace, key, value)) ?? []
      if (rarest === null || found.length < rarest.length) rarest = found
    }
    return (rarest ?? this.ofNamespace(namespace)).filter((one) => hasAll(one.labels, labels))
  }
}
