import type { CliContext } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'
import { exportFlows } from '../flows/export.ts'
import { type Flow, type FlowPage, flowView } from '../flows/flow.ts'
import { type Asked, type ListFlags, listing } from '../list/listing.ts'
import { formatOf } from '../output/flags.ts'

/** A page of more takes a large part of the broker's memory for reads. */
const PAGE_ROWS = 2_000
/** A screen of flows is wanted, not all of them. */
const DEFAULT_ROWS = 1_000

/** Lines and CSV are streams of the broker; other formats are made of pages. */
async function stream(context: CliContext, flags: ListFlags, { query }: Asked): Promise<boolean> {
  const { format } = formatOf(flags)
  if (flags.fields !== undefined && ['table', 'wide', 'name'].includes(format))
    throw new Failure('--fields: expected -o json, ndjson, yaml, csv or jsonpath=EXPRESSION', EXIT.usage)
  if (format !== 'ndjson' && format !== 'csv') return false
  await exportFlows(context, flags, format, query)
  return true
}

export const flows = listing<FlowPage, Flow>({
  ...flowView,
  route: '/flows',
  without: ['follow', 'resume'],
  nextOf: ({ nextAfter }) => nextAfter,
  pageRows: PAGE_ROWS,
  defaultRows: DEFAULT_ROWS,
  otherwise: stream,
  brief: 'Search flows: connections that were seen, newest first',
  description: [
    `-o ndjson and csv have all flows, with the fields of the API; other formats have ${DEFAULT_ROWS} without --limit.`,
    'Filters may be repeated, which means "or"; !VALUE excludes.',
    'Exit code 7: the list ended early. With --out FILE the rest is in FILE.partial then, and there is no FILE.',
  ],
  examples: [
    { words: 'flows -n shop --last 15m', what: 'Flows of a namespace, of the last quarter of an hour.' },
    { words: 'flows --verdict DROP -o wide', what: 'Flows that nobody answered, with the cause.' },
    { words: 'flows --last 30d -o csv --out flows.csv', what: 'All flows of a month as a file.' },
  ],
})
