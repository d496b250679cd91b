// Writes the chart for a release, with its image and the address of its repository: chart.ts FOLDER IMAGE ADDRESS.
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const CHART = fileURLToPath(new URL('../../wrangler-free-deploy/chart', import.meta.url))

/** The address of the repository in Chart.yaml before a release. */
export const PLACEHOLDER = 'https://example.invalid/cluster-telemetry-broker'

interface Release {
  readonly folder: string
  /** With its registry, without a tag: the tag is the version of the chart. */
  readonly image: string
  /** The address of the repository. */
  readonly address: string
}

/** Throws if there is nothing to replace. */
export function releaseChart({ folder, image, address }: Release): void {
  cpSync(CHART, folder, { recursive: true })
  replace(join(folder, 'Chart.yaml'), (text) =>
    text.replace(/^# A placeholder: .*\n/m, '').replaceAll(PLACEHOLDER, address),
  )
  replace(join(folder, 'values.yaml'), (text) =>
    text.replace(/(?<=^image:\n(?: {2}#.*\n)* {2}repository: )""$/m, image),
  )
}

function replace(path: string, change: (text: string) => string): void {
  const text = readFileSync(path, 'utf8')
  const changed = change(text)
  if (changed === text) throw new Error(`${path} has nothing to replace`)
  writeFileSync(path, changed)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder, image, address, ...others] = process.argv.slice(2)
  if (folder === undefined || image === undefined || address === undefined || others.length > 0)
    throw new Error('chart.ts FOLDER IMAGE ADDRESS')
  releaseChart({ folder, image, address })
}
