/** Every value that switches something is among the toggles, which scripts/chart-check.sh renders and holds to the schemas of Kubernetes. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { load } from 'js-yaml'
import { at, chartValues, readSchema, schemaAt } from '../../scripts/chart-values.ts'

const FOLDER = new URL('toggles/', import.meta.url)
const toggles = readdirSync(FOLDER).map((name) => load(readFileSync(new URL(name, FOLDER), 'utf8')))
const root = readSchema()

/** These are handed on as they are: one word is like the other. */
const HANDED_ON = ['broker.logLevel', 'frontend.logLevel']

const isEmpty = (value: unknown) => ['""', '[]', '{}'].includes(JSON.stringify(value))

for (const { path, fallback } of chartValues()) {
  const given = (): unknown[] => toggles.map((toggle) => at(toggle, path)).filter((value) => value !== undefined)
  const schema = schemaAt(path, root)
  const choices = schema.type === 'boolean' ? [true, false] : HANDED_ON.includes(path) ? undefined : schema.enum
  if (choices)
    test(`${path} is rendered with each of its values`, () => {
      const missing = choices.filter((choice) => choice !== fallback && !given().includes(choice))
      assert.deepEqual(missing, [])
    })
  else if (isEmpty(fallback))
    test(`${path} is rendered when it is given`, () => assert.ok(given().some((value) => !isEmpty(value))))
}
