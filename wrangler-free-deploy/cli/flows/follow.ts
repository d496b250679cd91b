/**
 * Flows as they are stored. A follow goes on by itself where its stream ends or breaks, from the last token that it
 * got. Flows are written when the token behind them is there, and the token is saved when they are written: so none is
 * missing after an end at any time, and only those of the last group, at most 1 000, may be written twice, where the
 * process ends between the two.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { Query } from '../api/parameters.ts'
import { open, partsOf, requestText, STREAM } from '../connection/ask.ts'
import type { CliContext } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'
import type { ListFlags } from '../list/listing.ts'
import { cleanText } from '../output/clean.ts'
import { formatOf } from '../output/flags.ts'
import { jsonPath } from '../output/jsonpath.ts'
import { type RowWriter, rowWriter } from '../output/show.ts'
import type { Sink } from '../output/sink.ts'
import { type FollowedFlow, followedColumns } from './flow.ts'
import { groupsOf } from './groups.ts'
import { readResume, writeResume } from './resume-file.ts'

/** Three heartbeats. */
const SILENCE_MS = 45_000
/** After a stream without flows; twice as long after each further one. */
const FIRST_WAIT_MS = 250
const MAX_WAIT_MS = 30_000
const MS_PER_SECOND = 1_000

export interface FollowFlags extends ListFlags {
  readonly resumeFile?: string
}

/** @throws Failure where it cannot begin, and where it cannot go on */
export async function followFlows(context: CliContext, flags: FollowFlags, query: Query): Promise<void> {
  const writer = writerOf(context, flags)
  const { resumeFile: file } = flags
  let resume = file === undefined ? null : await readResume(file)
  const question = () => ({
    ...({ method: 'GET', path: ['flows'], expects: STREAM } as const),
    query: { ...query, follow: 'true', ...(resume !== null && { since: undefined, resume }) },
  })
  if (flags.printRequest) return context.write(requestText(context, flags, question()))
  if (resume !== null) context.say(`goes on from ${file}`)

  let hasBegun = false
  let hasFlows = false
  /** Returns when the stream ended as it should. */
  async function followStream(): Promise<void> {
    const answer = await open(context, flags, question())
    hasBegun = true
    try {
      for await (const group of groupsOf(partsOf(answer, SILENCE_MS))) {
        if (group.flows.length > 0) {
          await writer.write(group.flows)
          await writer.flush()
          hasFlows = true
        }
        resume = group.resume
        if (file !== undefined) writeResume(file, resume)
        if (group.isEnd) return
      }
    } finally {
      answer.destroy()
    }
    throw new Error('it has no last line')
  }

  for (let waitMs = 0; ; ) {
    const beganAt = performance.now()
    hasFlows = false
    let why = 'the stream ended'
    try {
      await followStream()
    } catch (error) {
      if (error instanceof Failure && (error.exitCode !== EXIT.notReachable || !hasBegun)) throw explained(error, file)
      why = error instanceof Failure ? error.message : `the stream broke: ${(error as Error).message}`
    }
    const isWell = hasFlows || performance.now() - beganAt > MAX_WAIT_MS
    waitMs = isWell ? 0 : Math.min(Math.max(FIRST_WAIT_MS, 2 * waitMs), MAX_WAIT_MS)
    context.say(`${why}: goes on ${isWell ? 'at once' : `in ${waitMs / MS_PER_SECOND} s`}`)
    await delay(waitMs)
  }
}

/** @throws Failure for flags that a stream without an end does not have */
function writerOf(context: CliContext, flags: FollowFlags): RowWriter<FollowedFlow> {
  for (const name of ['until', 'limit', 'order', 'after', 'out'])
    if (flags[name] !== undefined) throw new Failure(`--${name}: a follow has none`, EXIT.usage)
  const { format, expression } = formatOf(flags)
  const sink: Sink = { columns: context.columns, write: (data) => context.write(data), end: async () => {} }
  if (format === 'jsonpath') {
    const textOf = jsonPath(expression)
    const write = async (rows: readonly FollowedFlow[]) => {
      const text = rows.map(textOf).join('')
      await sink.write(context.columns === null ? text : cleanText(text))
    }
    return { write, flush: async () => {} }
  }
  const view = { columns: followedColumns, nameOf: ({ uuid }: FollowedFlow) => uuid }
  const writer = format === 'csv' ? null : rowWriter(context, flags, sink, view)
  if (writer !== null) return writer
  throw new Failure('--output: a follow has table, wide, ndjson, name and jsonpath=EXPRESSION', EXIT.usage)
}

/** Adds the remedy where a token is refused. */
function explained({ message, exitCode }: Failure, file: string | undefined): Failure {
  const source = file !== undefined && message.includes('resume:') ? `--resume-file ${file}: ` : ''
  const hint =
    exitCode !== EXIT.endedEarly
      ? ''
      : `\n${file === undefined ? 'follow again' : `remove ${file} and follow again`} with --since or --last`
  return new Failure(`${source}${message}${hint}`, exitCode)
}
