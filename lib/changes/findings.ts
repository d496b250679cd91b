/** Findings that came, went, or changed (docs/contract.md#changes). */
import { compareTexts } from './listed.ts'

/** A vulnerability of a package in the images of one side, merged over reports, platforms and images. */
export interface FindingSide {
  /** The worst, as an index in `SEVERITIES`. */
  readonly severity: number
  /** Installed versions, sorted. */
  readonly versions: readonly string[]
  /** Sorted. */
  readonly fixedVersions: readonly string[]
}

/** A vulnerability of a package, null on the side that does not have it. */
export interface FindingPair {
  readonly id: string
  readonly package: string
  readonly kev: boolean | null
  readonly epss: number | null
  readonly from: FindingSide | null
  readonly to: FindingSide | null
}

export interface FindingsDiff {
  readonly came: readonly FindingPair[]
  readonly went: readonly FindingPair[]
  /** In severity, installed versions or fixed versions. */
  readonly changed: readonly FindingPair[]
}

/** Compares both sides of each pair; the most severe come first. Equal pairs may be left out of `pairs`. */
export function findingsDiff(pairs: readonly FindingPair[]): FindingsDiff {
  const inOrder = [...pairs].sort(
    (a, b) => worst(a) - worst(b) || compareTexts(a.id, b.id) || compareTexts(a.package, b.package),
  )
  return {
    came: inOrder.filter(({ from, to }) => from === null && to !== null),
    went: inOrder.filter(({ from, to }) => from !== null && to === null),
    changed: inOrder.filter(({ from, to }) => from !== null && to !== null && !isSame(from, to)),
  }
}

/** Of the newer side, where it has the finding. */
const worst = ({ from, to }: FindingPair): number => (to ?? from)!.severity

const isSame = (a: FindingSide, b: FindingSide): boolean =>
  a.severity === b.severity && isSameList(a.versions, b.versions) && isSameList(a.fixedVersions, b.fixedVersions)

const isSameList = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((one, i) => one === b[i])
