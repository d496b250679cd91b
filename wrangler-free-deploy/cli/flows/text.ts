/** Sides of flows and edges, and the facts beside them, in words. */
import { timeText } from '../output/cell.ts'
import { counted } from '../output/lines.ts'

export interface Side {
  readonly kind: string | null
  readonly namespace: string | null
  readonly name: string | null
  readonly workload: string | null
  readonly ip: string | null
}

/** A side as filters take it, with its kind where that is no workload or pod; null where it is not known. */
export function sideText({ kind, namespace, name, workload, ip }: Side): string | null {
  if (kind === null) return null
  if (kind === 'workload') return `${namespace}/${workload}`
  if (kind === 'pod') return `${namespace}/${name}`
  if (kind === 'service') return `${namespace}/Service/${name}`
  return kind === 'namespace' ? namespace : `${kind} ${ip ?? ''}`.trimEnd()
}

/** A time in a sentence. */
export const momentText = (time: string): string => timeText(time, true)

export const unstampedText = (unstamped: number): string[] =>
  unstamped === 0
    ? []
    : [`${counted(unstamped, 'flow')} left out: no workload, label or node was recorded to put the filter to`]
