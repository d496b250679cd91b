import { GZIP_MIN_BYTES } from '../limits/limits.ts'
import { sharedAnswers } from './answers.ts'
import { docOf } from './declare.ts'
import { describedTags, template } from './names.ts'
import { type Entry, operationOf } from './operations.ts'
import { type Json, SchemaBook } from './schemas.ts'

/** An app of one file, as `route()` makes it. */
type Route = { readonly routes: readonly Entry[] }

export interface OpenApi extends Json {
  readonly paths: Record<string, Record<string, Json>>
  readonly components: {
    readonly schemas: Record<string, Json>
    readonly responses: Json
    readonly securitySchemes: Json
  }
}

const ABOUT = `Observations of a Kubernetes cluster, written by agents and read back by tools.

- Times are UTC without a zone suffix, unless a field says otherwise.
- Records carry all their keys, in the order given here, with null for what is unknown.
- Every \`GET\` answers \`HEAD\` too. Every answer carries \`X-Request-Id\`.
- A 200 in JSON or YAML of ${GZIP_MIN_BYTES} bytes or more comes as gzip to those who accept it. \
Shorter ones, plain text and errors are never compressed.
- Authentication is off until a token is configured; then each operation needs a token with its scope \
(\`x-required-scope\`).
- \`maxLength\` counts UTF-16 code units.
- A path that is not listed here answers 404 with an empty body.`

/**
 * The OpenAPI 3.1 document of an API, from the schemas and declarations that its routes run on. The same routes give
 * the same text: paths and components are in alphabetical order.
 */
export function openApi(routes: readonly Route[], version: string): OpenApi {
  const book = new SchemaBook()
  const operations = routes.flatMap((route) => {
    const entries = new Map<string, Entry[]>()
    for (const entry of route.routes) {
      if (entry.method === 'ALL') continue
      const key = `${template(entry.path)} ${entry.method.toLowerCase()}`
      entries.set(key, [...(entries.get(key) ?? []), entry])
    }
    return [...entries].map(([key, own]) => [key, operationOf(own, docOf(route), book)] as const)
  })
  const paths: OpenApi['paths'] = {}
  for (const [key, operation] of operations.sort(([a], [b]) => (a < b ? -1 : 1))) {
    const [path, method] = key.split(' ') as [string, string]
    paths[path] = { ...paths[path], [method]: operation }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Cluster telemetry broker',
      version,
      description: ABOUT,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: describedTags(new Set(operations.flatMap(([, operation]) => operation.tags as string[]))),
    paths,
    components: {
      schemas: book.components(),
      responses: sharedAnswers(),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'One of the configured tokens; each carries scopes.' },
      },
    },
  }
}
