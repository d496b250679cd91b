/**
 * Compares the values of the chart with documented names and defaults, and with the variables that the programs read.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { configTable, loadConfig } from '../../lib/config/index.ts'
import { constraint, variablesOfValue } from '../../scripts/chart-docs.ts'
import { at, readSchema, readValues, type Schema, schemaAt, schemaPaths } from '../../scripts/chart-values.ts'
import { chartVariables, FIXED, type Program, variablesOf } from '../../scripts/chart-variables.ts'
import { configTable as edgeConfigTable, loadConfig as loadEdgeConfig } from '../../wrangler-free-deploy/edge/config.ts'
import { assertEach } from '../support/assert-each.ts'
import { contractRefusals, contractValues } from './contract-values.ts'

const variables = chartVariables()
const root = readSchema()
const values = readValues()
const paths = schemaPaths(root)

/** The rows of a table of variables: the name and the default as printed. */
const rowsOf = (table: string) =>
  [...table.matchAll(/^\| `(\w+)` \| (?:.*?) \| (.*?) \|/gm)].map(([, name, shown]) => [name!, shown!] as const)
const tables: [Program, Map<string, string>][] = [
  ['broker', new Map(rowsOf(configTable()))],
  ['edge proxy', new Map(rowsOf(edgeConfigTable()))],
]

for (const { path, fallback, variable } of contractValues) {
  test(`${path} has its documented default and variable`, () => {
    assert.ok(paths.includes(path))
    if (fallback !== undefined) assert.deepEqual(at(values, path), fallback)
    if (variable !== undefined)
      assert.deepEqual(
        variablesOfValue(path, variables).map(({ name }) => name),
        [variable].flat(),
      )
  })
}

for (const { file, names } of contractRefusals) {
  test(`${file}: the refusal names the values and the rule`, () => {
    const [sentence] = readFileSync(new URL(`refusals/${file}`, import.meta.url), 'utf8').split('\n')
    for (const name of names) assert.ok(sentence!.includes(name), name)
  })
}

for (const [program, table] of tables) {
  test(`each variable of the ${program} is set by a value, or has a documented reason for having none`, () => {
    const set = variables
      .filter((one) => one.program === program && [...one.values, ...one.conditions].length > 0)
      .map(({ name }) => name)
    const fixed = FIXED.filter((one) => one.program === program).map(({ name }) => name)
    assert.deepEqual(
      fixed.filter((name) => set.includes(name)),
      [],
    )
    assert.deepEqual([...new Set([...set, ...fixed])].sort(), [...table.keys()].sort())
  })
}

test('variables without a value are in the templates if the chart sets them; others can be added by `env` values', () => {
  for (const { name, program, by, reason } of FIXED) {
    const isWritten = variables.some((one) => one.name === name && one.program === program)
    assert.equal(isWritten, by === 'the chart', `${program} ${name}`)
    if (!isWritten) assert.deepEqual(at(values, by), [])
    assert.match(reason, /\.$/)
  }
})

/** Values that one variable holds unchanged, with the program that reads it. */
const direct = variables.flatMap(({ name, program, values: of }) =>
  of.length === 1 && tables.some(([one]) => one === program) ? [{ name, program, path: of[0]! }] : [],
)

/** Defaults that differ in a cluster, or that depend on something else. */
const OTHER_DEFAULTS = [
  'ADMIN_ADDR',
  'ALLOWED_HOSTS',
  'CONSOLE',
  'LISTEN_ADDR',
  'DEAD_POD_RETENTION_DAYS',
  'MIGRATE_ON_START',
  'PROFILE_SNAPSHOT_TICK_BUDGET_SECS',
  'PGSSLMODE',
  'PGUSER',
  'PGDATABASE',
  'TELEMETRY_ENDPOINT',
]

test('the default of a value is the default of its variable', () => {
  const compared = direct.filter(({ name, path }) => !OTHER_DEFAULTS.includes(name) && at(values, path) !== '')
  for (const { name, program, path } of compared) {
    const shown = tables.find(([one]) => one === program)![1].get(name)!
    assert.equal(shown, `\`${at(values, path)}\``, `${path}, ${name}`)
  }
  assert.ok(compared.length > 50)
})

