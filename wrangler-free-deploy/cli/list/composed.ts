/** Commands whose rows are put together from the answers of several routes. */
import { buildCommand, type Command } from '@stricli/core'
import type { Query } from '../api/parameters.ts'
import { type Ask, ask, requestText } from '../connection/ask.ts'
import type { ConnectionFlags } from '../connection/place.ts'
import type { CliContext } from '../context.ts'
import { connectionFlags } from '../flags.ts'
import { type OutputFlags, outputAliases, outputFlags } from '../output/flags.ts'
import { answerOf, show, type View } from '../output/show.ts'

export interface ComposedFlags extends ConnectionFlags, OutputFlags {}

interface Composed<Answer, Row> extends View<Answer, Row> {
  /** All that is asked. */
  readonly questions: readonly Ask[]
  readonly compose: (context: CliContext, flags: ComposedFlags) => Promise<Answer>
  readonly brief: string
  readonly description?: readonly string[]
}

export function composed<Answer, Row>(spec: Composed<Answer, Row>): Command<CliContext> {
  async function func(this: CliContext, flags: ComposedFlags): Promise<void> {
    if (flags.printRequest)
      return this.write(spec.questions.map((question) => requestText(this, flags, question)).join(''))
    const compose = () => spec.compose(this, flags)
    async function* pages() {
      const answer = await compose()
      yield { bytes: Buffer.from(`${JSON.stringify(answer)}\n`), answer }
    }
    await show(this, flags, { pages, hasMore: () => false, limit: null }, spec)
  }
  return buildCommand<ComposedFlags, [], CliContext>({
    func,
    parameters: { aliases: outputAliases, flags: { ...outputFlags, ...connectionFlags } },
    docs: {
      brief: spec.brief,
      customUsage: ['[flags]'],
      fullDescription: [`${spec.brief}.`, ...(spec.description ?? [])].join('\n'),
    },
  })
}

export const jsonQuestion = (path: readonly string[], query: Query = {}): Ask => ({
  ...{ method: 'GET', path, query, expects: 'application/json' },
})

export const answered = async <T>(context: CliContext, flags: ConnectionFlags, question: Ask): Promise<T> =>
  answerOf<T>(await ask(context, flags, question))
