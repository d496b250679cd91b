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
  /** What has to be known beside the rows, for stderr. */
  readonly said?: (answer: Answer) => readonly string[]
  /** The facts of several pages as those of one, without their rows; by default those of each page are said. */
  readonly together?: (before: Answer, page: Answer) => Answer
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
  const path = format === 'jsonpath' ? jsonPath(expression) : null
  const sink = await sinkOf(context, flags.out)
  const isTerminal = sink.columns !== null
  const cleaned = (text: string) => (isTerminal ? cleanText(text) : text)
  const said = new Set<string>()
  let facts: Answer | null = null
  let left = limit ?? Number.POSITIVE_INFINITY
  let isCut = false
  let count = 0

  const writer = rowWriter()
  for await (const { bytes, answer } of pages()) {
    if (view.together) facts = facts === null ? answer : view.together(facts, answer)
    else for (const line of view.said?.(answer) ?? []) said.add(line)
    if (writer === null) {
      await writeWhole(bytes, answer)
      isCut = hasMore(answer)
      break
    }
    const rows = view.rowsOf(answer)
    await writer.write(rows.slice(0, left))
    count += rows.length
    isCut = rows.length > left || (rows.length === left && hasMore(answer))
    left -= Math.min(left, rows.length)
    if (left === 0) break
  }
  await writer?.end()
  await sink.end()
  if (facts !== null) for (const line of view.said?.(facts) ?? []) said.add(line)
  for (const line of said) context.say(line)
  if (count === 0 && (format === 'table' || format === 'wide')) context.say('nothing was found')
  if (isCut)
    context.say(writer === null ? 'there are more: -o ndjson has all, --after goes on' : 'there are more: see --limit')

  async function writeWhole(bytes: Buffer, answer: Answer): Promise<void> {
    if (format === 'json') return sink.write(isTerminal ? endedLine(cleanJson(bytes.toString())) : bytes)
    if (path !== null) return sink.write(cleaned(path(answer)))
    const { yamlOf } = await import('./yaml.ts')
    return sink.write(cleaned(yamlOf(answer)))
  }

  /** Null for the formats that show an answer as a whole. */
  function rowWriter() {
    if (format === 'table' || format === 'wide') {
      const table = new TableWriter<Row>(sink, view.columns, {
        ...{ isWide: format === 'wide', isUtc: flags.utc === true, hasHeaders: flags.noHeaders !== true },
        isColoured: (isTerminal || flags.color === 'always') && isColoured(context, flags.color),
      })
      return { write: (rows: readonly Row[]) => table.write(rows), end: () => table.flush() }
    }
    if (format === 'csv') {
      let head = flags.noHeaders === true ? '' : headOf(view.columns)
      const write = async (rows: readonly Row[]) => {
        const lines = rows.map((row) => lineOf(view.columns, row)).join('')
        await sink.write(cleaned(head + lines))
        head = ''
      }
      return { write, end: async () => {} }
    }
    if (format === 'ndjson')
      return linesOf((row) => (isTerminal ? cleanJson(JSON.stringify(row)) : JSON.stringify(row)), sink)
    return format === 'name' ? linesOf((row) => oneLine(view.nameOf(row)), sink) : null
  }

  function linesOf(textOf: (row: Row) => string, to: Sink) {
    const write = async (rows: readonly Row[]) => {
      if (rows.length > 0) await to.write(rows.map((row) => `${textOf(row)}\n`).join(''))
    }
    return { write, end: async () => {} }
  }
}

const endedLine = (text: string): string => (text.endsWith('\n') ? text : `${text}\n`)

/** @throws Failure for text that is not JSON, or not an object or a list */
export function answerOf<Answer>(bytes: Buffer): Answer {
  try {
    const answer: unknown = JSON.parse(bytes.toString())
    if (typeof answer === 'object' && answer !== null) return answer as Answer
  } catch {}
  throw new Failure('the answer is not that of a broker', EXIT.notReachable)
}
