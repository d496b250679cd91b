import { flowView } from '../flows/flow.ts'
import { listing } from '../list/listing.ts'

/** A page of more takes a large part of the broker's memory for reads. */
const PAGE_ROWS = 2_000
/** A screen of flows is wanted, not all of them. */
const DEFAULT_ROWS = 1_000

export const flows = listing({
  ...flowView,
  route: '/flows',
  without: ['follow', 'resume'],
  nextOf: ({ nextAfter }) => nextAfter,
  pageRows: PAGE_ROWS,
  defaultRows: DEFAULT_ROWS,
  brief: 'Search flows: connections that were seen, newest first',
  description: ['Filters may be repeated, which means "or"; !VALUE excludes.'],
  examples: [
    { words: 'flows -n shop --last 15m', what: 'Flows of a namespace, of the last quarter of an hour.' },
    { words: 'flows --verdict DROP -o wide', what: 'Flows that nobody answered, with the cause.' },
  ],
})
