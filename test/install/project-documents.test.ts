/**
 * CHANGELOG.md, CONTRIBUTING.md, SECURITY.md and LICENCES.md: the commands, files, variables and links in them exist.
 */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { configTable, loadConfig } from '../../lib/config/index.ts'
import { createTokens } from '../../lib/http/tokens.ts'
import { TOKENS } from '../support/app.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
const variables = new Set([...configTable().matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name!))
const DOCUMENTS = ['CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'LICENCES.md']

for (const path of DOCUMENTS) {
  const page = read(path)

  test(`${path}: every script of npm that it names is in package.json`, () => {
    for (const [, name] of page.matchAll(/npm run ([\w:-]+)/g)) assert.ok(name! in scripts, name)
    for (const [, name] of page.matchAll(/npm (start|test|version)\b/g)) assert.ok(name! in scripts, name)
  })

  test(`${path}: every file that it names exists`, () => {
    const names = [...page.matchAll(/`((?:\.ci|handlers|jobs|lib|scripts|sql|test)\/[\w./-]*)`/g)].map(
      ([, name]) => name!,
    )
    for (const [, words] of page.matchAll(/`(?:\w+=\w+ )?npm test ([^`]+)`/g)) names.push(...words!.split(' '))
    for (const name of names) assert.ok(existsSync(join(ROOT, name)), name)
  })

  test(`${path}: its links have a target`, () => {
    for (const [, target] of page.matchAll(/\]\((?!https:)([^)]+)\)/g)) {
      const [file, fragment] = target!.split('#') as [string, string?]
      const titles = [...read(file).matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
        title!.toLowerCase().replaceAll(' ', '-'),
      )
      assert.ok(fragment === undefined || titles.includes(fragment), target)
    }
  })

  test(`${path}: every variable that it names is read`, () => {
    for (const [, name] of page.matchAll(/`((?:BROKER|EVALUATOR|TELEMETRY|JOBS)\w*)(?:=\w+)?`/g))
      assert.ok(variables.has(name!), name)
  })
}

test('the table of commands has every script but those that npm runs itself and the single benchmarks', () => {
  const listed = [...read('CONTRIBUTING.md').matchAll(/^\| `npm (?:run )?([\w:-]+)` \|/gm)].map(([, name]) => name!)
  const expected = Object.keys(scripts).filter((name) => !/^(version|bench:.*)$/.test(name))
  assert.deepEqual(listed.sort(), expected.sort())
})

test('SECURITY.md lists the rights of every token', () => {
  const rows = new Map(
    [...read('SECURITY.md').matchAll(/^\| `(BROKER_\w+)` \| (.*) \|$/gm)].map(([, name, may]) => [name!, may!]),
  )
  assert.deepEqual([...rows.keys()].sort(), Object.keys(TOKENS).sort())
  const { authenticate } = createTokens(loadConfig(TOKENS))
  for (const [variable, token] of Object.entries(TOKENS)) {
    const scopes = authenticate(`Bearer ${token}`)!
    const may = rows.get(variable)!
    assert.deepEqual(
      [/\bread\b/.test(may), /what agents see/.test(may), /findings, SBOMs and signatures/.test(may)],
      [scopes.has('read'), scopes.has('ingest'), scopes.has('supplychain')],
      variable,
    )
  }
})
