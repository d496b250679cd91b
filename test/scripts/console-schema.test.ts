/** The console has the types that openapi.json has now. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { consoleSchema } from '../../scripts/console-schema.ts'

const SCHEMA = new URL('../../wrangler-free-deploy/console/api/schema.d.ts', import.meta.url)

/** Biome breaks lines, and sets or leaves out separators, brackets and quotes as it does everywhere. */
const bare = (text: string) => text.replaceAll(/["'\s;,|(){}]/g, '')

test('`npm run openapi` has written the types of the routes that the console reads', () => {
  const openapi = readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8')
  assert.equal(bare(readFileSync(SCHEMA, 'utf8')), bare(consoleSchema(openapi)))
})

test('the types have every kind of answer, and no route that writes', () => {
  const schema = consoleSchema(
    JSON.stringify({
      paths: {
        '/things/{id}': {
          get: {
            parameters: [
              { name: 'id', in: 'path', required: true, schema: { type: 'string' } },
              { name: 'kind', in: 'query', schema: { enum: ['a', 'b'] } },
            ],
            responses: {
              200: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Thing' } } } },
              404: { content: { 'text/plain': { schema: { type: 'string' } } } },
            },
          },
          post: { responses: { 200: { content: { 'text/plain': { schema: { type: 'string' } } } } } },
        },
      },
      components: {
        schemas: {
          Thing: {
            type: 'object',
            properties: {
              one: { type: ['integer', 'null'] },
              'two-parts': { anyOf: [{ const: true }, { type: 'array', items: { type: 'string' } }] },
              free: { type: 'object', additionalProperties: { type: 'number' } },
            },
            required: ['one'],
          },
        },
      },
    }),
  )
  assert.match(
    schema,
    /"\/things\/\{id\}": \{get: \{parameters: \{query\?: \{"kind"\?: "a" \| "b"\}; path: \{"id": string\}\}/,
  )
  assert.match(schema, /responses: \{200: \{content: \{"application\/json": components\['schemas'\]\['Thing'\]\}\}\}/)
  assert.match(
    schema,
    /Thing: \{"one": number \| null; "two-parts"\?: true \| \(string\)\[\]; "free"\?: Record<string, number>\}/,
  )
  assert.doesNotMatch(schema, /post|404/)
})
