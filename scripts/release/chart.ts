// Writes the chart as it is released, with the image and the repository that it comes from: chart.ts FOLDER IMAGE ADDRESS.
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const CHART = fileURLToPath(new URL('../../wrangler-free-deploy/chart', import.meta.url))

/** Stands in Chart.yaml for the address of the repository. */
export const PLACEHOLDER = 'https://example.invalid/cluster-telemetry-broker'

interface Release {
  readonly folder: string
  /** With its registry, without a tag: the version of the chart says it. */
  readonly image: string
  /** Of the repository. */
  readonly address: string
}

/** Throws where what is to be replaced is not there. */
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
