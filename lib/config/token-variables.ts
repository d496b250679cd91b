/** Reads tokens: one or two in a variable, or in the files that `<variable>_FILE` names. */
import { readFileSync } from 'node:fs'
import { trimmed } from './variables.ts'

const SHORT_TOKEN_CHARS = 16
/** Per variable: the token in use and its successor during a rotation. */
const MAX_TOKENS = 2

/**
 * A configured token: the variable that grants its scopes, the variable it came from (with or without `_FILE`), its
 * value.
 */
export interface ConfiguredToken<Variable extends string> {
  readonly variable: Variable
  readonly source: string
  readonly value: string
}

/** Files with the tokens of one variable. The first must exist; the others may come and go. */
export interface TokenFiles<Variable extends string> {
  readonly variable: Variable
  readonly source: string
  readonly paths: readonly string[]
}

/** The content of a file, or why it cannot be read. */
export type FileText = string | NodeJS.ErrnoException

/**
 * Returns the tokens of a variable or of its `_FILE`. Unusable values are added to `errors`, likely mistakes to
 * `warnings`; both name the variable and never the value.
 */
export function readToken<Variable extends string>(
  variable: Variable,
  env: NodeJS.ProcessEnv,
  errors: string[],
  warnings: string[],
): ConfiguredToken<Variable>[] {
  const text = trimmed(env, variable)
  const [files] = tokenFilesOf([variable], env)
  if (text === '' && files === undefined) return []
  if (text !== '' && files !== undefined) {
    errors.push(`${variable} and ${files.source} are both set: keep one`)
    return []
  }
  const source = files?.source ?? variable
  try {
    const values = files === undefined ? tokensIn(source, [text]) : tokensOfFiles(files, files.paths.map(readText))
    for (const value of values) {
      if (value.length < SHORT_TOKEN_CHARS)
        warnings.push(`${source}: the token is shorter than ${SHORT_TOKEN_CHARS} characters`)
      if (!/^[\x20-\x7e]+$/.test(value))
        warnings.push(`${source}: the token has characters outside printable ASCII; no client can send it`)
    }
    return values.map((value) => ({ variable, source, value }))
  } catch (error) {
    errors.push((error as Error).message)
    return []
  }
}

/** The token files that the environment names. */
export function tokenFilesOf<Variable extends string>(
  variables: readonly Variable[],
  env: NodeJS.ProcessEnv,
): TokenFiles<Variable>[] {
  return variables.flatMap((variable) => {
    const source = `${variable}_FILE`
    const paths = trimmed(env, source)
      .split(',')
      .map((path) => path.trim())
      .filter((path) => path !== '')
    return paths.length === 0 ? [] : [{ variable, source, paths }]
  })
}

/**
 * Returns the tokens in the files of a variable; `texts` has the order of `paths`. Throws an error that names the
 * variable when the first file has no token or all files together have too many.
 */
export function tokensOfFiles({ source, paths }: TokenFiles<string>, texts: readonly FileText[]): string[] {
  const [first, ...others] = texts
  if (typeof first !== 'string') throw new Error(`${source}: ${paths[0]} cannot be read (${first?.code})`)
  // An empty secret would turn authentication off.
  if (first.trim() === '') throw new Error(`${source}: ${paths[0]} is empty`)
  return tokensIn(source, [first, ...others.filter((text) => typeof text === 'string')])
}

function tokensIn(source: string, texts: readonly string[]): string[] {
  const values = new Set(
    texts
      .flatMap((text) => text.split(','))
      .map((value) => value.trim())
      .filter((value) => value !== ''),
  )
  if (values.size === 0) throw new Error(`${source}: it contains no token`)
  if (values.size > MAX_TOKENS)
    throw new Error(`${source}: ${values.size} tokens; at most ${MAX_TOKENS}, during a rotation`)
  return [...values]
}

function readText(path: string): FileText {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    return error as NodeJS.ErrnoException
  }
}

/** The two table rows of a token variable in the documentation. */
export const tokenLines = (variable: string, meaning: string): (readonly string[])[] => [
  [variable, 'text', 'unset', meaning],
  [
    `${variable}_FILE`,
    'path',
    'unset',
    'The same, from a file that is read again twice a minute. A second file, after a comma, may come and go.',
  ],
]

/** Names of set variables that look like tokens (`BROKER_TOKEN_...`) but are unknown: probably misspelt. */
export function unknownTokens(known: readonly string[], env: NodeJS.ProcessEnv): string[] {
  const names = new Set(known.flatMap((variable) => [variable, `${variable}_FILE`]))
  return Object.keys(env).filter(
    (name) => name.startsWith('BROKER_TOKEN_') && !names.has(name) && trimmed(env, name) !== '',
  )
}
