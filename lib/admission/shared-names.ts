import type { Repository } from './coverage.ts'
import { expandedName, writtenNames } from './repository.ts'

/**
 * A host with a port. In a pattern of Kyverno, `registry:*` matches any tag of `registry`, and also every image of the
 * registry `registry:5000`.
 */
const HOST_WITH_PORT = /^([^:/]+):[0-9]+\//

/**
 * Maps each repository to the first of those that must share its policy, because pods write, or may write, the same
 * name for them. An image has to pass every policy that names it, so two policies with different signers would deny
 * each other's images.
 */
export function firstWithSharedName(repositories: readonly Repository[]): Map<Repository, Repository> {
  const parents = new Map(repositories.map((one) => [one, one]))
  const ranks = new Map(repositories.map((one, at) => [one, at]))
  const firstOf = (one: Repository): Repository => {
    let first = one
    while (parents.get(first) !== first) first = parents.get(first)!
    for (let next = one; next !== first; ) {
      const above = parents.get(next)!
      parents.set(next, first)
      next = above
    }
    return first
  }
  const join = (one: Repository, other: Repository) => {
    const [a, b] = [firstOf(one), firstOf(other)]
    if (ranks.get(a)! < ranks.get(b)!) parents.set(b, a)
    else parents.set(a, b)
  }
  const byName = new Map<string, Repository>()
  const names = repositories.map((one) => [one, writtenNames(one)] as const)
  for (const [one, own] of names) {
    for (const name of own) {
      const other = byName.get(name)
      if (other) join(one, other)
      else byName.set(name, one)
    }
  }
  for (const [one, own] of names) {
    for (const name of own) {
      const host = HOST_WITH_PORT.exec(name)?.[1]
      const other = host === undefined ? undefined : byName.get(expandedName(host))
      if (other) join(one, other)
    }
  }
  return new Map(repositories.map((one) => [one, firstOf(one)]))
}
