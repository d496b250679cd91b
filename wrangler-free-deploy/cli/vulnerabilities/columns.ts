/** How vulnerabilities are listed: those of the cluster, and the findings of an image. */
import { type Column, timeText } from '../output/cell.ts'
import type { View } from '../output/show.ts'
import { kevColour, severityColour, tierColour } from '../output/urgency.ts'
import { firstOf, probability, yesNo } from '../output/words.ts'

/** The fields of both kinds of rows. */
interface Common {
  readonly id: string
  readonly aliases: readonly string[]
  readonly severity: string
  readonly tier: string | null
  readonly inUseState: string
  readonly kev: boolean | null
  readonly fixable: boolean
  readonly sources: readonly string[]
}

export interface Vulnerability extends Common {
  readonly maxScore: number | null
  readonly maxEpss: number | null
  readonly packages: readonly string[]
  readonly packageCount: number
  readonly images: number
  readonly workloads: number
  readonly runningWorkloads: number
  readonly exposedWorkloads: number
  readonly decidedWorkloads: number
  readonly namespaces: number
  readonly weakestJoin: string
}

export interface VulnerabilityPage {
  readonly items: readonly Vulnerability[]
  readonly nextAfter: string | null
  readonly computedAt: string | null
  readonly staleSeconds: number | null
}

export interface Finding extends Common {
  readonly package: { readonly name: string; readonly type: string | null; readonly purl: string | null }
  readonly installedVersion: string
  readonly fixedVersions: readonly string[]
  readonly score: number | null
  readonly epss: number | null
  readonly title: string | null
  readonly status: string | null
  readonly tierFactors: readonly string[]
  readonly inUseDetail: { readonly reason: string | null }
  readonly decision: { readonly decision: string } | null
  readonly decided: boolean
}

export interface FindingPage {
  readonly digest: string
  readonly reports: readonly unknown[]
  readonly retiredGuesses: readonly RetiredGuess[]
  readonly items: readonly Finding[]
  readonly nextAfter: string | null
}

export interface RetiredGuess {
  readonly source: string
  readonly reportDigest: string
  readonly repository: string
  readonly tag: string
}

/** Not computed yet is unknown, like everything that is unknown. */
const URGENCY: readonly Column<Common>[] = [
  { header: 'ID', of: ({ id }) => id },
  { header: 'SEVERITY', of: ({ severity }) => severity, colourOf: ({ severity }) => severityColour(severity) },
  { header: 'TIER', of: ({ tier }) => tier ?? 'unknown', colourOf: ({ tier }) => tierColour(tier) },
  { header: 'IN USE', of: ({ inUseState }) => inUseState },
  { header: 'KEV', of: ({ kev }) => yesNo(kev), colourOf: ({ kev }) => kevColour(kev) },
]
const ALIASES: Column<Common> = { header: 'ALIASES', of: ({ aliases }) => aliases, isWide: true }
const SOURCES: Column<Common> = { header: 'SOURCES', of: ({ sources }) => sources, isWide: true }

export const CLUSTER_VIEW: View<VulnerabilityPage, Vulnerability> = {
  rowsOf: ({ items }) => items,
  columns: [
    ...URGENCY,
    { header: 'EPSS', of: ({ maxEpss }) => probability(maxEpss) },
    { header: 'FIX', of: ({ fixable }) => yesNo(fixable) },
    { header: 'RUNNING', of: ({ runningWorkloads }) => runningWorkloads },
    { header: 'PACKAGES', of: ({ packages, packageCount }) => firstOf(packages, packageCount) },
    { header: 'DECIDED', of: ({ decidedWorkloads, workloads }) => `${decidedWorkloads} of ${workloads}` },
    { header: 'SCORE', of: ({ maxScore }) => maxScore, isWide: true },
    { header: 'WORKLOADS', of: ({ workloads }) => workloads, isWide: true },
    // How many more are exposed and were not seen to be is not known.
    { header: 'SEEN EXPOSED', of: ({ exposedWorkloads }) => exposedWorkloads, isWide: true },
    { header: 'IMAGES', of: ({ images }) => images, isWide: true },
    { header: 'NAMESPACES', of: ({ namespaces }) => namespaces, isWide: true },
    { header: 'JOIN', of: ({ weakestJoin }) => weakestJoin, isWide: true },
    SOURCES,
    ALIASES,
  ],
  nameOf: ({ id }) => id,
  said: ageTexts,
}

/** The list is computed every five minutes; three times without it are no accident. */
const OLD_SECONDS = 15 * 60

function ageTexts({ computedAt, staleSeconds }: VulnerabilityPage): string[] {
  if (computedAt === null) return ['the list was not computed yet: vulnerabilities are unknown, not absent']
  if (staleSeconds === null || staleSeconds < OLD_SECONDS) return []
  return [`the list was computed ${timeText(computedAt, true)}: what is newer is unknown`]
}

export const IMAGE_VIEW: View<FindingPage, Finding> = {
  rowsOf: ({ items }) => items,
  columns: [
    ...URGENCY,
    { header: 'EPSS', of: ({ epss }) => probability(epss) },
    { header: 'PACKAGE', of: (finding) => finding.package.name },
    { header: 'INSTALLED', of: ({ installedVersion }) => installedVersion },
    { header: 'FIX', of: ({ fixedVersions }) => fixedVersions },
    { header: 'DECISION', of: ({ decision }) => decision?.decision },
    { header: 'DECIDED', of: ({ decided }) => yesNo(decided) },
    { header: 'STATUS', of: ({ status }) => status, isWide: true },
    { header: 'SCORE', of: ({ score }) => score, isWide: true },
    { header: 'WHY TIER', of: ({ tierFactors }) => tierFactors, isWide: true },
    { header: 'WHY USE UNKNOWN', of: ({ inUseDetail }) => inUseDetail.reason, isWide: true },
    { header: 'PURL', of: (finding) => finding.package.purl, isWide: true },
    SOURCES,
    ALIASES,
    { header: 'TITLE', of: ({ title }) => title, isWide: true },
  ],
  nameOf: ({ id }) => id,
  said: ({ digest, reports, retiredGuesses }) => [
    ...(reports.length === 0 ? [`no scanner reported on ${digest}: its vulnerabilities are unknown, not absent`] : []),
    ...guessTexts(retiredGuesses),
  ],
}

/** Reports by tag that answered until another one had the image by digest. */
export const guessTexts = (guesses: readonly RetiredGuess[]): string[] =>
  guesses.map(
    ({ source, repository, tag, reportDigest }) =>
      `${source} has no report of this digest, only of ${repository}:${tag} (${reportDigest}), which is left out`,
  )
