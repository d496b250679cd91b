/** The command line has the parameters that openapi.json has now. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { cliSources, operationsOf } from '../../scripts/cli-operations.ts'
import { OPERATIONS } from '../../wrangler-free-deploy/cli/api/operations.ts'

test('`npm run openapi` has written the routes that commands name, and no others', () => {
  const openapi = readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')
  assert.deepEqual(OPERATIONS, operationsOf(openapi, cliSources()))
})

test('no name that the build shortens is a field of an answer', () => {
  const build = readFileSync(new URL('../../scripts/build.mjs', import.meta.url), 'utf8')
  const list = build.slice(build.indexOf('CLI_NAMES = '), build.indexOf(".join('|')"))
  const names = [...list.matchAll(/'(\w+)'/g)].map(([, name]) => name!)
  const openapi = readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')
  assert.ok(names.length > 5)
  for (const name of names) assert.ok(!openapi.includes(`"${name}":`), name)
})
