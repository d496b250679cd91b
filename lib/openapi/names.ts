/** Groups of operations, by the first prefix that matches the path. */
const TAGS: readonly [name: string, description: string, prefixes: readonly string[]][] = [
  ['traffic', 'Network flows and who was at their other end', ['/pod/traffic', '/flows']],
  ['policies', 'Network policies, made from what was seen and tried on it', ['/networkpolicy', '/namespaces']],
  ['syscalls', 'System calls seen in a pod', ['/pod/syscalls']],
  ['compute', 'CPU and memory that containers take, and who makes whom wait', ['/compute/', '/pod/compute/']],
  ['pods', 'Pods, by name, address, node and namespace', ['/pod/']],
  ['services', 'Services and their cluster addresses', ['/svc/']],
  ['audit', 'Verdicts of the policy evaluator', ['/audit/']],
  ['nodes', 'Nodes of the cluster', ['/node/', '/cluster/']],
  ['images', 'Container images and where they run', ['/images', '/workloads']],
  ['search', 'Where a package, an image, a workload or an address is', ['/search', '/components']],
  ['changes', 'What changed in the workloads of a namespace', ['/changes']],
  ['vulnerabilities', 'Vulnerabilities of the images that run, and what reaches them', ['/vulnerabilities']],
  [
    'attestations',
    'Signatures and attestations of images, and the policies made of them',
    ['/attestations', '/image-trust'],
  ],
  [
    'seccomp',
    'Seccomp profiles of workloads, the resources and nodes that have them, and what kernels denied',
    ['/seccomp/'],
  ],
  ['runtime', 'Files that ran or were loaded in containers, and how completely they were watched', ['/runtime/']],
  ['coverage', 'What is not known, by name', ['/coverage']],
  ['operations', 'The broker itself', ['/health', '/metrics', '/version', '/openapi.json']],
]

export const tagOf = (path: string): string =>
  TAGS.find(([, , prefixes]) => prefixes.some((prefix) => path.startsWith(prefix)))?.[0] ?? path.split('/')[1]!

/** The tags in use, in the order above; those without a description come last. */
export function describedTags(used: ReadonlySet<string>): { name: string; description?: string }[] {
  const known = TAGS.filter(([name]) => used.has(name)).map(([name, description]) => ({ name, description }))
  const others = [...used].filter((name) => !TAGS.some(([one]) => one === name)).sort()
  return [...known, ...others.map((name) => ({ name }))]
}

/** Converts `/pod/name/:name{[a-z]+}` to the form of OpenAPI: `/pod/name/{name}`. */
export const template = (path: string): string => path.replace(/:(\w+)(\{[^}]*\})?\??/g, '{$1}')

/** `get /pod/list/{node}` → `getPodListByNode`, `get /pod/ip/{ip}` → `getPodByIp`. */
export function operationId(method: string, path: string): string {
  const parts = path.replace(/\/(\w+)(?=\/\{\1\})/g, '').split('/')
  const words = parts.flatMap((part) =>
    part.startsWith('{') ? ['by', ...part.slice(1, -1).split('_')] : part.split(/[^a-zA-Z0-9]+/),
  )
  return method + (words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join('') || 'Index')
}
