/** Decides which policies to generate (docs/contract.md#policies). */

import { Slice } from '../event-loop/slices.ts'
import { sortInSlices } from '../event-loop/sort-in-slices.ts'
import { quoted } from '../text/yaml.ts'
import type { PolicyFormat } from '../wire-names/index.ts'
import { type Authority, keyOf } from './authority.ts'
import { type Coverage, markOf, PREDICATES, type Repository } from './coverage.ts'
import { firstWithSharedName } from './shared-names.ts'

/** The choices of a request for policies. */
export interface Options {
  readonly format: PolicyFormat
  /** As answers write it. */
  readonly wireFormat: string
  readonly isEnforced: boolean
  /** Null for the cluster. */
  readonly namespace: string | null
  /** For people: the workload whose images the policies are for; absent for all of the namespace or the cluster. */
  readonly workload?: string
  readonly annotationPrefix: string
}

/** Repositories that share a policy. Any of the authorities may have signed their images and attested the predicate. */
export interface Group {
  /** Sorted by name, at least one. */
  readonly repositories: readonly Repository[]
  /** Sorted by key, at least one. */
  readonly authorities: readonly Authority[]
  readonly predicate: string | null
}

export interface Plan {
  /** In the order of their first repositories. */
  readonly groups: readonly Group[]
  /** The signers of covered images, sorted by key, each with its digests in order. */
  readonly identities: readonly { readonly authority: Authority; readonly digests: readonly string[] }[]
  /** Sorted by name. */
  readonly uncovered: readonly { readonly name: string; readonly reason: string }[]
  /** Other namespaces that run images of the same names, sorted; empty for policies with a namespace. */
  readonly elsewhere: readonly string[]
}

const NO_NAME = 'no policy can name it'

const byName = (a: Repository, b: Repository) => a.name < b.name || (a.name === b.name && a.isNamed && !b.isNamed)

export async function planOf(coverage: Coverage): Promise<Plan> {
  const slice = new Slice()
  const repositories = await sortInSlices([...coverage.repositories], byName, slice)
  const firsts = firstWithSharedName(repositories)
  const reasons = new Map<Repository, string>()
  /** The first repository without coverage among those that share a policy. */
  const failedByFirst = new Map<Repository, Repository>()
  for (const one of repositories) {
    const reason = one.failure?.reason ?? (one.isNamed ? null : NO_NAME)
    if (reason === null) continue
    reasons.set(one, reason)
    const first = firsts.get(one)!
    if (!failedByFirst.has(first)) failedByFirst.set(first, one)
  }
  const covered: Repository[] = []
  const uncovered: { name: string; reason: string }[] = []
  for (const one of repositories) {
    const other = failedByFirst.get(firsts.get(one)!)
    if (other === undefined) covered.push(one)
    else
      uncovered.push({
        name: one.name,
        reason: reasons.get(one) ?? `pods write the same name for ${quoted(other.name)}, which is not covered`,
      })
  }
  const identities = await identitiesOf(covered, slice)
  return {
    groups: await groupsOf(covered, firsts, identities, slice),
    identities,
    uncovered,
    elsewhere: coverage.namespaces,
  }
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

async function groupsOf(
  covered: readonly Repository[],
  firsts: ReadonlyMap<Repository, Repository>,
  identities: readonly Identity[],
  slice: Slice,
): Promise<Group[]> {
  const ranks = new Map<Authority, number>()
  const marks: string[] = []
  for (const [rank, { authority, key }] of identities.entries()) {
    ranks.set(authority, rank)
    marks.push(markOf(key))
    if (slice.isOver) await slice.next()
  }
  const alike = new Map<Repository, Repository[]>()
  for (const one of covered) {
    const first = firsts.get(one)!
    const members = alike.get(first)
    if (members) members.push(one)
    else alike.set(first, [one])
  }
  const groups = new Map<string, { repositories: Repository[]; authorities: Authority[]; predicate: string | null }>()
  const groupOf = new Map<Repository, { repositories: Repository[] }>()
  for (const [first, members] of alike) {
    const own = Uint32Array.from(
      new Set(members.flatMap(({ signed }) => Array.from(signed.keys(), (authority) => ranks.get(authority)!))),
    ).sort()
    if (slice.isOver) await slice.next()
    const ownMarks = new Set<string>()
    for (const rank of own) ownMarks.add(marks[rank]!)
    const isAttested = (digest: readonly string[]) => digest.some((mark) => ownMarks.has(mark))
    const predicate = PREDICATES.find((_, i) => members.every(({ attested }) => attested[i]!.every(isAttested))) ?? null
    const key = `${predicate} ${own.join()}`
    const group = groups.get(key) ?? {
      repositories: [],
      authorities: Array.from(own, (rank) => identities[rank]!.authority),
      predicate,
    }
    groups.set(key, group)
    groupOf.set(first, group)
    if (slice.isOver) await slice.next()
  }
  for (const one of covered) groupOf.get(firsts.get(one)!)!.repositories.push(one)
  return [...groups.values()]
}
