import { createHash } from 'node:crypto'
import type { Group } from './plan.ts'

const PREFIX = 'kguardian-signed'
const HASH_CHARS = 8
/** Longest part before the hash. */
const MAX_CHARS = 48
/** Longest DNS label (RFC 1123). */
const MAX_LABEL_CHARS = 63

/**
 * Names the policies, in the order of the groups. Names are DNS labels and depend only on the repositories. `suffix` is
 * appended by the caller where a predicate is required. Equal names get different hashes. Kinds without a namespace
 * have the namespace in the hash, so that applying the policies of one namespace does not replace those of another.
 */
export function namesOf(groups: readonly Group[], suffix: string, namespace: string | null): string[] {
  const taken = new Set<string>()
  return groups.map(({ repositories, predicate }) => {
    const maxChars =
      predicate === null ? MAX_CHARS : Math.min(MAX_CHARS, MAX_LABEL_CHARS - suffix.length - HASH_CHARS - 1)
    const all = [...repositories.map(({ name }) => name), ...(namespace === null ? [] : ['', namespace])].join('\n')
    const start = startOf(repositories[0]!.name).slice(0, maxChars).replace(/-+$/, '')
    let name = `${start}-${hashOf(all)}`
    for (let n = 2; taken.has(name); n++) name = `${start}-${hashOf(`${all}\n${n}`)}`
    taken.add(name)
    return name
  })
}

/** The last segment of a repository, in characters that a label may have. */
function startOf(repository: string): string {
  const segment = repository.slice(repository.lastIndexOf('/') + 1)
  const label = segment
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '-')
    .replace(/^-+/, '')
  return label === '' ? PREFIX : `${PREFIX}-${label}`
}

const hashOf = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, HASH_CHARS)
