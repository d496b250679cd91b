import { z } from 'zod'
import { pathText } from '../http/request/fields.ts'

/** The path parameters of a workload. Any kind is accepted: the observed data decides which kinds exist. */
export const WorkloadPath = z.object({
  namespace: pathText.describe('The namespace of a workload.'),
  kind: pathText.describe('Its kind as stored, such as `Deployment`.'),
  name: pathText.describe('Its name.'),
})
export type Workload = z.output<typeof WorkloadPath>

export const MAX_DNS_NAME_CHARS = 253
export const DNS_NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/
const FALLBACK_NAME = 'seccomp-profile'

/** Whether Kubernetes accepts the text as the name of a resource or namespace: a DNS subdomain (RFC 1123). */
export const isDnsName = (name: string): boolean => name.length <= MAX_DNS_NAME_CHARS && DNS_NAME.test(name)

/**
 * The default name of an exported profile (docs/contract.md#seccomp-profiles). It is always valid: dots and hyphens are
 * removed from both ends of the name and of each part between its dots.
 */
export function suggestedName({ kind, name }: Workload): string {
  const plain = `${kind}-${name}`.toLowerCase().replace(/[^a-z0-9.-]/gu, '-')
  return trimmed(labelled(plain).slice(0, MAX_DNS_NAME_CHARS)) || FALLBACK_NAME
}

const labelled = (name: string) => name.split('.').map(trimmed).filter(Boolean).join('.')
const trimmed = (name: string) => name.replace(/^[-.]+|[-.]+$/g, '')

/** The path of a profile's file on a node, relative to the root folder of its profiles. */
export const localhostProfile = (directory: string, namespace: string, profile: string): string =>
  `${directory}/${namespace}/${profile}.json`

// A map, not an object: agents may send any word, and an object has keys such as `constructor`.
const PROFILE_ARCHITECTURES: ReadonlyMap<string, string> = new Map([
  ['x86_64', 'SCMP_ARCH_X86_64'],
  ['aarch64', 'SCMP_ARCH_AARCH64'],
])

/** The architectures as profiles name them, sorted; unknown ones are left out (docs/contract.md#seccomp-profiles). */
export const profileArchitectures = (observed: readonly string[]): string[] =>
  [...new Set(observed.flatMap((arch) => PROFILE_ARCHITECTURES.get(arch) ?? []))].sort()

/** An architecture as resources and denials name it, trimmed. Older agents send `SCMP_ARCH_ARM64`. */
export function foldedArchitecture(arch: string): string {
  const name = arch.trim()
  return name === 'SCMP_ARCH_ARM64' ? 'SCMP_ARCH_AARCH64' : name
}

/** Names that may be added or removed by hand; nearly all names of syscalls match. */
export const SYSCALL_NAME = /^[a-z][a-z0-9_]{0,63}$/
/** The kernel's other names, on one architecture or another. */
const UNDERSCORED: ReadonlySet<string> = new Set(['_llseek', '_newselect', '_sysctl'])

/** Whether the text can be the name of a syscall. The cluster refuses a resource with any other name as a whole. */
export const isSyscallName = (name: string): boolean => SYSCALL_NAME.test(name) || UNDERSCORED.has(name)

/** Splits a stored set of names. */
export const namesOf = (joined: string): string[] => (joined === '' ? [] : joined.split(','))

/** The allowed syscalls of a profile. */
interface Allowed {
  /** Sorted by bytes, each once. */
  readonly names: readonly string[]
  /** Observed names that no profile can contain, sorted by bytes. */
  readonly leftOut: readonly string[]
}

/**
 * The allowed syscalls of a profile for an observed set. Agents report a syscall without a known name as another text,
 * such as its number. The cluster refuses a resource with such a name as a whole, and no container runtime knows it.
 */
export function allowedOf(observed: readonly string[]): Allowed {
  return { names: observed.filter(isSyscallName), leftOut: observed.filter((name) => !isSyscallName(name)) }
}

/** The default action of an exported profile: syscalls that are not listed are logged. */
export const LOG_ACTION = 'SCMP_ACT_LOG'
export const ALLOW_ACTION = 'SCMP_ACT_ALLOW'
