/** Tokens out of the environment, each variable with one or two, or from the files that `<variable>_FILE` names. */
import { readFileSync } from 'node:fs'
import { trimmed } from './variables.ts'

const shortTokenChars = 16
/** Of one variable: the one in use, and the one that takes its place. */
const MAX_TOKENS = 2

/** A token as configured: the variable that grants its scopes, the one that supplied it (with `_FILE` or not), its value. */
export interface ConfiguredToken<Variable extends string> {
  readonly variable: Variable
  readonly source: string
  readonly value: string
}

/** Files that hold the tokens of one variable. The first must be there; the others may come and go. */
export interface TokenFiles<Variable extends string> {
  readonly variable: Variable
  readonly source: string
  readonly paths: readonly string[]
}

/** The content of a file, or why it cannot be read. */
export type FileText = string | NodeJS.ErrnoException

/**
 * The tokens that a variable or its `_FILE` gives. What cannot be used is added to `errors`, what looks like a mistake to `warnings`, by name
 * and without the value.
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
      if (value.length < shortTokenChars)
        warnings.push(`${source}: the token is shorter than ${shortTokenChars} characters`)
      if (!/^[\x20-\x7e]+$/.test(value))
        warnings.push(`${source}: the token has characters outside printable ASCII; no client can send it`)
    }
    return values.map((value) => ({ variable, source, value }))
  } catch (error) {
    errors.push((error as Error).message)
    return []
  }
}

/** The files that the environment names for these variables. */
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
 * The tokens in the files of a variable, by the texts in the order of their paths. Throws an error whose message names the variable when the
 * first file gives none, or all of them give too many.
 */
export function tokensOfFiles({ source, paths }: TokenFiles<string>, texts: readonly FileText[]): string[] {
  const [first, ...others] = texts
  if (typeof first !== 'string') throw new Error(`${source}: ${paths[0]} cannot be read (${first?.code})`)
  // An empty secret must not turn authentication off.
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
  if (values.size === 0) throw new Error(`${source}: there is no token in it`)
  if (values.size > MAX_TOKENS)
    throw new Error(
      `${source}: ${values.size} tokens; at most ${MAX_TOKENS}, for as long as one takes the place of the other`,
    )
  return [...values]
}

function readText(path: string): FileText {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    return error as NodeJS.ErrnoException
  }
}

/** The two lines of a token in the table of a document. */
export const tokenLines = (variable: string, meaning: string): (readonly string[])[] => [
  [variable, 'text', 'unset', meaning],
  [
    `${variable}_FILE`,
    'path',
    'unset',
    'The same, from a file that is read again twice a minute. A second file, after a comma, may come and go.',
  ],
]

/** The variables that are set and called like tokens, `BROKER_TOKEN_...`, but are none of `known` nor a file of one. */
export function unknownTokens(known: readonly string[], env: NodeJS.ProcessEnv): string[] {
  const names = new Set(known.flatMap((variable) => [variable, `${variable}_FILE`]))
  return Object.keys(env).filter(
    (name) => name.startsWith('BROKER_TOKEN_') && !names.has(name) && trimmed(env, name) !== '',
  )
}
