/**
 * The Pod Security Standards over the manifest of a pod, as their page lists them: a control has fields, and a field
 * has allowed values. Findings are listed in the same way.
 */
import type { InventoryRow } from '../../lib/profile/inventory.ts'
import type { Fields } from './pod-security.ts'

export interface Container {
  name: string
  securityContext: Fields
}
/** Fields that were not set are absent. */
export interface PodSpec extends Fields {
  containers: Container[]
  initContainers: Container[]
  ephemeralContainers: Container[]
}
export interface Manifest {
  readonly spec: PodSpec
  /** Whether the fields of the pod, beside its containers, were reported. */
  readonly isPodKnown: boolean
}
export interface Failure {
  /** The name of a container, or null for the pod. */
  readonly part: string | null
  readonly check: string
  readonly field: string
  readonly value: unknown
}

const LISTS = { regular: 'containers', init: 'initContainers', ephemeral: 'ephemeralContainers' } as const
const BASELINE = [
  ...['AUDIT_WRITE', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'MKNOD', 'NET_BIND_SERVICE', 'SETFCAP'],
  ...['SETGID', 'SETPCAP', 'SETUID', 'SYS_CHROOT'],
]
const PROFILES: unknown[] = ['RuntimeDefault', 'Localhost']

/** The value at a dotted path; undefined where it is not set. */
export const at = (tree: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((node, key) => (node as Fields | undefined)?.[key], tree)
const within = (allowed: readonly unknown[]) => (value: unknown) =>
  ((value ?? []) as unknown[]).every((one) => allowed.includes(one))
const oneOf =
  (...allowed: readonly unknown[]) =>
  (value: unknown) =>
    allowed.includes(value)

interface Control {
  readonly check: string
  readonly isBaseline: boolean
  /** Paths in the pod. */
  readonly pod: readonly string[]
  /** Paths in the security context of a container. */
  readonly container: readonly string[]
  readonly allows: (value: unknown) => boolean
  /** Path in the pod that a container without a value takes it from, which must then be one of these. */
  readonly inherits?: readonly [path: string, allowed: readonly unknown[]]
}

const baseline = (check: string, control: Omit<Control, 'check' | 'isBaseline'>) => ({
  check,
  isBaseline: true,
  ...control,
})
const restricted = (check: string, control: Omit<Control, 'check' | 'isBaseline'>) => ({
  check,
  isBaseline: false,
  ...control,
})
const SECCOMP = 'securityContext.seccompProfile.type'
const NON_ROOT = 'securityContext.runAsNonRoot'

const CONTROLS: readonly Control[] = [
  baseline('hostNamespaces', {
    pod: ['hostNetwork', 'hostPID', 'hostIPC'],
    container: [],
    allows: oneOf(undefined, false),
  }),
  baseline('privileged', { pod: [], container: ['privileged'], allows: oneOf(undefined, false) }),
  baseline('capabilitiesBaseline', { pod: [], container: ['capabilities.add'], allows: within(BASELINE) }),
  baseline('seccompBaseline', {
    pod: [SECCOMP],
    container: ['seccompProfile.type'],
    allows: oneOf(undefined, ...PROFILES),
  }),
  restricted('privilegeEscalation', { pod: [], container: ['allowPrivilegeEscalation'], allows: oneOf(false) }),
  restricted('runAsNonRoot', {
    pod: [NON_ROOT],
    container: ['runAsNonRoot'],
    allows: oneOf(undefined, true),
    inherits: [NON_ROOT, [true]],
  }),
  restricted('runAsUser', {
    pod: ['securityContext.runAsUser'],
    container: ['runAsUser'],
    allows: (value) => value !== 0,
  }),
  restricted('seccompRestricted', {
    pod: [],
    container: ['seccompProfile.type'],
    allows: oneOf(undefined, ...PROFILES),
    inherits: [SECCOMP, PROFILES],
  }),
  restricted('capabilitiesRestricted', {
    pod: [],
    container: ['capabilities.drop'],
    allows: (value) => ((value ?? []) as unknown[]).includes('ALL'),
  }),
  restricted('capabilitiesRestricted', {
    pod: [],
    container: ['capabilities.add'],
    allows: within(['NET_BIND_SERVICE']),
  }),
]

const containersOf = (spec: PodSpec) =>
  Object.values(LISTS).flatMap((list) => spec[list].map((container) => ({ list, ...container })))

/** What fails, and the checks of which something could not be judged. */
export function evaluate({ spec, isPodKnown }: Manifest): { failures: Failure[]; unjudged: Set<string> } {
  const failures: Failure[] = []
  const unjudged = new Set(isPodKnown ? [] : ['hostNamespaces'])
  for (const { check, pod, container, allows, inherits } of CONTROLS) {
    for (const path of isPodKnown ? pod : [])
      if (!allows(at(spec, path))) failures.push({ part: null, check, field: `spec.${path}`, value: at(spec, path) })
    for (const { list, name, securityContext } of containersOf(spec))
      for (const path of container) {
        const own = at(securityContext, path)
        const field = `spec.${list}[${name}].securityContext.${path}`
        if (own === undefined && inherits) {
          const [from, allowed] = inherits
          const value = check === 'seccompRestricted' ? (at(spec, from) ?? null) : null
          if (!isPodKnown) unjudged.add(check)
          else if (!allowed.includes(at(spec, from))) failures.push({ part: name, check, field, value })
        } else if (!allows(own)) failures.push({ part: name, check, field, value: own ?? null })
      }
  }
  return { failures, unjudged }
}

const BASELINE_CHECKS = new Set(CONTROLS.filter(({ isBaseline }) => isBaseline).map(({ check }) => check))

/** The level of what has these failures. */
export const levelOf = (failures: readonly Failure[]) =>
  failures.length === 0
    ? 'restricted'
    : failures.some(({ check }) => BASELINE_CHECKS.has(check))
      ? 'privileged'
      : 'baseline'

/** Findings as `rule[/container] severity`. */
export function findingsOf({ spec, isPodKnown }: Manifest): string[] {
  const found: string[] = []
  const ofPod = (path: string) => (isPodKnown ? at(spec, path) : undefined)
  for (const name of ['hostNetwork', 'hostPID', 'hostIPC']) if (ofPod(name) === true) found.push(`${name} high`)
  if (![undefined, ...PROFILES].includes(ofPod(SECCOMP))) found.push('seccompUnconfined high')
  if (isPodKnown && ofPod('automountServiceAccountToken') !== false) found.push('automountToken low')
  for (const { name, securityContext: own } of containersOf(spec)) {
    const say = (rule: string, severity: string) => found.push(`${rule}/${name} ${severity}`)
    const added = (at(own, 'capabilities.add') ?? []) as string[]
    const user = own.runAsUser ?? ofPod('securityContext.runAsUser')
    const profile = at(own, 'seccompProfile.type')
    if (own.privileged === true) say('privileged', 'high')
    if (added.some((one) => !BASELINE.includes(one))) say('capabilitiesAdded', 'high')
    else if (added.some((one) => one !== 'NET_BIND_SERVICE')) say('capabilitiesAdded', 'low')
    if (own.allowPrivilegeEscalation !== false) say('allowPrivilegeEscalation', 'medium')
    if (user === 0) say('runAsRoot', 'high')
    if (user === undefined)
      if (own.runAsNonRoot === false || (own.runAsNonRoot === undefined && isPodKnown && ofPod(NON_ROOT) !== true))
        say('mayRunAsRoot', 'medium')
    if (profile !== undefined && !PROFILES.includes(profile)) say('seccompUnconfined', 'high')
    if (profile === undefined && isPodKnown && ofPod(SECCOMP) === undefined) say('seccompUnset', 'medium')
    if (!((at(own, 'capabilities.drop') ?? []) as string[]).includes('ALL')) say('capabilitiesNotDropped', 'medium')
    if (own.readOnlyRootFilesystem !== true) say('readOnlyRootFilesystem', 'low')
  }
  return found
}

const secondsOf = (time: string) => {
  const [whole, fraction = '0'] = time.replace('Z', '').split('.')
  return Date.parse(`${whole}Z`) / 1_000 + Number(`0.${fraction}`)
}
const byAge = (a: InventoryRow, b: InventoryRow) =>
  secondsOf(b.lastSeen) - secondsOf(a.lastSeen) || a.digest.localeCompare(b.digest)

/** The containers that are judged, by name, with the row of each. */
export function judgedRows(rows: readonly InventoryRow[]): Map<string, InventoryRow> {
  const order = [...rows].sort(byAge)
  const names = [...new Set(rows.map(({ container }) => container))].sort()
  const found = names.map((name) => {
    const own = order.filter(({ container }) => container === name)
    return [name, own.find(({ isRunning }) => isRunning) ?? own.find(({ isCurrent }) => isCurrent)] as const
  })
  return new Map(found.filter((one): one is [string, InventoryRow] => one[1] !== undefined))
}

/** The manifest that reported fields describe; null without current containers. */
export function manifestOf(rows: readonly InventoryRow[]): Manifest | null {
  const judged = [...judgedRows(rows).values()]
  if (judged.length === 0) return null
  const [newest] = [...judged].sort(byAge)
  const { securityContext, ...pod } = newest!.podSecurity
  const spec: PodSpec = { containers: [], initContainers: [], ephemeralContainers: [] }
  Object.assign(spec, setOnly(pod), securityContext && { securityContext: nested(securityContext as Fields) })
  for (const one of judged)
    spec[LISTS[one.kind]].push({ name: one.container, securityContext: nested(one.securityContext) })
  return { spec, isPodKnown: Object.keys(newest!.podSecurity).length > 0 }
}

const setOnly = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))

