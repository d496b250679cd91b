/** Cuts the blame list of a latest sample, because long lists bloat the table (docs/contract.md#compute). */
import { quoted } from './literal.ts'
import { type Culprit, culpritOf } from './reading.ts'

const MAX_SHOWN = 5
/** Limit of the JSON of the shown entries together. */
const MAX_SHOWN_BYTES = 1_024
/** The sum of omitted waits stops here, so that it stays an exact integer. */
const MAX_SUM = Number.MAX_SAFE_INTEGER

export interface Blame {
  /** The longest waits as a JSON array, quoted for an array literal. */
  readonly json: string
  readonly omitted: number
  readonly omittedWaitNs: number
  /** Entries that name no valid culprit. */
  readonly bad: number
}

const NOBODY: Blame = { json: quoted('[]'), omitted: 0, omittedWaitNs: 0, bad: 0 }

/**
 * Sorts by wait, longest first; equal waits keep the order sent. The first entry that does not fit ends the list, and
 * the rest is counted.
 */
export function trimmedBlame(sent: unknown): Blame {
  if (!Array.isArray(sent) || sent.length === 0) return NOBODY
  const culprits: Culprit[] = []
  for (const entry of sent) {
    const culprit = culpritOf(entry)
    if (culprit !== null) culprits.push(culprit)
  }
  culprits.sort((a, b) => b.waitNs - a.waitNs)
  const shown: string[] = []
  // One byte for the opening bracket; each entry adds one for the comma or bracket that follows it.
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

// The id is a cell: a 64-bit id has more digits than a JavaScript number holds.
const jsonOf = ({ cgroupId, kind, ref, containerUid, count, waitNs }: Culprit): string =>
  `{"cgroup_id":${cgroupId},"kind":${JSON.stringify(kind)},"ref":${JSON.stringify(ref)},"container_uid":${JSON.stringify(containerUid)},"count":${count},"wait_ns":${waitNs}}`
