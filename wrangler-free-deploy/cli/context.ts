import type { CommandContext } from '@stricli/core'
import { oneLine } from '../../lib/text/yaml.ts'

/** Everything that commands use of the process. */
export interface CliContext extends CommandContext {
  readonly env: NodeJS.ProcessEnv
  /** Sets the exit code of the process. */
  readonly exitWith: (code: number) => void
  /** Writes to stdout as it is. */
  readonly write: (text: string) => void
  /** Writes a line for people to stderr. */
  readonly say: (line: string) => void
  readonly isColoured: boolean
}

/** Texts of a cluster must not move the cursor or hide what follows. */
export const printable = (text: string): string => text.split('\n').map(oneLine).join('\n')

export function contextOf({ env, stdout, stderr }: NodeJS.Process): CliContext {
  for (const stream of [stdout, stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      // The reader, such as head, has enough.
      if (error.code !== 'EPIPE') throw error
      process.exit()
    })
  return {
    process,
    env,
    exitWith: (code) => {
      process.exitCode = code
    },
    write: (text) => void stdout.write(text),
    say: (line) => void stderr.write(`${printable(line)}\n`),
    isColoured: stdout.isTTY === true && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb',
  }
}
