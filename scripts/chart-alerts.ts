// Writes the alerts of the chart and their remedies into docs/operations.md. A test compares them.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CHART } from './chart-values.ts'

export const OPERATIONS = new URL('../docs/operations.md', import.meta.url)

const BETWEEN = /(<!-- alerts:start -->\n)[\s\S]*?(<!-- alerts:end -->)/

export interface Alert {
  readonly name: string
  readonly severity: string
  /** Labels in the text are shown as their names in capitals. */
  readonly summary: string
  readonly runbook: string
}

/** Returns the text of an annotation, on one line or folded over the following ones. */
function annotation(text: string, key: string): string {
  const [, first, below] = new RegExp(`^    ${key}: (.*)\\n((?: {6}.*\\n)*)`, 'm').exec(text) ?? []
  if (first === undefined) throw new Error(`an alert has no ${key}: ${text.slice(0, 80)}`)
  const words = first === '>-' ? below!.trim().split(/\n\s*/).join(' ') : first
  return words
    .replace(/^'\{\{ `(.*)` \}\}'$/, '$1')
    .replace(/\{\{ \$(?:labels\.)?(\w+) \}\}/g, (_, label: string) => label.toUpperCase())
}

/** Returns the alerts of a template, in its order. */
export function alertsOf(template: string): Alert[] {
  return template
    .split(/^- alert: /m)
    .slice(1)
    .map((text) => ({
      name: /^\w+/.exec(text)![0],
      severity: /^ {4}severity: (\w+)$/m.exec(text)![1]!,
      summary: annotation(text, 'summary'),
      runbook: annotation(text, 'runbook'),
    }))
}

/** Returns the page with the alerts between its two markers. */
export function withAlerts(page: string): string {
  if (!BETWEEN.test(page)) throw new Error('the page has no <!-- alerts:start --> and <!-- alerts:end -->')
  const cell = (text: string) => text.replaceAll('|', '\\|')
  const rows = alertsOf(readFileSync(new URL('templates/monitoring/_alerts.tpl', CHART), 'utf8')).map(
    ({ name, severity, summary, runbook }) => `| \`${name}\` | ${severity}: ${cell(summary)} | ${cell(runbook)} |`,
  )
  const table = ['| Alert | Means | To do |', '|---|---|---|', ...rows].join('\n')
  return page.replace(BETWEEN, (_, start: string, end: string) => `${start}${table}\n${end}`)
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(OPERATIONS, withAlerts(readFileSync(OPERATIONS, 'utf8')))
