/** The table of docs/operations.md that shows which token opens which route. */
import { routes } from '../handlers/router.ts'
import { loadConfig } from '../lib/config/index.ts'
import { declaredRoutes } from '../lib/http/access.ts'
import { createTokens } from '../lib/http/tokens.ts'

/** Columns of the matrix, each with the variable of its token. */
const CALLERS = {
  read: 'BROKER_TOKEN_READ',
  ingest: 'BROKER_TOKEN_INGEST',
  supplychain: 'BROKER_TOKEN_SUPPLYCHAIN',
  admin: 'BROKER_TOKEN_ADMIN',
  shared: 'BROKER_AUTH_TOKEN',
}

/** A path of the router as documents write it. */
export const written = (name: string) => name.replace(/:(\w+)(\{[^}]*\})?/g, '{$1}')

/** The scope of every route, by `<METHOD> <path>`. */
export const scopeOf = () =>
  new Map([...declaredRoutes(routes.flatMap((one) => one.routes))].map(([name, scope]) => [written(name), scope]))

/** A row for each route, in the order of paths, with yes or no for each token. Markdown, without a line end. */
export function scopeMatrix(): string {
  const tokens = createTokens(loadConfig(Object.fromEntries(Object.values(CALLERS).map((name) => [name, name]))))
  const callers = [
    createTokens(loadConfig({})).authenticate(undefined),
    ...Object.values(CALLERS).map((one) => tokens.authenticate(`Bearer ${one}`)),
  ]
  const rows = [...scopeOf()].sort(([a], [b]) => (a.split(' ')[1]! < b.split(' ')[1]! ? -1 : 1))
  return [
    `| Route | Scope | none | ${Object.keys(CALLERS).join(' | ')} |`,
    `|---|---|${'---|'.repeat(callers.length)}`,
    ...rows.map(
      ([name, scope]) =>
        `| \`${name}\` | ${scope} | ${callers.map((scopes) => (scopes!.has(scope) ? 'yes' : 'no')).join(' | ')} |`,
    ),
  ].join('\n')
}
