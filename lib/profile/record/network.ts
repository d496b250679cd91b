/** The peers of a workload in its profile (docs/contract.md#workload-profiles). */
import { z } from 'zod'
import { zonedTime } from '../../http/request/fields.ts'
import { count, envelope } from './common.ts'

export const MAX_PEERS = 200
export const MAX_POLICIES = 50
const MAX_PORT = 65_535

const Summary = z.strictObject({
  peers: count.describe('Distinct peers of the list.'),
  external: count.describe('Those of them outside the cluster.'),
  ports: z.array(z.string()).describe('`PROTOCOL/port`, sorted as text.'),
})

const Peer = z.strictObject({
  direction: z.enum(['ingress', 'egress']),
  protocol: z.string(),
  port: z.int().min(0).max(MAX_PORT).nullable().describe('Of the workload for ingress, of the peer for egress.'),
  peer: z.strictObject({
    kind: z.enum(['pod', 'service', 'node', 'external', 'unresolved']),
    namespace: z.string().nullable(),
    workloadKind: z.string().nullable(),
    workloadName: z.string().nullable(),
    name: z.string().nullable(),
    ip: z.string().nullable(),
  }),
  flows: count,
  firstSeen: zonedTime,
  lastSeen: zonedTime,
})
export type Peer = z.output<typeof Peer>

const Audit = z.strictObject({
  policies: z.array(z.strictObject({ namespace: z.string(), name: z.string() })).max(MAX_POLICIES),
  allow: count,
  wouldDeny: count,
  lastVerdictAt: zonedTime,
  windowHours: z.literal(24),
})
export type Audit = z.output<typeof Audit>

export const Network = z
  .strictObject({
    ...envelope,
    summary: z.strictObject({ egress: Summary, ingress: Summary }),
    peers: z.array(Peer).max(MAX_PEERS).describe('Ingress first.'),
    truncated: z.boolean().describe('Whether there are more peers, or more flows than were read.'),
    policy: z.strictObject({
      audit: Audit.nullable().describe('Verdicts of the last 24 hours; null without any.'),
      enforced: z.null().describe('The broker does not see which policies are applied.'),
    }),
  })
  .meta({ id: 'ProfileNetwork' })
export type Network = z.output<typeof Network>
