/** Names of repositories in policies (docs/contract.md#policies). */
import { DIGEST_PATTERN, MALFORMED_REFERENCE } from '../images/index.ts'

const DIGEST = new RegExp(DIGEST_PATTERN)
const HUB = 'docker.io/'
const LIBRARY = 'library/'
/** Spellings of Docker Hub in pod specs; it may be left out. */
const HUB_SPELLINGS = ['', HUB, 'index.docker.io/']
const HUB_HOSTS = new Set(['docker.io', 'index.docker.io'])
/** The host that policy-controller expands Docker Hub references to. */
const EXPANDED_HUB = 'index.docker.io/'

const HOST = '[A-Za-z0-9]+([.-]+[A-Za-z0-9]+)*(:[0-9]+)?'
const SEGMENT = '[A-Za-z0-9]+([._-]+[A-Za-z0-9]+)*'
/** A name without pattern characters of any engine, in the syntax of image references before the tag. */
const NAME = new RegExp(`^(${HOST}/)?${SEGMENT}(/${SEGMENT})*$`)

/**
 * Whether every engine reads the name as this repository alone. Other texts would be patterns, make the engine refuse
 * the whole policy, or name no image, such as one with a tag: such a policy would never apply.
 */
export const isPlainName = (name: string): boolean => NAME.test(name)

/** Returns a reference without tag and digest; empty if it names no repository (a bare digest) or was malformed. */
export function repositoryOfReference(reference: string): string {
  const text = reference.trim()
  if (DIGEST.test(text) || text === MALFORMED_REFERENCE) return ''
  const [name] = text.split('@', 1) as [string]
  const colon = name.indexOf(':', name.lastIndexOf('/') + 1)
  return colon === -1 ? name : name.slice(0, colon)
}

/**
 * Returns every spelling that pod specs may have for a repository of the inventory: several for Docker Hub, else one.
 */
export function spellingsOf(repository: string): string[] {
  if (!repository.startsWith(HUB)) return [repository]
  const path = repository.slice(HUB.length)
  const paths = path.startsWith(LIBRARY) ? [path, path.slice(LIBRARY.length)] : [path]
  return HUB_SPELLINGS.flatMap((hub) => paths.map((one) => hub + one))
}

interface Named {
  readonly name: string
  /** Spellings of pod specs. */
  readonly spelled: ReadonlySet<string>
}

/** Every name that pod specs have, or may have, for a repository that policies can name. */
export const podNames = ({ name, spelled }: Named): Set<string> =>
  new Set([...spellingsOf(name), ...[...spelled].filter(isPlainName)])

/**
 * Returns the name in the spelling that policy-controller expands references to: a name without a registry is on Docker
 * Hub, and one without a folder is there in `library`.
 */
export function expandedName(name: string): string {
  const slash = name.indexOf('/')
  const first = name.slice(0, Math.max(slash, 0))
  const isHost = /[.:]/.test(first) || first === 'localhost'
  if (isHost && !HUB_HOSTS.has(first)) return name
  const path = isHost ? name.slice(slash + 1) : name
  return EXPANDED_HUB + (path.includes('/') ? path : LIBRARY + path)
}

/** Returns the names under which engines see the images of a repository, each in one spelling. */
export function writtenNames({ name, isNamed, spelled }: Named & { readonly isNamed: boolean }): Set<string> {
  const plain = [...spelled].filter(isPlainName)
  return new Set((isNamed ? [name, ...plain] : plain).map(expandedName))
}
