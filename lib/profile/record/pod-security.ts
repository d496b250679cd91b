/** The dimension `podSecurity`: a workload by the Pod Security Standards (docs/contract.md#workload-profiles). */
import { z } from 'zod'
import { zonedTime } from '../../http/request/fields.ts'
import { digestText } from '../../images/index.ts'
import { envelope } from './common.ts'

export const LEVELS = ['privileged', 'baseline', 'restricted'] as const
export type Level = (typeof LEVELS)[number]
/** All checks of the standards, in the order of answers. */
export const CHECKS = [
  ...['hostProcess', 'hostNamespaces', 'privileged', 'capabilitiesBaseline', 'hostPathVolumes', 'hostPorts'],
  ...['hostProbesLifecycle', 'appArmor', 'seLinux', 'procMount', 'seccompBaseline', 'sysctls', 'volumeTypes'],
  ...['privilegeEscalation', 'runAsNonRoot', 'runAsUser', 'seccompRestricted', 'capabilitiesRestricted'],
] as const
export type Check = (typeof CHECKS)[number]

const flag = z.boolean().nullable()
const id = z.int().nullable()
const names = z.array(z.string()).nullable()
const level = z.enum(LEVELS)
export const containerKind = z.enum(['init', 'regular', 'ephemeral'])

const Failing = z.strictObject({
  check: z.enum(CHECKS),
  level: z.enum(['baseline', 'restricted']),
  field: z.string().describe('As in a manifest of a pod.'),
  value: z.unknown().describe('As reported; null where it is not set.'),
  message: z.string(),
})
export type Failing = z.output<typeof Failing>

const ContainerContext = z.strictObject({
  privileged: flag,
  allowPrivilegeEscalation: flag,
  runAsNonRoot: flag,
  runAsUser: id,
  runAsGroup: id,
  readOnlyRootFilesystem: flag,
  capabilitiesAdd: names,
  capabilitiesDrop: names,
  seccompProfileType: z.string().nullable(),
})
export type ContainerContext = z.output<typeof ContainerContext>

const PodContext = z.strictObject({
  runAsNonRoot: flag,
  runAsUser: id,
  runAsGroup: id,
  fsGroup: id,
  seccompProfileType: z.string().nullable(),
})

const Pod = z.strictObject({
  known: z.boolean().describe('Whether the fields of the pod were reported; if not, all others are null.'),
  serviceAccountName: z.string().nullable(),
  automountServiceAccountToken: flag,
  hostNetwork: flag,
  hostPID: flag,
  hostIPC: flag,
  hostUsers: flag,
  securityContext: PodContext,
  failing: z.array(Failing),
})

const JudgedContainer = z.strictObject({
  name: z.string(),
  kind: containerKind,
  source: z.enum(['running', 'last_known']),
  digest: digestText,
  securityContext: ContainerContext,
  level,
  failing: z.array(Failing),
})

const StaleContainer = z.strictObject({
  name: z.string(),
  kind: containerKind,
  digest: digestText,
  lastSeen: zonedTime,
})

const Recommendation = z.strictObject({
  recommendation: z.literal(true),
  targetLevel: z.literal('restricted'),
  format: z.literal('strategic-merge-patch'),
  yaml: z.string(),
  caveats: z.array(z.string()),
})

export const PodSecurity = z
  .strictObject({
    ...envelope,
    pssVersion: z.string(),
    level: level.nullable().describe('Null without a current container.'),
    levelConfidence: z.enum(['confirmed', 'upper_bound']).nullable(),
    unevaluatedChecks: z.array(z.enum(CHECKS)),
    pod: Pod,
    containers: z.array(JudgedContainer),
    recommendation: Recommendation.nullable(),
    staleContainers: z.array(StaleContainer),
  })
  .meta({ id: 'ProfilePodSecurity' })
export type PodSecurity = z.output<typeof PodSecurity>
