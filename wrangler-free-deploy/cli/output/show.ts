/** Writes the answers to a question in the format that was asked for. */
import { oneLine } from '../../../lib/text/one-line.ts'
import { type CliContext, isColoured } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'
import type { Column } from './cell.ts'
import { cleanJson, cleanText } from './clean.ts'
import { headOf, lineOf } from './csv.ts'
import { formatOf, type OutputFlags } from './flags.ts'
import { jsonPath } from './jsonpath.ts'
import { type Sink, sinkOf } from './sink.ts'
import { TableWriter } from './table.ts'

/** One answer of the broker. */
export interface Page<Answer> {
  readonly bytes: Buffer
  readonly answer: Answer
}

/** How the answers of a command are read. */
export interface View<Answer, Row> {
  readonly rowsOf: (answer: Answer) => readonly Row[]
  readonly columns: readonly Column<Row>[]
  /** The identity of a row, as other commands take it. */
  readonly nameOf: (row: Row) => string
  /** Facts beside the rows, for stderr. */
  readonly said?: (answer: Answer) => readonly string[]
  /** The facts of several pages as those of one, without their rows; by default those of each page are said. */
  readonly together?: (before: Answer, page: Answer) => Answer
  /** Says that there are no rows. */
  readonly nothing?: string
  /** Judges all answers, so that the exit code is known before anything is written. */
  readonly judge?: ((answers: readonly Answer[]) => Judgement) | undefined
}

/** Whether what was asked about is so, and what has to be known about that, for stderr. */
export interface Judgement {
  readonly isSo: boolean
  readonly said: readonly string[]
}

/** The answers one after another; `isLast` of a page tells whether there are more. */
export interface Answers<Answer> {
  readonly pages: () => AsyncIterable<Page<Answer>>
  readonly hasMore: (answer: Answer) => boolean
  /** Rows at most; null for all. */
  readonly limit: number | null
}

/** @throws Failure for a format that is not known, or a file that cannot be written */
export async function show<Answer, Row>(
  context: CliContext,
  flags: OutputFlags,
  { pages, hasMore, limit }: Answers<Answer>,
  view: View<Answer, Row>,
): Promise<void> {
  const { format, expression } = formatOf(flags)
  const isTerminal = context.columns !== null && flags.out === undefined
  // A value does not begin a line of a terminal.
  const path = format === 'jsonpath' ? jsonPath(expression, isTerminal ? oneLine : undefined) : null
  const sink = await sinkOf(context, flags.out)
  const cleaned = (text: string) => (isTerminal ? cleanText(text) : text)
  const said = new Set<string>()
  let facts: Answer | null = null
  let left = limit ?? Number.POSITIVE_INFINITY
  let isCut = false
  let count = 0

  const { shown, judgement } = await judged(pages, view.judge)
  if (judgement?.isSo) context.exitWith(EXIT.isSo)
  const writer = rowWriter(context, flags, sink, view)
  for await (const { bytes, answer } of shown) {
    if (view.together) facts = facts === null ? answer : view.together(facts, answer)
    else for (const line of view.said?.(answer) ?? []) said.add(line)
    if (writer === null) {
      await writeWhole(bytes)
      isCut = hasMore(answer)
      break
    }
    const rows = view.rowsOf(answer)
    if (!Array.isArray(rows)) throw notOfBroker()
    await writer.write(rows.slice(0, left))
    count += rows.length
    isCut = rows.length > left || (rows.length === left && hasMore(answer))
    left -= Math.min(left, rows.length)
    if (left === 0) break
  }
  await writer?.flush()
  await sink.end()
  if (facts !== null) for (const line of view.said?.(facts) ?? []) said.add(line)
  // Names of a cluster do not begin a line.
  for (const line of said) context.say(oneLine(line))
  if (count === 0 && (format === 'table' || format === 'wide')) context.say(view.nothing ?? 'nothing was found')
  if (isCut)
    context.say(writer === null ? 'there are more: -o ndjson has all, --after goes on' : 'there are more: see --limit')
  for (const line of judgement?.said ?? []) context.say(oneLine(line))

  /** All of these formats show the bytes: a command may know more of the rows than the answer has. */
  async function writeWhole(bytes: Buffer): Promise<void> {
    if (format === 'json') return sink.write(isTerminal ? endedLine(cleanJson(bytes.toString())) : bytes)
    const answer = answerOf(bytes)
    if (path !== null) return sink.write(cleaned(path(answer)))
    const { yamlOf } = await import('./yaml.ts')
    return sink.write(cleaned(yamlOf(answer)))
  }
}

