/** Renders the chart with values that no toggle has. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { dump } from 'js-yaml'
import { CHART } from '../../scripts/chart-values.ts'

const { HELM } = process.env

/** For `test`: why nothing can be rendered, or false. */
export const skip = HELM === undefined ? 'needs helm: scripts/chart-check.sh runs it' : false

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024

/** By path, `broker.auth.mode`. */
export type Values = Record<string, unknown>

let folder: string | undefined
after(() => folder && rmSync(folder, { recursive: true }))

/** What is rendered; null where it is refused. */
export function render(values: Values): string | null {
  folder ??= mkdtempSync(join(tmpdir(), 'chart-'))
  const file = join(folder, 'values.yaml')
  writeFileSync(file, dump(nested(values)))
  const args = ['template', 'kguardian', fileURLToPath(CHART), '--namespace', 'telemetry', '--kube-version', '1.34.0', '--values', file]
  const { status, stdout } = spawnSync(HELM!, args, { encoding: 'utf8', maxBuffer: MAX_OUTPUT_BYTES })
  return status === 0 ? stdout : null
}

/** Paths as keys become the document that they stand for. */
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
