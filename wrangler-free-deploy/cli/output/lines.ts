/** Lines of text in the width of a terminal. Without a width (null) nothing is cut or wrapped. */

export const GAP = '  '
const ELLIPSIS = '…'
/** Narrower terminals break the lines themselves. */
const MIN_COLUMNS = 40

/** Rows as columns without borders, cut to the width. */
export function columnsOf(rows: readonly (readonly string[])[], width: number | null): string[] {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]!.length)))
  return rows.map((row) =>
    cut(
      row
        .map((cell, i) => cell.padEnd(widths[i]!))
        .join(GAP)
        .trimEnd(),
      width,
    ),
  )
}

export function cut(line: string, width: number | null): string {
  const characters = [...line]
  if (width === null || characters.length <= width) return line
  return `${characters.slice(0, Math.max(0, width - 1)).join('')}${ELLIPSIS}`
}

/** A sentence, broken between words; further lines begin with `indent`. */
export function wrapped(sentence: string, width: number | null, indent: string): string[] {
  if (width === null || width < MIN_COLUMNS) return [sentence]
  const lines: string[] = []
  const [, begin, text] = /^( *)(.*)$/s.exec(sentence)!
  let line = begin!
  for (const word of text!.split(' ')) {
    const isFirst = line === begin || line === indent
    if (!isFirst && line.length + 1 + word.length > width) {
      lines.push(line)
      line = `${indent}${word}`
    } else line = isFirst ? `${line}${word}` : `${line} ${word}`
  }
  return [...lines, line]
}

export const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`
