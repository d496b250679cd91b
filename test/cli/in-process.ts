/** The command line in this process: what it writes, on a terminal of so many columns or elsewhere. */
import { run } from '@stricli/core'
import { app } from '../../wrangler-free-deploy/cli/app.ts'
import type { CliContext } from '../../wrangler-free-deploy/cli/context.ts'
import { EXIT } from '../../wrangler-free-deploy/cli/failure.ts'
import { cleanText } from '../../wrangler-free-deploy/cli/output/clean.ts'
import { type Run, TOKEN } from './support.ts'

interface Options {
  readonly env?: NodeJS.ProcessEnv
  /** Null where stdout is no terminal. */
  readonly columns?: number | null
  readonly input?: string
}

/** Runs `ctb` with words against a server. */
export const inProcess =
  (server: string) =>
  async (words: readonly string[], { env = {}, columns = null, input = '' }: Options = {}): Promise<Run> => {
    const out: string[] = []
    const err: string[] = []
    let code: number | null = null
    const context: CliContext = {
      process: {
        stdout: { write: (text) => void out.push(text) },
        stderr: { write: (text) => void err.push(cleanText(text)) },
      },
      env: { CTB_SERVER: server, CTB_TOKEN: TOKEN, ...env },
      stdin: (async function* () {
        yield Buffer.from(input)
      })(),
      write: async (data) => void out.push(data.toString()),
      showProgress: null,
      say: (text) => void err.push(`${cleanText(text)}\n`),
      exitWith: (given) => {
        code = given
      },
      columns,
    }
    await run(app, words, context)
    const parsed = Number(context.process.exitCode ?? EXIT.done)
    if (parsed !== EXIT.done) code = parsed < 0 ? EXIT.usage : parsed
    return { code: code ?? EXIT.done, out: out.join(''), err: err.join('') }
  }
