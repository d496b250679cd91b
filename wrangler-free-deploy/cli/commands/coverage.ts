import { PARTS, type Parts, type Row, rowsOf, toldBy, totalTexts } from '../coverage/parts.ts'
import { listing } from '../list/listing.ts'

export const coverage = listing<Parts, Row>({
  route: '/coverage',
  rowsOf,
  nextOf: (answer) => {
    const asked = PARTS.flatMap((part) => answer[part] ?? [])
    // Only one part alone has pages.
    return asked.length === 1 ? asked[0]!.nextAfter : null
  },
  columns: [
    { header: 'PART', of: ({ part }) => part },
    { header: 'WHAT', of: (row) => toldBy(row).what },
    { header: 'MISSING', of: ({ missing }) => missing },
    { header: 'REASON', of: (row) => toldBy(row).reason },
    { header: 'SINCE', of: (row) => toldBy(row).since, isTime: true },
    { header: 'LAST', of: (row) => toldBy(row).last, isTime: true },
  ],
  nameOf: (row) => toldBy(row).name,
  said: totalTexts,
  nothing: 'nothing is missing of what was asked about',
  brief: 'List what is not known: images without reports, containers and nodes that are not watched',
  description: [
    'SINCE is the begin of what is observed, LAST the last scan of an image or the last post of a node.',
    'Without --part the first rows of each part are listed.',
  ],
})
