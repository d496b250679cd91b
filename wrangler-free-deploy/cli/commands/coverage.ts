import { PARTS, type Parts, rowsOf, totalTexts } from '../coverage/parts.ts'
import { listing } from '../list/listing.ts'

export const coverage = listing<Parts, ReturnType<typeof rowsOf>[number]>({
  route: '/coverage',
  rowsOf,
  nextOf: (answer) => {
    const asked = PARTS.flatMap((part) => answer[part] ?? [])
    // Only one part alone has pages.
    return asked.length === 1 ? asked[0]!.nextAfter : null
  },
  columns: [
    { header: 'PART', of: ({ part }) => part },
    { header: 'WHAT', of: ({ what }) => what },
    { header: 'MISSING', of: ({ missing }) => missing },
    { header: 'REASON', of: ({ reason }) => reason },
    { header: 'SINCE', of: ({ since }) => since, isTime: true },
    { header: 'LAST', of: ({ last }) => last, isTime: true },
  ],
  nameOf: ({ name }) => name,
  said: totalTexts,
  nothing: 'nothing is missing of what was asked about',
  brief: 'List what is not known: images without reports, containers and nodes that are not watched',
  description: [
    'SINCE is the begin of what is observed, LAST the last scan of an image or the last post of a node.',
    'Without --part the first rows of each part are listed.',
  ],
  examples: [
    { words: 'coverage', what: 'What is missing in the cluster.' },
    { words: 'coverage -n shop --part containers', what: 'All containers of a namespace that are not known whole.' },
  ],
})
