/** Runs docs/clients.md against a live broker with an evaluator, and compares its tables with the routes. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { STATUS_CODES } from 'node:http'
import { test } from 'node:test'
import { pino } from 'pino'
import { profileSnapshots } from '../../jobs/profile-snapshots.ts'
import { loadConfig } from '../../lib/config/index.ts'
import { openDatabase } from '../../lib/db/index.ts'
import { routeTable } from '../../scripts/docs.ts'
import { scopeOf, written } from '../../scripts/scopes.ts'
import { startApp } from '../support/app.ts'
import { get } from '../support/broker.ts'
import { startStub } from '../support/stub.ts'
import { until } from '../support/until.ts'
import { blocksOf } from './document.ts'
import { walk } from './walk.ts'

const page = readFileSync(new URL('../../docs/clients.md', import.meta.url), 'utf8')
const KIB = 1024
const MIB = 1024 * KIB

const denied = {
  policyNamespace: 'shop',
  policyName: 'deny-egress',
  policyUID: 'uid',
  direction: 'Egress',
  verdict: 'WouldDeny',
}
const unsigned = {
  policy: 'shop/signed',
  namespace: 'shop',
  workload: 'Deployment/web',
  container: 'web',
  digest: `sha256:${'1'.padStart(64, '0')}`,
  image: 'registry.example.com/web:1.0',
  verdict: 'WouldDeny',
  reason: 'unsigned',
}
const evaluator = await startStub(({ method }) =>
  method === 'GET'
    ? { json: { evaluatedAt: '2026-01-01T10:00:00Z', results: [unsigned] } }
    : { json: { results: [{ ...denied, reason: 'no rule matches' }] } },
)

walk('docs/clients.md', {
  isFullOnly: true,
  env: { EVALUATOR_URL: evaluator.url },
  arrange: {
    'Edges of flows': async ({ url }) => {
      await until('the flows are counted', async () => {
        const { json } = await get(`${url}/flows/edges`, { headers: { authorization: 'Bearer a-token-to-read' } })
        return json.items.length === 4
      })
    },
    // The broker would do so a minute after its start.
    'Workload profiles': async (_, databaseUrl) => {
      const config = loadConfig({ NODE_ENV: 'test', DATABASE_URL: databaseUrl })
      const log = pino({ level: 'silent' })
      const db = openDatabase({
        ...{ connection: databaseUrl, poolMax: 4, statementTimeoutMs: config.dbStatementTimeoutMs, prepare: true },
        ...{ applicationName: 'broker-test-job', log },
      })
      await profileSnapshots.run({ config, db, log, signal: new AbortController().signal })
      await db.end(1_000)
    },
    'Verdicts of the policy evaluator': async ({ url }) => {
      await until('there is a verdict', async () => {
        const { json } = await get(`${url}/audit/verdicts`, { headers: { authorization: 'Bearer a-token-to-read' } })
        return json.length > 0
      })
    },
  },
  finally: {
    'every route is called, and answers as it should': async ({ url }) => {
      const { text } = await get(`${url}/metrics`)
      const called = new Set(
        [...text.matchAll(/^broker_http_request_duration_seconds_count\{(.*)\} [1-9]/gm)].flatMap(([, labels]) => {
          const of = (name: string) => new RegExp(`\\b${name}="([^"]*)"`).exec(labels!)![1]!
          return of('status').startsWith('2') ? [`${of('method')} ${written(of('route'))}`] : []
        }),
      )
      assert.deepEqual(
        [...scopeOf().keys()].filter((route) => !called.has(route)),
        [],
      )
    },
  },
})

test('the table of routes is that of openapi.json', () => {
  assert.ok(page.includes(`<!-- routes:start -->\n${routeTable()}\n<!-- routes:end -->`), 'run `npm run docs`')
})

test('without a database the broker gives the answer on the page', async () => {
  const shown = blocksOf(page).find(({ language, text }) => language === 'text' && text.startsWith('HTTP/1.1 503'))!
  const app = await startApp()
  await app.db.end()
  const { status, headers, text } = await app.get('/pod/info')
  const fields = ['content-type', 'retry-after'].map((name) => `${name}: ${headers.get(name)}`)
  assert.equal([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...fields, '', text].join('\n'), shown.text)
})

interface Schema {
  $ref?: string
  maxItems?: number
  properties?: Record<string, Schema>
  anyOf?: Schema[]
}

test('the table of limits has the limits of the routes; all others accept 2 MiB', () => {
  const { paths, components } = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'))
  /** The maximum number of entries of the body, or of the list in it. */
  const entriesOf = ({ $ref, maxItems, properties = {}, anyOf = [] }: Schema, depth = 0): number[] => {
    if ($ref) return entriesOf(components.schemas[$ref.split('/').at(-1)!], depth)
    if (maxItems !== undefined) return [maxItems]
    return depth > 2 ? [] : [...Object.values(properties), ...anyOf].flatMap((one) => entriesOf(one, depth + 1))
  }
  const rows = new Map(
    [...page.matchAll(/^\| `POST (\/\S+)` \| (\d+) ([MK])iB \| (\d*) ?\|$/gm)].map(
      ([, path, number, unit, entries]) => [path!, { bytes: Number(number) * (unit === 'M' ? MIB : KIB), entries }],
    ),
  )
  assert.ok(rows.size >= 11)
  for (const path of rows.keys()) assert.ok(paths[path]?.post, path)
  for (const [path, operations] of Object.entries<
    Record<string, { requestBody?: { 'x-max-bytes': number; content: object } }>
  >(paths))
    for (const { requestBody } of Object.values(operations)) {
      if (!requestBody) continue
      const row = rows.get(path)
      assert.equal(requestBody['x-max-bytes'], row?.bytes ?? 2 * MIB, path)
      const [{ schema }] = Object.values(requestBody.content) as [{ schema: Schema }]
      if (row?.entries) assert.ok(entriesOf(schema).includes(Number(row.entries)), path)
    }
})
