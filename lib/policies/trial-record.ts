/** The answer of a trial of policies (docs/contract.md#network-policies). */
import { z } from 'zod'
import { FlowEdgeSide } from '../flows/index.ts'
import { wireTime } from '../http/request/fields.ts'

const counts = {
  evaluated: z.int().describe('Edges with an end that a policy isolates: `allowed` + `denied` + `unknown`.'),
  allowed: z.int(),
  denied: z.int(),
  unknown: z.int().describe('Edges of which the broker cannot tell; `unknownReasons` says why.'),
}

const TriedPolicy = z
  .strictObject({
    document: z.int().describe('The place in the posted stream, from 1.'),
    kind: z.enum(['NetworkPolicy', 'CiliumNetworkPolicy']),
    namespace: z.string(),
    name: z.string(),
    directions: z.array(z.enum(['ingress', 'egress'])).describe('In which it isolates the pods that it selects.'),
    workloads: z.array(z.string()).describe('`Kind/name` of the known workloads of which it selects pods.'),
    ...counts,
  })
  .meta({ id: 'TriedPolicy' })

const DeniedSide = z.strictObject({
  direction: z
    .enum(['egress', 'ingress'])
    .describe('`egress`: the policies of `from` deny it, `ingress`: those of `to`.'),
  document: z.int().describe('The policy with the rule that came nearest to allowing it.'),
  policy: z.string().describe('`namespace/name` of that policy.'),
  path: z.string().nullable().describe('The place of that rule in the document; null where no rule is.'),
  why: z.string().describe('What that rule lacks.'),
})

const Example = z.strictObject({
  uuid: z.string(),
  timeStamp: wireTime,
  podName: z.string().nullable(),
  podIp: z.string().nullable(),
  peerName: z.string().nullable(),
  peerIp: z.string().nullable(),
})

const DeniedEdge = z
  .strictObject({
    from: FlowEdgeSide,
    to: FlowEdgeSide,
    port: z.string().describe('On which the server listens; of the service where `to` is one.'),
    protocol: z.string(),
    flows: z.int(),
    firstSeenAt: wireTime,
    lastNewAt: wireTime,
    deniedBy: z.array(DeniedSide),
    example: Example.nullable().describe('The newest stored flow; null where none is stored any more.'),
  })
  .meta({ id: 'DeniedEdge' })

/** The answer of `POST /networkpolicy/try`. */
export const PolicyTrial = z
  .strictObject({
    about: z.string().describe('What was looked at, and what was not.'),
    asOf: wireTime.describe('All flows that were stored by then are counted.'),
    observedSince: wireTime.nullable().describe('Edges are complete from here on; null where there is none.'),
    labelsAsOf: wireTime.nullable().describe('The newest post of a pod: labels, ports and addresses are those of now.'),
    ...counts,
    policies: z.array(TriedPolicy),
    deniedEdges: z.array(DeniedEdge).describe('Those with the most flows first.'),
    moreDenied: z.int().describe('Denied edges that are not listed.'),
    unknownReasons: z.array(z.strictObject({ reason: z.string(), edges: z.int() })),
  })
  .meta({ id: 'PolicyTrial' })
export type PolicyTrial = z.output<typeof PolicyTrial>
