/** Tokens out of the environment, each from a variable or from the file that `<variable>_FILE` names. */
import { readFileSync } from 'node:fs'
import { trimmed } from './variables.ts'

const shortTokenChars = 16

/** A token as configured: the variable that grants its scopes, the one that supplied it (with `_FILE` or not), its value. */
export interface ConfiguredToken<Variable extends string> {
  readonly variable: Variable
  readonly source: string
  readonly value: string
}

/**
 * What a variable or its `_FILE` gives: one token or none. A file is read now and never again; what cannot be used is added to
 * `errors`, what looks like a mistake to `warnings`, by name and without the value.
 */
export function readToken<Variable extends string>(
  variable: Variable,
  env: NodeJS.ProcessEnv,
  errors: string[],
  warnings: string[],
): ConfiguredToken<Variable>[] {
  const fileVariable = `${variable}_FILE`
  const path = trimmed(env, fileVariable)
  let value = trimmed(env, variable)
  if (value !== '' && path !== '') {
    errors.push(`${variable} and ${fileVariable} are both set: keep one`)
    return []
  }
  const source = path === '' ? variable : fileVariable
  if (path !== '') {
    try {
      value = readFileSync(path, 'utf8').trim()
    } catch (error) {
      errors.push(`${fileVariable}: ${path} cannot be read (${(error as NodeJS.ErrnoException).code})`)
      return []
    }
    // An empty secret must not turn authentication off.
    if (value === '') errors.push(`${fileVariable}: ${path} is empty`)
  }
  if (value === '') return []
  if (value.length < shortTokenChars) warnings.push(`${source}: the token is shorter than ${shortTokenChars} characters`)
  if (!/^[\x20-\x7e]+$/.test(value)) warnings.push(`${source}: the token has characters outside printable ASCII; no client can send it`)
  return [{ variable, source, value }]
}

/** The two lines of a token in the table of a README. */
export const tokenLines = (variable: string, meaning: string): (readonly string[])[] => [
  [variable, 'text', 'unset', meaning],
  [`${variable}_FILE`, 'path', 'unset', 'The same, read from a file at start.'],
]

/** The variables that are set and called like tokens, `BROKER_TOKEN_...`, but are none of `known` nor a file of one. */
export function unknownTokens(known: readonly string[], env: NodeJS.ProcessEnv): string[] {
  const names = new Set(known.flatMap((variable) => [variable, `${variable}_FILE`]))
  return Object.keys(env).filter((name) => name.startsWith('BROKER_TOKEN_') && !names.has(name) && trimmed(env, name) !== '')
}
