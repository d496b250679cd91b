/** Commands that show what one route of the broker answers. */
import { buildCommand, type Command } from '@stricli/core'
import { flagsOf, type OperationPath, pageRows, type Query, queryOf } from '../api/parameters.ts'
import { ask, requestText } from '../connection/ask.ts'
import type { ConnectionFlags } from '../connection/place.ts'
import type { CliContext } from '../context.ts'
import { EXIT, Failure } from '../failure.ts'
import { connectionFlags, valued } from '../flags.ts'
import { isOfRows, type OutputFlags, outputAliases, outputFlags } from '../output/flags.ts'
import { type Answers, answerOf, type Page, show, type View } from '../output/show.ts'
import { instantBefore } from './moment.ts'
import { namespaceOfWorkload, pathOfWorkload, WORKLOAD_PATH, workloadArgument } from './workload.ts'

export interface ListFlags extends ConnectionFlags, OutputFlags {
  readonly namespace?: string
  readonly allNamespaces?: boolean
  readonly last?: string
  readonly limit?: string
  readonly [parameter: string]: unknown
}

/** A question to the broker: the segments of the path, and the query. */
export interface Asked {
  readonly path: readonly string[]
  readonly query: Query
}

type MaybePromise<T> = T | Promise<T>

export interface Argument {
  readonly placeholder: string
  readonly brief: string
  readonly isOptional?: true
}

/** A command that asks routes of the broker. */
interface RouteCommand {
  /** The routes, whose parameters are flags. */
  readonly routes: readonly OperationPath[]
  /** The arguments of the command. */
  readonly positional?: readonly Argument[]
  /** Parameters that have no flag. */
  readonly without?: readonly string[]
  readonly hasLimit: boolean
  /** Flags that are no parameters, and the short names of flags. */
  readonly flags?: Readonly<Record<string, object>>
  readonly aliases?: Readonly<Record<string, string>>
  /** Lines of usage, where they are not those of the argument. */
  readonly usage?: readonly string[]
  readonly brief: string
  readonly description?: readonly string[]
}

interface Listing<Answer, Row> extends View<Answer, Row>, Omit<RouteCommand, 'routes' | 'hasLimit' | 'positional'> {
  readonly route: OperationPath
  /** The argument of the command, if it has one; by default a workload where the route is about one. */
  readonly argument?: Argument
  /** The path, and further values of the query; by default the path of the route, which then has no parameters. */
  readonly askedOf?: (argument: string, flags: ListFlags, context: CliContext) => MaybePromise<Asked>
  /** Narrows a page, adds to what is known of its rows, or sets the exit code, before it is shown. */
  readonly read?: (context: CliContext, flags: ListFlags, page: Page<Answer>) => MaybePromise<Page<Answer>>
  /** The place after which the next page begins; null on the last one. */
  readonly nextOf?: (answer: Answer) => string | number | null | undefined
  /** Rows that are asked for at once, where the most that the route allows are too many. */
  readonly pageRows?: number
  /** `--limit` where it is not given; by default all. */
  readonly defaultRows?: number
  /** Shows what is not a list of pages; false where it is one. */
  readonly otherwise?: (context: CliContext, flags: ListFlags, asked: Asked) => Promise<boolean>
  /** Judges the answers, if the flags ask for it. */
  readonly judgeOf?: (flags: ListFlags) => View<Answer, Row>['judge']
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
  const { route, nextOf, read } = spec
  const isOfWorkload = route.includes(WORKLOAD_PATH)
  const argument = spec.argument ?? (isOfWorkload ? workloadArgument : undefined)
  const flags = { ...(isOfWorkload && { namespace: namespaceOfWorkload }), ...spec.flags }
  const limited = (given: ListFlags): ListFlags =>
    spec.defaultRows === undefined ? given : { ...given, limit: given.limit ?? String(spec.defaultRows) }
  // A format that shows one answer as it is shows as much of it as there may be.
  const maxRowsOf = (given: ListFlags) => (isOfRows(given) ? (spec.pageRows ?? pageRows(route)) : pageRows(route))
  const pathOf = ({ namespace }: ListFlags, [word]: readonly string[]) =>
    isOfWorkload ? pathOfWorkload(route, namespace, word!) : route.split('/').slice(1)
  return routeCommand(
    {
      ...{ ...spec, flags, routes: [route], hasLimit: nextOf !== undefined },
      positional: argument === undefined ? [] : [argument],
    },
    async (context, given, words) => {
      const asked = (await spec.askedOf?.(words[0]!, given, context)) ?? { path: pathOf(given, words), query: {} }
      const query = { ...queryOf(route, given), ...windowOf(given), ...asked.query }
      if (await spec.otherwise?.(context, given, { path: asked.path, query })) return
      const view = { ...spec, judge: spec.judgeOf?.(given) }
      const reading = read === undefined ? undefined : (page: Page<Answer>) => read(context, given, page)
      const paging = { nextOf, maxRows: maxRowsOf(given), read: reading }
      await showPages(context, limited(given), { path: asked.path, query }, view, paging)
    },
  )
}

