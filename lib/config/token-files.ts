/** Token files are read again while the program runs, so that a token can be changed without a restart. */
import { readFile } from 'node:fs/promises'
import type { Log } from '../observability/log.ts'
import { type ConfiguredToken, type FileText, type TokenFiles, tokensOfFiles } from './token-variables.ts'

/** Between two looks. Documents promise thirty seconds. */
export const LOOK_MS = 10_000

/** Tokens as they are now. */
export interface TokenHolder<Variable extends string> {
  readonly configured: readonly ConfiguredToken<Variable>[]
  /** @throws an error that names the variables, when they do not go together; then nothing has changed. */
  replace(tokens: readonly ConfiguredToken<Variable>[]): void
}

export interface TokenFilesOptions<Variable extends string> {
  readonly files: readonly TokenFiles<Variable>[]
  readonly tokens: TokenHolder<Variable>
  readonly log: Log
}

/** Looks from now on. Holds no process open. */
export function watchTokenFiles<Variable extends string>(options: TokenFilesOptions<Variable>): { stop(): void } {
  if (options.files.length === 0) return { stop: () => {} }
  const look = lookAtTokenFiles(options)
  let isLooking = false
  const timer = setInterval(() => {
    if (isLooking) return // A file system that hangs.
    isLooking = true
    void look().finally(() => {
      isLooking = false
    })
  }, LOOK_MS).unref()
  return { stop: () => clearInterval(timer) }
}

/**
 * One look, each time it is called: tokens that changed take the place of those before. A file that cannot be used keeps them, and that is
 * logged once, not at every look.
 */
export function lookAtTokenFiles<Variable extends string>({
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
