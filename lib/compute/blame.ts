/** The blame list of a latest sample. It is cut because long lists bloated the table (docs/contract.md#compute). */
import { quoted } from './literal.ts'
import { type Culprit, culpritOf } from './reading.ts'

const MAX_SHOWN = 5
/** Of their JSON in all. */
const MAX_SHOWN_BYTES = 1_024
/** Waits that are left out are added up to what a double holds. */
const MAX_SUM = Number.MAX_SAFE_INTEGER

export interface Blame {
  /** The heaviest as a JSON array, quoted for a literal. */
  readonly json: string
  readonly omitted: number
  readonly omittedWaitNs: number
  /** Entries that do not tell who it is. */
  readonly bad: number
}

const NOBODY: Blame = { json: quoted('[]'), omitted: 0, omittedWaitNs: 0, bad: 0 }

/** The heaviest first, of equal ones the first that was sent; the first one that there is no room for ends the list, and the rest is counted. */
export function trimmedBlame(sent: unknown): Blame {
  if (!Array.isArray(sent) || sent.length === 0) return NOBODY
  const culprits: Culprit[] = []
  for (const entry of sent) {
    const culprit = culpritOf(entry)
    if (culprit !== null) culprits.push(culprit)
  }
  culprits.sort((a, b) => b.waitNs - a.waitNs)
  const shown: string[] = []
  // An opening bracket, then each with a comma or the closing bracket behind it.
  let bytes = 1
  for (const culprit of culprits.slice(0, MAX_SHOWN)) {
    const text = jsonOf(culprit)
    bytes += Buffer.byteLength(text) + 1
    if (bytes > MAX_SHOWN_BYTES) break
    shown.push(text)
  }
  let omittedWaitNs = 0
  for (let i = shown.length; i < culprits.length; i++) omittedWaitNs += culprits[i]!.waitNs
  return {
    json: quoted(`[${shown.join(',')}]`),
    omitted: culprits.length - shown.length,
    omittedWaitNs: Math.min(omittedWaitNs, MAX_SUM),
    bad: sent.length - culprits.length,
  }
}

// The id is a cell: it has digits that no number of ours holds.
const jsonOf = ({ cgroupId, kind, ref, containerUid, count, waitNs }: Culprit): string =>
  `{"cgroup_id":${cgroupId},"kind":${JSON.stringify(kind)},"ref":${JSON.stringify(ref)},"container_uid":${JSON.stringify(containerUid)},"count":${count},"wait_ns":${waitNs}}`
