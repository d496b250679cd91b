/** Capabilities of a container: those that its manifest grants, and those that were requested from the kernel. */
import type { Profile } from '../words.ts'

type Container = Profile['capabilities']['containers'][number]

export interface CapabilityRow {
  readonly capability: string
  /** `used`: granted and needed. `probed`: only requested. `denied`: refused. `unused`: granted and never requested. */
  readonly state: 'used' | 'probed' | 'denied' | 'unused'
  readonly count: number | null
  readonly firstSeen: string | null
  readonly lastSeen: string | null
}

/** Unused capabilities are listed only with sufficient evidence. */
export function capabilityRows(container: Container): readonly CapabilityRow[] {
  const { used, denied, probed, unusedAdded, evidence } = container
  const seen = (state: CapabilityRow['state'], rows: Container['used']) =>
    rows.map(({ capability, count, firstSeen, lastSeen }) => ({ capability, state, count, firstSeen, lastSeen }))
  return [
    ...seen('denied', denied),
    ...seen('used', used),
    ...seen('probed', probed),
    ...(evidence === 'sufficient' ? unusedAdded : []).map((capability) => ({
      capability,
      state: 'unused' as const,
      ...{ count: null, firstSeen: null, lastSeen: null },
    })),
  ]
}

export const CAPABILITY_WORDS: Readonly<Record<CapabilityRow['state'], string>> = {
  used: 'granted and used',
  probed: 'granted and only asked for',
  denied: 'needed and refused',
  unused: 'added and never used',
}

/** The capabilities that the manifest adds and drops. */
export function grantedText(profile: Profile, container: string): string {
  const found = profile.dimensions.podSecurity.containers.find(({ name }) => name === container)
  if (found === undefined) return 'not known'
  const { capabilitiesAdd, capabilitiesDrop, privileged } = found.securityContext
  if (privileged === true) return 'privileged: all capabilities'
  const add = capabilitiesAdd?.length ? `adds ${capabilitiesAdd.join(', ')}` : 'adds none'
  const drop = capabilitiesDrop?.length ? `drops ${capabilitiesDrop.join(', ')}` : 'drops none of the default set'
  return `${drop}, ${add}`
}