/** Reported fields as a manifest nests them. */
function nested(reported: Readonly<Fields>): Fields {
  const { capabilitiesAdd: add, capabilitiesDrop: drop, seccompProfileType: type, ...plain } = setOnly(reported)
  return {
    ...plain,
    ...((add !== undefined || drop !== undefined) && {
      capabilities: { ...(add !== undefined && { add }), ...(drop !== undefined && { drop }) },
    }),
    ...(type !== undefined && { seccompProfile: { type } }),
  }
}

/** Fields of a manifest as agents report them. */
export function reported(context: Fields): Fields {
  const { capabilities, seccompProfile, ...plain } = context
  return setOnly({
    ...plain,
    capabilitiesAdd: at(capabilities, 'add') ?? null,
    capabilitiesDrop: at(capabilities, 'drop') ?? null,
    seccompProfileType: at(seccompProfile, 'type') ?? null,
  })
}

/** Applies a strategic merge patch: null deletes, lists of containers merge by name, other lists are replaced. */
export function merged(target: unknown, patch: unknown): unknown {
  if (Array.isArray(patch) && patch.every((item) => typeof item === 'object' && item !== null && 'name' in item)) {
    const items = (target ?? []) as Container[]
    const unknown = patch.filter(({ name }) => !items.some((item) => item.name === name))
    const changed = items.map((item) => merged(item, patch.find(({ name }) => name === item.name) ?? {}))
    return [...changed, ...unknown]
  }
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
  const result: Fields = { ...(target as Fields) }
  for (const [key, value] of Object.entries(patch))
    if (value === null) delete result[key]
    else result[key] = merged(result[key], value)
  return result
}
