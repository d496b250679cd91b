/** Waiting times per minute, added up for each pair of a victim and a culprit. */
import type { JsonAnswer } from '../../api/answers.ts'

type Pair = JsonAnswer<'/compute/contention'>['pairs'][number]

export interface PairRow {
  readonly namespace: string
  readonly victim: string
  readonly culprit: string
  readonly kind: string
  readonly waitNs: number
  readonly count: number
}

/** The longest wait first. */
export function pairsOf(pairs: readonly Pair[]): PairRow[] {
  const rows = new Map<string, PairRow>()
  for (const pair of pairs) {
    const key = `${pair.victim_container_uid} ${pair.culprit_kind} ${pair.culprit_ref}`
    const known = rows.get(key)
    rows.set(key, {
      namespace: pair.victim_namespace,
      victim: pair.victim_container_uid,
      culprit: pair.culprit_ref,
      kind: pair.culprit_kind,
      waitNs: (known?.waitNs ?? 0) + pair.wait_ns,
      count: (known?.count ?? 0) + pair.count,
    })
  }
  return [...rows.values()].sort((a, b) => b.waitNs - a.waitNs)
}
