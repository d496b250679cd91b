import { weigh } from './blame.ts'
import type { Culprit } from './contract.ts'
import { contended, noisy } from './message.ts'
import type { Container, FindNeighbor, Neighbor, Victim } from './rows.ts'
import { meanUsageMillis } from './sums.ts'

/** The culprit of a stall, null for none, and the end of the message. */
export interface Verdict {
  readonly culprit: Culprit | null
  readonly said: string
}

const nobody = (said: string): Verdict => ({ culprit: null, said })

/** Finds the culprit of a stalled container (docs/contract.md#compute). */
export function verdictOn({ container, blame }: Victim, find: FindNeighbor, blameShare: number): Verdict {
  if (!blame.isWhole) return nobody(contended.beyondCount)
  const weighed = weigh(blame, container.containerUid)
  if (weighed === null) return nobody(contended.withoutBlame)
  const { unknownShare, heaviest } = weighed
  if (unknownShare >= blameShare || heaviest === null) return nobody(contended.unattributed(unknownShare))
  const { kind, ref, containerUid, share } = heaviest
  if (share < blameShare) return nobody(contended.byMany(ref, share))
  switch (kind) {
    case 'system':
    case 'kernel':
      return {
        culprit: { kind, ref, ...NO_POD, blame_share: share, ...NOT_SAMPLED },
        said: noisy.outside(kind, ref, share),
      }
    case 'pod':
      if (containerUid === null) return nobody(contended.byUntracked(ref, share))
      return verdictOnPod(ref, containerUid, find(containerUid), share)
    default:
      return nobody(contended.byUnclassified(ref, share))
  }
}

const NO_POD = { pod_uid: null, namespace: null, pod_name: null, container_uid: null }
const NOT_SAMPLED = { cpu_usage_millis: null, cpu_request_millis: null }

function verdictOnPod(ref: string, containerUid: string, found: Neighbor | undefined, share: number): Verdict {
  if (found === undefined) {
    const culprit = {
      kind: 'pod' as const,
      ref,
      ...podOf(ref, containerUid),
      container_uid: containerUid,
      blame_share: share,
      ...NOT_SAMPLED,
    }
    return { culprit, said: noisy.optedOut(ref, share) }
  }
  const culprit = culpritOf(found, ref, share)
  const { cpu_usage_millis: usage, cpu_request_millis: request } = culprit
  if (request !== null && usage! <= request) return nobody(contended.byModest(ref, share, request))
  return { culprit, said: noisy.greedy(ref, share, usage!, request) }
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
