import type { Culprit } from './contract.ts'
import { contended, noisy } from './message.ts'
import type { Blame, Container, FindNeighbor, Neighbor, Victim, Wait } from './rows.ts'
import { meanUsageMillis } from './series.ts'

/** The culprit of a stall, null for none, and the end of the message. */
interface Attribution {
  readonly culprit: Culprit | null
  readonly message: string
}

const nobody = (message: string): Attribution => ({ culprit: null, message })

/** Finds the culprit of a stalled container (docs/contract.md#compute). */
export function attribute({ container, blame }: Victim, find: FindNeighbor, blameShare: number): Attribution {
  if (!blame.isWhole) return nobody(contended.beyondCount)
  const shares = sharesOf(blame, container.containerUid)
  if (shares === null) return nobody(contended.withoutBlame)
  const { unknownShare, heaviest } = shares
  if (unknownShare >= blameShare || heaviest === null) return nobody(contended.unattributed(unknownShare))
  const { kind, ref, containerUid, share } = heaviest
  if (share < blameShare) return nobody(contended.byMany(ref, share))
  switch (kind) {
    case 'system':
    case 'kernel':
      return {
        culprit: { kind, ref, ...NO_POD, blame_share: share, ...NOT_SAMPLED },
        message: noisy.outside(kind, ref, share),
      }
    case 'pod':
      if (containerUid === null) return nobody(contended.byUntracked(ref, share))
      return attributeToPod(ref, containerUid, find(containerUid), share)
    default:
      return nobody(contended.byUnclassified(ref, share))
  }
}

const NO_POD = { pod_uid: null, namespace: null, pod_name: null, container_uid: null }
const NOT_SAMPLED = { cpu_usage_millis: null, cpu_request_millis: null }

function attributeToPod(ref: string, containerUid: string, found: Neighbor | undefined, share: number): Attribution {
  if (found === undefined) {
    const culprit = {
      kind: 'pod' as const,
      ref,
      ...podOf(ref, containerUid),
      container_uid: containerUid,
      blame_share: share,
      ...NOT_SAMPLED,
    }
    return { culprit, message: noisy.optedOut(ref, share) }
  }
  const culprit = culpritOf(found, ref, share)
  const { cpu_usage_millis: usage, cpu_request_millis: request } = culprit
  if (request !== null && usage! <= request) return nobody(contended.byModest(ref, share, request))
  return { culprit, message: noisy.greedy(ref, share, usage!, request) }
}

/** The names of a pod without rows, taken from the ref and the container uid. */
function podOf(ref: string, containerUid: string) {
  const [namespace, podName, container] = ref.split('/')
  const isNamed = Boolean(namespace && podName && container)
  const [podUid] = containerUid.split('/')
  return { pod_uid: podUid!, namespace: isNamed ? namespace! : null, pod_name: isNamed ? podName! : null }
}

/** Returns a container with rows as a culprit. */
export const culpritOf = ({ container, rows }: Neighbor, ref: string, share: number): Culprit => ({
  kind: 'pod',
  ref,
  pod_uid: container.podUid,
  namespace: container.namespace,
  pod_name: container.podName,
  container_uid: container.containerUid,
  blame_share: share,
  cpu_usage_millis: meanUsageMillis(rows),
  cpu_request_millis: rows.at(-1)!.requestMillis,
})

/** The name that agents use for a container in `blame`. */
export const refOf = ({ namespace, podName, container }: Container): string => `${namespace}/${podName}/${container}`

/** The shares of a container's total wait. */
interface Shares {
  /** The share of groups that could not be identified. */
  readonly unknownShare: number
  /** The identified group with the longest wait; null without one. */
  readonly heaviest: (Wait & { readonly share: number }) | null
}

/** The kind of a group that could not be identified. */
const UNKNOWN = 'unknown'

/** Returns null if there was no wait. The wait of a container for itself does not count. */
function sharesOf(blame: Blame, ownUid: string): Shares | null {
  const groups = new Map<string, Wait>()
  for (const wait of blame.waits) {
    if (wait.containerUid === ownUid) continue
    const key = nameOf(wait)
    groups.set(key, { ...wait, waitNs: wait.waitNs + (groups.get(key)?.waitNs ?? 0) })
  }
  let [totalNs, unknownNs] = [blame.restNs, 0]
  let heaviest: Wait | null = null
  for (const group of groups.values()) {
    totalNs += group.waitNs
    if (group.kind === UNKNOWN) unknownNs += group.waitNs
    else if (heaviest === null || isHeavier(group, heaviest)) heaviest = group
  }
  if (totalNs <= 0) return null
  return { unknownShare: unknownNs / totalNs, heaviest: heaviest && { ...heaviest, share: heaviest.waitNs / totalNs } }
}

const nameOf = ({ kind, ref, containerUid }: Wait) => JSON.stringify([kind, ref, containerUid])

/** Equal waits are ordered by name, so that the result does not depend on the order of rows. */
function isHeavier(a: Wait, b: Wait): boolean {
  if (a.waitNs !== b.waitNs) return a.waitNs > b.waitNs
  return nameOf(a) < nameOf(b)
}
