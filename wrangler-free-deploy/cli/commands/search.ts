import { listing } from '../list/listing.ts'
import { gapTexts } from '../list/not-covered.ts'
import { yesNo } from '../output/words.ts'
import { type Hit, nameOf, nextOf, whatOf } from '../search/hits.ts'

interface SearchAnswer {
  readonly hits: readonly Hit[]
  readonly truncated: readonly string[]
  readonly notCovered: number
  readonly notRead: number
}

export const search = listing<SearchAnswer, Hit>({
  route: '/search',
  without: ['q'],
  argument: { placeholder: 'Q', brief: 'The text to look for.' },
  askedOf: (q) => ({ path: ['search'], query: { q } }),
  rowsOf: ({ hits }) => hits,
  // There are no further pages; the rows are bounded by --limit all the same.
  nextOf: () => null,
  columns: [
    { header: 'TYPE', of: ({ type }) => type },
    { header: 'WHAT', of: whatOf },
    { header: 'RUNNING', of: ({ running }) => (running === null ? null : yesNo(running)) },
    { header: 'MATCH', of: ({ match }) => match },
    { header: 'NEXT', of: nextOf },
    { header: 'HREF', of: ({ href }) => href, isWide: true },
  ],
  nameOf,
  said: ({ truncated, ...gaps }) => [
    ...truncated.map((type) => `there are more hits of type ${type}: ask for more of the name`),
    ...gapTexts(gaps),
  ],
  brief: 'Find anything by one text: a CVE, package, digest, repository, workload, pod, node, address',
  description: ['Each hit has a command that goes on. RUNNING is - where it is unknown or has no meaning.'],
})
