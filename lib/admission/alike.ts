import type { Repository } from './coverage.ts'
import { expandedName, writtenNames } from './repository.ts'

/** A host with a port: to Kyverno, `registry:*` is any tag of `registry`, and whatever is in the registry `registry:5000`, too. */
const HOST_WITH_PORT = /^([^:/]+):[0-9]+\//

/**
 * Tells for each repository the first of those that one policy has to be for: pods write, or may write, the same name for them. All policies
 * that name an image have to let it pass, so two with other signers each would deny what the other lets pass.
 */
export function firstAlike(repositories: readonly Repository[]): Map<Repository, Repository> {
  const parents = new Map(repositories.map((one) => [one, one]))
  const places = new Map(repositories.map((one, at) => [one, at]))
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
    if (places.get(a)! < places.get(b)!) parents.set(b, a)
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
