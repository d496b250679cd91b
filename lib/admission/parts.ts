import type { Group } from './plan.ts'
import { podNames } from './repository.ts'

/**
 * Bytes of the names in one policy. `kubectl apply` keeps what it applied in an annotation, which the API server refuses beyond 262 144 bytes: so
 * much is left for the signers, the expressions and what surrounds a name.
 */
const MAX_NAME_BYTES = 128 * 1024
/** Of a name, without a tag, with any, and with any digest, beside the name itself. */
const GLOBS = 3
const GLOB_BYTES = 16

/** The same groups, those with too many repositories for one policy in several: whoever signed is in each of them, so none denies what another takes. */
export function partsOf(groups: readonly Group[]): Group[] {
  return groups.flatMap((group) => {
    const parts: Group['repositories'][number][][] = [[]]
    let bytes = 0
    for (const repository of group.repositories) {
      let own = 0
      for (const name of podNames(repository)) own += GLOBS * (name.length + GLOB_BYTES)
      if (bytes > 0 && bytes + own > MAX_NAME_BYTES) {
        parts.push([])
        bytes = 0
      }
      parts.at(-1)!.push(repository)
      bytes += own
    }
    return parts.map((repositories) => ({ ...group, repositories }))
  })
}
