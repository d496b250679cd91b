/** The export as the address describes it: action, notation, name, and the edits of the observed set. */

/** Parameters of an address; null removes one. */
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

/** All but logging enforces, and is refused while not all syscalls are recorded. */
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

/** Names that somebody typed, between spaces or commas. */
export const typedNames = (text: string): readonly string[] =>
  text
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((name) => /^[a-z_][a-z0-9_]*$/.test(name))

/** The parameters once a name is added: one that was removed is taken back instead, and an observed one stays. */
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

/** The names that the profile will allow, in order. */
export function allowed(observed: readonly string[], { add, remove }: Edits): readonly string[] {
  return [...new Set([...observed, ...add])].filter((name) => !remove.includes(name)).sort()
}