/** A command with the flags of these routes, of output and of the connection. */
export function routeCommand(
  spec: RouteCommand,
  run: (context: CliContext, flags: ListFlags, words: readonly string[]) => Promise<void>,
): Command<CliContext> {
  const { routes, positional = [], without = [], brief, description = [], usage } = spec
  const flags: Record<string, object & { optional?: boolean }> = Object.assign(
    {},
    ...routes.map((route) => flagsOf(route, [...without, 'limit'])),
    spec.flags,
  )
  const namespace = flags.namespace
  const mayHaveAll = namespace?.optional === true && spec.flags?.namespace === undefined
  return buildCommand<ListFlags, string[], CliContext>({
    func(this: CliContext, given: ListFlags, ...words: string[]) {
      return run(this, given, words)
    },
    parameters: {
      aliases: {
        ...outputAliases,
        ...(namespace !== undefined && { n: 'namespace' }),
        ...(mayHaveAll && { A: 'allNamespaces' }),
        ...spec.aliases,
      } as never,
      positional: {
        kind: 'tuple',
        parameters: positional.map(({ isOptional = false, ...rest }) => ({
          ...{ parse: String, optional: isOptional, ...rest },
        })),
      } as never,
      flags: {
        ...flags,
        ...(namespace !== undefined && { namespace: { ...namespace, placeholder: 'NAME' } }),
        ...(mayHaveAll && { allNamespaces: allNamespacesFlag }),
        ...('since' in flags && { last: lastFlag }),
        ...(spec.hasLimit && { limit: limitFlag }),
        ...outputFlags,
        ...connectionFlags,
      } as never,
    },
    docs: {
      brief,
      customUsage: usage ?? [[...positional.map(usageOf), '[flags]'].join(' ')],
      fullDescription: [`${brief}.`, ...description].join('\n'),
    },
  })
}

const usageOf = ({ placeholder, isOptional }: Argument): string => (isOptional ? `[${placeholder}]` : placeholder)

/** @throws Failure for flags that exclude each other */
export function windowOf({ since, last, namespace, allNamespaces }: ListFlags): Query {
  if (namespace !== undefined && allNamespaces)
    throw new Failure('expected --namespace or --all-namespaces', EXIT.usage)
  if (since !== undefined && last !== undefined) throw new Failure('expected --since or --last', EXIT.usage)
  const moment = last ?? since
  // Some routes take a time only, so a distance is one before it is sent.
  return moment === undefined ? {} : { since: instantBefore(last === undefined ? '--since' : '--last', String(moment)) }
}

interface Paging<Answer> {
  /** The place after which the next page begins. */
  readonly nextOf?: ((answer: Answer) => string | number | null | undefined) | undefined
  /** Rows of a page at most. */
  readonly maxRows?: number | undefined
  readonly read?: ((page: Page<Answer>) => MaybePromise<Page<Answer>>) | undefined
}

/** Shows the pages of a route, or prints the request for the first. */
export async function showPages<Answer, Row>(
  context: CliContext,
  flags: ListFlags,
  { path, query }: Asked,
  view: View<Answer, Row>,
  { nextOf, maxRows, read = (page) => page }: Paging<Answer>,
): Promise<void> {
  const limit = limitOf(flags)
  // A judgement is about all rows, however few are shown.
  const wanted = view.judge === undefined ? (limit ?? maxRows) : maxRows
  const rows = maxRows === undefined ? undefined : String(Math.min(maxRows, wanted ?? maxRows))
  const question = (after: string | undefined) => ({
    ...({ method: 'GET', path, expects: 'application/json' } as const),
    query: { ...query, ...(rows !== undefined && { limit: rows }), ...(after !== undefined && { after }) },
  })
  if (flags.printRequest) return context.write(requestText(context, flags, question(undefined)))
  async function* pages(): AsyncGenerator<Page<Answer>> {
    for (let after: string | undefined; ; ) {
      const bytes = await ask(context, flags, question(after))
      const answer = answerOf<Answer>(bytes)
      yield await read({ bytes, answer })
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
