import type { Flow } from '../traffic/index.ts'

/** The body of `POST /evaluate` (docs/contract.md#verdicts). Null fields of the flow are left out. */
export interface EvaluateRequest {
  srcPodNamespace?: string | undefined
  srcPodName?: string | undefined
  dstPodNamespace?: string | undefined
  dstPodName?: string | undefined
  srcIP?: string | undefined
  dstIP?: string | undefined
  dstPort: number
  protocol: string
  /** RFC 3339, always `+00:00`. */
  timestamp: string
}

const MAX_PORT = 65_535

/** Whether the evaluator can evaluate the flow: only with a direction. */
export const hasDirection = (flow: Flow): boolean => directionOf(flow) === 'INGRESS' || directionOf(flow) === 'EGRESS'

/** The request for a flow that has a direction. */
export function evaluateRequest(flow: Flow): EvaluateRequest {
  const rest = { protocol: flow.ip_protocol ?? 'TCP', timestamp: `${flow.time_stamp}+00:00` }
  const [namespace, name] = [flow.pod_namespace ?? undefined, flow.pod_name ?? undefined]
  const [pod, peer] = [flow.pod_ip ?? undefined, flow.traffic_in_out_ip ?? undefined]
  if (directionOf(flow) === 'INGRESS') {
    const dstPort = portOf(flow.pod_port)
    return { dstPodNamespace: namespace, dstPodName: name, srcIP: peer, dstIP: pod, dstPort, ...rest }
  }
  const dstPort = portOf(flow.traffic_in_out_port)
  return { srcPodNamespace: namespace, srcPodName: name, srcIP: pod, dstIP: peer, dstPort, ...rest }
}

/**
 * The query of `GET /policy-coverage` for the cause of a drop, about the pod of the row (docs/contract.md#verdicts);
 * null if there is nothing to ask. A drop without a direction is queried as egress, as most drops are.
 */
export function coverageQuery(flow: Flow): { namespace: string; pod: string; direction: string } | null {
  if (flow.decision !== 'DROP' || !flow.pod_namespace || !flow.pod_name) return null
  return {
    namespace: flow.pod_namespace,
    pod: flow.pod_name,
    direction: directionOf(flow) === 'INGRESS' ? 'Ingress' : 'Egress',
  }
}

function directionOf({ traffic_type: type }: Flow): string | undefined {
  return type === 'EGRESS' || type === 'INGRESS' ? type : type?.trim().toUpperCase()
}

function portOf(text: string | null | undefined): number {
  const port = /^\d{1,5}$/.test(text ?? '') ? Number(text) : 0
  return port <= MAX_PORT ? port : 0
}
