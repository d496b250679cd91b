/** docs/operations.md: its tables are those of the sources. What it runs is run by docs.test.ts. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { scopeMatrix } from './scopes.ts'

const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')

test('the matrix of scopes is what the routes declare and the tokens grant', () => {
  const [, table] = /<!-- scopes:start -->\n([\s\S]*?)\n<!-- scopes:end -->/.exec(page)!
  assert.equal(table, scopeMatrix())
})

test('rates are those that the benchmark prints its own beside', () => {
  const bench = readFileSync(new URL('../bench/run.ts', import.meta.url), 'utf8')
  const targets = new Map(
    [...bench.matchAll(/phase\(\s*['`]([A-Z]+ [^,\s'`]+)([^'`]*)['`], '([\d ]+)\/s', (\d+)/g)].map(
      ([, path, more, rate, clients]) => [`${path}${/all repeats/.exec(more!)?.[0] ?? ''}`, { rate, clients }],
    ),
  )
  const rows = [...page.matchAll(/^\| `([A-Z]+ [^`]+)`([^|]*) \| (\d+) \| ([\d ]+?)(?: flows)?\/s \|$/gm)]
  assert.ok(rows.length >= 9)
  for (const [, path, more, clients, rate] of rows)
    assert.deepEqual({ rate, clients }, targets.get(`${path}${/all repeats/.exec(more!)?.[0] ?? ''}`), path)
})
