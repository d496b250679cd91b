/** Waits of the workload's containers for a processor, added up for each pair of a victim and a culprit. */
import type { JsonAnswer } from '../../../api/answers.ts'
import { toMs } from '../../../parts/moment.ts'

type Pair = JsonAnswer<'/compute/contention'>['pairs'][number]
export type ComputeFinding = JsonAnswer<'/compute/findings'>['findings'][number]
export type LatestContainer = JsonAnswer<'/compute/latest'>['containers'][number]

export interface Wait {
  /** `pod/container`, or the uid if the container is not live. */
  readonly victim: string
  readonly culpritKind: string
  readonly culprit: string
  readonly node: string
  readonly minutes: number
  readonly count: number
  readonly waitNs: number
  readonly lastSeen: string
}

/** The longest wait first. `victims` maps container uids to names; other victims are left out. */
export function waitsOf(pairs: readonly Pair[], victims: ReadonlyMap<string, string>): readonly Wait[] {
  const rows = new Map<string, Wait>()
  for (const pair of pairs) {
    const victim = victims.get(pair.victim_container_uid)
    if (victim === undefined) continue
    const { culprit_kind: culpritKind, culprit_ref: culprit, node } = pair
    const key = JSON.stringify([victim, culpritKind, culprit, node])
    const before = rows.get(key)
    rows.set(key, {
      ...{ victim, culpritKind, culprit, node },
      minutes: (before?.minutes ?? 0) + 1,
      count: (before?.count ?? 0) + pair.count,
      waitNs: (before?.waitNs ?? 0) + pair.wait_ns,
      lastSeen: before !== undefined && toMs(before.lastSeen) > toMs(pair.ts) ? before.lastSeen : pair.ts,
    })
  }
  return [...rows.values()].sort((one, other) => other.waitNs - one.waitNs)
}

const NS_PER_MS = 1_000_000
const NS_PER_SECOND = 1_000_000_000

export const waitText = (ns: number): string =>
  ns >= NS_PER_SECOND
    ? `${(ns / NS_PER_SECOND).toFixed(1)} s`
    : `${(ns / NS_PER_MS).toFixed(ns >= NS_PER_MS ? 0 : 2)} ms`

const FINDINGS: Readonly<Record<ComputeFinding['kind'], string>> = {
  'noisy-neighbor': 'another one takes its CPU time',
  'cpu-throttled': 'held back by its own CPU limit',
  'cpu-contended': 'waits for CPU, and nobody can be named',
  'memory-pressure': 'the node is short of memory',
  'memory-limit-thrash': 'keeps hitting its own memory limit',
}

export const findingText = (kind: ComputeFinding['kind']): string => FINDINGS[kind]
