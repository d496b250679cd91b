/** Rows as columns without borders, for people. */

import { type Colour, type Column, cellOf } from './cell.ts'
import { cut, GAP, wrapped } from './lines.ts'
import type { Sink } from './sink.ts'

/** The widths of the columns are those of so many rows; later ones may move the rest of their line. */
const MEASURED_ROWS = 1_000
/** A narrower column breaks almost every word. */
const MIN_SENTENCE_COLUMNS = 24
const HANGING_COLUMNS = 4
const CODES: Readonly<Record<Colour, string>> = { red: '\u001b[31m', yellow: '\u001b[33m', green: '\u001b[32m' }
const PLAIN = '\u001b[0m'

export interface TableShape {
  readonly isWide: boolean
  readonly isUtc: boolean
  readonly isColoured: boolean
  readonly hasHeaders: boolean
}

/** Writes rows as they come. */
export class TableWriter<Row> {
  readonly #sink: Sink
  readonly #columns: readonly Column<Row>[]
  readonly #shape: TableShape
  #waiting: Row[] = []
  #widths: number[] | null = null

  constructor(sink: Sink, columns: readonly Column<Row>[], shape: TableShape) {
    this.#sink = sink
    this.#columns = columns.filter(({ isWide }) => shape.isWide || !isWide)
    this.#shape = shape
  }

  async write(rows: readonly Row[]): Promise<void> {
    this.#waiting.push(...rows)
    if (this.#widths !== null || this.#waiting.length >= MEASURED_ROWS) await this.flush()
  }

  /** Writes what waits, so that a reader of a live list sees it. */
  async flush(): Promise<void> {
    const rows = this.#waiting
    this.#waiting = []
    const cells = rows.map((row) => this.#cellsOf(row))
    const lines: string[] = []
    if (this.#widths === null) {
      const headers = this.#columns.map(({ header }) => header)
      const head = this.#shape.hasHeaders && rows.length > 0 ? [headers] : []
      const measured = [...head, ...cells]
      this.#widths = this.#columns.map(({ minWidth = 0 }, i) =>
        Math.max(minWidth, ...measured.map((one) => one[i]!.length)),
      )
      lines.push(...head.map((one) => this.#lineOf(one, [])))
    }
    for (const [n, one] of cells.entries()) lines.push(...this.#linesOf(one, this.#coloursOf(rows[n]!)))
    if (lines.length > 0) await this.#sink.write(`${lines.join('\n')}\n`)
  }

  #cellsOf(row: Row): string[] {
    return this.#columns.map(({ of, shownOf = of, isTime = false }) => cellOf(shownOf(row), isTime, this.#shape.isUtc))
  }

  #coloursOf(row: Row): (Colour | null)[] {
    return this.#shape.isColoured ? this.#columns.map(({ colourOf }) => colourOf?.(row) ?? null) : []
  }

  /** A line, and further ones for the rest of a sentence: below its column, or where that is narrow below the row. */
  #linesOf(cells: string[], colours: (Colour | null)[]): string[] {
    const { columns } = this.#sink
    const sentence = cells.at(-1)!
    const before = this.#widths!.slice(0, -1).reduce((sum, width) => sum + width + GAP.length, 0)
    if (columns === null || !this.#columns.at(-1)!.isSentence || before + sentence.length <= columns)
      return [this.#lineOf(cells, colours)]
    const isBelowRow = columns - before < MIN_SENTENCE_COLUMNS
    const indent = ' '.repeat(isBelowRow ? HANGING_COLUMNS : before)
    const broken = wrapped(`${indent}${sentence}`, columns, indent).map((line) => cut(line, columns))
    if (isBelowRow) return [this.#lineOf([...cells.slice(0, -1), ''], colours).trimEnd(), ...broken]
    return [this.#lineOf([...cells.slice(0, -1), broken[0]!.slice(before)], colours), ...broken.slice(1)]
  }

  #lineOf(cells: readonly string[], colours: readonly (Colour | null)[]): string {
    const padded = cells.map((cell, i) => (i === cells.length - 1 ? cell : cell.padEnd(this.#widths![i]!)))
    const line = cut(padded.join(GAP), this.#sink.columns)
    if (colours.every((one) => one === null || one === undefined)) return line
    // Colours take no columns, so they are put into the line that is cut already.
    let at = 0
    return padded
      .map((cell, i) => {
        const part = line.slice(at, at + cell.length + GAP.length)
        at += cell.length + GAP.length
        const colour = colours[i]
        const text = part.slice(0, cell.trimEnd().length)
        return colour && text !== '' ? `${CODES[colour]}${text}${PLAIN}${part.slice(text.length)}` : part
      })
      .join('')
  }
}
