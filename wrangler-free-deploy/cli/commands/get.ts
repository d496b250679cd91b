import { buildCommand } from '@stricli/core'
import type { Query } from '../api/parameters.ts'
import { type Ask, ask, open, requestText } from '../connection/ask.ts'
import type { ConnectionFlags } from '../connection/place.ts'
import type { CliContext } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'
import { connectionFlags, valued } from '../flags.ts'
import { cleanText } from '../output/clean.ts'
import { copied } from '../output/download.ts'
import { formatOf, type OutputFlags, outputAliases, outputFlags } from '../output/flags.ts'
import { answerOf, show } from '../output/show.ts'
import { sinkOf } from '../output/sink.ts'

interface Flags extends ConnectionFlags, Pick<OutputFlags, 'output' | 'out' | 'printRequest'> {}

/** @throws Failure for text that is not the path of this broker */
export function questionOf(text: string): Omit<Ask, 'expects'> {
  const failure = new Failure(
    'PATH: expected a path of the API that begins with /, such as /images?limit=1',
    EXIT.usage,
  )
  if (!/^\/(?!\/)/.test(text) || /[#\\\s]/.test(text)) throw failure
  // Only its path and query are read: no text leads to another host.
  const { pathname, searchParams } = new URL(`http://path${text}`)
  if (pathname.startsWith('//')) throw failure
  const query: Record<string, string[]> = {}
  for (const [name, value] of searchParams) query[name] = [...(query[name] ?? []), value]
  try {
    const path = pathname.split('/').slice(1).map(decodeURIComponent)
    return { method: 'GET', path, query: query satisfies Query }
  } catch {
    throw failure
  }
}

async function get(this: CliContext, flags: Flags, text: string): Promise<void> {
  const question = { ...questionOf(text), expects: null }
  if (flags.printRequest) return this.write(requestText(this, flags, question))
  if (flags.output === undefined) {
    const sink = await copied(await open(this, flags, question), await sinkOf(this, flags.out), cleanText)
    return sink.end()
  }
  const { format } = formatOf({ ...flags, color: 'never' })
  if (!['json', 'yaml', 'jsonpath'].includes(format))
    throw new Failure('--output: expected json, yaml or jsonpath=EXPRESSION', EXIT.usage)
  const bytes = await ask(this, flags, { ...question, expects: 'application/json' })
  const pages = async function* () {
    yield { bytes, answer: answerOf(bytes) }
  }
  await show(
    this,
    { ...flags, color: 'never' },
    { pages, hasMore: () => false, limit: null },
    { rowsOf: () => [], columns: [], nameOf: String },
  )
}

export const getPath = buildCommand<Flags, [path: string], CliContext>({
  func: get,
  parameters: {
    aliases: outputAliases,
    positional: {
      kind: 'tuple',
      parameters: [{ parse: String, placeholder: 'PATH', brief: 'A path of the API, such as /images?limit=1.' }],
    },
    flags: {
      output: valued('FORMAT', 'json, yaml, jsonpath=EXPRESSION; without it the answer as it is, of any type.'),
      out: outputFlags.out,
      printRequest: outputFlags.printRequest,
      ...connectionFlags,
    },
  },
  docs: {
    brief: 'Get any path of the API as it is',
    customUsage: ['PATH [flags]'],
    fullDescription: [
      'Get any path of the API as it is. Redirects are not followed, and the token goes to the broker only.',
      'Exit code 7: the answer ended before its end.',
    ].join('\n'),
  },
})
