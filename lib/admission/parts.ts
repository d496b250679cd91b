import type { Group } from './plan.ts'
import { podNames } from './repository.ts'

/**
 * Bytes of the names in one policy. `kubectl apply` copies the object into an annotation, and the API server refuses
 * annotations of more than 262 144 bytes. The other half is left for signers and expressions.
 */
const MAX_NAME_BYTES = 128 * 1024
/** Patterns of a name (alone, with a tag, with a digest), and the bytes of one beside the name. */
const GLOBS = 3
const GLOB_BYTES = 16

/**
 * Splits groups with too many repositories for one policy. Each part has all signers of the group, so no part denies an
 * image that another one accepts.
 */
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
