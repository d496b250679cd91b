/** Compares the tables of docs/operations.md with the sources; docs.test.ts runs its commands. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { scopeMatrix } from '../../scripts/scopes.ts'

const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')

test('the matrix of scopes is that of the routes and tokens', () => {
  const [, table] = /<!-- scopes:start -->\n([\s\S]*?)\n<!-- scopes:end -->/.exec(page)!
  assert.equal(table, scopeMatrix())
})

test('target rates are those of the benchmark', () => {
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
