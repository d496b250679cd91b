/** Entries of a post as rows: each file of a container once (interop-profiling 2.3). */
import { Slice } from '../../process/event-loop.ts'
import { type Fault, judgeExecutable, ORIGINS, type Owner, type Sighting } from './entry.ts'

/** An owner by its place among all owners, and a file of it. */
export interface Row {
  readonly owner: number
  readonly sighting: Sighting
}

export interface Merged {
  /** Each once. */
  readonly owners: readonly Owner[]
  /** Each owner, kind and path once. */
  readonly rows: readonly Row[]
  /** How many entries were dropped, by why. */
  readonly dropped: Readonly<Partial<Record<Fault, number>>>
}

/** Judges entries one by one and merges those of one file, in slices. */
export async function merge(entries: readonly unknown[]): Promise<Merged> {
  const owners = new Map<string, { owner: Owner; place: number }>()
  const rows = new Map<string, Row>()
  const dropped: Partial<Record<Fault, number>> = {}
  const slice = new Slice()
  for (const entry of entries) {
    const executable = judgeExecutable(entry)
    if (typeof executable === 'string') dropped[executable] = (dropped[executable] ?? 0) + 1
    else {
      const { owner, sighting } = executable
      const ownerKey = keyOf(owner)
      const known = owners.get(ownerKey)
      const place = known?.place ?? owners.size
      if (!known) owners.set(ownerKey, { owner, place })
      const key = `${place} ${sighting.kind} ${sighting.path}`
      const first = rows.get(key)
      rows.set(key, { owner: place, sighting: first ? united(first.sighting, sighting) : sighting })
    }
    if (slice.isOver) await slice.next()
  }
  return { owners: [...owners.values()].map(({ owner }) => owner), rows: [...rows.values()], dropped }
}

// None of them holds U+0000.
const keyOf = ({ namespace, workloadKind, workloadName, container, image }: Owner) =>
  `${namespace}\0${workloadKind}\0${workloadName}\0${container}\0${image}`

/** Two sightings of a file as one, with the pod of the newer, the first of equals. In their canonical form the order of times is that of their texts. */
export function united(a: Sighting, b: Sighting): Sighting {
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
