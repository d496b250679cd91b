/**
 * The checks of the Pod Security Standards that reported fields allow (docs/contract.md#workload-profiles,
 * https://kubernetes.io/docs/concepts/security/pod-security-standards/).
 */
import { CHECKS, type Check, type ContainerContext, type Failing, LEVELS, type Level } from '../record/pod-security.ts'
import type { PodBlock } from './contexts.ts'

export const PSS_VERSION = 'Kubernetes v1.37'

/** Agents send no volumes, ports, probes and so on, so no reported field tells whether these checks pass. */
export const UNSEEN_CHECKS = [
  ...(['hostProcess', 'hostPathVolumes', 'hostPorts', 'hostProbesLifecycle', 'appArmor', 'seLinux'] as const),
  ...(['procMount', 'sysctls', 'volumeTypes'] as const),
] satisfies Check[]

export const HOST_NAMESPACES = ['hostNetwork', 'hostPID', 'hostIPC'] as const

// The admission controller of Kubernetes compares names of capabilities exactly: it refuses `all` in a drop list and
// `cap_chown` in an add list, although runtimes take them. So no spelling passes here that it would refuse.
const BASELINE_CAPABILITIES = new Set([
  ...['AUDIT_WRITE', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'MKNOD', 'NET_BIND_SERVICE', 'SETFCAP'],
  ...['SETGID', 'SETPCAP', 'SETUID', 'SYS_CHROOT'],
])
export const RESTRICTED_CAPABILITY = 'NET_BIND_SERVICE'
const SECCOMP_TYPES = new Set(['RuntimeDefault', 'Localhost'])

const FIRST_RESTRICTED = CHECKS.indexOf('volumeTypes')

export const isBaselineCapability = (capability: string) => BASELINE_CAPABILITIES.has(capability)
export const dropsAll = ({ capabilitiesDrop }: ContainerContext) => capabilitiesDrop?.includes('ALL') ?? false
export const addsBeyondRestricted = ({ capabilitiesAdd }: ContainerContext) =>
  capabilitiesAdd?.some((one) => one !== RESTRICTED_CAPABILITY) ?? false

export const isSeccompAccepted = (type: string | null) => type !== null && SECCOMP_TYPES.has(type)
/** `Unconfined`, or a type that Kubernetes does not have: it confines nothing for certain. */
export const isUnconfined = (type: string | null) => type !== null && !SECCOMP_TYPES.has(type)

/** The level of what fails these checks. */
export function levelOf(failing: readonly Pick<Failing, 'level'>[]): Level {
  if (failing.some(({ level }) => level === 'baseline')) return 'privileged'
  return failing.length > 0 ? 'baseline' : 'restricted'
}

export const lowest = (levels: readonly Level[]): Level =>
  LEVELS.find((level) => levels.includes(level)) ?? 'restricted'

/** A check, whether it fails, the field as in a manifest, its value as reported, and the rule. */
type Rule = readonly [check: Check, fails: boolean, field: string, value: unknown, message: string]

const failingOf = (rules: readonly Rule[]): Failing[] =>
  rules
    .filter(([, fails]) => fails)
    .map(([check, , field, value, message]) => ({
      check,
      level: CHECKS.indexOf(check) < FIRST_RESTRICTED ? 'baseline' : 'restricted',
      field,
      value,
      message,
    }))

const NOT_UNCONFINED = 'seccompProfile.type must be RuntimeDefault or Localhost if it is set'
const NOT_ROOT = 'runAsUser must not be 0'
const NON_ROOT = 'runAsNonRoot must be true'

