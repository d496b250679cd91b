/** The generated parts of docs/cli.md: the flags that commands share, and each command with its flags and examples. */
import { type Command, generateHelpTextForAllCommands, type RouteMap } from '@stricli/core'
import { appOf } from '../wrangler-free-deploy/cli/app.ts'
import type { CliContext } from '../wrangler-free-deploy/cli/context.ts'
import { EXAMPLES, type Example } from '../wrangler-free-deploy/cli/examples.ts'
import { connectionFlags } from '../wrangler-free-deploy/cli/flags.ts'
import { outputAliases, outputFlags } from '../wrangler-free-deploy/cli/output/flags.ts'

interface Flag {
  readonly brief: string
  readonly placeholder?: string
  readonly values?: readonly string[]
  readonly default?: unknown
  readonly hidden?: boolean
}
type Flags = Readonly<Record<string, Flag>>
type Aliases = Readonly<Record<string, string>>

interface Parameters {
  readonly flags?: Flags
  readonly aliases?: Aliases
}

export interface Documented {
  /** After `ctb`. */
  readonly name: string
  readonly examples: readonly Example[]
  /** Its lines of usage, and what it does. */
  readonly about: string
  readonly parameters: Parameters
}

const app = appOf(false)

/** All commands in the order of the command line. */
export function documentedCommands(): Documented[] {
  const texts = new Map(generateHelpTextForAllCommands(app as never).map(([route, text]) => [route.trim(), text]))
  return commandsOf(app.root as RouteMap<CliContext>).map(([name, command]) => ({
    ...{ name, examples: EXAMPLES[name] ?? [], parameters: command.parameters as Parameters },
    about: aboutOf(texts.get(`ctb ${name}`)!),
  }))
}

function commandsOf(routes: RouteMap<CliContext>): [name: string, command: Command<CliContext>][] {
  return routes.getAllEntries().flatMap(({ name, target }) => {
    const own = name['convert-camel-to-kebab']
    if (!('getAllEntries' in target)) return [[own, target]]
    return commandsOf(target).map(([inner, command]): [string, Command<CliContext>] => [`${own} ${inner}`, command])
  })
}

/** A text of help between its heading and its flags: its lines of usage, and what it does. */
function aboutOf(help: string): string {
  const [usage, ...rest] = help.slice(0, help.indexOf('\n\nFLAGS\n')).split('\n\n')
  const lines = usage!.split('\n').slice(1)
  return [...lines.filter((line) => !line.endsWith(' --help')).map((line) => line.trim()), '', ...rest].join('\n')
}

/** The parts of the page by the names of their markers. Markdown, without a line end. */
export const cliParts = () => ({
  output: flagTable(outputFlags, outputAliases),
  connection: flagTable(connectionFlags, {}),
  commands: documentedCommands().map(sectionOf).join('\n\n'),
})

function sectionOf({ name, about, parameters: { flags = {}, aliases = {} }, examples }: Documented): string {
  const hasOutput = flags.out === outputFlags.out
  const shared: Flags = { ...(hasOutput && outputFlags), ...connectionFlags }
  const own = Object.fromEntries(Object.entries(flags).filter(([key, flag]) => shared[key] !== flag))
  const parts = [`### ctb ${name}`, `\`\`\`text\n${about}\n\`\`\``]
  if (Object.keys(own).length > 0) parts.push(flagTable(own, aliases))
  const links = [
    ...(hasOutput ? ['[of output](#output)'] : []),
    ...(flags.server === connectionFlags.server ? ['[of the connection](#connection)'] : []),
  ]
  if (links.length > 0) parts.push(`Also the flags ${links.join(' and ')}.`)
  const calls = examples.map(({ words, what }) => `# ${what}\nctb ${words}`)
  if (calls.length > 0) parts.push(`\`\`\`sh\n${calls.join('\n')}\n\`\`\``)
  return parts.join('\n\n')
}

function flagTable(flags: Flags, aliases: Aliases): string {
  const letters = new Map(Object.entries(aliases).map(([letter, name]) => [name, letter]))
  const rows = Object.entries(flags)
    .filter(([, { hidden }]) => !hidden)
    .map(([name, flag]) => {
      const letter = letters.has(name) ? `\`-${letters.get(name)}\`, ` : ''
      return `| ${letter}\`--${kebab(name)}\` | ${valuesOf(flag)} | ${flag.brief.replaceAll('|', '\\|')} |`
    })
  return ['| Flag | Value | |', '|---|---|---|', ...rows].join('\n')
}

const kebab = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

function valuesOf({ placeholder, values, default: fallback }: Flag): string {
  if (values === undefined) return placeholder ?? ''
  return values.map((one) => (one === fallback ? `\`${one}\` (default)` : `\`${one}\``)).join(', ')
}
