import { momentText, type Side, sideText, unstampedText } from '../flows/text.ts'
import { listing } from '../list/listing.ts'

interface Edge {
  readonly from: Side
  readonly to: Side
  readonly port: string | null
  readonly protocol: string | null
  readonly verdict: string | null
  readonly flows: number
  readonly pods: number
  readonly seenBy: readonly string[]
  readonly firstSeenAt: string
  readonly lastNewAt: string
}

interface EdgePage {
  readonly items: readonly Edge[]
  readonly nextAfter: string | null
  readonly asOf: string
  readonly observedSince: string | null
  readonly unstamped: number
}

/** A page of more takes a large part of the broker's memory for reads. */
const PAGE_ROWS = 2_000

const nameOf = ({ from, to, port, protocol, verdict }: Edge): string =>
  `${sideText(from) ?? '-'} -> ${sideText(to) ?? '-'} ${port ?? '-'}/${protocol ?? '-'} ${verdict ?? '-'}`

const factsText = ({ asOf, observedSince, unstamped }: EdgePage): string[] => [
  `edges as of ${momentText(asOf)}, ` +
    (observedSince === null ? 'and no flow was counted before' : `complete since ${momentText(observedSince)}`),
  ...unstampedText(unstamped),
]

export const edges = listing<EdgePage, Edge>({
  route: '/flows/edges',
  rowsOf: ({ items }) => items,
  nextOf: ({ nextAfter }) => nextAfter,
  pageRows: PAGE_ROWS,
  columns: [
    { header: 'FROM', of: ({ from }) => sideText(from) },
    { header: 'TO', of: ({ to }) => sideText(to) },
    { header: 'PORT', of: ({ port }) => port },
    { header: 'PROTO', of: ({ protocol }) => protocol },
    {
      header: 'VERDICT',
      of: ({ verdict }) => verdict,
      colourOf: ({ verdict }) => (verdict === 'DROP' ? 'red' : null),
    },
    { header: 'FLOWS', of: ({ flows }) => flows },
    { header: 'PODS', of: ({ pods }) => pods },
    { header: 'LAST NEW', of: ({ lastNewAt }) => lastNewAt, isTime: true },
    { header: 'FIRST SEEN', of: ({ firstSeenAt }) => firstSeenAt, isTime: true, isWide: true },
    { header: 'SEEN BY', of: ({ seenBy }) => seenBy, isWide: true },
  ],
  nameOf,
  // Each page counts all flows that are left out, and the last one is as of now.
  together: (_, page) => ({ ...page, items: [] }),
  said: factsText,
  brief: 'List who opens connections to whom, counted over months',
  description: [
    'An edge stands for all flows with the same sides, port, protocol and verdict. A connection that was opened long',
    'ago may still be in use: LAST NEW is the time of the newest flow, and no pod reports a flow twice.',
    'Filters may be repeated, which means "or"; !VALUE excludes.',
  ],
})
