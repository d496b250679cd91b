/** Tests of the chart that need no helm. Others look at the rendered chart, when scripts/chart-check.sh runs them. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { load } from 'js-yaml'
import { VERSION } from '../../lib/version.ts'
import { DOCUMENT, valuesDocument } from '../../scripts/chart-docs.ts'
import { chartJobs, jobsFile, schedule } from '../../scripts/chart-jobs.ts'
import {
  at,
  CHART,
  chartValues,
  comments,
  readSchema,
  readValues,
  resolved,
  type Schema,
  schemaPaths,
} from '../../scripts/chart-values.ts'
import { assertEach } from '../support/assert-each.ts'

const read = (name: string) => readFileSync(new URL(name, CHART), 'utf8')
/** Templates that are rendered: a value that is only validated or documented counts as unused. */
const templates = readdirSync(new URL('templates/', CHART), { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.(yaml|tpl)$/.test(name) && name !== '_validate.tpl')
  .map((name) => ({ name, text: read(`templates/${name}`) }))

/** The paths that a template reads, directly or through a variable. */
function readPaths(text: string): string[] {
  const found = [...text.matchAll(/\$?(?:root)?\.?\bValues\.((?:\w+\.)*\w+)/g)].map(([, path]) => path!)
  const named = new Map<string, string>()
  for (const [, name, path] of text.matchAll(/\{\{-? \$(\w+) := (?:\$\w*)?\.?Values\.((?:\w+\.)*\w+) -?\}\}/g))
    named.set(name!, path!)
  const aliases: Record<string, string> = { broker: 'broker', values: '', database: 'database', auth: 'broker.auth' }
  for (const [, name, rest] of text.matchAll(/\$(\w+)\.((?:\w+\.)*\w+)/g)) {
    const path = named.get(name!) ?? aliases[name!]
    if (path !== undefined) found.push(path === '' ? rest! : `${path}.${rest}`)
  }
  return found
}
const used = new Set(templates.flatMap(({ text }) => readPaths(text)))
const paths = schemaPaths(readSchema())

/** Every node of the schema with its path. */
function nodes(schema: Schema, where = ''): { where: string; schema: Schema }[] {
  const children = [...Object.entries(schema.properties ?? {}), ...Object.entries(schema.definitions ?? {})]
  return [{ where, schema }, ...children.flatMap(([name, child]) => nodes(child, `${where}.${name}`))]
}

/** Paths of a document without further named values below; free-form values end where the schema has no names. */
function leaves(value: unknown, known: readonly string[], path = ''): string[] {
  if (known.includes(path) || typeof value !== 'object' || value === null || Array.isArray(value)) return [path]
  return Object.entries(value).flatMap(([name, child]) => leaves(child, known, path === '' ? name : `${path}.${name}`))
}

test('the schema and values.yaml have the same values', () => {
  assert.deepEqual(leaves(readValues(), paths).sort(), [...paths].sort())
})

test('every value is used by a template, and has a default and a description', () => {
  const values = readValues()
  const documented = chartValues()
  return assertEach(paths, (path) => {
    assert.ok(used.has(path), `no template reads .Values.${path}`)
    assert.notEqual(at(values, path), undefined)
    assert.match(documented.find((one) => one.path === path)!.meaning, /^[^\s].*\.$/)
  })
})

test('every path that a template reads is a value or a group of values', () => {
  const groups = new Set(paths.flatMap((path) => path.split('.').map((_, n, all) => all.slice(0, n + 1).join('.'))))
  // A template may read a part of a free-form value.
  const isKnown = (path: string) => groups.has(path) || paths.some((one) => path.startsWith(`${one}.`))
  assert.deepEqual(
    [...used].filter((path) => !isKnown(path)),
    [],
  )
})

test('the schema allows no unknown value and has no defaults', () => {
  const root = readSchema()
  for (const { where, schema } of nodes(root)) {
    assert.ok(!('default' in schema), where)
    if (schema.properties !== undefined && where !== '.definitions.env')
      assert.equal(schema.additionalProperties, false, where)
    resolved(schema, root)
  }
})

test('the list of jobs is that of the code; `npm run chart` writes it', () => {
  assert.equal(read('files/jobs.json'), jobsFile())
  assert.deepEqual(JSON.parse(read('files/jobs.json')), chartJobs())
})

test('an interval becomes an equal schedule, a minute at least, or is refused', () => {
  const cases = [10, 60, 300, 600, 3600, 7200, 21_600, 86_400]
  assert.deepEqual(cases.map(schedule), [
    '* * * * *',
    '* * * * *',
    '*/5 * * * *',
    '*/10 * * * *',
    'H * * * *',
    'H */2 * * *',
    'H */6 * * *',
    'H H * * *',
  ])
  for (const seconds of [90, 420, 5400, 172_800])
    assert.throws(() => schedule(seconds), /cron has no syntax/, String(seconds))
})

test('docs/values.md is up to date; `npm run chart` writes it', () => {
  assert.equal(readFileSync(DOCUMENT, 'utf8'), valuesDocument())
})

test('docs/values.md has exactly one line for each value', () => {
  const listed = [...readFileSync(DOCUMENT, 'utf8').matchAll(/^\| `([a-z][\w.]*)` \|/gm)].map(([, path]) => path!)
  assert.deepEqual(listed, paths)
})

test('the application version of the chart is that of the release', () => {
  assert.equal((load(read('Chart.yaml')) as { appVersion: string }).appVersion, VERSION)
})

test('the checks find paths and comments', () => {
  assert.deepEqual(readPaths('{{ .Values.a.b }} {{- with $root.Values.c.d }} {{ $.Values.e }}'), ['a.b', 'c.d', 'e'])
  assert.deepEqual(readPaths('{{- $database := .Values.database -}} {{ $database.host }}'), [
    'database',
    'database.host',
  ])
  assert.deepEqual(
    [...comments('# One.\na:\n  # Two.\n  b: 1\n\n  c: 2\n# Three.\nd: 3\n')],
    [
      ['a', 'One.'],
      ['a.b', 'Two.'],
      ['a.c', ''],
      ['d', 'Three.'],
    ],
  )
  assert.ok(used.size > 80 && paths.length > 80)
})
