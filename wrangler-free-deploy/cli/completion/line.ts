/** The words of a line that is being typed, as far as they are known. */
import type { Command, RouteMap } from '@stricli/core'
import type { CliContext } from '../context.ts'

interface Flag {
  readonly kind: string
  readonly placeholder?: string
  readonly hidden?: boolean
}

interface Parameters {
  readonly flags?: Readonly<Record<string, Flag>>
  readonly aliases?: Readonly<Record<string, string>>
  readonly positional?: Positional
}

type Positional =
  | { readonly kind: 'array'; readonly parameter: Parameter; readonly maximum?: number }
  | { readonly kind: 'tuple'; readonly parameters: readonly Parameter[] }

interface Parameter {
  readonly placeholder?: string
}

export interface Line {
  /** Values of flags before the last word, by the names of the code. */
  readonly given: Readonly<Record<string, string>>
  /** The last word is a value of this flag, or an argument with this placeholder. */
  readonly flag: string | null
  readonly placeholder: string | null
  /** Whether the flags are the filters of flows. */
  readonly isOfFlows: boolean
  /** Whether a flag, as it is typed, is not to be shown. */
  readonly isHidden: (flag: string) => boolean
}

/** Null if no command begins the line. */
export function lineOf(root: RouteMap<CliContext>, words: readonly string[]): Line | null {
  const before = words.slice(0, -1)
  let target: Command<CliContext> | RouteMap<CliContext> | undefined = root
  while ('getRoutingTargetForInput' in target) {
    target = target.getRoutingTargetForInput(before.shift() ?? '')
    if (target === undefined) return null
  }
  const { flags = {}, aliases = {}, positional } = target.parameters as Parameters
  const given: Record<string, string> = {}
  let flag: string | null = null
  let position = 0
  for (const word of before) {
    if (flag !== null) {
      given[flag] = word
      flag = null
    } else if (word.startsWith('-') && word !== '-') {
      const [, name, value] = /^--([^=]+)(?:=(.*))?$/s.exec(word) ?? []
      const found = name === undefined ? aliases[word.at(-1)!] : camel(name)
      if (found === undefined || !takesValue(flags[found])) continue
      if (value === undefined) flag = found
      else given[found] = value
    } else position++
  }
  return {
    given,
    flag,
    isOfFlows: flags.fromWorkload !== undefined,
    isHidden: (one) => flags[camel(one.slice('--'.length))]?.hidden === true,
    placeholder: (flag === null ? parameterAt(positional, position) : flags[flag])?.placeholder ?? null,
  }
}

const takesValue = (flag: Flag | undefined): boolean => flag?.kind === 'parsed' || flag?.kind === 'enum'

const camel = (name: string): string => name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())

function parameterAt(positional: Positional | undefined, position: number): Parameter | undefined {
  if (positional?.kind === 'tuple') return positional.parameters[position]
  return position < (positional?.maximum ?? Number.POSITIVE_INFINITY) ? positional?.parameter : undefined
}
