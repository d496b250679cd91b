import type { Blame, Wait } from './rows.ts'

/** A group that made a container wait, and its share of all that the container waited. */
export interface Group extends Wait {
  readonly share: number
}

export interface Weighed {
  /** Of groups that could not be told. */
  readonly unknownShare: number
  /** Of those that could be told; null without one. */
  readonly heaviest: Group | null
}

/** The kind of a group that could not be told. */
const UNKNOWN = 'unknown'

/** Null when nothing was waited for. What a container made itself wait does not count. */
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

/** Of two that weigh the same it is always the same one. */
function isHeavier(a: Wait, b: Wait): boolean {
  if (a.waitNs !== b.waitNs) return a.waitNs > b.waitNs
  return nameOf(a) < nameOf(b)
}
