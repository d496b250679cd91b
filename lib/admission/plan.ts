/** Which policies there are to be (interop-supply-chain, section 4, planning 2 to 6). */
import { sortInSlices } from '../sort-in-slices.ts'
import { Slice } from '../turns.ts'
import { type Authority, keyOf } from './authority.ts'
import { type Coverage, markOf, PREDICATES, type Repository } from './coverage.ts'

/** Repositories that one policy is for: any of the authorities may have signed, and have attested the predicate. */
export interface Group {
  /** In the order of their names, at least one. */
  readonly repositories: readonly Repository[]
  /** In the order of their keys, at least one. */
  readonly authorities: readonly Authority[]
  readonly predicate: string | null
}

export interface Plan {
  /** In the order of their first repositories. */
  readonly groups: readonly Group[]
  /** What signed covered images, in the order of the keys, with the digests in their order. */
  readonly identities: readonly { readonly authority: Authority; readonly digests: readonly string[] }[]
  /** In the order of the names. */
  readonly uncovered: readonly { readonly name: string; readonly reason: string }[]
}

const NO_NAME = 'no policy can name it'

const byName = (a: Repository, b: Repository) => a.name < b.name || (a.name === b.name && a.isNamed && !b.isNamed)

export async function planOf(coverage: Coverage): Promise<Plan> {
  const slice = new Slice()
  const covered: Repository[] = []
  const uncovered: { name: string; reason: string }[] = []
  for (const repository of await sortInSlices([...coverage.repositories], byName, slice)) {
    const reason = repository.failure?.reason ?? (repository.isNamed ? null : NO_NAME)
    if (reason === null) covered.push(repository)
    else uncovered.push({ name: repository.name, reason })
  }
  const identities = await identitiesOf(covered, slice)
  return { groups: await groupsOf(covered, identities, slice), identities, uncovered }
}

interface Identity {
  readonly authority: Authority
  readonly key: string
  readonly digests: string[]
}

async function identitiesOf(covered: readonly Repository[], slice: Slice): Promise<Identity[]> {
  const found = new Map<Authority, Set<string>>()
  for (const { signed } of covered) {
    for (const [authority, digests] of signed) {
      const all = found.get(authority) ?? new Set()
      for (const digest of digests) all.add(digest)
      found.set(authority, all)
      if (slice.isOver) await slice.next()
    }
  }
  const identities: Identity[] = []
  for (const [authority, digests] of found) {
    identities.push({ authority, key: keyOf(authority), digests: [...digests].sort() })
    if (slice.isOver) await slice.next()
  }
  return sortInSlices(identities, (a, b) => a.key < b.key, slice)
}

async function groupsOf(covered: readonly Repository[], identities: readonly Identity[], slice: Slice): Promise<Group[]> {
  const ranks = new Map<Authority, number>()
  const marks: string[] = []
  for (const [rank, { authority, key }] of identities.entries()) {
    ranks.set(authority, rank)
    marks.push(markOf(key))
    if (slice.isOver) await slice.next()
  }
  const groups = new Map<string, { repositories: Repository[]; authorities: Authority[]; predicate: string | null }>()
  for (const repository of covered) {
    const own = Uint32Array.from(repository.signed.keys(), (authority) => ranks.get(authority)!).sort()
    if (slice.isOver) await slice.next()
    const ownMarks = new Set<string>()
    for (const rank of own) ownMarks.add(marks[rank]!)
    const predicate =
      PREDICATES.find((_, i) => repository.attested[i]!.every((digest) => digest.some((mark) => ownMarks.has(mark)))) ?? null
    const key = `${predicate} ${own.join()}`
    const group = groups.get(key)
    if (group) group.repositories.push(repository)
    else groups.set(key, { repositories: [repository], authorities: [...own].map((rank) => identities[rank]!.authority), predicate })
    if (slice.isOver) await slice.next()
  }
  return [...groups.values()]
}
