/** One call of the command line, from its words to its exit code. */
import { run } from '@stricli/core'
import { appOf } from './app.ts'
import { complete } from './completion/complete.ts'
import type { CliContext } from './context.ts'
import { EXIT } from './failure.ts'

/** For the scripts of shells; `--` and the words of the line follow. */
export const COMPLETE = '__complete'

export async function runWords(words: readonly string[], context: CliContext): Promise<void> {
  const app = appOf(context.isPlugin)
  if (words[0] === COMPLETE) return complete(app, context, words.slice(words[1] === '--' ? 2 : 1))
  await run(app, words, context)
  const code = Number(context.process.exitCode ?? EXIT.done)
  // Negative codes are those of the parser for arguments that it does not understand.
  if (code !== EXIT.done) context.exitWith(code < 0 ? EXIT.usage : code)
}
