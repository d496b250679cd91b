// Writes the table of the environment into README.md, between its two markers.
import { readFileSync, writeFileSync } from 'node:fs'
import { configTable } from '../lib/config.ts'

const readme = new URL('../README.md', import.meta.url)
const before = readFileSync(readme, 'utf8')
const between = /(<!-- config:start -->\n)[\s\S]*?(<!-- config:end -->)/
if (!between.test(before)) throw new Error('README.md has no <!-- config:start --> and <!-- config:end -->')
writeFileSync(
  readme,
  before.replace(between, (_, start: string, end: string) => `${start}${configTable()}\n${end}`),
)
