/** One call of the command line, from its words to its exit code. */
import { run } from '@stricli/core'
import { appOf } from './app.ts'
import type { CliContext } from './context.ts'
import { EXIT } from './failure.ts'

export async function runWords(words: readonly string[], context: CliContext): Promise<void> {
  await run(appOf(context.isPlugin), words, context)
  const code = Number(context.process.exitCode ?? EXIT.done)
  // Negative codes are those of the parser for arguments that it does not understand.
  if (code !== EXIT.done) context.exitWith(code < 0 ? EXIT.usage : code)
}