/** The failing checks of the pod itself; none if its fields are not known. */
export function podFailing(pod: PodBlock): Failing[] {
  const { seccompProfileType, runAsNonRoot, runAsUser } = pod.securityContext
  const field = 'spec.securityContext'
  return failingOf([
    ...HOST_NAMESPACES.map((name): Rule => {
      return ['hostNamespaces', pod[name] === true, `spec.${name}`, pod[name], `${name} must not be true`]
    }),
    [
      'seccompBaseline',
      isUnconfined(seccompProfileType),
      `${field}.seccompProfile.type`,
      seccompProfileType,
      NOT_UNCONFINED,
    ],
    ['runAsNonRoot', runAsNonRoot === false, `${field}.runAsNonRoot`, runAsNonRoot, `${NON_ROOT} if it is set`],
    ['runAsUser', runAsUser === 0, `${field}.runAsUser`, runAsUser, NOT_ROOT],
  ])
}

/** A container as it is judged. */
export interface JudgedContext {
  readonly name: string
  readonly kind: 'init' | 'regular' | 'ephemeral'
  readonly securityContext: ContainerContext
}

export const LISTS = {
  init: 'initContainers',
  regular: 'containers',
  ephemeral: 'ephemeralContainers',
} as const

/** The failing checks of a container, which may inherit fields of its pod. */
export function containerFailing({ name, kind, securityContext: own }: JudgedContext, pod: PodBlock): Failing[] {
  const unjudged = unjudgedChecks(own, pod)
  const field = `spec.${LISTS[kind]}[${name}].securityContext`
  const seccomp = effectiveSeccomp(own, pod)
  return failingOf([
    ['privileged', own.privileged === true, `${field}.privileged`, own.privileged, 'privileged must not be true'],
    [
      'capabilitiesBaseline',
      own.capabilitiesAdd?.some((one) => !isBaselineCapability(one)) ?? false,
      `${field}.capabilities.add`,
      own.capabilitiesAdd,
      'capabilities.add may have only those that baseline allows, spelled as Kubernetes does',
    ],
    [
      'seccompBaseline',
      isUnconfined(own.seccompProfileType),
      `${field}.seccompProfile.type`,
      own.seccompProfileType,
      NOT_UNCONFINED,
    ],
    [
      'privilegeEscalation',
      own.allowPrivilegeEscalation !== false,
      `${field}.allowPrivilegeEscalation`,
      own.allowPrivilegeEscalation,
      'allowPrivilegeEscalation must be set to false',
    ],
    [
      'runAsNonRoot',
      !unjudged.includes('runAsNonRoot') && effectiveNonRoot(own, pod) !== true,
      `${field}.runAsNonRoot`,
      own.runAsNonRoot,
      `${NON_ROOT}, here or on the pod`,
    ],
    ['runAsUser', own.runAsUser === 0, `${field}.runAsUser`, own.runAsUser, NOT_ROOT],
    [
      'seccompRestricted',
      !unjudged.includes('seccompRestricted') && !isSeccompAccepted(seccomp),
      `${field}.seccompProfile.type`,
      seccomp,
      'seccompProfile.type must be RuntimeDefault or Localhost, here or on the pod',
    ],
    [
      'capabilitiesRestricted',
      !dropsAll(own),
      `${field}.capabilities.drop`,
      own.capabilitiesDrop,
      'capabilities.drop must have ALL, in capitals',
    ],
    [
      'capabilitiesRestricted',
      addsBeyondRestricted(own),
      `${field}.capabilities.add`,
      own.capabilitiesAdd,
      `capabilities.add may have only ${RESTRICTED_CAPABILITY}`,
    ],
  ])
}

/** Checks of a container that depend on fields of its pod, which are not known. */
export const unjudgedChecks = (own: ContainerContext, pod: PodBlock): Check[] => [
  ...(!pod.known && own.runAsNonRoot === null ? (['runAsNonRoot'] as const) : []),
  ...(!pod.known && own.seccompProfileType === null ? (['seccompRestricted'] as const) : []),
]

export const effectiveSeccomp = (own: ContainerContext, pod: PodBlock) =>
  own.seccompProfileType ?? pod.securityContext.seccompProfileType
export const effectiveNonRoot = (own: ContainerContext, pod: PodBlock) =>
  own.runAsNonRoot ?? pod.securityContext.runAsNonRoot
export const effectiveUser = (own: ContainerContext, pod: PodBlock) => own.runAsUser ?? pod.securityContext.runAsUser
