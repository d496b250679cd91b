/** Merges the entries of a post into rows, one for each file of a container (docs/contract.md#executables). */
import type { Dropped } from '../../entries/index.ts'
import { ExecutableEntry, ORIGINS, type Owner, type Sighting } from './entry.ts'

/** A file, and the index of its owner. */
interface Row {
  readonly owner: number
  readonly sighting: Sighting
}

export interface Merged {
  /** Each owner once. */
  readonly owners: readonly Owner[]
  /** Each owner, kind and path once. */
  readonly rows: readonly Row[]
  readonly dropped: Dropped
}

/** Parses entries and merges those of one file, in slices. */
export async function mergeExecutables(entries: Iterable<unknown>): Promise<Merged> {
  const owners = new Map<string, { owner: Owner; index: number }>()
  const rows = new Map<string, Row>()
  const dropped = await ExecutableEntry.parseAll(entries, ({ owner, sighting }) => {
    const ownerKey = keyOf(owner)
    const known = owners.get(ownerKey)
    const index = known?.index ?? owners.size
    if (!known) owners.set(ownerKey, { owner, index })
    const key = `${index} ${sighting.kind} ${sighting.path}`
    const first = rows.get(key)
    rows.set(key, { owner: index, sighting: first ? merged(first.sighting, sighting) : sighting })
  })
  return { owners: [...owners.values()].map(({ owner }) => owner), rows: [...rows.values()], dropped }
}

// No name contains U+0000, so it can separate the parts.
const keyOf = ({ namespace, workloadKind, workloadName, container, image }: Owner) =>
  `${namespace}\0${workloadKind}\0${workloadName}\0${container}\0${image}`

/**
 * Merges two sightings of a file. The pod comes from the newer one, or from `a` if both are equally new. Times are
 * compared as text, since their canonical form sorts by time.
 */
function merged(a: Sighting, b: Sighting): Sighting {
  const newer = b.last > a.last ? b : a
  return {
    kind: a.kind,
    path: a.path,
    isComplete: a.isComplete || b.isComplete,
    source: a.source === 'ebpf' ? a.source : b.source,
    origin: ORIGINS.indexOf(a.origin) >= ORIGINS.indexOf(b.origin) ? a.origin : b.origin,
    pod: newer.pod,
    first: earlier(a.first, b.first),
    last: newer.last,
  }
}

const earlier = (a: string, b: string) => (a < b ? a : b)
