/** The parameters of the export in the address: action, notation, name, and edits of the observed set. */

/** Query parameters; null removes one. */
type Query = Readonly<Record<string, string | readonly string[] | null>>

export const ACTIONS = ['SCMP_ACT_LOG', 'SCMP_ACT_ERRNO', 'SCMP_ACT_KILL', 'SCMP_ACT_KILL_PROCESS'] as const
export type Action = (typeof ACTIONS)[number]
export const FORMATS = ['yaml', 'json'] as const
export type Format = (typeof FORMATS)[number]

export const ACTION_TEXTS: Readonly<Record<Action, string>> = {
  SCMP_ACT_LOG: 'log other syscalls',
  SCMP_ACT_ERRNO: 'refuse other syscalls with an error',
  SCMP_ACT_KILL: 'kill the thread that makes another one',
  SCMP_ACT_KILL_PROCESS: 'kill the process that makes another one',
}

/** Every action except logging blocks syscalls. The broker refuses it while the capture is partial. */
export const enforces = (action: Action): boolean => action !== 'SCMP_ACT_LOG'

export interface Edits {
  readonly defaultAction: Action
  readonly format: Format
  readonly name: string
  readonly add: readonly string[]
  readonly remove: readonly string[]
}

export function editsOf(query: URLSearchParams): Edits {
  const names = (parameter: string) => [...new Set(query.getAll(parameter).filter((name) => name !== ''))]
  return {
    defaultAction: ACTIONS.find((one) => one === query.get('defaultAction')) ?? 'SCMP_ACT_LOG',
    format: FORMATS.find((one) => one === query.get('format')) ?? 'yaml',
    name: query.get('name') ?? '',
    add: names('add'),
    remove: names('remove'),
  }
}

/** Splits typed names at spaces and commas. */
export const typedNames = (text: string): readonly string[] =>
  text
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((name) => /^[a-z_][a-z0-9_]*$/.test(name))

/** The parameters after a name was added. A removed name is restored instead; an observed name needs no parameter. */
export function withAdded({ add, remove }: Edits, names: readonly string[], observed: readonly string[]): Query {
  const back = remove.filter((one) => !names.includes(one))
  const more = names.filter((one) => !observed.includes(one))
  return { add: [...new Set([...add, ...more])], remove: back }
}

export function withRemoved({ add, remove }: Edits, name: string): Query {
  return add.includes(name)
    ? { add: add.filter((one) => one !== name), remove }
    : { add, remove: [...new Set([...remove, name])] }
}

export const withRestored = ({ add, remove }: Edits, name: string): Query => ({
  add,
  remove: remove.filter((one) => one !== name),
})

/** The names that the profile will allow, sorted. */
export function allowed(observed: readonly string[], { add, remove }: Edits): readonly string[] {
  return [...new Set([...observed, ...add])].filter((name) => !remove.includes(name)).sort()
}
