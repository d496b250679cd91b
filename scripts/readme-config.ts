// Writes the tables of the environment into the README.md of each program, between its two markers.
import { readFileSync, writeFileSync } from 'node:fs'
import { configTable } from '../lib/config.ts'
import { configTable as edgeConfigTable } from '../wrangler-free-deploy/edge/config.ts'

const between = /(<!-- config:start -->\n)[\s\S]*?(<!-- config:end -->)/

function writeTable(path: string, table: string): void {
  const readme = new URL(`../${path}`, import.meta.url)
  const before = readFileSync(readme, 'utf8')
  if (!between.test(before)) throw new Error(`${path} has no <!-- config:start --> and <!-- config:end -->`)
  writeFileSync(
    readme,
    before.replace(between, (_, start: string, end: string) => `${start}${table}\n${end}`),
  )
}

writeTable('README.md', configTable())
writeTable('wrangler-free-deploy/edge/README.md', edgeConfigTable())
