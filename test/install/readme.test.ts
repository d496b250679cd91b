/** README.md: what it runs, worked through; its table of routes has every route there is, with the scope that it needs, and no other. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { blocksOf } from './document.ts'
import { scopeOf } from './scopes.ts'
import { walk } from './walk.ts'

const page = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')

const session = blocksOf(page).find(({ tags }) => tags.includes('run'))!

walk('README.md')

test('the first session fits on a screen', () => {
  assert.equal(session.text.split('\n').length, 5)
})

/**
 * Routes of a table by `<METHOD> <path>`, with their scopes. A method counts until one is named again, and each that is named takes the
 * next scope; a scope alone is that of the whole row.
 */
function tabled(table: string): Map<string, string> {
  const found = new Map<string, string>()
  for (const [, names, scopes] of table.matchAll(/^\| (`[A-Z]+ \/.*?`) \| ([a-z, ]+) \|/gm)) {
    const each = scopes!.split(', ')
    let method = ''
    let scope = ''
    for (const [, named, path] of names!.matchAll(/`(?:([A-Z]+) )?([^`?]+)[^`]*`/g)) {
      if (named) [method, scope] = [named, each.shift() ?? scope]
      found.set(`${method} ${path}`, scope)
    }
    assert.equal(each.length, 0, names)
  }
  return found
}

test('the table of routes is that of the router', () => {
  const [, table] = /\n## Routes\n\n([\s\S]*?)\n\n/.exec(page)!
  assert.deepEqual([...tabled(table!)].sort(), [...scopeOf()].sort())
})

test('a table is read as it is meant', () => {
  const table = '| `GET /a?b=`, `/c/{d}` | read | x |\n| `POST /e`, `GET /e/{f}`, `/g` | ingest, read | y |\n'
  assert.deepEqual(
    [...tabled(table)],
    [
      ['GET /a', 'read'],
      ['GET /c/{d}', 'read'],
      ['POST /e', 'ingest'],
      ['GET /e/{f}', 'read'],
      ['GET /g', 'read'],
    ],
  )
})
