/** Components that came, went, or changed their version (docs/contract.md#changes). */
import { compareTexts } from './listed.ts'

/** How often the SBOMs of either side list a version of a component. */
export interface ComponentCount {
  readonly name: string
  /** Without version and qualifiers; null where the SBOM gives none. */
  readonly purl: string | null
  /** Tells components without a purl apart; null where they have one. */
  readonly type: string | null
  readonly version: string | null
  readonly from: number
  readonly to: number
}

type Identity = Pick<ComponentCount, 'name' | 'purl' | 'type'>
type OneSided = Identity & { readonly version: string | null; readonly count: number }
type Changed = Identity & { readonly from: string | null; readonly to: string | null; readonly count: number }

export interface ComponentsDiff {
  readonly added: readonly OneSided[]
  readonly removed: readonly OneSided[]
  readonly changed: readonly Changed[]
}

/** An entry of a multiset of versions. */
interface Left {
  readonly version: string | null
  count: number
}

/**
 * Components are the same by name and purl, or type where there is no purl. Versions of one component are a multiset:
 * those on one side only are paired in the order of their texts, and what is left over was added or removed. Rows of
 * equal counts may be left out of `counts`.
 */
export function componentsDiff(counts: readonly ComponentCount[]): ComponentsDiff {
  const groups = new Map<string, ComponentCount[]>()
  for (const one of counts) {
    const key = JSON.stringify([one.name, one.purl, one.type])
    const group = groups.get(key)
    if (group) group.push(one)
    else groups.set(key, [one])
  }
  const added: OneSided[] = []
  const removed: OneSided[] = []
  const changed: Changed[] = []
  const inOrder = [...groups.values()].sort(
    ([a], [b]) =>
      compareTexts(a!.name, b!.name) ||
      compareTexts(a!.purl ?? '', b!.purl ?? '') ||
      compareTexts(a!.type ?? '', b!.type ?? ''),
  )
  for (const group of inOrder) {
    const { name, purl, type } = group[0]!
    const identity = { name, purl, type }
    const [old, now] = [leftOf(group, 'from', 'to'), leftOf(group, 'to', 'from')]
    while (old.length > 0 && now.length > 0) {
      const count = Math.min(old[0]!.count, now[0]!.count)
      changed.push({ ...identity, from: old[0]!.version, to: now[0]!.version, count })
      for (const left of [old, now]) {
        left[0]!.count -= count
        if (left[0]!.count === 0) left.shift()
      }
    }
    added.push(...now.map((one) => ({ ...identity, ...one })))
    removed.push(...old.map((one) => ({ ...identity, ...one })))
  }
  return { added, removed, changed }
}

/** The versions that one side has more often than the other, by how much. */
const leftOf = (group: readonly ComponentCount[], side: 'from' | 'to', other: 'from' | 'to'): Left[] =>
  group
    .map((one) => ({ version: one.version, count: one[side] - one[other] }))
    .filter(({ count }) => count > 0)
    .sort((a, b) => compareTexts(a.version ?? '', b.version ?? '') || Number(a.version !== null) - 1)
