/** Reads token files again while the program runs, so that tokens rotate without a restart. */
import { readFile } from 'node:fs/promises'
import type { Log } from '../observability/log.ts'
import { type ConfiguredToken, type FileText, type TokenFiles, tokensOfFiles } from './token-variables.ts'

/** Interval of the checks. The documents promise that a change is seen within 30 seconds. */
export const CHECK_INTERVAL_MS = 10_000

/** The tokens in force. */
export interface TokenHolder<Variable extends string> {
  readonly configured: readonly ConfiguredToken<Variable>[]
  /** @throws an error that names the variables when the tokens contradict each other; nothing changes then. */
  replace(tokens: readonly ConfiguredToken<Variable>[]): void
}

export interface TokenFilesOptions<Variable extends string> {
  readonly files: readonly TokenFiles<Variable>[]
  readonly tokens: TokenHolder<Variable>
  readonly log: Log
}

/** Starts the checks. The timer does not keep the process alive. */
export function watchTokenFiles<Variable extends string>(options: TokenFilesOptions<Variable>): { stop(): void } {
  if (options.files.length === 0) return { stop: () => {} }
  const check = tokenFileCheck(options)
  let isChecking = false
  const timer = setInterval(() => {
    if (isChecking) return // the file system hangs
    isChecking = true
    void check().finally(() => {
      isChecking = false
    })
  }, CHECK_INTERVAL_MS).unref()
  return { stop: () => clearInterval(timer) }
}

/**
 * Returns a function that checks all files once: changed tokens replace the old ones. If a file cannot be used the old
 * tokens stay in force; that is logged once and not at every check.
 */
export function tokenFileCheck<Variable extends string>({
  files,
  tokens,
  log,
}: TokenFilesOptions<Variable>): () => Promise<void> {
  const faults = new Map<string, string>()
  return async () => {
    for (const group of files) {
      const { variable, source } = group
      try {
        const values = tokensOfFiles(group, await Promise.all(group.paths.map(readText)))
        const before = tokens.configured.filter((one) => one.variable === variable).map(({ value }) => value)
        if (values.join() !== before.join()) {
          const others = tokens.configured.filter((one) => one.variable !== variable)
          tokens.replace([...others, ...values.map((value) => ({ variable, source, value }))])
          log.info({ source, tokens: values.length }, 'the tokens of a file have changed')
        }
        faults.delete(source)
      } catch (error) {
        const { message } = error as Error
        if (faults.get(source) !== message) log.warn({ source }, `${message}; the tokens from before are kept`)
        faults.set(source, message)
      }
    }
  }
}

const readText = (path: string): Promise<FileText> =>
  readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => error)
