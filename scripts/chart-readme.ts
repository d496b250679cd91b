// Writes the table of values into the chart's README.md, between its two markers; a test compares the two.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CHART, chartValues } from './chart-values.ts'

const README = new URL('README.md', CHART)
const BETWEEN = /(<!-- values:start -->\n)[\s\S]*?(<!-- values:end -->)/

/** The table; Markdown, without a line end. */
export function valuesTable(): string {
  const lines = chartValues().map(({ path, fallback, meaning }) => {
    const shown = fallback === '' ? '' : `\`${typeof fallback === 'string' ? fallback : JSON.stringify(fallback)}\``
    return `| \`${path}\` | ${shown} | ${meaning.replaceAll('|', '\\|')} |`
  })
  return ['| Value | Default | Effect |', '|---|---|---|', ...lines].join('\n')
}

/** README.md with the table of today. */
export function readmeWithTable(): string {
  const before = readFileSync(README, 'utf8')
  if (!BETWEEN.test(before)) throw new Error('README.md has no <!-- values:start --> and <!-- values:end -->')
  return before.replace(BETWEEN, (_, start: string, end: string) => `${start}${valuesTable()}\n${end}`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(README, readmeWithTable())
