/** The names of repositories in policies (interop-supply-chain, section 4). */
import { DIGEST_PATTERN, MALFORMED_REFERENCE } from '../images/index.ts'

const DIGEST = new RegExp(DIGEST_PATTERN)
const HUB = 'docker.io/'
const LIBRARY = 'library/'
/** How pod specs may write the registry that may be left out. */
const HUB_SPELLINGS = ['', HUB, 'index.docker.io/']
const HUB_HOSTS = new Set(['docker.io', 'index.docker.io'])
/** The one that policy-controller expands references to. */
const EXPANDED_HUB = 'index.docker.io/'

const HOST = '[A-Za-z0-9]+([.-]+[A-Za-z0-9]+)*(:[0-9]+)?'
const SEGMENT = '[A-Za-z0-9]+([._-]+[A-Za-z0-9]+)*'
/** What no engine takes for a pattern, and what references of images may have before their tag. */
const NAME = new RegExp(`^(${HOST}/)?${SEGMENT}(/${SEGMENT})*$`)

/**
 * Whether engines read a name as that of this repository alone: of some other texts they make a pattern, for some they refuse the whole policy, and
 * the rest is the name of no image, such as one with a tag: what its policy asks for, nobody would be asked for.
 */
export const isPlainName = (name: string): boolean => NAME.test(name)

/** A reference of an image without tag and digest; empty for one that names no repository, such as a bare digest, or that was malformed. */
export function repositoryOfReference(reference: string): string {
  const text = reference.trim()
  if (DIGEST.test(text) || text === MALFORMED_REFERENCE) return ''
  const [name] = text.split('@', 1) as [string]
  const colon = name.indexOf(':', name.lastIndexOf('/') + 1)
  return colon === -1 ? name : name.slice(0, colon)
}

/** Every name by which pod specs may call a repository, given as the inventory has it: of Docker Hub all spellings, of others the one. */
export function spellingsOf(repository: string): string[] {
  if (!repository.startsWith(HUB)) return [repository]
  const path = repository.slice(HUB.length)
  const paths = path.startsWith(LIBRARY) ? [path, path.slice(LIBRARY.length)] : [path]
  return HUB_SPELLINGS.flatMap((hub) => paths.map((one) => hub + one))
}

/** Every name that pod specs have, or may have, for a repository that policies can name. */
export function podNames(of: { readonly name: string; readonly spelled: ReadonlySet<string> }): Set<string> {
  const names = new Set(spellingsOf(of.name))
  for (const one of of.spelled) if (isPlainName(one)) names.add(one)
  return names
}

/**
 * The name of an image in one spelling, which is how policy-controller expands what pods write: what names no registry is of Docker Hub, whose
 * images without a folder are in `library`.
 */
export function expandedName(name: string): string {
  const slash = name.indexOf('/')
  const first = name.slice(0, Math.max(slash, 0))
  const isHost = /[.:]/.test(first) || first === 'localhost'
  if (isHost && !HUB_HOSTS.has(first)) return name
  const path = isHost ? name.slice(slash + 1) : name
  return EXPANDED_HUB + (path.includes('/') ? path : LIBRARY + path)
}

/** The names under which engines see the images of a repository, each in one spelling. */
export function writtenNames(of: {
  readonly name: string
  readonly isNamed: boolean
  readonly spelled: ReadonlySet<string>
}): Set<string> {
  const names = new Set<string>()
  if (of.isNamed) names.add(expandedName(of.name))
  for (const one of of.spelled) if (isPlainName(one)) names.add(expandedName(one))
  return names
}
