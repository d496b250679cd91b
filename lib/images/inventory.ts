import { type Container, type Part, readContainer } from './container.ts'
import { podSecurity } from './security.ts'
import type { Json } from './values.ts'

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
    if (container !== null && !byName.has(container.container_name)) byName.set(container.container_name, { ...shared, ...container })
  }
  return [...byName.values()]
}