/** Writes rows as they come. */
export interface RowWriter<Row> {
  readonly write: (rows: readonly Row[]) => Promise<void>
  /** Writes what waits for further rows. */
  readonly flush: () => Promise<void>
}

/** Null for the formats that show an answer as a whole. */
export function rowWriter<Row>(
  context: CliContext,
  flags: OutputFlags,
  sink: Sink,
  { columns, nameOf }: Pick<View<unknown, Row>, 'columns' | 'nameOf'>,
): RowWriter<Row> | null {
  const { format } = formatOf(flags)
  const isTerminal = sink.columns !== null
  if (format === 'table' || format === 'wide')
    return new TableWriter<Row>(sink, columns, {
      ...{ isWide: format === 'wide', isUtc: flags.utc === true, hasHeaders: flags.noHeaders !== true },
      isColoured: (isTerminal || flags.color === 'always') && isColoured(context, flags.color),
    })
  const inLines = (textOf: (rows: readonly Row[]) => string): RowWriter<Row> => ({
    async write(rows) {
      const text = textOf(rows)
      if (text !== '') await sink.write(text)
    },
    flush: async () => {},
  })
  if (format === 'csv') {
    let head = flags.noHeaders === true ? '' : headOf(columns)
    return inLines((rows) => {
      // On a terminal no field begins a line.
      const lines = head + rows.map((row) => lineOf(columns, row, isTerminal ? oneLine : String)).join('')
      head = ''
      return isTerminal ? cleanText(lines.replaceAll('\r\n', '\n')) : lines
    })
  }
  if (format === 'ndjson') {
    const line = (row: Row) => (isTerminal ? cleanJson(JSON.stringify(row)) : JSON.stringify(row))
    return inLines((rows) => rows.map((row) => `${line(row)}\n`).join(''))
  }
  if (format !== 'name') return null
  // Rows of one thing, one after another, are one name.
  let before: string | null = null
  return inLines((rows) => {
    const names = rows.map((row) => oneLine(nameOf(row)))
    const fresh = names.filter((name, i) => name !== (i === 0 ? before : names[i - 1]))
    before = names.at(-1) ?? before
    return fresh.map((name) => `${name}\n`).join('')
  })
}

/** All pages are held in memory where they are judged before they are shown. */
async function judged<Answer>(
  pages: Answers<Answer>['pages'],
  judge: ((answers: readonly Answer[]) => Judgement) | undefined,
): Promise<{ shown: AsyncIterable<Page<Answer>> | readonly Page<Answer>[]; judgement: Judgement | null }> {
  if (judge === undefined) return { shown: pages(), judgement: null }
  const shown: Page<Answer>[] = []
  for await (const page of pages()) shown.push(page)
  return { shown, judgement: judge(shown.map(({ answer }) => answer)) }
}

const endedLine = (text: string): string => (text.endsWith('\n') ? text : `${text}\n`)

/** @throws Failure for text that is not JSON, or not an object or a list */
export function answerOf<Answer>(bytes: Buffer): Answer {
  try {
    const answer: unknown = JSON.parse(bytes.toString())
    if (typeof answer === 'object' && answer !== null) return answer as Answer
  } catch {}
  throw notOfBroker()
}

const notOfBroker = () => new Failure('the answer is not that of a broker', EXIT.notReachable)
