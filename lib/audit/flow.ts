import type { Flow } from '../traffic/index.ts'

/** The body of `POST /evaluate` (interop-core 5.1). What is null in the flow is left out. */
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

/** Whether the evaluator knows anything of such a flow: of one of neither direction it is not asked. */
export const hasDirection = (flow: Flow): boolean => directionOf(flow) === 'INGRESS' || directionOf(flow) === 'EGRESS'

/** What the evaluator is asked about a flow that has a direction. */
export function evaluateRequest(flow: Flow): EvaluateRequest {
  const rest = { protocol: flow.ip_protocol ?? 'TCP', timestamp: `${flow.time_stamp}+00:00` }
  const [namespace, name] = [flow.pod_namespace ?? undefined, flow.pod_name ?? undefined]
  const [pod, peer] = [flow.pod_ip ?? undefined, flow.traffic_in_out_ip ?? undefined]
  if (directionOf(flow) === 'INGRESS')
    return { dstPodNamespace: namespace, dstPodName: name, srcIP: peer, dstIP: pod, dstPort: portOf(flow.pod_port), ...rest }
  return { srcPodNamespace: namespace, srcPodName: name, srcIP: pod, dstIP: peer, dstPort: portOf(flow.traffic_in_out_port), ...rest }
}

/**
 * The pod whose policies are asked for the cause of a drop (interop-core 5.4); null where there is nothing to ask. Agents report
 * drops on the way out only, and the question is one about egress.
 */
export function droppedPod(flow: Flow): { namespace: string; pod: string } | null {
  if (flow.decision !== 'DROP' || directionOf(flow) !== 'EGRESS' || !flow.pod_namespace || !flow.pod_name) return null
  return { namespace: flow.pod_namespace, pod: flow.pod_name }
}

function directionOf({ traffic_type: type }: Flow): string | undefined {
  return type === 'EGRESS' || type === 'INGRESS' ? type : type?.trim().toUpperCase()
}

function portOf(text: string | null | undefined): number {
  const port = /^\d{1,5}$/.test(text ?? '') ? Number(text) : 0
  return port <= MAX_PORT ? port : 0
}
