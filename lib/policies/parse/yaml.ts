/** Reads a stream of YAML documents from a stranger. */
import { type Event, parseEvents, YAMLException } from 'js-yaml'
import { HttpError } from '../../errors.ts'
import type { Slice } from '../../event-loop/slices.ts'
import { buildValues, YamlFault } from './yaml-values.ts'

/** Documents, those without content included. */
const MAX_DOCUMENTS = 2000
/** Policies nest to 20. */
const MAX_DEPTH = 64
/**
 * Line ends and indicators of one document. js-yaml needs up to 0.5 us for each and cannot pause. A megabyte of
 * policies as kubectl prints them has 80 000 to 110 000.
 */
const MAX_TOKENS = 120_000
const MAX_SHOWN_CHARS = 200

/** The values of all documents with content, in order. 400 with the line of the first fault. */
export async function parseYaml(text: string, slice: Slice): Promise<unknown[]> {
  const values: unknown[] = []
  let documents = 0
  for (const { from, to } of chunksOf(text)) {
    if (++documents > MAX_DOCUMENTS) throw new HttpError(400, `expected at most ${MAX_DOCUMENTS} documents`)
    if (slice.isOver) await slice.next()
    try {
      for (const value of await parseChunk(text.slice(from, to), slice)) if (value !== null) values.push(value)
    } catch (error) {
      const fault = faultOf(error)
      if (fault === null) throw error
      const line = text.slice(0, from + fault.index).split(/\r\n|[\n\r]/).length
      throw new HttpError(400, `document ${values.length + 1}: line ${line}: ${fault.message}`)
    }
  }
  return values
}

/** The beginning of a document (YAML 1.2.2, 9.1.2). Nothing else may look like it at the beginning of a line. */
const MARKER = /(?<=^|[\n\r])---(?=[ \t\n\r]|$)/g

/** Cuts before each marker, so that there can be pauses between the documents. */
function* chunksOf(text: string): Generator<{ from: number; to: number }> {
  let from = 0
  for (const { index } of text.matchAll(MARKER)) {
    if (index > from) yield { from, to: index }
    from = index
  }
  yield { from, to: text.length }
}

async function parseChunk(text: string, slice: Slice): Promise<unknown[]> {
  checkTokens(text)
  const directive = text.search(DIRECTIVE)
  if (directive >= 0) throw new YamlFault('directives (%) are not supported', directive)
  if (slice.isOver) await slice.next()
  const events: Event[] = parseEvents(text, { maxDepth: MAX_DEPTH })
  if (slice.isOver) await slice.next()
  return buildValues(text, events, slice)
}

/**
 * Line ends; indicators of flow collections; and `:`, `-` and `?` before white space or beside an indicator. Those
 * inside of texts count, too.
 */
const TOKEN = /[\n\r,[{]|[-?](?=\s)|:(?=[\s,[\]{}])|(?<=["'\]}]):/g

/** kubectl refuses them, too. js-yaml needs 2 us for each. */
const DIRECTIVE = /(?<=^|[\n\r])%/

function checkTokens(text: string): void {
  let tokens = 0
  TOKEN.lastIndex = 0
  while (TOKEN.test(text))
    if (++tokens > MAX_TOKENS)
      throw new YamlFault(`expected at most ${MAX_TOKENS} lines and values in a document`, TOKEN.lastIndex)
}

function faultOf(error: unknown): { readonly message: string; readonly index: number } | null {
  if (error instanceof YamlFault) return error
  if (!(error instanceof YAMLException)) return null
  return { message: `invalid YAML: ${error.reason.slice(0, MAX_SHOWN_CHARS)}`, index: error.mark?.position ?? 0 }
}
