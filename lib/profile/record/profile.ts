/** The answer of GET /workloads/{namespace}/{kind}/{name}/profile (docs/contract.md#workload-profiles). */
import { z } from 'zod'
import { zonedTime } from '../../http/request/fields.ts'
import { WorkloadCapabilities } from '../../runtime/capabilities/index.ts'
import { CORE_DIMENSIONS, count, Finding, status } from './common.ts'
import { Compute } from './compute.ts'
import { Drift } from './drift.ts'
import { Images } from './images.ts'
import { Network } from './network.ts'
import { PodSecurity } from './pod-security.ts'
import { Syscalls } from './syscalls.ts'

export const contentHash = z
  .string()
  .regex(/^fnv1a64:[0-9a-f]{16}$/)
  .describe('Changes when anything of the profile that is no time or count changes. Only to be compared.')

export const Posture = z.strictObject({
  status,
  coverage: z.number().min(0).max(1).describe('The part of the four core dimensions that is known.'),
  unknownDimensions: z.array(z.enum(CORE_DIMENSIONS)),
  reasons: z
    .array(z.strictObject({ dimension: z.enum(CORE_DIMENSIONS), status, message: z.string() }))
    .describe('Of each core dimension that is not ok.'),
})
export type Posture = z.output<typeof Posture>

const peers = count.nullable().describe('Null where no flow was seen.')

export const Profile = z
  .strictObject({
    workload: z.strictObject({
      clusterId: z.string(),
      namespace: z.string(),
      kind: z.string(),
      name: z.string(),
      transient: z.boolean().describe('Whether it is a bare pod.'),
      pods: z.strictObject({
        live: count,
        names: z.array(z.string()).max(20),
        truncated: z.boolean(),
      }),
    }),
    generatedAt: zonedTime,
    contentHash,
    version: z
      .strictObject({ revision: z.int().min(1), contentHash, createdAt: zonedTime })
      .nullable()
      .describe('The newest stored version.'),
    snapshotPending: z.boolean().describe('Whether the newest version is another one, or there is none.'),
    posture: Posture,
    attention: z.array(Finding).max(5).describe('The first five findings of medium severity or worse.'),
    findings: z.array(Finding).describe('The most severe first, then by id.'),
    controls: z.array(
      z.strictObject({
        control: z.enum(['networkPolicy', 'seccompProfile', 'imageAdmission']),
        state: z.enum(['audit', 'unknown', 'none', 'enforcing']).nullable(),
        detail: z.string(),
        inSync: z.boolean().nullable(),
      }),
    ),
    readiness: z.array(
      z.strictObject({
        id: z.enum([
          ...(['trafficObserved24h', 'syscallCaptureComplete', 'noWouldDeny24h', 'imageSigned'] as const),
          'podSecurityRestricted',
        ]),
        ok: z.boolean().nullable().describe('Null where it is not known.'),
        message: z.string(),
      }),
    ),
    exposure: z.strictObject({
      ingressPeers: peers,
      ingressExternal: peers,
      egressPeers: peers,
      egressExternal: peers,
    }),
    drift: Drift,
    capabilities: WorkloadCapabilities,
    dimensions: z.strictObject({
      network: Network,
      syscalls: Syscalls,
      podSecurity: PodSecurity,
      images: Images,
      compute: Compute,
    }),
  })
  .meta({ id: 'WorkloadProfile' })
export type Profile = z.output<typeof Profile>
