const HUB = 'docker.io'
/** Host names of Docker Hub; clients also leave it out. */
const HUBS = new Set(['', HUB, 'index.docker.io', 'registry-1.docker.io'])
const LIBRARY = 'library'

const withoutSlashes = (text: string | undefined) => (text ?? '').replace(/^\/+|\/+$/g, '')

/**
 * Returns the name of a repository as the inventory has it, registry first, or undefined without one
 * (docs/contract.md#joins). A registry inside `repository` counts only if `registry` is empty.
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
