/** Flows as a stream of the broker, copied in bounded memory. */
import type { IncomingMessage } from 'node:http'
import { pageRows, type Query } from '../api/parameters.ts'
import { open, partsOf, requestText } from '../connection/ask.ts'
import type { CliContext } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'
import { type ListFlags, limitOf } from '../list/listing.ts'
import { counted } from '../output/lines.ts'
import { progressOf } from '../output/progress.ts'
import { releaser } from '../output/release.ts'
import { type Sink, sinkOf } from '../output/sink.ts'
import { flowFactsText } from './flow.ts'
import { csv, type Form, jsonLines } from './forms.ts'
import { wholeRows } from './rows.ts'

/** The broker sends nothing while it looks for flows that match. */
const SILENCE_MS = 600_000

/** Filters by what was not always recorded of a flow. */
const MAYBE_UNKNOWN = /^(?:from_|to_)?(?:workload|label|node)$/

/** @throws Failure as `open`, and where the stream ends early */
export async function exportFlows(
  context: CliContext,
  flags: ListFlags,
  format: 'ndjson' | 'csv',
  query: Query,
): Promise<void> {
  const limit = limitOf(flags)
  const form = format === 'csv' ? csv(flags.noHeaders !== true) : jsonLines()
  // The route knows no larger limit, so a larger one is kept by reading no further.
  const isKeptThere = limit !== null && limit <= pageRows('/flows')!
  const question = {
    ...({ method: 'GET', path: ['flows'], expects: form.contentType } as const),
    query: { ...query, limit: isKeptThere ? String(limit) : undefined },
  }
  if (flags.printRequest) return context.write(requestText(context, flags, question))
  const answer = await open(context, flags, question)
  try {
    const sink = await sinkOf(context, flags.out)
    const most = limit === null || isKeptThere ? null : limit
    const count = await copy(answer, form, sink, { most, out: flags.out, context })
    await sink.end()
    context.say(counted(count, 'flow'))
    const facts = form.factsOf(answer)
    for (const line of facts === null ? [] : flowFactsText(facts)) context.say(line)
    // The table of the broker has no place for their number.
    if (format === 'csv' && Object.keys(query).some((name) => MAYBE_UNKNOWN.test(name)))
      context.say('flows of which nobody knows whether they match are left out: -o ndjson counts them')
    if (count === limit && facts?.nextAfter !== null) context.say('there may be more: see --limit')
  } finally {
    answer.destroy()
  }
}

interface Copying {
  /** Flows at most; null for all. */
  readonly most: number | null
  readonly out: string | undefined
  readonly context: CliContext
}

/** Copies the flows, and returns their number. */
async function copy(answer: IncomingMessage, form: Form, sink: Sink, { most, out, context }: Copying): Promise<number> {
  const isTerminal = sink.columns !== null
  const tell = progressOf(isTerminal ? null : context.showProgress)
  const release = releaser()
  const limit = most === null ? Number.POSITIVE_INFINITY : most + form.heads
  let count = 0
  try {
    for await (const rows of wholeRows(partsOf(answer, SILENCE_MS), form.endOf, limit)) {
      const flows = form.flowsOf(rows)
      count += flows.count
      if (flows.bytes.length > 0) await sink.write(isTerminal ? form.clean(flows.bytes.toString()) : flows.bytes)
      tell(count)
      release(rows.bytes.length)
    }
    if (count !== most && form.factsOf(answer) === null) throw new Error('it has no last line')
  } catch (error) {
    if (error instanceof Failure) throw error
    const where = out === undefined ? '' : `: ${out}.partial has them`
    throw new Failure(
      `the list ended early, after ${counted(count, 'flow')}${where}: ${(error as Error).message}`,
      EXIT.endedEarly,
    )
  }
  return count
}
