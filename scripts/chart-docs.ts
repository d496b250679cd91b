// Writes docs/values.md from values.yaml, its schema and the templates; a test compares them.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { chartValues, groupMeanings, readSchema, resolved, type Schema, schemaAt, type Value } from './chart-values.ts'
import { chartVariables, FIXED, type Program, type Variable } from './chart-variables.ts'

export const DOCUMENT = new URL('../docs/values.md', import.meta.url)

/** The headings in the order of values.yaml, each with the first parts of the values below it. */
const SECTIONS: readonly [heading: string, firstParts: readonly string[]][] = [
  [
    'All pods',
    [
      'fullnameOverride',
      'image',
      'pods',
      'serviceAccount',
      'podSecurityContext',
      'securityContext',
      'extraObjects',
      'bindAddress',
    ],
  ],
  ['Broker', ['broker']],
  ['Database', ['database', 'postgres', 'migration', 'backup']],
  ['Background jobs', ['jobs']],
  ['Policy evaluator and version service', ['evaluator', 'telemetry']],
  ['Edge proxy', ['frontend']],
  ['Controller', ['controller']],
  ['Supply-chain component', ['supplychain']],
  ['Capture', ['syscalls', 'seccomp', 'compute']],
  ['Prometheus and Grafana', ['serviceMonitor', 'prometheusRule', 'dashboard']],
  ['Network policies', ['networkPolicy']],
]

const INTRO = `# Values of the chart

Every value of [the chart](../wrangler-free-deploy/chart/README.md): its default, its effect, and the values that it
accepts. \`npm run chart\` writes this page from [values.yaml](../wrangler-free-deploy/chart/values.yaml), its schema
and the templates; a test compares them.

*Variables* are the environment variables that a value sets, or whose presence it decides: of the broker, or of the
program that is named. The broker's variables are in [configuration.md](configuration.md), those of the edge proxy in
[its README](../wrangler-free-deploy/edge/README.md). Jobs and the migration have the variables of the broker. Helm
refuses an unknown or invalid value, and values that contradict each other, before it installs anything; the error names
the value and the reason.`

const code = (value: unknown) => `\`${typeof value === 'string' && value !== '' ? value : JSON.stringify(value)}\``
const cell = (text: string) => text.replaceAll('|', '\\|')
const row = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`
const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [row(head), `|${'---|'.repeat(head.length)}`, ...rows.map(row)].join('\n')

function range({ minimum, maximum }: Schema): string {
  if (minimum === undefined) return ''
  return maximum === undefined ? `, at least ${minimum}` : `, ${minimum} to ${maximum}`
}

function textRules({ minLength, maxLength, pattern }: Schema): string {
  const rules = [minLength && 'not empty', maxLength && `at most ${maxLength} characters`, pattern && `\`${pattern}\``]
  return rules
    .filter(Boolean)
    .map((rule) => `, ${rule}`)
    .join('')
}

/** The values that a schema accepts, in words. */
export function constraint(asked: Schema, root: Schema): string {
  const schema = resolved(asked, root)
  if (schema.enum) return schema.enum.map(code).join(', ')
  if (schema.anyOf) return schema.anyOf.map((one) => constraint(one, root)).join('; or ')
  switch (schema.type) {
    case 'boolean':
      return '`true`, `false`'
    case 'integer':
      return `whole number${range(schema)}`
    case 'number':
      return `number${range(schema)}`
    case 'string':
      return `text${textRules(schema)}`
    case 'array':
      return `list: ${constraint(schema.items!, root)}`
    case 'object':
      if (schema.required) return `objects with ${schema.required.map(code).join(', ')}`
      return typeof schema.additionalProperties === 'object'
        ? `map: ${constraint(schema.additionalProperties, root)}`
        : 'object'
    default:
      throw new Error(`the schema has a value of the type ${schema.type}`)
  }
}

/** Whether `read`, which a template reads, is the value `path` or a part of it. */
const isOf = (path: string) => (read: string) => read === path || read.startsWith(`${path}.`)

/** The variables that a value sets; if it sets none, those whose presence it decides. */
export function variablesOfValue(path: string, variables: readonly Variable[]): readonly Variable[] {
  const set = variables.filter(({ values }) => values.some(isOf(path)))
  return set.length > 0 ? set : variables.filter(({ conditions }) => conditions.some(isOf(path)))
}

function variablesCell(path: string, variables: readonly Variable[]): string {
  const byProgram = new Map<Program, Set<string>>()
  for (const { name, program } of variablesOfValue(path, variables))
    byProgram.set(program, (byProgram.get(program) ?? new Set()).add(name))
  const lists = [...byProgram].map(
    ([program, names]) => `${program === 'broker' ? '' : `${program}: `}${[...names].map(code).join(', ')}`,
  )
  return lists.join('; ')
}

/** The document, with a line end. */
export function valuesDocument(): string {
  const root = readSchema()
  const variables = chartVariables()
  const values = chartValues()
  const line = ({ path, fallback, meaning }: Value) => [
    `\`${path}\``,
    code(fallback),
    meaning,
    variablesCell(path, variables),
    constraint(schemaAt(path, root), root),
  ]
  const sections = SECTIONS.map(([heading, firstParts]) => {
    const isHere = (path: string) => firstParts.includes(path.split('.')[0]!)
    const groups = [...groupMeanings()]
      .filter(([path]) => isHere(path))
      .map(([path, meaning]) => `- ${code(path)}: ${meaning}`)
    const lines = values.filter(({ path }) => isHere(path)).map(line)
    const parts = [
      `## ${heading}`,
      groups.join('\n'),
      table(['Value', 'Default', 'Effect', 'Variables', 'Accepts'], lines),
    ]
    return parts.filter((part) => part !== '').join('\n\n')
  })
  const fixed = FIXED.map(({ name, program, by, reason }) => [
    code(name),
    program,
    by === 'the chart' ? by : `\`${by}\`, if at all`,
    reason,
  ])
  const last = `## Variables without a value\n\n${table(['Variable', 'Program', 'Set by', 'Why'], fixed)}`
  return `${[INTRO, ...sections, last].join('\n\n')}\n`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(DOCUMENT, valuesDocument())
