/** Texts for the fields of a flow. They claim no more than was observed. */
import type { Flow, WholeFlow } from './flow.ts'

export const NOT_KNOWN = 'not known'

export function verdictText({ decision }: Pick<Flow, 'decision'>): string {
  if (decision === 'ALLOW') return 'Allowed: the agent saw the connection, and nothing stopped it there.'
  if (decision === 'DROP')
    return (
      'Dropped: there was no answer to the SYN. That does not mean that a policy denied it: the other end may be ' +
      'gone, or not listen.'
    )
  return decision === null ? 'The agent did not say whether it was allowed.' : `The agent calls it ${decision}.`
}

const CAUSES: Readonly<Record<string, string>> = {
  'no-policy': 'No network policy governed the pod in this direction, so none of its policies was the cause.',
  'policy-governs':
    'A network policy governed the pod in this direction. It may be the cause, which this does not prove.',
  unknown: 'The policy evaluator could not say whether a policy governed the pod.',
}

/** Only for dropped flows. */
export function causeText({ drop_cause }: Pick<WholeFlow, 'drop_cause'>): string {
  if (drop_cause === null) return `${NOT_KNOWN}: nobody could say whether a policy governed the pod`
  return CAUSES[drop_cause] ?? `${drop_cause}, in the word of the agent.`
}

export function retriesText({ syn_retries }: Pick<WholeFlow, 'syn_retries'>): string {
  if (syn_retries === null) return NOT_KNOWN
  return syn_retries === 0 ? 'never' : syn_retries === 1 ? 'once' : `${syn_retries} times`
}

/** Names the side whose agent reported the flow. */
export function seenByText({ traffic_type }: Pick<Flow, 'traffic_type'>): string {
  if (traffic_type === 'EGRESS') return 'the agent of the side that opened the connection (egress)'
  if (traffic_type === 'INGRESS') return 'the agent of the side that accepted the connection (ingress)'
  return `${traffic_type ?? NOT_KNOWN}: the agent did not say which side opened the connection`
}

/** How the broker identified the peer, or why it could not. */
export function attributionText(flow: Pick<WholeFlow, 'peer_kind' | 'from' | 'to' | 'traffic_type'>): string {
  if (flow.peer_kind === 'pod') return 'The broker found the pod that had this address at the time of the flow.'
  if (flow.peer_kind === 'service') return 'The broker found the service with this address, and no pod that had it.'
  if (flow.peer_kind === 'node')
    return 'The broker found a pod on the network of its node at this address, so the peer is the node.'
  const peer = flow.traffic_type === 'EGRESS' ? flow.to : flow.traffic_type === 'INGRESS' ? flow.from : null
  return peer?.kind === 'external'
    ? 'A public address. No pod and no service is known to have had it.'
    : 'No pod, node or service is known to have had this address. While the flow is young, the broker tries again.'
}

/** The time one microsecond later, the smallest step between the times of flows. */
export function nextMicrosecond(at: string): string {
  const [seconds = '', fraction = ''] = at.split('.')
  const micros = Number(fraction.padEnd(6, '0')) + 1
  if (micros < 1_000_000) return `${seconds}.${String(micros).padStart(6, '0')}`
  return new Date(Date.parse(`${seconds}Z`) + 1_000).toISOString().slice(0, 19)
}
