/** Renders the chart with values that are in no toggle. */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { dump, load } from 'js-yaml'
import { CHART } from '../../scripts/chart-values.ts'

const { HELM } = process.env

/** For `test`: the reason to skip, or false. */
export const skip = HELM === undefined ? 'needs helm: scripts/chart-check.sh runs it' : false

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024

/** Values by path, for example `broker.auth.mode`. */
export type Values = Record<string, unknown>

let folder: string | undefined
after(() => folder && rmSync(folder, { recursive: true }))

/** The chart has no default image, so one is named here. */
const IMAGE: Values = { 'image.repository': 'registry.example.com/cluster-telemetry-broker' }

/** The rendered text; null if the values are refused. */
export function render(values: Values): string | null {
  const { status, stdout } = template(fileURLToPath(CHART), values)
  return status === 0 ? stdout : null
}

/** The message of a refusal; null if the values are accepted. */
export function refusal(values: Values): string | null {
  const { status, stderr } = template(fileURLToPath(CHART), values)
  return status === 0 ? null : stderr
}

/** NOTES.txt as shown after an install: a copy of the chart renders it as a document. */
export function notes(values: Values): string {
  const copy = join(temporary(), 'chart')
  if (!existsSync(copy)) {
    cpSync(CHART, copy, { recursive: true })
    writeFileSync(
      join(copy, 'templates/notes.yaml'),
      'notes: {{ include (print $.Template.BasePath "/NOTES.txt") . | toJson }}\n',
    )
  }
  const { status, stdout, stderr } = template(copy, values, ['--show-only', 'templates/notes.yaml'])
  if (status !== 0) throw new Error(stderr)
  return (load(stdout) as { notes: string }).notes
}

function temporary(): string {
  folder ??= mkdtempSync(join(tmpdir(), 'chart-'))
  return folder
}

function template(chart: string, values: Values, more: readonly string[] = []) {
  const file = join(temporary(), 'values.yaml')
  writeFileSync(file, dump(nested({ ...IMAGE, ...values })))
  const args = [
    'template',
    'kguardian',
    chart,
    '--namespace',
    'telemetry',
    '--kube-version',
    '1.34.0',
    '--values',
    file,
    ...more,
  ]
  return spawnSync(HELM!, args, { encoding: 'utf8', maxBuffer: MAX_OUTPUT_BYTES })
}

/** Turns paths into nested values. */
function nested(values: Values): Values {
  const document: Values = {}
  for (const [path, value] of Object.entries(values)) {
    const names = path.split('.')
    const last = names.pop()!
    const parent = names.reduce<Values>((node, name) => {
      node[name] ??= {}
      return node[name] as Values
    }, document)
    parent[last] = value
  }
  return document
}
