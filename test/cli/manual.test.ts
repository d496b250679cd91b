/** docs/cli.md is what the program says of itself, and its examples run. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import test, { after } from 'node:test'
import { cliParts, documentedCommands } from '../../scripts/cli-docs.ts'
import { EXIT } from '../../wrangler-free-deploy/cli/failure.ts'
import { startCluster } from './cluster.ts'
import { inProcess } from './in-process.ts'
import { API, WEB } from './seed/workloads.ts'
import { pathOf } from './support.ts'
import { wordsOf } from './words.ts'

const FIRST_SCREEN_LINES = 24

const page = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8')
const commands = documentedCommands()
const cluster = await startCluster()
const ctb = inProcess(cluster.url)

test('`npm run docs` has written the flags and the commands', () => {
  for (const [name, text] of Object.entries(cliParts()))
    assert.ok(page.includes(`<!-- ${name}:start -->\n${text}\n<!-- ${name}:end -->\n`), name)
})

test('every exit code is in the table', () => {
  const rows = [...page.matchAll(/^\| ([\d, ]+) \| /gm)].flatMap(([, codes]) => codes!.split(', ').map(Number))
  for (const code of Object.values(EXIT)) assert.ok(rows.includes(code), String(code))
})

test('the calls on the first screen of README.md are examples, three of them', () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  const screen = readme.split('\n').slice(0, FIRST_SCREEN_LINES).join('\n')
  const calls = [...screen.matchAll(/^ctb (.*?) *(?:#.*)?$/gm)].map(([, words]) => words)
  assert.equal(calls.length, 3)
  const known = commands.flatMap(({ examples }) => examples.map(({ words }) => words))
  for (const words of calls) assert.ok(known.includes(words!), words)
})

/** Digests that stand in examples for those of the seeded cluster. */
const STANDS_FOR: Readonly<Record<string, string>> = { 'sha256:0123456789ab': WEB, 'sha256:ba9876543210': API }

/** Calls that do not end by themselves, and the test that runs them. */
const ENDLESS: readonly (readonly [words: RegExp, test: string])[] = [[/^flows (.* )?(-f|--follow)\b/, 'flows.test.ts']]

// Files of examples belong to a folder of their own.
const before = process.cwd()
mkdirSync(pathOf('examples'))
process.chdir(pathOf('examples'))
after(() => process.chdir(before))

for (const { name, examples } of commands)
  test(`ctb ${name}: its examples run`, async () => {
    assert.ok(examples.length > 0, 'a command has examples for the manual')
    for (const { words, what } of examples) {
      assert.ok(words === name || words.startsWith(`${name} `), words)
      assert.match(what, /^[A-Z].*\.$/)
      if (ENDLESS.some(([pattern]) => pattern.test(words))) continue
      const { code, err } = await ctb(wordsOf(words).map((word) => STANDS_FOR[word] ?? word))
      const expected = Number(/[Ee]xit code (\d+)/.exec(what)?.[1] ?? 0)
      assert.equal(code, expected, `ctb ${words}: ${err}`)
    }
  })
