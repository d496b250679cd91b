/** The smallest patch that lifts a workload towards `restricted` (docs/contract.md#workload-profiles). */
import type { JsonObject } from '../../json/objects.ts'
import type { WorkloadCapabilities } from '../../runtime/capabilities/index.ts'
import type { Check, ContainerContext } from '../record/pod-security.ts'
import {
  addsBeyondRestricted,
  dropsAll,
  HOST_NAMESPACES,
  isUnconfined,
  type JudgedContext,
  RESTRICTED_CAPABILITY,
} from './checks.ts'
import type { PodBlock } from './contexts.ts'
import type { JudgedPart, Judgement } from './judgement.ts'

/** The capabilities that a watched container needs; null without enough evidence. */
export type Evidence = WorkloadCapabilities['containers'][number]['recommendation']
export type PatchableContainer = JudgedContext & JudgedPart & { readonly evidence: Evidence }

export interface Patch {
  /** Fields of the pod; empty where none is to be changed. */
  readonly pod: JsonObject
  readonly containers: readonly PatchedContainer[]
}

export interface PatchedContainer extends PatchableContainer {
  readonly patch: ContainerPatch
}

interface CapabilitiesPatch {
  readonly drop?: string[]
  readonly add?: string[] | null
}

interface ContainerPatch {
  readonly privileged?: false
  readonly allowPrivilegeEscalation?: false
  readonly runAsNonRoot?: true
  readonly runAsUser?: null
  readonly seccompProfile?: typeof RUNTIME_DEFAULT
  readonly capabilities?: CapabilitiesPatch
}

const RUNTIME_DEFAULT = { type: 'RuntimeDefault' } as const

/**
 * Only fields that fail, or capabilities for which there is evidence. Ephemeral containers are no part of a template.
 * Null where there is nothing to change.
 */
export function patchOf(
  pod: PodBlock,
  judgement: Judgement,
  evidenceOf: (container: string) => Evidence,
): Patch | null {
  const patchable = judgement.containers
    .filter(({ kind }) => kind !== 'ephemeral')
    .map((container) => ({ ...container, evidence: evidenceOf(container.name) }))
  const containers = patchable
    .map((container) => ({ ...container, patch: containerPatch(container) }))
    .filter(({ patch }) => Object.keys(patch).length > 0)
  const patch = { pod: podPatch(pod, judgement.pod, patchable), containers }
  return Object.keys(patch.pod).length > 0 || containers.length > 0 ? patch : null
}

/** Fields that containers inherit are set once, on the pod. */
function podPatch(block: PodBlock, pod: JudgedPart, containers: readonly PatchableContainer[]): JsonObject {
  const inheritsFailing = (check: Check, key: keyof ContainerContext) =>
    containers.some((container) => container.securityContext[key] === null && fails(container, check))
  const isRootAllowed = fails(pod, 'runAsNonRoot') || inheritsFailing('runAsNonRoot', 'runAsNonRoot')
  const isSeccompMissing = fails(pod, 'seccompBaseline') || inheritsFailing('seccompRestricted', 'seccompProfileType')
  const securityContext = {
    ...(isRootAllowed && { runAsNonRoot: true }),
    ...(fails(pod, 'runAsUser') && { runAsUser: null }),
    ...(isSeccompMissing && { seccompProfile: RUNTIME_DEFAULT }),
  }
  return {
    ...Object.fromEntries(HOST_NAMESPACES.filter((name) => block[name] === true).map((name) => [name, false])),
    ...(Object.keys(securityContext).length > 0 && { securityContext }),
  }
}

function containerPatch(container: PatchableContainer): ContainerPatch {
  const own = container.securityContext
  const capabilities = capabilitiesPatch(own, container.evidence)
  return {
    ...(fails(container, 'privileged') && { privileged: false }),
    ...(fails(container, 'privilegeEscalation') && { allowPrivilegeEscalation: false }),
    ...(own.runAsNonRoot === false && { runAsNonRoot: true }),
    ...(fails(container, 'runAsUser') && { runAsUser: null }),
    ...(isUnconfined(own.seccompProfileType) && { seccompProfile: RUNTIME_DEFAULT }),
    ...(capabilities !== null && { capabilities }),
  }
}

function capabilitiesPatch(own: ContainerContext, evidence: Evidence): CapabilitiesPatch | null {
  const added = own.capabilitiesAdd ?? []
  if (evidence !== null) {
    if (dropsAll(own) && isSameSet(added, evidence.add)) return null
    if (evidence.add.length > 0) return { drop: ['ALL'], add: evidence.add }
    return added.length > 0 ? { drop: ['ALL'], add: null } : { drop: ['ALL'] }
  }
  if (dropsAll(own) && !addsBeyondRestricted(own)) return null
  return {
    ...(!dropsAll(own) && { drop: ['ALL'] }),
    ...(addsBeyondRestricted(own) && { add: added.some(isRestricted) ? [RESTRICTED_CAPABILITY] : null }),
  }
}

/** Runtimes take any case and a prefix, so the capability is kept whatever its spelling. */
const isRestricted = (capability: string) => capability.toUpperCase().replace(/^CAP_/, '') === RESTRICTED_CAPABILITY

const isSameSet = (some: readonly string[], others: readonly string[]) =>
  some.length === others.length && some.every((one) => others.includes(one))

const fails = ({ failing }: JudgedPart, check: Check) => failing.some((one) => one.check === check)
