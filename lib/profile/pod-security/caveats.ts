/** Warnings that come with a recommended patch (docs/contract.md#workload-profiles). */
import { isObject } from '../../json/objects.ts'
import { quoted } from '../../text/yaml.ts'
import { HOST_NAMESPACES, RESTRICTED_CAPABILITY } from './checks.ts'
import type { PodBlock } from './contexts.ts'
import type { Judgement } from './judgement.ts'
import { listed } from './names.ts'
import type { Patch, PatchedContainer } from './patch.ts'

/** Those that hold, in this order. */
export function caveatsOf(workloadKind: string, pod: PodBlock, judgement: Judgement, patch: Patch): string[] {
  const { containers } = patch
  const isAny = (changes: (container: PatchedContainer) => boolean) => containers.some(changes)
  const withCapabilities = containers.filter((container) => container.patch.capabilities !== undefined)
  const observed = withCapabilities.filter(({ evidence }) => evidence !== null)
  const unobserved = withCapabilities.filter(({ evidence }) => evidence === null)
  const ephemeral = judgement.containers.filter(({ kind, failing }) => kind === 'ephemeral' && failing.length > 0)
  const podContext = isObject(patch.pod.securityContext) ? patch.pod.securityContext : {}
  const caveats: readonly (string | false)[] = [
    'Agents do not report types of volumes, host ports, hosts of probes, AppArmor, SELinux, procMount and sysctls: ' +
      'the workload may still fail restricted because of them.',
    (podContext.runAsNonRoot === true || isAny(({ patch }) => patch.runAsNonRoot === true)) &&
      'With runAsNonRoot: true, a container whose image runs as root does not start. Set runAsUser to an account of ' +
        'the image.',
    (workloadKind === 'DaemonSet' || pod.hostNetwork === true) &&
      'It is a DaemonSet or uses the network of its node, as agents of nodes do. They often need what ' +
        'restricted forbids: an exemption of their namespace may fit better than this patch.',
    isAny(({ patch }) => patch.privileged === false) &&
      'privileged: false takes away devices and most rights on the kernel. Containers that manage their node ' +
        'stop working.',
    HOST_NAMESPACES.some((name) => patch.pod[name] === false) &&
      'Without the namespaces of its node the pod has an address of its own and no longer sees the network, ' +
        'processes or shared memory of the node.',
    observed.length > 0 &&
      `The capabilities of ${namesOf(observed)} are those seen in use while the whole window of evidence was ` +
        'watched. Rarer uses were not seen; a longer CAPABILITY_EVIDENCE_WINDOW_HOURS sees more.',
    ...observed.flatMap(probedCaveats),
    ...observed.map(beyondCaveat),
    unobserved.length > 0 &&
      `The capabilities of ${namesOf(unobserved)} are the default of restricted. There is not enough evidence of ` +
        'which it uses; the profile says why under capabilities.',
    isAny(({ patch }) => patch.capabilities?.drop !== undefined) &&
      'drop: ["ALL"] also takes away what runtimes grant by default. Images that start as root, change owners of ' +
        `files or listen on ports below 1024 may fail; ${RESTRICTED_CAPABILITY} can be added back for the latter.`,
    ephemeral.length > 0 &&
      `Ephemeral containers still fail and cannot be patched; they go with their pod: ${namesOf(ephemeral)}.`,
  ]
  return caveats.filter((caveat) => caveat !== false)
}

const namesOf = (containers: readonly { readonly name: string }[]) => listed(containers.map(({ name }) => name))

function probedCaveats({ name, evidence }: PatchedContainer): (string | false)[] {
  const kept = evidence?.probedKept ?? []
  const omitted = evidence?.probedOmitted ?? []
  return [
    kept.length > 0 &&
      `Container ${quoted(name)} keeps ${listed(kept)}: the kernel only asked for them, but may refuse something ` +
        'without them.',
    omitted.length > 0 &&
      `Container ${quoted(name)} does not get ${listed(omitted.map(({ capability }) => capability))}: the kernel ` +
        'only asked for them, and with allowPrivilegeEscalation: false they are not needed.',
  ]
}

function beyondCaveat({ name, evidence }: PatchedContainer): string | false {
  const beyond = (evidence?.add ?? []).filter((capability) => capability !== RESTRICTED_CAPABILITY)
  return (
    beyond.length > 0 &&
    `Container ${quoted(name)} keeps ${listed(beyond)}, which it needs, and so stays below restricted.`
  )
}
