/** Findings about the security context of a workload (docs/contract.md#workload-profiles). */
import { quoted } from '../../text/yaml.ts'
import { finding } from '../finding.ts'
import type { Finding, Severity } from '../record/common.ts'
import {
  addsBeyondRestricted,
  dropsAll,
  effectiveNonRoot,
  effectiveSeccomp,
  effectiveUser,
  HOST_NAMESPACES,
  isBaselineCapability,
  isUnconfined,
  type JudgedContext,
} from './checks.ts'
import type { PodBlock } from './contexts.ts'
import { listed } from './names.ts'

/** A rule, whether it holds, and what it says. */
type Rule = readonly [rule: string, holds: boolean, severity: Severity, title: string, detail: string]

/** Of the pod first, then of each container. None of the pod if its fields are not known. */
export const findingsOf = (pod: PodBlock, containers: readonly JudgedContext[]): Finding[] => [
  ...made(podRules(pod), null),
  ...containers.flatMap((container) => made(containerRules(container, pod), container.name)),
]

const made = (rules: readonly Rule[], container: string | null): Finding[] =>
  rules
    .filter(([, holds]) => holds)
    .map(([rule, , severity, title, detail]) => finding('podSecurity', rule, severity, { title, detail }, container))

const podRules = (pod: PodBlock): Rule[] => [
  ...HOST_NAMESPACES.map((name): Rule => {
    const title = `The pod has ${name}: true`
    return [name, pod[name] === true, 'high', title, 'It shares a namespace with its node, which baseline forbids.']
  }),
  [
    'seccompUnconfined',
    isUnconfined(pod.securityContext.seccompProfileType),
    'high',
    'The pod turns seccomp off',
    `Its seccompProfile.type is ${quoted(pod.securityContext.seccompProfileType ?? '')}, so containers without a ` +
      'profile of their own may make any syscall.',
  ],
  [
    'automountToken',
    pod.known && pod.automountServiceAccountToken !== false,
    'low',
    'The pod may hold a token of its service account',
    'automountServiceAccountToken is not false on the pod. The setting of the service account is not known. ' +
      'Set it to false if nothing in the pod calls the API of Kubernetes.',
  ],
]

function containerRules({ name, securityContext: own }: JudgedContext, pod: PodBlock): Rule[] {
  const container = `Container ${quoted(name)}`
  const added = own.capabilitiesAdd ?? []
  const user = effectiveUser(own, pod)
  const isBeyondBaseline = added.some((one) => !isBaselineCapability(one))
  return [
    [
      'privileged',
      own.privileged === true,
      'high',
      `${container} is privileged`,
      'It has all capabilities and the devices of its node.',
    ],
    [
      'capabilitiesAdded',
      addsBeyondRestricted(own),
      isBeyondBaseline ? 'high' : 'low',
      `${container} adds capabilities`,
      `It adds ${listed(added)}, more than ${isBeyondBaseline ? 'baseline' : 'restricted'} allows.`,
    ],
    [
      'seccompUnconfined',
      isUnconfined(own.seccompProfileType),
      'high',
      `${container} turns seccomp off`,
      `Its seccompProfile.type is ${quoted(own.seccompProfileType ?? '')}, so it may make any syscall.`,
    ],
    [
      'allowPrivilegeEscalation',
      own.allowPrivilegeEscalation !== false,
      'medium',
      `${container} may gain privileges`,
      'allowPrivilegeEscalation is not set to false, so a setuid program may run with more rights than its caller.',
    ],
    ['runAsRoot', user === 0, 'high', `${container} runs as root`, 'runAsUser is 0, on the container or on its pod.'],
    [
      'mayRunAsRoot',
      (pod.known || own.runAsNonRoot !== null) && effectiveNonRoot(own, pod) !== true && user === null,
      'medium',
      `${container} may run as root`,
      'No runAsUser is set and runAsNonRoot is not true, so the image decides.',
    ],
    [
      'seccompUnset',
      pod.known && effectiveSeccomp(own, pod) === null,
      'medium',
      `${container} sets no seccomp profile`,
      'Neither it nor its pod has a seccompProfile, so it depends on its node whether any applies.',
    ],
    [
      'capabilitiesNotDropped',
      !dropsAll(own),
      'medium',
      `${container} keeps default capabilities`,
      'capabilities.drop lacks ALL, so those that the runtime grants by default may stay.',
    ],
    [
      'readOnlyRootFilesystem',
      own.readOnlyRootFilesystem !== true,
      'low',
      `${container} can write to its root file system`,
      'readOnlyRootFilesystem is not true. No level of the standards asks for it.',
    ],
  ]
}
