/** The command line in this process: what it writes, on a terminal of so many columns or elsewhere. */
import type { CliContext } from '../../wrangler-free-deploy/cli/context.ts'
import { EXIT } from '../../wrangler-free-deploy/cli/failure.ts'
import { cleanText } from '../../wrangler-free-deploy/cli/output/clean.ts'
import { runWords } from '../../wrangler-free-deploy/cli/run.ts'
import { type Run, TOKEN } from './support.ts'

interface Options {
  readonly env?: NodeJS.ProcessEnv
  /** Null where stdout is no terminal. */
  readonly columns?: number | null
  readonly input?: string
  readonly isPlugin?: boolean
}

/** Runs `ctb` with words against a server. */
export const inProcess =
  (server: string) =>
  async (
    words: readonly string[],
    { env = {}, columns = null, input = '', isPlugin = false }: Options = {},
  ): Promise<Run> => {
    const out: string[] = []
    const err: string[] = []
    const stops: (() => void)[] = []
    let code: number = EXIT.done
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
      onEnd: (stop) => void stops.push(stop),
      isPlugin,
      columns,
    }
    await runWords(words, context)
    for (const stop of stops) stop()
    return { code, out: out.join(''), err: err.join('') }
  }
