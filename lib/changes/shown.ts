/** The parts of diffs as answers show them (docs/contract.md#changes). */
import { SEVERITIES } from '../supply-chain/severity.ts'
import { toWireSource, type WireNames } from '../wire-names/index.ts'
import type { ComponentsDiff } from './components.ts'
import type { Edge } from './edges.ts'
import type { FindingPair, FindingSide, FindingsDiff } from './findings.ts'
import { listed } from './listed.ts'
import type { Compared } from './read/images.ts'
import { MAX_ITEMS } from './record.ts'

const sourcesOf = ({ sources }: { readonly sources: readonly string[] }, names: WireNames) =>
  sources.map((source) => toWireSource(source, names))

const short = <T>(all: readonly T[]) => {
  const { items, ...rest } = listed(all, MAX_ITEMS)
  return { items: [...items], ...rest }
}

export function shownComponents(found: Compared<ComponentsDiff>, names: WireNames) {
  const { added, removed, changed } = found.diff
  return {
    sources: sourcesOf(found, names),
    added: short(added),
    removed: short(removed),
    changed: short(changed),
  }
}

export const severityOf = (number: number) => SEVERITIES[number]!

const shownSide = (side: FindingSide | null) =>
  side && {
    severity: severityOf(side.severity),
    installedVersions: [...side.versions],
    fixedVersions: [...side.fixedVersions],
  }

export const shownFinding = ({ id, package: packageName, kev, epss, from, to }: FindingPair) => ({
  ...{ id, package: packageName, kev, epss },
  from: shownSide(from),
  to: shownSide(to),
})

/** `item` shows one finding. */
export function shownFindings<T>(found: Compared<FindingsDiff>, names: WireNames, item: (one: FindingPair) => T) {
  const part = (all: readonly FindingPair[]) => {
    const { items, ...rest } = short(all)
    return { items: items.map(item), ...rest }
  }
  const { came, went, changed } = found.diff
  return { sources: sourcesOf(found, names), came: part(came), went: part(went), changed: part(changed) }
}

export const shownEdge = ({ mayLive: _, ...edge }: Edge) => edge

export { short as shortList }