/** The warning of a program about the value of a variable. */
function complaint(program: Program, name: string, value: number): string | undefined {
  const common = { NODE_ENV: 'test', [name]: String(value) }
  const { warnings } =
    program === 'broker' ? loadConfig(common) : loadEdgeConfig({ ...common, BROKER_URL: 'http://broker' })
  return warnings.find((one) => one.startsWith(`${name}:`))
}

const numbers = new Map(
  direct.flatMap(({ name, program, path }) => {
    const schema: Schema = schemaAt(path, root)
    if (schema.type !== 'integer' && schema.type !== 'number') return []
    const [minimum, maximum] = [schema.minimum!, schema.maximum!]
    const between = minimum + (maximum - minimum) / 3
    const inside = schema.type === 'integer' ? Math.floor(between) : between
    return [[`${name} of ${path}`, { name, program, minimum, inside, maximum }] as const]
  }),
)

test('a variable accepts the limits of the schema of its value, and a number between them', () =>
  assertEach(numbers.keys(), (key) => {
    const { name, program, minimum, inside, maximum } = numbers.get(key)!
    for (const value of [minimum, inside, maximum])
      if (name !== 'PGPORT') assert.equal(complaint(program, name, value), undefined)
  }))

test('the schema refuses numbers that the variable does not accept', () => {
  // For some variables the schema accepts less than the program.
  const isWider = (name: string) =>
    ['PGPORT', 'SUPPLYCHAIN_TIER_EPSS'].includes(name) ||
    name.startsWith('COMPUTE_THRESHOLD_') ||
    name === 'COMPUTE_HISTORY_MINUTE_HOURS'
  return assertEach(
    [...numbers.keys()].filter((key) => !isWider(numbers.get(key)!.name)),
    (key) => {
      const { name, program, minimum, maximum } = numbers.get(key)!
      for (const value of [minimum - 1, maximum + 1])
        assert.match(complaint(program, name, value)!, new RegExp(`^${name}: `))
    },
  )
})

test('the constraints of a value are described in words', () => {
  const said = (schema: Schema) => constraint(schema, root)
  assert.deepEqual(
    [
      said({ type: 'integer', minimum: 1 }),
      said({ $ref: '#/definitions/share' }),
      said({ enum: ['off', 'on'] }),
      said({ type: 'string', minLength: 1, pattern: '^/' }),
      said({ anyOf: [{ type: 'boolean' }, { type: 'string' }] }),
      said({ type: 'array', items: { type: 'object', required: ['name'] } }),
      said({ type: 'object', additionalProperties: { type: 'string' } }),
    ],
    [
      'whole number, at least 1',
      'number, 0 to 1',
      '`off`, `on`',
      'text, not empty, `^/`',
      '`true`, `false`; or text',
      'list: objects with `name`',
      'map: text',
    ],
  )
  assert.throws(() => said({ type: 'null' }), /the type null/)
})

test('variables are found with their values and conditions', () => {
  const text = `{{- define "telemetry-broker.brokerEnv" -}}
{{- $secret := .Values.a.secret | quote -}}
- name: ONE
  value: {{ .Values.a.b | quote }}
{{- if .Values.c }}
- name: TWO
  valueFrom:
    secretKeyRef:
      name: {{ $secret }}
{{- else if .Values.d }}
- name: THREE
  value: "3"
{{- end }}
{{- with include "telemetry-broker.other" . }}
- name: FOUR
  value: {{ . }}
{{- end }}
{{- end -}}
{{- define "telemetry-broker.other" -}}
{{ .Values.e }}
{{- end -}}
`
  assert.deepEqual(variablesOf(text), [
    { name: 'ONE', values: ['a.b'], conditions: [], program: 'broker' },
    { name: 'TWO', values: ['a.secret'], conditions: ['c'], program: 'broker' },
    { name: 'THREE', values: [], conditions: ['c', 'd'], program: 'broker' },
    { name: 'FOUR', values: [], conditions: ['e'], program: 'broker' },
  ])
})
