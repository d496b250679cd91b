/** What the command line knows of the API is what openapi.json says now. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { cliSources, operationsOf } from '../../scripts/cli-operations.ts'
import { OPERATIONS } from '../../wrangler-free-deploy/cli/api/operations.ts'

test('`npm run openapi` has written the routes that commands name, and no others', () => {
  const openapi = readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')
  assert.deepEqual(OPERATIONS, operationsOf(openapi, cliSources()))
})
