/**
 * Writes the generated parts of the documents, each between its two markers: the variables of the broker and of the
 * edge proxy, the routes, which are read from openapi.json, their scopes, and the commands; and the page of sizes as a
 * whole.
 * `npm run docs` runs it; tests compare.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { configTable } from '../lib/config/index.ts'
import { writePage } from '../test/bench/sizing/page.ts'
import { configTable as edgeConfigTable } from '../wrangler-free-deploy/edge/config.ts'
import { cliParts } from './cli-docs.ts'
import { scopeMatrix } from './scopes.ts'

const ROOT = new URL('..', import.meta.url)

interface Operation {
  readonly summary: string
  readonly 'x-required-scope': string
}

/** A row for each route, in the order of the paths. Markdown, without a line end. */
export function routeTable(): string {
  const { paths } = JSON.parse(readFileSync(new URL('openapi.json', ROOT), 'utf8')) as {
    paths: Record<string, Record<string, Operation>>
  }
  const rows = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(
      ([method, { summary, 'x-required-scope': scope }]) =>
        `| \`${method.toUpperCase()} ${path}\` | ${scope} | ${summary} |`,
    ),
  )
  return ['| Route | Scope | |', '|---|---|---|', ...rows].join('\n')
}

function writeTable(path: string, name: string, table: string): void {
  const page = new URL(path, ROOT)
  const before = readFileSync(page, 'utf8')
  const [start, end] = [`<!-- ${name}:start -->\n`, `<!-- ${name}:end -->`]
  if (!before.includes(start) || !before.includes(end)) throw new Error(`${path} lacks ${start.trim()} and ${end}`)
  const head = before.slice(0, before.indexOf(start) + start.length)
  writeFileSync(page, `${head}${table}\n${before.slice(before.indexOf(end))}`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeTable('docs/configuration.md', 'config', configTable())
  writeTable('docs/clients.md', 'routes', routeTable())
  writeTable('docs/operations.md', 'scopes', scopeMatrix())
  for (const [name, text] of Object.entries(cliParts())) writeTable('docs/cli.md', name, text)
  writeTable('wrangler-free-deploy/edge/README.md', 'config', edgeConfigTable())
  writePage()
}
