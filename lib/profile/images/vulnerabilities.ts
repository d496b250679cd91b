/**
 * The vulnerabilities of the images that a workload runs, and their findings (docs/contract.md#workload-profiles).
 *
 * A finding has the severity that its vulnerabilities are rated with, moved by their tier: exploited and reachable ones
 * are critical whatever the rating, serious ones that nobody can fix or reach are medium, and those in packages that a
 * watched container was not seen to use only inform. So each image does not raise an alarm for what it never runs,
 * and without data about use nothing is played down.
 */
import { TIER_POSITIONS } from '../../supply-chain/in-use.ts'
import { SEVERITIES as RATINGS } from '../../supply-chain/severity.ts'
import { finding } from '../finding.ts'
import { type Finding, SEVERITIES, type Severity } from '../record/common.ts'
import type { Vulnerabilities } from '../record/images.ts'
import { type ImageFacts, MAX_NAMED, type VulnerabilityGroup } from './facts.ts'

type Rating = (typeof RATINGS)[number]

/** The severity of a vulnerability that may be in use. An unrated one may be anything, so it is no less than medium. */
const OF_RATING: Readonly<Record<Rating, Severity>> = {
  ...{ CRITICAL: 'critical', HIGH: 'high', MEDIUM: 'medium', LOW: 'low', NONE: 'info', UNKNOWN: 'medium' },
}
const KEYS: Readonly<Record<Rating, keyof Vulnerabilities>> = {
  ...{ CRITICAL: 'critical', HIGH: 'high', MEDIUM: 'medium', LOW: 'low', NONE: 'negligible', UNKNOWN: 'unknown' },
}

/** The severity of the finding that vulnerabilities of a rating and tier belong to. */
export function severityOf({ severity, tier }: Pick<VulnerabilityGroup, 'severity' | 'tier'>): Severity {
  const usual = OF_RATING[RATINGS[severity]!]
  switch (TIER_POSITIONS[tier]) {
    case 'P0':
      return 'critical'
    case 'P1':
      return usual === 'critical' ? 'critical' : 'high'
    case 'P2':
      return usual === 'high' ? 'medium' : usual
    default:
      return 'info'
  }
}

/** One finding for each severity, with the worst vulnerabilities by name. */
export const vulnerabilityFindings = (groups: readonly VulnerabilityGroup[]): Finding[] =>
  SEVERITIES.flatMap((severity) => {
    const own = groups.filter((group) => severityOf(group) === severity)
    if (own.length === 0) return []
    const total = sum(own, 'count')
    const ids = own.flatMap((group) => group.ids).slice(0, MAX_NAMED)
    const more = total > ids.length ? ` and ${total - ids.length} more` : ''
    const title =
      severity === 'info'
        ? `The running images have ${counted(total)} that are negligible or not seen in use`
        : `The running images have ${counted(total)} of ${severity} urgency`
    const detail = `${ids.join(', ')}${more}. A fix exists for ${sum(own, 'fixable')}, in use are ${sum(own, 'inUse')}.`
    return [finding('images', `vulnerabilities.${severity}`, severity, { title, detail })]
  })

const counted = (count: number) => `${count} ${count === 1 ? 'vulnerability' : 'vulnerabilities'}`
const sum = (groups: readonly VulnerabilityGroup[], key: 'count' | 'fixable' | 'inUse') =>
  groups.reduce((total, group) => total + group[key], 0)

/** The counts; null unless each of the `running` digests has a report, since a part would look like the whole. */
export function vulnerabilitiesOf(running: number, facts: ImageFacts): Vulnerabilities | null {
  const { scanned, oldestScanAt, vulnerabilities: groups } = facts
  if (running === 0 || scanned.length < running || oldestScanAt === null) return null
  const rated = (rating: Rating) =>
    sum(
      groups.filter(({ severity }) => RATINGS[severity] === rating),
      'count',
    )
  const urgent = (name: string) =>
    sum(
      groups.filter(({ tier }) => TIER_POSITIONS[tier] === name),
      'count',
    )
  return {
    ...(Object.fromEntries(RATINGS.map((rating) => [KEYS[rating], rated(rating)])) as Record<RatingKey, number>),
    fixable: sum(groups, 'fixable'),
    inUse: sum(groups, 'inUse'),
    tiers: { P0: urgent('P0'), P1: urgent('P1'), P2: urgent('P2'), Background: urgent('Background') },
    scannedDigests: running,
    oldestScanAt,
  }
}
type RatingKey = 'critical' | 'high' | 'medium' | 'low' | 'negligible' | 'unknown'

/** The counts in words, for the reasons. */
export function vulnerabilityText(found: Vulnerabilities): string {
  const parts = Object.values(KEYS).filter((key) => found[key] !== 0)
  const total = parts.reduce((all, key) => all + Number(found[key]), 0)
  const rated = parts.map((key) => `${found[key]} ${key}`).join(', ')
  const images = found.scannedDigests === 1 ? '1 running image' : `${found.scannedDigests} running images`
  return `${counted(total)} in ${images}${total === 0 ? '' : `: ${rated}`}`
}
