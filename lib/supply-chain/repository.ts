const HUB = 'docker.io'
/** What clients of that registry call it. */
const HUBS = new Set(['', HUB, 'index.docker.io', 'registry-1.docker.io'])
const LIBRARY = 'library'

const withoutSlashes = (text: string | undefined) => (text ?? '').replace(/^\/+|\/+$/g, '')

/**
 * The repository of an image as the inventory has it, registry first (interop-supply-chain, section 5); undefined where none is told. A
 * registry that stands in the repository counts where there is no other.
 */
export function normalRepository(registry: string | undefined, repository: string | undefined): string | undefined {
  const named = withoutSlashes(registry).toLowerCase()
  const whole = withoutSlashes(repository)
  if (whole === '') return undefined
  const [first, path] = firstSegment(whole)
  const isRegistry = named === '' && path !== '' && (/[.:]/.test(first) || first === 'localhost')
  return isRegistry ? joined(first.toLowerCase(), path) : joined(named, whole)
}

function joined(registry: string, path: string): string {
  if (!HUBS.has(registry)) return `${registry}/${path}`
  return path.includes('/') ? `${HUB}/${path}` : `${HUB}/${LIBRARY}/${path}`
}

function firstSegment(path: string): [string, string] {
  const slash = path.indexOf('/')
  return slash === -1 ? [path, ''] : [path.slice(0, slash), path.slice(slash + 1)]
}
