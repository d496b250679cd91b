/** The target of the page: the segments after `policy` in the address. */
import type { WorkloadName } from '../../parts/text.tsx'
import { href, type Query } from '../../place.ts'

export interface Target {
  readonly namespace: string | null
  /** Null for all workloads of the namespace. */
  readonly workload: WorkloadName | null
}

/** Null if the address is not one of this page. */
export function targetOf(rest: readonly string[]): Target | null {
  const [namespace = null, kind, name, ...more] = rest
  if (more.length > 0 || (kind !== undefined && name === undefined)) return null
  return {
    namespace,
    workload: namespace === null || kind === undefined || name === undefined ? null : { namespace, kind, name },
  }
}

export function segmentsOf({ namespace, workload }: Target): string[] {
  if (workload !== null) return ['policy', workload.namespace, workload.kind, workload.name]
  return namespace === null ? ['policy'] : ['policy', namespace]
}

export const hrefOf = (target: Target, query: Query = {}): string => href(segmentsOf(target), query)

/** `shop/Deployment/api`, `shop`, or blank. */
export const targetText = (target: Target): string => segmentsOf(target).slice(1).join('/')

/** Makes a file name from names that may contain any characters. */
export function fileNameOf(target: Target, what: string, extension: string): string {
  const { namespace, workload } = target
  const parts = [namespace, workload?.name, workload?.kind.toLowerCase(), what]
  const name = parts.filter((one) => one !== null && one !== undefined).join('-')
  return `${name.replaceAll(/[^\w.-]+/g, '-').replace(/^[.-]+/, '')}.${extension}`
}
