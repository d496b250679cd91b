import type { CliContext } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'
import { valued } from '../flags.ts'
import { exportFlows } from '../flows/export.ts'
import { type Flow, type FlowPage, flowView } from '../flows/flow.ts'
import { type FollowFlags, followFlows } from '../flows/follow.ts'
import { type Asked, listing } from '../list/listing.ts'
import { formatOf } from '../output/flags.ts'

/** A page of more takes a large part of the broker's memory for reads. */
const PAGE_ROWS = 2_000
/** A screen of flows is wanted, not all of them. */
const DEFAULT_ROWS = 1_000

interface Flags extends FollowFlags {
  readonly follow?: boolean
}

/** Lines and CSV are streams of the broker, and so is what is followed; other formats are made of pages. */
async function stream(context: CliContext, flags: Flags, { query }: Asked): Promise<boolean> {
  const { format } = formatOf(flags)
  if (flags.fields !== undefined && ['table', 'wide', 'name'].includes(format))
    throw new Failure('--fields: expected -o json, ndjson, yaml, csv or jsonpath=EXPRESSION', EXIT.usage)
  if (flags.follow) {
    await followFlows(context, flags, query)
    return true
  }
  if (flags.resumeFile !== undefined) throw new Failure('--resume-file: expected --follow with it', EXIT.usage)
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
  flags: {
    follow: {
      ...{ kind: 'boolean', optional: true, withNegated: false },
      brief: 'Go on with each flow that is stored, until Ctrl-C; from --since on, else from now on.',
    },
    resumeFile: valued('FILE', 'Where a follow keeps its place, and goes on; --since counts only before there is one.'),
  },
  aliases: { f: 'follow' },
  brief: 'Search and follow flows: connections that were seen, newest first',
  description: [
    `-o ndjson and csv have all flows, with the fields of the API; other formats have ${DEFAULT_ROWS} without --limit.`,
    'Filters may be repeated, which means "or"; !VALUE excludes.',
    'A follow reconnects by itself. With --resume-file no flow is missing after an end at any time; those of the last',
    'group (at most 1000) come twice if the process was killed between writing them and keeping its place.',
    'The event "update" is a flow that came before, of which more became known: its peer, or the workload of its pod.',
    'Exit code 7: the list ended early. With --out FILE what came is in FILE.partial then, and there is no FILE;',
    'or a follow cannot go on from its place, which is too old or of another database.',
  ],
})
