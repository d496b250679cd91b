import { isObject, type JsonObject } from '../json/objects.ts'
import { type ContainerEntry, containerName, type ReferencePart, readContainer, stateOf } from './container.ts'
import { isDigest } from './digest.ts'
import { podSecurity } from './security.ts'

const MAX_CONTAINERS = 64

/** The fields of POST /pod/spec that the inventory reads. */
export interface InventoryPost {
  pod_name: string
  pod_namespace?: string | null | undefined
  workload_kind?: string | null | undefined
  workload_name?: string | null | undefined
  containers?: unknown
  pod_security?: unknown
}

/** A container of a pod, with all columns that `posted_containers` reads. */
interface PostedContainer extends ContainerEntry {
  pod_namespace: string
  workload_kind: string
  workload_name: string
  pod_name: string
  pod_security: JsonObject
}

interface InventoryIssues {
  malformed: (part: ReferencePart) => void
  warn: (message: string) => void
}

const isBlank = (text: string | null | undefined) => !text || text.trim() === ''

/**
 * Reads the containers of a post: of each name the first, 64 at most (docs/contract.md#images). Empty without a
 * namespace or if `containers` is no list. A pod without an owner is its own workload; a kind without a name, or a name
 * without a kind, is no owner.
 */
export function readContainers(post: InventoryPost, issues: InventoryIssues): PostedContainer[] {
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
      issues.warn(`containers: only the first ${MAX_CONTAINERS} are kept`)
      break
    }
    const container = readContainer(entry, issues.malformed)
    if (container !== null && !byName.has(container.container_name))
      byName.set(container.container_name, { ...shared, ...container })
  }
  return [...byName.values()]
}

/**
 * Returns the names of the containers that run in a pod, sorted by bytes, without repeats; null if the post has no
 * list. Of each name the first entry counts, and 64 names at most. The image need not be known.
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

/** Digests kept of a pod: more than most pods have containers. */
const MAX_RUNNING_DIGESTS = 8

/** Returns the known digests of the containers that run in a pod, sorted by bytes, without repeats. */
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
