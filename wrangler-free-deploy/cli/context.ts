import { basename } from 'node:path'
import type { CommandContext, StricliProcess } from '@stricli/core'
import { EXIT } from './failure.ts'
import { cleanText } from './output/clean.ts'

/** Everything that commands use of the process. */
export interface CliContext extends CommandContext {
  /** The streams that the parser of arguments writes to, and its own exit code. */
  readonly process: StricliProcess
  readonly env: NodeJS.ProcessEnv
  readonly stdin: AsyncIterable<Buffer>
  /** Writes to stdout as it is; resolves when it is written. */
  readonly write: (data: string | Buffer) => Promise<void>
  /** Writes lines for people to stderr. */
  readonly say: (text: string) => void
  /** Shows a line on the terminal of stderr, until the next one or the next lines; null if stderr is none. */
  readonly showProgress: ((text: string) => void) | null
  /** Sets the exit code, before anything is written: a reader that has enough ends the process. */
  readonly exitWith: (code: number) => void
  /** Registers what has to be stopped when the program ends, in whatever way. */
  readonly onEnd: (stop: () => void) => void
  /** Called as `kubectl telemetry-broker`. */
  readonly isPlugin: boolean
  /** The columns of the terminal; null if stdout is none. */
  readonly columns: number | null
}

const DEFAULT_COLUMNS = 80
const CLEARED_LINE = '\r\u001b[K'

export function contextOf(own: NodeJS.Process): CliContext {
  const { env, stdout, stderr } = own
  let isProgressShown = false
  const writeError = (text: string) => {
    stderr.write(`${isProgressShown ? CLEARED_LINE : ''}${cleanText(text)}`)
    isProgressShown = false
  }
  const say = (text: string) => writeError(`${text}\n`)
  const showProgress = (text: string) => {
    stderr.write(`${CLEARED_LINE}${cleanText(text)}`)
    isProgressShown = true
  }
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    // The reader, such as head, has enough.
    if (error.code === 'EPIPE') own.exit()
    say(`stdout: ${error.message}`)
    own.exit(EXIT.fault)
  })
  // Nobody is left to be told.
  stderr.on('error', () => {})
  return {
    process: {
      stdout: { write: (text) => void stdout.write(text) },
      stderr: { write: writeError },
    },
    ...{ env, say },
    showProgress: stderr.isTTY ? showProgress : null,
    // Node opens it when it is asked for.
    get stdin() {
      return own.stdin
    },
    // An error ends the process.
    write: (data) => new Promise((resolve) => void stdout.write(data, (error) => error ?? resolve())),
    exitWith: (code) => {
      own.exitCode = code
    },
    onEnd: (stop) => void own.once('exit', stop),
    isPlugin: /^kubectl[-_]/.test(basename(own.argv[1] ?? '')),
    columns: stdout.isTTY ? stdout.columns || DEFAULT_COLUMNS : null,
  }
}

export type ColorChoice = 'auto' | 'always' | 'never'

/** Whether to colour; an explicit choice is stronger than NO_COLOR (https://no-color.org). */
export function isColoured({ columns, env }: CliContext, choice: ColorChoice): boolean {
  if (choice !== 'auto') return choice === 'always'
  return columns !== null && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
}
