import { z } from 'zod'
import { pathText } from '../http/request/fields.ts'

/** The path of a workload. Which kinds there are is told by what was observed. */
export const WorkloadPath = z.object({
  namespace: pathText.describe('The namespace of a workload.'),
  kind: pathText.describe('Its kind as stored, such as `Deployment`.'),
  name: pathText.describe('Its name.'),
})
export type Workload = z.output<typeof WorkloadPath>

export const MAX_DNS_NAME_CHARS = 253
export const DNS_NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/
const FALLBACK_NAME = 'seccomp-profile'

/** Whether Kubernetes takes it for the name of a resource or namespace: a DNS subdomain (RFC 1123). */
export const isDnsName = (name: string): boolean => name.length <= MAX_DNS_NAME_CHARS && DNS_NAME.test(name)

/**
 * The name of an exported profile unless it is overridden (docs/contract.md#seccomp-profiles). It is one that an export takes: what neither begins nor ends
 * the name must not begin or end what stands between its dots either.
 */
export function suggestedName({ kind, name }: Workload): string {
  const plain = `${kind}-${name}`.toLowerCase().replace(/[^a-z0-9.-]/gu, '-')
  return trimmed(labelled(plain).slice(0, MAX_DNS_NAME_CHARS)) || FALLBACK_NAME
}

const labelled = (name: string) => name.split('.').map(trimmed).filter(Boolean).join('.')
const trimmed = (name: string) => name.replace(/^[-.]+|[-.]+$/g, '')

/** Where a node has the file of a profile, below the root of its profiles. */
export const localhostProfile = (directory: string, namespace: string, profile: string): string =>
  `${directory}/${namespace}/${profile}.json`

// No object: agents send any word, and `constructor` would be in it.
const SHOWN_ARCHITECTURES: ReadonlyMap<string, string> = new Map([
  ['x86_64', 'SCMP_ARCH_X86_64'],
  ['aarch64', 'SCMP_ARCH_AARCH64'],
])

/** Names of architectures in profiles, sorted; unknown ones are left out (docs/contract.md#seccomp-profiles). */
export const shownArchitectures = (observed: readonly string[]): string[] =>
  [...new Set(observed.flatMap((arch) => SHOWN_ARCHITECTURES.get(arch) ?? []))].sort()

/** An architecture as resources and denials name it, trimmed; agents once had another word for one of them (docs/contract.md#seccomp-profiles). */
export function foldedArchitecture(arch: string): string {
  const name = arch.trim()
  return name === 'SCMP_ARCH_ARM64' ? 'SCMP_ARCH_AARCH64' : name
}

/** What may be added or removed by hand, and what syscalls are called but for a few. */
export const SYSCALL_NAME = /^[a-z][a-z0-9_]{0,63}$/
/** Names that the kernel has beside those, on one architecture or another. */
const UNDERSCORED: ReadonlySet<string> = new Set(['_llseek', '_newselect', '_sysctl'])

/** Whether a syscall may be called so: resources with another name are refused as a whole. */
export const isSyscallName = (name: string): boolean => SYSCALL_NAME.test(name) || UNDERSCORED.has(name)

/** The names of a set as it is stored: comma-joined. */
export const namesOf = (joined: string): string[] => (joined === '' ? [] : joined.split(','))

/** What a profile allows. */
export interface Allowed {
  /** Sorted by bytes, each once. */
  readonly names: readonly string[]
  /** Observed names that no profile can have, sorted by bytes. */
  readonly leftOut: readonly string[]
}

/**
 * What a profile of an observed set allows. Agents report a syscall that they have no name for as something else, such as its number: a
 * resource with such a name is refused as a whole, and a container runtime does not know it.
 */
export function allowedOf(observed: readonly string[]): Allowed {
  return { names: observed.filter(isSyscallName), leftOut: observed.filter((name) => !isSyscallName(name)) }
}

/** The default action of an exported profile that is not told another: what is not listed is logged. */
export const LOG_ACTION = 'SCMP_ACT_LOG'
export const ALLOW_ACTION = 'SCMP_ACT_ALLOW'
