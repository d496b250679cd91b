import type { Blame, Wait } from './rows.ts'

/** A group that made a container wait, and its share of the container's total wait. */
export interface Group extends Wait {
  readonly share: number
}

export interface Weighed {
  /** The share of groups that could not be identified. */
  readonly unknownShare: number
  /** The identified group with the longest wait; null without one. */
  readonly heaviest: Group | null
}

/** The kind of a group that could not be identified. */
const UNKNOWN = 'unknown'

/** Returns null if there was no wait. The wait of a container for itself does not count. */
export function weigh(blame: Blame, ownUid: string): Weighed | null {
  const groups = new Map<string, Wait>()
  for (const wait of blame.waits) {
    if (wait.containerUid === ownUid) continue
    const key = nameOf(wait)
    groups.set(key, { ...wait, waitNs: wait.waitNs + (groups.get(key)?.waitNs ?? 0) })
  }
  let [totalNs, unknownNs] = [blame.restNs, 0]
  let heaviest: Wait | null = null
  for (const group of groups.values()) {
    totalNs += group.waitNs
    if (group.kind === UNKNOWN) unknownNs += group.waitNs
    else if (heaviest === null || isHeavier(group, heaviest)) heaviest = group
  }
  if (totalNs <= 0) return null
  return { unknownShare: unknownNs / totalNs, heaviest: heaviest && { ...heaviest, share: heaviest.waitNs / totalNs } }
}

const nameOf = ({ kind, ref, containerUid }: Wait) => JSON.stringify([kind, ref, containerUid])

/** Equal waits are ordered by name, so that the result does not depend on the order of rows. */
function isHeavier(a: Wait, b: Wait): boolean {
  if (a.waitNs !== b.waitNs) return a.waitNs > b.waitNs
  return nameOf(a) < nameOf(b)
}
