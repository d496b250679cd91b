import { createHash } from 'node:crypto'
import type { Group } from './plan.ts'

const PREFIX = 'kguardian-signed'
const HASH_CHARS = 8
/** Of what stands before the hash (interop-supply-chain, section 4). */
const MAX_CHARS = 48
/** Of a label of DNS. */
const MAX_LABEL_CHARS = 63

/**
 * The names of the policies, in the order of the groups: labels of DNS, the same for the same repositories. `suffix` may follow where a
 * predicate is required. Two that would be the same are told apart, and so are those of two namespaces for the same repositories where their kind
 * has no namespace: to apply the one must not replace the other.
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

/** Of the last segment of a repository, in the characters that a label may have. */
function startOf(repository: string): string {
  const segment = repository.slice(repository.lastIndexOf('/') + 1)
  const label = segment
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '-')
    .replace(/^-+/, '')
  return label === '' ? PREFIX : `${PREFIX}-${label}`
}

const hashOf = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, HASH_CHARS)
