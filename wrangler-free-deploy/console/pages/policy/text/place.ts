/** Finds the line that the broker names by a document and a path, such as `spec.ingress[0].ports[1].port`. */
import { linesOf } from './line-diff.ts'

/** An error that the broker found in a text. */
export interface Fault {
  /** Counted from 1, without empty documents. Null if the error has no place. */
  readonly document: number | null
  /** Counted from 1 in the whole text. */
  readonly line: number | null
  readonly path: string | null
  /** The broker's message. */
  readonly rule: string
}

const STEP = String.raw`(?:\[\d+\]|\["(?:[^"\\]|\\.)*"\])`
const PATH = String.raw`(?:\w+|${STEP})(?:\.\w+|${STEP})*`
const FAULT = new RegExp(String.raw`^document (\d+): (?:line (\d+): |(${PATH}): )?([^]*)$`)

export function faultOf(message: string): Fault {
  const [, document, line, path, rule] = FAULT.exec(message.trim()) ?? []
  if (document === undefined) return { document: null, line: null, path: null, rule: message.trim() }
  return {
    document: Number(document),
    line: line === undefined ? null : Number(line),
    path: path ?? null,
    rule: rule ?? '',
  }
}

/** The line of an error in the text; null if it has none. */
export function lineOfFault(text: string, { document, line, path }: Fault): number | null {
  if (line !== null) return Math.min(line, linesOf(text).length)
  return document === null ? null : lineFinder(text)(document, path)
}

/** A key or a list item at the beginning of a line. Both may be on one line: `- from:`. */
interface Token {
  readonly line: number
  readonly indent: number
  /** Null for a list item. */
  readonly key: string | null
}

/** Returns the line, counted from 1, of a path in a document. The path null means the document itself. */
export type LineFinder = (document: number, path: string | null) => number | null

/**
 * Finds lines in a text, which is parsed once. If the path leads into a flow collection (`{...}`) or to a missing
 * field, the line of the enclosing block is returned; null if there is no such document.
 */
export function lineFinder(text: string): LineFinder {
  const documents = documentsOf(text)
  return (document, path) => {
    const tokens = documents[document - 1]
    const first = tokens?.[0]
    if (tokens === undefined || first === undefined) return null
    let block: readonly Token[] = tokens
    let { line } = first
    for (const step of stepsOf(path ?? '')) {
      const found = findStep(block, step)
      if (found === -1) break
      line = block[found]!.line
      block = within(block, found)
    }
    return line
  }
}

function stepsOf(path: string): (string | number)[] {
  return [...path.matchAll(/\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|(\w+)/g)].map(([, index, quoted, word]) => {
    if (index !== undefined) return Number(index)
    return quoted === undefined ? word! : String(JSON.parse(quoted))
  })
}

function findStep(block: readonly Token[], step: string | number): number {
  const indent = block[0]?.indent
  if (typeof step === 'string') return block.findIndex((one) => one.indent === indent && one.key === step)
  let before = -1
  return block.findIndex((one) => one.indent === indent && one.key === null && ++before === step)
}

/** The tokens nested in a token. List items may have the same indentation as their key. */
function within(block: readonly Token[], index: number): readonly Token[] {
  const { indent, key } = block[index]!
  const rest = block.slice(index + 1)
  const end = rest.findIndex(
    (one) => one.indent < indent || (one.indent === indent && (key === null || one.key !== null)),
  )
  return end === -1 ? rest : rest.slice(0, end)
}

function documentsOf(text: string): Token[][] {
  const documents: Token[][] = []
  let tokens: Token[] = []
  let hasContent = false
  const end = () => {
    if (hasContent) documents.push(tokens)
    tokens = []
    hasContent = false
  }
  for (const [i, raw] of linesOf(text).entries()) {
    const isMarker = /^(---|\.\.\.)([ \t]|$)/.test(raw)
    if (isMarker) end()
    const line = isMarker ? raw.slice(3) : raw
    const content = line.trim()
    if (content === '' || content.startsWith('#') || /^(~|null|Null|NULL)(\s+#.*)?$/.test(content)) continue
    hasContent = true
    tokens.push(...tokensOf(line, i + 1))
  }
  end()
  return documents
}

const KEY = /^(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)'|([^\s"'#{}[\],&*!|>%@`-][^#]*?|-[^\s#][^#]*?))\s*:(?=\s|$)/

function tokensOf(line: string, number: number): Token[] {
  const tokens: Token[] = []
  let indent = line.length - line.trimStart().length
  let rest = line.slice(indent)
  for (let member = /^-(\s+|$)/.exec(rest); member !== null; member = /^-(\s+|$)/.exec(rest)) {
    tokens.push({ line: number, indent, key: null })
    indent += member[0].length
    rest = rest.slice(member[0].length)
  }
  const [, double, single, plain] = KEY.exec(rest) ?? []
  const key = double ?? single ?? plain
  // Any other text: its line is known, but no key leads to it.
  if (key !== undefined || tokens.length === 0) tokens.push({ line: number, indent, key: key ?? '' })
  return tokens
}
