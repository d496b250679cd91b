/** Flags for the query parameters of a route, and back. Their names and values are those of openapi.json. */
import { valued } from '../flags.ts'
import type { Known } from './known.ts'
import { OPERATIONS } from './operations.ts'

export type OperationPath = keyof typeof OPERATIONS
/** Values by parameter; those that are undefined are left out, several are sent one after another. */
export type Query = Readonly<Record<string, string | readonly string[] | undefined>>

export const parametersOf = (path: OperationPath): Readonly<Record<string, Known>> => OPERATIONS[path]

/** The most rows that a page has. */
export const pageRows = (path: OperationPath): number | undefined => parametersOf(path).limit?.max

/** `in_use` is `inUse` in code and `--in-use` on the command line. */
export const flagName = (parameter: string): string =>
  parameter.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())

/** The flags of all parameters but those `without`. */
export function flagsOf(path: OperationPath, without: readonly string[] = []): Record<string, object> {
  const flags: Record<string, object> = {}
  for (const [name, known] of Object.entries(parametersOf(path)))
    if (!without.includes(name)) flags[flagName(name)] = flagOf(known)
  return flags
}

function flagOf({ brief, isRequired, repeats, values }: Known): object {
  const plain = brief.replaceAll('`', '')
  if (values) return { kind: 'enum', values, optional: !isRequired, brief: plain }
  return { ...valued('VALUE', plain), optional: !isRequired, ...(repeats && { variadic: true }) }
}

/** The values of these flags by the names of their parameters. */
export function queryOf(path: OperationPath, flags: Readonly<Record<string, unknown>>): Query {
  const query: Record<string, string | readonly string[] | undefined> = {}
  for (const name of Object.keys(parametersOf(path))) {
    const value = flags[flagName(name)]
    if (value !== undefined) query[name] = Array.isArray(value) ? value.map(String) : String(value)
  }
  return query
}
