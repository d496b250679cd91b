/** Commands that show what one route of the broker answers. */
import { buildCommand, type Command } from '@stricli/core'
import { flagsOf, type OperationPath, pageRows, type Query, queryOf } from '../api/parameters.ts'
import { ask, requestText } from '../connection/ask.ts'
import type { ConnectionFlags } from '../connection/place.ts'
import type { CliContext } from '../context.ts'
import { type Example, withExamples } from '../examples.ts'
import { EXIT, Failure } from '../failure.ts'
import { connectionFlags, valued } from '../flags.ts'
import { type OutputFlags, outputAliases, outputFlags } from '../output/flags.ts'
import { type Answers, answerOf, type Page, show, type View } from '../output/show.ts'
import { instantBefore } from './moment.ts'

export interface ListFlags extends ConnectionFlags, OutputFlags {
  readonly namespace?: string
  readonly allNamespaces?: boolean
  readonly last?: string
  readonly limit?: string
  readonly [parameter: string]: unknown
}

/** What is asked of the broker: the segments of the path, and the query. */
export interface Asked {
  readonly path: readonly string[]
  readonly query: Query
}

interface Listing<Answer, Row> extends View<Answer, Row> {
  /** The route, whose parameters are flags. */
  readonly route: OperationPath
  /** The argument of the command, if it has one. */
  readonly argument?: { readonly placeholder: string; readonly brief: string; readonly isOptional?: true }
  /** The path, and further values of the query; by default the path of the route, which then has no parameters. */
  readonly askedOf?: (argument: string | undefined, flags: ListFlags) => Asked
  /** Parameters that have no flag. */
  readonly without?: readonly string[]
  /** The place after which the next page begins; null on the last one. */
  readonly nextOf?: (answer: Answer) => string | number | null | undefined
  readonly brief: string
  readonly description?: readonly string[]
  /** Calls for the manual, with what each is for. */
  readonly examples: readonly Example[]
}

export const limitFlag = valued('N', 'Rows at most, or all.')
export const namespaceFlag = (brief: string) => valued('NAME', brief)
const allNamespacesFlag = {
  ...{ kind: 'boolean', optional: true, withNegated: false },
  brief: 'All namespaces, which is the default; refuses --namespace.',
} as const
const lastFlag = valued('DISTANCE', 'Since so long ago: 15m, 6h, 7d, 2w; instead of --since.')

/** A command that lists what a route answers, page after page. */
export function listing<Answer, Row>(spec: Listing<Answer, Row>): Command<CliContext> {
  const { route, argument, without = [], brief, description = [] } = spec
  const flags = flagsOf(route, [...without, 'limit'])
  const hasSince = 'since' in flags
  async function func(this: CliContext, given: ListFlags, ...words: string[]): Promise<void> {
    const asked = spec.askedOf?.(words[0], given) ?? { path: route.split('/').slice(1), query: {} }
    const query = { ...queryOf(route, given), ...windowOf(given), ...asked.query }
    await showPages(this, given, { path: asked.path, query }, spec, spec.nextOf, pageRows(route))
  }
  const command = buildCommand<ListFlags, string[], CliContext>({
    func,
    parameters: {
      aliases: { ...outputAliases, ...('namespace' in flags && { n: 'namespace', A: 'allNamespaces' }) } as never,
      positional:
        argument === undefined
          ? ({ kind: 'tuple', parameters: [] } as never)
          : {
              kind: 'array',
              parameter: { parse: String, ...argument },
              minimum: argument.isOptional ? 0 : 1,
              maximum: 1,
            },
      flags: {
        ...flags,
        ...('namespace' in flags && {
          namespace: { ...flags.namespace, placeholder: 'NAME' },
          allNamespaces: allNamespacesFlag,
        }),
        ...(hasSince && { last: lastFlag }),
        ...(spec.nextOf && { limit: limitFlag }),
        ...outputFlags,
        ...connectionFlags,
      } as never,
    },
    docs: {
      brief,
      customUsage: [
        argument === undefined
          ? '[flags]'
          : `${argument.isOptional ? `[${argument.placeholder}]` : argument.placeholder} [flags]`,
      ],
      fullDescription: [`${brief}.`, ...description].join('\n'),
    },
  })
  return withExamples(command, spec.examples)
}

/** @throws Failure for flags that exclude each other */
export function windowOf({ since, last, namespace, allNamespaces }: ListFlags): Query {
  if (namespace !== undefined && allNamespaces)
    throw new Failure('expected --namespace or --all-namespaces', EXIT.usage)
  if (since !== undefined && last !== undefined) throw new Failure('expected --since or --last', EXIT.usage)
  const moment = last ?? since
  // Some routes take a time only, so a distance is one before it is sent.
  return moment === undefined ? {} : { since: instantBefore(last === undefined ? '--since' : '--last', String(moment)) }
}

/** Shows the pages of a route, or prints the request for the first. */
export async function showPages<Answer, Row>(
  context: CliContext,
  flags: ListFlags,
  { path, query }: Asked,
  view: View<Answer, Row>,
  nextOf: ((answer: Answer) => string | number | null | undefined) | undefined,
  maxRows: number | undefined,
): Promise<void> {
  const limit = limitOf(flags)
  const rows = maxRows === undefined ? undefined : String(Math.min(maxRows, limit ?? maxRows))
  const question = (after: string | undefined) => ({
    ...({ method: 'GET', path, expects: 'application/json' } as const),
    query: { ...query, ...(rows !== undefined && { limit: rows }), ...(after !== undefined && { after }) },
  })
  if (flags.printRequest) return context.write(requestText(context, flags, question(undefined)))
  async function* pages(): AsyncGenerator<Page<Answer>> {
    for (let after: string | undefined; ; ) {
      const bytes = await ask(context, flags, question(after))
      const answer = answerOf<Answer>(bytes)
      yield { bytes, answer }
      const next = nextOf?.(answer)
      if (next === null || next === undefined) return
      after = String(next)
    }
  }
  const hasMore = (answer: Answer) => (nextOf?.(answer) ?? null) !== null
  const answers: Answers<Answer> = { pages, hasMore, limit }
  await show(context, flags, answers, view)
}

/** Null for all. @throws Failure for what is no number */
export function limitOf({ limit }: ListFlags): number | null {
  if (limit === undefined || limit === 'all') return null
  if (!/^[1-9]\d{0,8}$/.test(limit)) throw new Failure('--limit: expected a number from 1 on, or all', EXIT.usage)
  return Number(limit)
}
