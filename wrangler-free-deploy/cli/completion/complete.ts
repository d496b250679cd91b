/**
 * Candidates for the last word of a line, in the form of Cobra, which kubectl reads from its plugins: a candidate a
 * line, with a tab and what it is, and `:` with what the shell may do as the last line.
 */
import { type Application, proposeCompletions, type RouteMap } from '@stricli/core'
import { oneLine } from '../../../lib/text/one-line.ts'
import type { CliContext } from '../context.ts'
import { hintsOf } from './hints.ts'
import { type Line, lineOf } from './line.ts'

/** No blank after the candidate. */
const NO_SPACE = 2
/** No names of files. */
const NO_FILES = 4
/** Names come from the cluster: none may act on the shell, or be a flag. */
const SAFE = /^[\w./][\w./:@%+,=-]*$/

interface Candidate {
  readonly text: string
  /** The description of a command or a flag; values have none. */
  readonly brief?: string
}

export async function complete(
  app: Application<CliContext>,
  context: CliContext,
  words: readonly string[],
): Promise<void> {
  const { joined, before, last } = lastWordOf(words)
  const line = lineOf(app.root as RouteMap<CliContext>, [...before, last])
  const takesFile = line?.placeholder === 'FILE' && !last.startsWith('-')
  const candidates = await candidatesOf(app, context, line, before, last)
  // Flags are many: they are shown where nothing else fits, or on request.
  const shown = candidates.values.length > 0 || takesFile ? candidates.values : candidates.flags
  const lines = shown.map(({ text, brief }) => `${joined}${text}${brief ? `\t${oneLine(brief)}` : ''}\n`)
  const isOpen = shown.length > 0 && shown.every(({ text }) => text.endsWith('='))
  await context.write(`${lines.join('')}:${(isOpen ? NO_SPACE : 0) | (takesFile ? 0 : NO_FILES)}\n`)
}

/** `--flag=value` as two words, and what stands before the value. */
function lastWordOf(words: readonly string[]) {
  const last = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  const [joined, flag] = /^(--[^=]+)=/.exec(last) ?? ['']
  if (flag === undefined) return { joined, before, last }
  return { joined, before: [...before, flag], last: last.slice(joined.length) }
}

async function candidatesOf(
  app: Application<CliContext>,
  context: CliContext,
  line: Line | null,
  before: readonly string[],
  last: string,
): Promise<{ readonly values: readonly Candidate[]; readonly flags: readonly Candidate[] }> {
  const proposed = await proposeCompletions(app, [...before, last], context)
  const flags: Candidate[] = []
  const values: Candidate[] = []
  for (const { kind, completion, brief } of proposed)
    if (kind !== 'argument:flag') values.push({ text: completion, ...(kind !== 'argument:value' && { brief }) })
    else if (!line?.isHidden(completion)) flags.push({ text: completion, brief })
  if (line !== null && values.length === 0 && !last.startsWith('-'))
    for (const text of await hintsOf(context, line, last)) if (SAFE.test(text)) values.push({ text })
  return { values, flags }
}
