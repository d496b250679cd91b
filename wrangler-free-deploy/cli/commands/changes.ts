import type { Gap } from '../differences/gaps.ts'
import { reasonTexts } from '../differences/gaps.ts'
import { listing } from '../list/listing.ts'
import { timeText } from '../output/cell.ts'

interface Counts {
  readonly newImages: number | null
  readonly untrustedImages: number | null
  readonly uncheckedImages: number | null
  readonly findingsCame: Readonly<Record<string, number>> | null
  readonly urgentFindingsInUse: number | null
  readonly findingsWent: number | null
  readonly newEdges: number | null
  readonly exposingEdges: number | null
  readonly outsideEdges: number | null
  readonly unshippedFiles: number | null
  readonly newSyscalls: number | null
  readonly weakened: number | null
}

interface ChangedWorkload {
  readonly kind: string
  readonly name: string
  readonly signals: readonly string[]
  readonly changes: number
  readonly counts: Counts
  readonly notKnown: readonly Gap[]
}

interface ChangePage {
  readonly namespace: string
  readonly from: string
  readonly to: string
  readonly items: readonly ChangedWorkload[]
  readonly total: number
  readonly truncated: boolean
  readonly nextAfter: string | null
}

/** The most urgent signals colour their row. */
const isUrgent = ({ signals }: ChangedWorkload): boolean =>
  signals.some((signal) => signal === 'urgentFindingsInUse' || signal === 'untrustedImage')

/** Those of each tier that has some. */
function cameText(came: Counts['findingsCame']): string | null {
  if (came === null) return null
  const tiers = Object.entries(came).filter(([, count]) => count > 0)
  return tiers.length === 0 ? '0' : tiers.map(([tier, count]) => `${count} ${tier}`).join(', ')
}

export const changes = listing<ChangePage, ChangedWorkload & { readonly namespace: string }>({
  route: '/changes',
  rowsOf: ({ namespace, items }) => items.map((item) => ({ namespace, ...item })),
  nextOf: ({ nextAfter }) => nextAfter,
  columns: [
    { header: 'WORKLOAD', of: ({ kind, name }) => `${kind}/${name}` },
    { header: 'CHANGES', of: ({ changes }) => changes },
    { header: 'SIGNALS', of: ({ signals }) => signals, colourOf: (row) => (isUrgent(row) ? 'red' : null) },
    { header: 'IMAGES', of: ({ counts }) => counts.newImages },
    { header: 'FINDINGS CAME', of: ({ counts }) => cameText(counts.findingsCame) },
    { header: 'WENT', of: ({ counts }) => counts.findingsWent },
    { header: 'EDGES', of: ({ counts }) => counts.newEdges },
    { header: 'FILES', of: ({ counts }) => counts.unshippedFiles },
    { header: 'SYSCALLS', of: ({ counts }) => counts.newSyscalls },
    { header: 'WEAKENED', of: ({ counts }) => counts.weakened },
    { header: 'NOT KNOWN', of: ({ notKnown }) => [...new Set(notKnown.map(({ part }) => part))] },
    { header: 'UNTRUSTED', of: ({ counts }) => counts.untrustedImages, isWide: true },
    { header: 'UNCHECKED', of: ({ counts }) => counts.uncheckedImages, isWide: true },
    { header: 'URGENT IN USE', of: ({ counts }) => counts.urgentFindingsInUse, isWide: true },
    { header: 'EXPOSING', of: ({ counts }) => counts.exposingEdges, isWide: true },
    { header: 'OUTSIDE', of: ({ counts }) => counts.outsideEdges, isWide: true },
  ],
  nameOf: ({ namespace, kind, name }) => `${namespace}/${kind}/${name}`,
  said: ({ from, to, items, total, truncated }) => [
    `from ${timeText(from, true)} to ${timeText(to, true)}`,
    ...(truncated ? [`the namespace has ${total} workloads, more than were looked at`] : []),
    ...reasonTexts(items.flatMap(({ notKnown }) => notKnown)).map((text) => `not known of some workloads: ${text}`),
  ],
  nothing: 'no workload of the namespace is known',
  usage: ['-n NAMESPACE [flags]'],
  brief: 'List what changed in the workloads of a namespace, the most telling first',
  description: [
    'A count of - is not known; stderr has the reasons. FILES are those that ran and are not of the image.',
  ],
})
