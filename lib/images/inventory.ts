import { type Container, containerName, type Part, readContainer, stateOf } from './container.ts'
import { isDigest } from './digest.ts'
import { podSecurity } from './security.ts'
import { isObject, type Json } from './values.ts'

const MAX_CONTAINERS = 64

/** What the inventory reads of the body of POST /pod/spec. */
export interface InventoryPost {
  pod_name: string
  pod_namespace?: string | null | undefined
  workload_kind?: string | null | undefined
  workload_name?: string | null | undefined
  containers?: unknown
  pod_security?: unknown
}

/** A container of a pod, with all that `posted_containers` reads. */
export interface PostedContainer extends Container {
  pod_namespace: string
  workload_kind: string
  workload_name: string
  pod_name: string
  pod_security: Json
}

export interface Listener {
  malformed: (part: Part) => void
  warn: (message: string) => void
}

const isBlank = (text: string | null | undefined) => !text || text.trim() === ''

/**
 * The containers of a post, of each name the first, 64 at most (interop-core 9.1). None without a namespace, nor when
 * `containers` is no list. A pod without an owner is its own workload; half an owner is none (D17).
 */
export function readContainers(post: InventoryPost, listener: Listener): PostedContainer[] {
  if (!Array.isArray(post.containers) || isBlank(post.pod_namespace)) return []
  const isOwned = !isBlank(post.workload_kind) && !isBlank(post.workload_name)
  const shared = {
    pod_namespace: post.pod_namespace!,
    workload_kind: isOwned ? post.workload_kind! : 'Pod',
    workload_name: isOwned ? post.workload_name! : post.pod_name,
    pod_name: post.pod_name,
    pod_security: podSecurity(post.pod_security),
  }
  const byName = new Map<string, PostedContainer>()
  for (const entry of post.containers) {
    if (byName.size === MAX_CONTAINERS) {
      listener.warn(`containers: only the first ${MAX_CONTAINERS} are kept`)
      break
    }
    const container = readContainer(entry, listener.malformed)
    if (container !== null && !byName.has(container.container_name))
      byName.set(container.container_name, { ...shared, ...container })
  }
  return [...byName.values()]
}

/**
 * The names of the containers that run in a pod (interop-core 9.4, interop-profiling P28), whether or not their image is known: of each name the
 * first entry counts, 64 at most. In the order of their bytes, each once. Null where the post does not say.
 */
export function runningContainers(containers: unknown): string[] | null {
  if (!Array.isArray(containers)) return null
  const isRunning = new Map<string, boolean>()
  for (const entry of containers) {
    if (isRunning.size === MAX_CONTAINERS) break
    const name = isObject(entry) ? containerName(entry.name) : null
    if (name !== null && !isRunning.has(name)) isRunning.set(name, runs(stateOf(entry.state), entry.state_reason))
  }
  return [...isRunning.keys()].filter((name) => isRunning.get(name)).sort()
}

/** Digests of images that are kept of a pod: more than the containers that most have. */
const MAX_RUNNING_DIGESTS = 8

/** The digests of the containers that run in a pod, where they are known: in the order of their bytes, each once. */
export function runningDigests(containers: unknown): string[] {
  if (!Array.isArray(containers)) return []
  const running = containers
    .slice(0, MAX_CONTAINERS)
    .flatMap((entry) =>
      isObject(entry) && isDigest(entry.digest) && runs(stateOf(entry.state), entry.state_reason) ? [entry.digest] : [],
    )
  return [...new Set(running)].sort().slice(0, MAX_RUNNING_DIGESTS)
}

const runs = (state: string | null, reason: unknown) =>
  state === null || state === 'running' || (state === 'waiting' && reason === 'CrashLoopBackOff')
